"""A scoring session that stays open: it begins again whenever it ends, and answers many requests at once.

Its rows were aligned privately when it began, so a request names rows by their place in the common order and
takes one secure sum. Requests that wait together share a sum, and over long lines a few sums are under way.
What each side learns is that of any scoring session (`conversations.predict`).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from colonnade.conversations.predict import UNDER_WAY
from colonnade.deploy.books.score_drift import ScoreMonitor
from colonnade.deploy.daemon import operators
from colonnade.deploy.daemon.daemon import Daemon
from colonnade.deploy.models import stored_shares
from colonnade.deploy.programs import scoring
from colonnade.deploy.programs.scoring import ScoredRow
from colonnade.deploy.settings import Serve
from colonnade.errors import ColonnadeError, JobError, ShareError
from colonnade.messages import Score
from colonnade.test_scores import TestScores

log = logging.getLogger("colonnade.service")

RETRY_S, LONGEST_S = 1.0, 300.0  # until a session is tried again: at first, and after many failures
ANSWER_S = 30.0
LATER_S = 0.01  # after one request to the parties another may begin that does not wait for its answer

Waiting = tuple[list[int], asyncio.Future[list[ScoredRow]]]
"""The rows of one request, and where its answer goes."""


@dataclass(frozen=True)
class ScorableRows:
    """What a session can score: the place of every id that all parties know, and who is away from it."""

    places: dict[bytes, int] = field(default_factory=dict)
    away: list[str] = field(default_factory=list)


def for_clients(error: ColonnadeError) -> str:
    """Return an error as a client may see it: without what it says of this party's files."""
    hidden = "the model cannot be used now; its operator sees why"
    return hidden if isinstance(error, ShareError) else str(error)


