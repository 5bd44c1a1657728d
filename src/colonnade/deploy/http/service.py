"""The prediction service of a label holder: HTTP and JSON in front, the other parties behind.

    POST /v1/score       {"ids": ["4711", ...]} -> one score per id; a composite id is a list
    GET  /v1/model       which model answers, and who is away
    GET  /openapi.json   the same for machines

Whoever asks shows a token, or a certificate of the authority named in the settings; requests have a size
limit. A session with the other parties stays open: its rows were aligned privately when it began, so a
request names rows by number and takes one sum. Requests that wait together share a sum. When a party goes
away the service says so (503), or goes on without it where the job allows that, and says that too.

What is not known to all parties when a session begins is not found until the next one, and a model that was
trained since then is not used: POST /v1/refresh.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import ssl
import time
from collections import deque
from typing import Any

import msgspec
import numpy as np
from aiohttp import web

from colonnade.deploy import scoring, shares
from colonnade.deploy.daemon import Daemon
from colonnade.deploy.http.openapi import document
from colonnade.deploy.rows import digests
from colonnade.deploy.settings import Serve, address
from colonnade.errors import CertificateError, ColonnadeError, DataError, JobError, ShareError
from colonnade.messages import Score
from colonnade.net.stream.channel import cannot_listen

log = logging.getLogger("colonnade.service")

RETRY_S = 1.0
ANSWER_S = 30.0


class Question(msgspec.Struct, forbid_unknown_fields=True):
    ids: list[str | int | list[str | int]]


class Service:
    def __init__(self, daemon: Daemon, serve: Serve) -> None:
        self._daemon, self._serve = daemon, serve
        self._share: shares.StoredShare | None = None
        self._token = self._read_token()
        self._places: dict[bytes, int] = {}
        self._away: list[str] = []
        self._reason = "the service is starting"
        self._ready: scoring.Ready | None = None
        self._waiting: deque[tuple[list[int], asyncio.Future[Any]]] = deque()
        self._bell = asyncio.Event()
        self._over = asyncio.Event()
        self._keeper: asyncio.Task[None] | None = None
        self.seconds: deque[float] = deque(maxlen=10_000)

    def _read_token(self) -> str | None:
        if self._serve.token_file is None:
            return None
        path = self._daemon.settings.path(self._serve.token_file)
        try:
            token = path.read_text().strip()
        except OSError as error:
            raise JobError(f"serve.token_file: {path}: {error.strerror}; write a long random line") from error
        if len(token) < 16:
            raise JobError(f"serve.token_file: {path}: a token has at least 16 characters")
        return token

    # -- the front ----------------------------------------------------------------------------------

    async def open(self) -> None:
        app = web.Application(client_max_size=self._serve.max_bytes, middlewares=[self._guard])
        app.router.add_post("/v1/score", self._score)
        app.router.add_post("/v1/refresh", self._refresh)
        app.router.add_get("/v1/model", self._model)
        app.router.add_get("/openapi.json", self._openapi)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        host, port = address(self._serve.listen, "serve.listen")
        try:
            await web.TCPSite(self._runner, host, port, ssl_context=self._tls()).start()
        except OSError as error:
            await self._runner.cleanup()
            raise cannot_listen("serve.listen:", self._serve.listen, error) from error
        self._keeper = asyncio.ensure_future(self._keep())
        log.info("scores of %s at %s", self._serve.model, self._serve.listen)

    async def close(self) -> None:
        self._over.set()
        self._bell.set()
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.gather(self._keeper, return_exceptions=True)
        await self._runner.cleanup()

    def _tls(self) -> ssl.SSLContext | None:
        serve, path = self._serve, self._daemon.settings.path
        if serve.certificate is None or serve.key is None:
            return None
        try:
            context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            context.load_cert_chain(path(serve.certificate), path(serve.key))
            if serve.client_ca is not None:
                context.load_verify_locations(path(serve.client_ca))
                context.verify_mode = ssl.CERT_REQUIRED
        except (OSError, ssl.SSLError) as error:
            raise CertificateError(f"serve: the service's certificates cannot be used: {error}") from error
        return context

    @web.middleware
    async def _guard(self, request: web.Request, handler: Any) -> web.StreamResponse:
        """Nobody without a token, where one is demanded; every error is JSON."""
        if self._token is not None:
            given = request.headers.get("Authorization", "").removeprefix("Bearer ")
            if not hmac.compare_digest(given.encode(), self._token.encode()):
                return _problem(401, "show the token: Authorization: Bearer TOKEN")
        try:
            answer: web.StreamResponse = await handler(request)
        except web.HTTPRequestEntityTooLarge:
            return _problem(413, f"a request has at most {self._serve.max_bytes} bytes")
        except web.HTTPException as error:
            return _problem(error.status, error.reason)
        except ColonnadeError as error:
            return _problem(503, str(error))
        return answer

    async def _score(self, request: web.Request) -> web.Response:
        began = time.perf_counter()
        manifest = self._manifest()
        try:
            question = msgspec.json.decode(await request.read(), type=Question)
            ids = [[str(part) for part in (i if isinstance(i, list) else [i])] for i in question.ids]
            if not 0 < len(ids) <= self._serve.max_ids:
                return _problem(400, f"give 1 to {self._serve.max_ids} ids, these are {len(ids)}")
            names = self._digests(manifest, ids)
        except msgspec.MsgspecError as error:
            return _problem(400, f"not a question: {error}")
        except DataError as error:
            return _problem(400, str(error))
        if self._ready is None:
            return _problem(503, self._reason)
        places = [self._places.get(name) for name in names]
        known = [place for place in places if place is not None]
        scores = iter(await self._ask(known) if known else [])
        rows = [
            {"id": given, "found": False} if place is None else {"id": given, "found": True, **next(scores)}
            for given, place in zip(question.ids, places, strict=True)
        ]
        self.seconds.append(time.perf_counter() - began)
        answer = {"model": manifest.model, "degraded": self._away, "scores": rows}
        return web.Response(body=msgspec.json.encode(answer), content_type="application/json")

    def _manifest(self) -> shares.Manifest:
        """Of the model that answers; the newest of its name when the session began."""
        if self._share is None:
            raise ShareError(self._reason)
        return self._share.manifest

    def _digests(self, manifest: shares.Manifest, ids: list[list[str]]) -> list[bytes]:
        trained = manifest.terms
        entry = self._daemon.settings.data[self._serve.data or trained.parties[self._daemon.me].data]
        if any(len(each) != len(entry.keys) for each in ids):
            raise DataError(f"an id here is {' + '.join(entry.keys)}")
        columns = [np.array(column) for column in zip(*ids, strict=True)]
        return [row.tobytes() for row in digests(columns, trained.align.keys, entry.keys)]

    async def _refresh(self, request: web.Request) -> web.Response:
        self._over.set()
        self._bell.set()
        return web.json_response({"refreshing": True}, status=202)

    async def _model(self, request: web.Request) -> web.Response:
        manifest = self._manifest()
        ready = self._ready is not None
        return web.json_response(
            {
                "model": manifest.model,
                "ready": ready,
                "reason": "" if ready else self._reason,
                "rows": len(self._places),
                "degraded": self._away,
                "columns": manifest.columns,
            }
        )

    async def _openapi(self, request: web.Request) -> web.Response:
        return web.json_response(document(self._serve, self._manifest()))

    # -- the session behind -------------------------------------------------------------------------

    async def _keep(self) -> None:
        """Always have a session; begin another when one ends, or when a party came back."""
        while True:
            self._over.clear()
            try:
                models = self._daemon.settings.state / "models"
                share = self._share = await asyncio.to_thread(shares.load, models, self._serve.model)
                await self._daemon.score(share, None, self._use, data=self._serve.data, service=True)
            except ColonnadeError as error:
                self._reason = str(error)
                log.warning("no session: %s", error)
                await asyncio.sleep(RETRY_S)
            finally:
                self._ready = None
                self._fail_waiting()

    async def _use(self, ready: scoring.Ready) -> None:
        """One session, from its alignment to its end."""
        manifest = self._manifest()
        self._places = {row.tobytes(): place for place, row in enumerate(ready.ids)}
        self._away = sorted(set(manifest.terms.parties) - set(ready.session.net.parties))
        self._ready = ready
        log.info("ready: %d ids are known to all%s", len(ready.ids), self._missing())
        # nobody asks the asker, so this wait ends only when the session fails
        failed = asyncio.ensure_future(ready.session.net.drain(Score, patient=True))
        try:
            while not (self._over.is_set() or failed.done() or self._all_back()):
                ring = asyncio.ensure_future(self._bell.wait())
                waits: list[asyncio.Future[Any]] = [failed, ring]
                await asyncio.wait(waits, timeout=RETRY_S, return_when=asyncio.FIRST_COMPLETED)
                ring.cancel()
                self._bell.clear()
                while self._waiting and not failed.done():
                    await self._answer_waiting(ready)
        finally:
            self._ready = None
            failed.cancel()
            await asyncio.gather(failed, return_exceptions=True)
        if not failed.cancelled() and (error := failed.exception()) is not None:
            raise error

    def _all_back(self) -> bool:
        return bool(self._away) and all(self._daemon.mux.lines[peer].up for peer in self._away)

    async def _answer_waiting(self, ready: scoring.Ready) -> None:
        """All that wait, as one request to the parties."""
        batch = list(self._waiting)
        self._waiting.clear()
        rows = np.array([place for places, _ in batch for place in places], dtype=np.int64)
        try:
            z = scoring.completed(self._manifest(), await ready.session.ask(rows), self._away)
        except BaseException as error:
            for _, future in batch:
                if not future.done():
                    future.set_exception(error if isinstance(error, ColonnadeError) else JobError("ended"))
            raise
        self._daemon.scored += len(rows)
        answers = scoring.outputs(self._manifest(), z)
        at = 0
        for places, future in batch:
            if not future.done():
                future.set_result(answers[at : at + len(places)])
            at += len(places)

    async def _ask(self, places: list[int]) -> list[dict[str, Any]]:
        future: asyncio.Future[list[dict[str, Any]]] = asyncio.get_running_loop().create_future()
        self._waiting.append((places, future))
        self._bell.set()
        async with asyncio.timeout(ANSWER_S):
            return await future

    def _fail_waiting(self) -> None:
        while self._waiting:
            _, future = self._waiting.popleft()
            if not future.done():
                future.set_exception(JobError(f"the session ended: {self._reason}"))

    def _missing(self) -> str:
        return f"; without {', '.join(self._away)}" if self._away else ""


def _problem(status: int, text: str) -> web.Response:
    return web.json_response({"error": text}, status=status)
