"""The prediction service of a label holder: HTTP and JSON in front, the other parties behind.

    POST /v1/score       {"ids": ["4711", ...]} -> one score per id; a composite id is a list
    GET  /v1/model       which model answers, and who is away
    POST /v1/refresh     align again
    GET  /openapi.json   the same for machines; the only one that needs no token

A client shows a token, or a certificate of the authority named in the settings; requests have a size
limit. A session with the other parties stays open behind it (`open_session`). When a party goes away the
service says so (503), or goes on without it where the job allows that, and says that too.

An id that some party did not know when the session began is not found until the next one: POST /v1/refresh
begins another. Which model answers changes only when an operator promotes another (`serving`).
"""

from __future__ import annotations

import hmac
import logging
import ssl
import time
from collections import deque

import msgspec
from aiohttp import web
from aiohttp.typedefs import Handler

from colonnade.data.read.ids import LONGEST
from colonnade.deploy.daemon.daemon import Daemon
from colonnade.deploy.http.connections import listen
from colonnade.deploy.http.open_session import ANSWER_S, OpenSession, for_clients
from colonnade.deploy.http.openapi import document
from colonnade.deploy.policy.quotas import Quota
from colonnade.deploy.rows.rows import digests
from colonnade.deploy.server_tls import ServerTls
from colonnade.deploy.settings import Serve
from colonnade.deploy.terms.terms import Terms
from colonnade.deploy.tokens import read_token
from colonnade.errors import ColonnadeError, DataError, Refused

log = logging.getLogger("colonnade.service")

DESCRIPTION = "/openapi.json"


class ScoreRequest(msgspec.Struct, forbid_unknown_fields=True):
    """The body of POST /v1/score."""

    ids: list[str | int | list[str | int]]