class OpenSession:
    """One scoring session after the other with the other parties, for as long as the service runs."""

    def __init__(self, daemon: Daemon, serve: Serve) -> None:
        self._daemon, self._serve = daemon, serve
        self.scorable = ScorableRows()  # of the latest session
        self.reason = "the service is starting"  # why there is no session, while there is none
        self._share: stored_shares.StoredShare | None = None
        self._ready: scoring.Ready | None = None
        self._waiting: deque[Waiting] = deque()
        self._bell = asyncio.Event()  # rings when a request waits or the session shall end
        self._over = asyncio.Event()  # the session shall end
        self._keeper: asyncio.Task[None] | None = None

    def open(self) -> None:
        """Begin to keep a session; a model that is promoted takes over at once."""
        self._daemon.serving.listeners.append(self.refresh)
        self._daemon.no_scores = self.reason
        self._keeper = asyncio.ensure_future(self._keep())

    async def close(self) -> None:
        """End the session and begin no other."""
        self._daemon.serving.listeners.remove(self.refresh)
        self.refresh()
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.gather(self._keeper, return_exceptions=True)

    def refresh(self) -> None:
        """End the session, so that another begins: with new rows, and the model that is in use by then."""
        self._over.set()
        self._bell.set()

    @property
    def ready(self) -> bool:
        """Whether there is a session that may be asked now."""
        return self._ready is not None

    @property
    def share(self) -> stored_shares.StoredShare:
        """This party's share of the model that answers: the one in use when the session began."""
        if self._share is None:
            raise ShareError(self.reason)
        return self._share

    async def ask(self, places: list[int]) -> list[ScoredRow]:
        """Return the scores of the rows at these places in the common order."""
        future: asyncio.Future[list[ScoredRow]] = asyncio.get_running_loop().create_future()
        self._waiting.append((places, future))
        self._bell.set()
        async with asyncio.timeout(ANSWER_S):
            return await future

    async def _keep(self) -> None:
        """Open one session after the other, for ever."""
        said, pause = "", RETRY_S  # the last error, and how long to wait after the next
        while True:
            try:
                model = operators.pin(self._daemon, self._serve.model).model
                self._over.clear()  # from now on: the first use of a name pins it, and rings here, too
                models = self._daemon.serving.models
                share = self._share = await asyncio.to_thread(stored_shares.load, models, model)
                await self._monitor(model)
                await self._daemon.score(share, None, self._use, data=self._serve.data, service=True)
                pause = RETRY_S
            except ColonnadeError as error:
                pause = RETRY_S if self.ready else min(2 * pause, LONGEST_S)
                if self.ready or str(error) != said:  # it is tried again and again, and one line says it
                    log.warning("no session: %s", said := str(error))
                self._fail(for_clients(error))
                await self._rest(pause)
            except Exception:  # the service says what it is and tries again
                self._fail("the session failed; the operator of this party sees why")
                log.exception("no session")
                await asyncio.sleep(RETRY_S)
            finally:
                self._ready = None
                self._fail_waiting()

    def _fail(self, reason: str) -> None:
        """Say why nothing is answered now, to clients and on the page of the party's health."""
        self.reason = self._daemon.no_scores = reason

    async def _rest(self, pause: float) -> None:
        """Wait before the next session, less long where a peer comes back or an operator asks for one."""
        up = self._lines_up()
        for _ in range(int(pause / RETRY_S)):
            with suppress(TimeoutError):
                async with asyncio.timeout(RETRY_S):
                    await self._over.wait()
            if self._over.is_set() or self._lines_up() > up:
                return

    def _lines_up(self) -> int:
        return sum(line.up for line in self._daemon.mux.lines.values())

    async def _monitor(self, model: str) -> None:
        """Begin to compare the scores of a model with those of its test rows, where they were kept here."""
        watched = self._daemon.journal.scores
        if model not in watched:
            kept = stored_shares.scores_file(self._daemon.settings.state, model)
            there = kept.is_file()
            scores = await asyncio.to_thread(TestScores.read, kept) if there else None
            watched[model] = ScoreMonitor(scores.z if scores is not None and scores.z.ndim == 1 else None)

    async def _use(self, ready: scoring.Ready) -> None:
        """Answer requests until the session fails, is to be refreshed, or all that were away are back."""
        places = {row.tobytes(): place for place, row in enumerate(ready.ids)}
        away = sorted(set(self.share.manifest.terms.parties) - set(ready.session.net.parties))
        self.scorable = ScorableRows(places, away)
        self._ready, self._daemon.no_scores = ready, ""
        without = f"; without {', '.join(away)}" if away else ""
        log.info("ready: %d ids are known to all%s", len(ready.ids), without)
        # nobody asks the asker, so this wait ends only when the session fails
        failed = asyncio.ensure_future(ready.session.net.drain(Score, patient=True))
        under_way: set[asyncio.Future[None]] = set()
        at_once, began = (UNDER_WAY if ready.session.scorer.overlaps else 1), 0.0
        try:
            while not (self._over.is_set() or failed.done() or self._all_back()):
                pause, room = began + LATER_S - time.monotonic(), len(under_way) < at_once
                if self._waiting and (not under_way or (room and pause <= 0)):
                    batch, self._waiting, began = list(self._waiting), deque(), time.monotonic()
                    under_way.add(asyncio.ensure_future(self._answer(ready, batch)))
                    continue
                ring = asyncio.ensure_future(self._bell.wait())
                limit = pause if self._waiting and room else RETRY_S
                waits: set[asyncio.Future[Any]] = {failed, ring, *under_way}
                done, _ = await asyncio.wait(waits, timeout=limit, return_when=asyncio.FIRST_COMPLETED)
                ring.cancel()
                self._bell.clear()
                for each in [task for task in under_way if task in done]:
                    under_way.remove(each)
                    each.result()  # what ends a request ends the session
            await asyncio.gather(*under_way)
        finally:
            self._ready = None
            failed.cancel()
            for each in under_way:
                each.cancel()
            await asyncio.gather(failed, *under_way, return_exceptions=True)
        if not failed.cancelled() and (error := failed.exception()) is not None:
            raise error

    def _all_back(self) -> bool:
        """Return whether parties were away when the session began and all of them are connected again."""
        away = self.scorable.away
        return bool(away) and all(peer in self._daemon.peers.controls for peer in away)

    async def _answer(self, ready: scoring.Ready, batch: list[Waiting]) -> None:
        """Answer requests that waited, by one request to the parties."""
        rows = np.array([place for places, _ in batch for place in places], dtype=np.int64)
        try:
            z = await ready.session.ask(rows)
            z = scoring.with_mean_parts(self.share.manifest, z, self.scorable.away)
        except BaseException as error:
            for _, future in batch:
                if not future.done():
                    future.set_exception(error if isinstance(error, ColonnadeError) else JobError("ended"))
            raise
        self._daemon.journal.scored_rows += len(rows)
        if z.ndim == 1:
            self._daemon.journal.scores[self.share.manifest.model].observe(z.tolist())
        answers = scoring.outputs(self.share, z)
        at = 0
        for places, future in batch:
            if not future.done():
                future.set_result(answers[at : at + len(places)])
            at += len(places)

    def _fail_waiting(self) -> None:
        """Tell all requests that wait that the session ended."""
        while self._waiting:
            _, future = self._waiting.popleft()
            if not future.done():
                future.set_exception(JobError(f"the session ended: {self.reason}"))