class Service:
    """The HTTP server of one label holder; `session` is the standing session that it asks."""

    def __init__(self, daemon: Daemon, serve: Serve) -> None:
        self._daemon, self._serve = daemon, serve
        self._token = self._read_token()
        self.session = OpenSession(daemon, serve)
        self._refreshes = Quota("refreshes_an_hour", daemon.settings.limits.refreshes_an_hour)
        self.seconds: deque[float] = deque(maxlen=10_000)  # how long the latest requests took

    def _read_token(self) -> str | None:
        """Return the token that requests must show, None if they show a certificate instead."""
        if self._serve.token_file is None:
            return None
        return read_token(self._daemon.settings.path(self._serve.token_file), "serve.token_file")

    async def open(self) -> None:
        """Listen for requests, and begin to keep a session with the other parties."""
        app = web.Application(client_max_size=self._serve.max_bytes, middlewares=[self._counted, self._guard])
        app.router.add_post("/v1/score", self._score)
        app.router.add_post("/v1/refresh", self._refresh)
        app.router.add_get("/v1/model", self._model)
        app.router.add_get(DESCRIPTION, self._openapi)
        self._runner = web.AppRunner(app, access_log=None)
        self._server = await listen(self._runner, "serve.listen", self._serve.listen, self._tls())
        self.session.open()
        log.info("scores of %s at %s", self._serve.model, self._serve.listen)

    async def close(self) -> None:
        """End the session and stop listening."""
        await self.session.close()
        self._server.close()
        await self._runner.cleanup()

    def _tls(self) -> ssl.SSLContext | None:
        """Return the service's own TLS, None if the settings name no certificate for it."""
        serve, path = self._serve, self._daemon.settings.path
        if serve.certificate is None or serve.key is None:
            return None
        client_ca = None if serve.client_ca is None else path(serve.client_ca)
        tls = ServerTls("serve", path(serve.certificate), path(serve.key), client_ca)
        self._daemon.server_tls.append(tls)
        return tls.context

    @web.middleware
    async def _counted(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Count requests by their codes, and how long scores took."""
        began, counts = time.perf_counter(), self._daemon.counts
        answer = await handler(request)
        counts.requests[str(answer.status)] += 1
        if request.path == "/v1/score" and answer.status == 200:
            counts.request_s.add(time.perf_counter() - began)
            counts.last_scores = time.time()
        return answer

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Turn away requests without the token, where one is demanded, and answer every error as JSON.

        The description of the service needs no token: it tells about no model and no data.
        """
        if self._token is not None and request.path != DESCRIPTION:
            given = request.headers.get("Authorization", "").removeprefix("Bearer ")
            if not hmac.compare_digest(given.encode(errors="surrogateescape"), self._token.encode()):
                return _problem(401, "show the token: Authorization: Bearer TOKEN")
        try:
            answer: web.StreamResponse = await handler(request)
        except web.HTTPRequestEntityTooLarge:
            return _problem(413, f"a request has at most {self._serve.max_bytes} bytes")
        except web.HTTPException as error:
            return _problem(error.status, error.reason)
        except ColonnadeError as error:
            return _problem(503, for_clients(error))
        except TimeoutError:
            return _problem(503, f"no answer within {ANSWER_S:g} s; try again")
        except Exception:  # no request ends the service
            log.exception("could not answer %s", request.path)
            return _problem(500, "the service failed; its operator sees why")
        return answer

    async def _score(self, request: web.Request) -> web.Response:
        """Answer POST /v1/score."""
        began = time.perf_counter()
        session = self.session
        manifest = session.share.manifest
        try:
            asked = msgspec.json.decode(await request.read(), type=ScoreRequest)
            ids = [[str(part) for part in (i if isinstance(i, list) else [i])] for i in asked.ids]
            if not 0 < len(ids) <= self._serve.max_ids:
                return _problem(400, f"give 1 to {self._serve.max_ids} ids, these are {len(ids)}")
            names = self._digests(manifest.terms, ids)
        except msgspec.MsgspecError as error:
            return _problem(400, f"not a question: {error}")
        except DataError as error:
            return _problem(400, str(error))
        if not session.ready:
            return _problem(503, session.reason)
        places = [session.scorable.places.get(name) for name in names]
        known = [place for place in places if place is not None]
        scores = iter(await session.ask(known) if known else [])
        rows = [
            {"id": given, "found": False} if place is None else {"id": given, "found": True, **next(scores)}
            for given, place in zip(asked.ids, places, strict=True)
        ]
        self.seconds.append(time.perf_counter() - began)
        answer = {"model": manifest.model, "degraded": session.scorable.away, "scores": rows}
        return web.Response(body=msgspec.json.encode(answer), content_type="application/json")

    def _digests(self, trained: Terms, ids: list[list[str]]) -> list[bytes]:
        """Return the digests of ids, as the rows of the session are named by."""
        entry = self._daemon.settings.data[self._serve.data or trained.parties[self._daemon.me].data]
        if any(len(each) != len(entry.keys) for each in ids):
            raise DataError(f"an id here is {' + '.join(entry.keys)}")
        if any(len(part) > LONGEST for each in ids for part in each):
            raise DataError(f"an id has at most {LONGEST} characters")
        # lists, since an array has room for the longest text in every place
        columns = list(zip(*ids, strict=True))
        return [row.tobytes() for row in digests(columns, trained.align.keys, entry.keys)]

    async def _refresh(self, request: web.Request) -> web.Response:
        """Answer POST /v1/refresh."""
        try:
            self._refreshes.take()
        except Refused as error:
            return _problem(429, str(error))
        self.session.refresh()
        return web.json_response({"refreshing": True}, status=202)

    async def _model(self, request: web.Request) -> web.Response:
        """Answer GET /v1/model."""
        session = self.session
        manifest, ready = session.share.manifest, session.ready
        return web.json_response(
            {
                "model": manifest.model,
                "ready": ready,
                "reason": "" if ready else session.reason,
                "rows": len(session.scorable.places),
                "degraded": session.scorable.away,
                "columns": manifest.columns,
            }
        )

    async def _openapi(self, request: web.Request) -> web.Response:
        """Answer GET /openapi.json."""
        return web.json_response(document(self._serve))


def _problem(status: int, text: str) -> web.Response:
    """Return an error as JSON."""
    return web.json_response({"error": text}, status=status)
