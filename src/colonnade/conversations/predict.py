"""The predict conversation: scores of rows whose columns lie with several parties.

All parties hold their share of the model and the same common rows (`conversations.align`). For a linear
model every party's part of a score is one number, so a request is: the asker names rows by their place in
the common order, everybody sends its parts into the secure sum, the asker reads the total. A kernel model
takes a few sums more (`kernel.predict`), a cascade may have a model on top (`cascade.predict`).

What each side learns: the asker learns the total score of the rows it names, nothing of the parts (with
two parties the total gives the other part away). The others learn which of their rows are asked for, not
the score. Who may ask many rows can solve for the others' part of a linear model: who asks is a matter of
trust, and of the policy.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy as np

from colonnade.arrays import Arrays, Floats, Matrix, Rows
from colonnade.conversations.context import NO_MODELS, NO_STREAMS, GivenModels
from colonnade.job import Job
from colonnade.job.plan import Plan
from colonnade.messages import Score, Topic, tag_of
from colonnade.net.expect import expect, out_of_turn, whole
from colonnade.net.network import Network
from colonnade.openings.limits import OpeningLimits, Unlimited
from colonnade.openings.opening import Opening
from colonnade.openings.scoring import ScoringRequest
from colonnade.secure.protocol import SecureSum
from colonnade.secure.streams import PairStreams

T = TypeVar("T")
CHUNK = 2**16  # rows that are scored at once
UNDER_WAY = 8  # requests, at the most
_END = np.empty(0, dtype=np.int64)


class Workplace(Protocol):
    """Where what takes long is computed."""

    async def do(self, work: Callable[[], T]) -> T:
        """Return the result of some work, which touches nothing that others work on."""
        ...


class Here:
    """On the spot: all else that this process has to do waits."""

    async def do(self, work: Callable[[], T]) -> T:
        return work()


HERE = Here()


class PartyValues(NamedTuple):
    """The score where no columns are known, [classes], and every party's value, [rows, parties, classes]."""

    base: Floats
    values: Floats


class Scorer(Protocol):
    """One party's share of a model, applied to its part of the common rows."""

    @property
    def rows(self) -> int:
        """How many common rows there are."""
        ...

    @property
    def overlaps(self) -> bool:
        """Whether a request may begin before the last one is answered: all its tags are taken at once."""
        ...

    async def score(self, session: Session, rows: Rows) -> Floats | None:
        """Return the total scores of these rows at the asker, None elsewhere."""
        ...

    def opens(self, request: ScoringRequest) -> list[Opening]:
        """Return what that opens: all totals, and what this party sends."""
        ...


@runtime_checkable
class PartyExplainer(Protocol):
    """What scores, and can say what every party's columns did to a score, from what it hears anyway."""

    def explaining(self, kept: list[PartyValues]) -> Scorer:
        """Return the same, which keeps what it finds of every request."""
        ...


@dataclass(frozen=True, eq=False)
class Holding:
    """What one party has to score with: its stored arrays, its columns of the rows, its models if any."""

    plan: Plan[Any]
    me: str
    arrays: Arrays
    X: Matrix
    models: GivenModels = NO_MODELS


class ShareKind(Protocol):
    """What a party keeps of a trained model, and how it scores rows with it."""

    @property
    def name(self) -> str:
        """The kind's name in stored shares."""
        ...

    def is_sum(self, job: Job) -> bool:
        """Return whether a score is the sum of one part from every party."""
        ...

    def scorer(self, holding: Holding) -> Scorer:
        """Return what scores this party's rows with its share, in a session with the other parties."""
        ...

    def together(self, holdings: Mapping[str, Holding]) -> Floats:
        """Return the scores where one process holds all shares and all columns, as in an experiment."""
        ...


@dataclass(frozen=True, eq=False)
class SummedPart:
    """This party's part of every score, computed once; the score is the sum of all parties' parts."""

    part: Floats
    overlaps: ClassVar[bool] = True

    @property
    def rows(self) -> int:
        return len(self.part)

    async def score(self, session: Session, rows: Rows) -> Floats | None:
        return await session.total(self.part[rows])

    def opens(self, request: ScoringRequest) -> list[Opening]:
        return [request.total(request.rows * self.part[:1].size)]


@dataclass
class Session:
    """One party's side of a session of joint scores, until the asker ends it.

    A request takes round trips, therefore many rows belong in one, at most `CHUNK`. Where the model allows it
    a few are under way at once.
    """

    net: Network
    secure: SecureSum
    asker: str
    scorer: Scorer
    streams: PairStreams = NO_STREAMS
    workplace: Workplace = HERE
    limits: OpeningLimits = field(default_factory=Unlimited)
    scored: Callable[[int], None] = lambda rows: None  # hears how many rows each request was about
    _tags: int = 0
    _requests: int = 0
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)  # to name rows

    def next_tag(self) -> int:
        """Return a tag that the session has not used yet; all parties count alike."""
        self._tags += 1
        return tag_of(Topic.PREDICT, self._tags - 1)

    async def total(self, piece: Floats) -> Floats | None:
        """Return the sum of all parties' pieces at the asker, None elsewhere."""
        tag = self.next_tag()
        if self.net.me == self.asker:
            return await self.secure.collect(piece, tag=tag)
        await self.secure.give(piece, root=self.asker, tag=tag)
        return None

    async def score_all(self) -> Floats | None:
        """Return the scores of every common row, in the common order, at the asker; all parties call this."""
        parts = []
        for start in range(0, self.scorer.rows, CHUNK):
            rows = np.arange(start, min(start + CHUNK, self.scorer.rows))
            self._allow(rows)
            parts.append(await self.scorer.score(self, rows))
        whole = [part for part in parts if part is not None]
        return np.concatenate(whole) if whole else None

    async def ask(self, rows: Rows) -> Floats:
        """Return the scores of these rows, in several requests where they are many; only the asker calls
        this."""
        parts = [await self._ask(rows[first : first + CHUNK]) for first in range(0, len(rows), CHUNK)]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    async def _ask(self, rows: Rows) -> Floats:
        async with self._turn:
            self._allow(rows)
            await self.net.broadcast(Score(self._requests, rows))
            self._requests += 1
            if self.scorer.overlaps:  # tasks begin in turn, so tags are taken in the order of requests
                scoring = asyncio.ensure_future(self.scorer.score(self, rows))
            else:
                scores = await self.scorer.score(self, rows)
        if self.scorer.overlaps:
            scores = await scoring
        if scores is None:
            raise RuntimeError(f"{self.net.me} asks in a session of {self.asker}")
        return scores

    def _allow(self, rows: Rows) -> None:
        """Let this request be answered, and nothing else."""
        request = ScoringRequest(self.net.me, self.net.parties, self.asker, len(rows))
        for each in (request.named, *self.scorer.opens(request)):
            self.limits.allow(each)
        self.scored(len(rows))

    async def end(self) -> None:
        """Tell the others that nothing more is asked."""
        await self.net.broadcast(Score(self._requests, _END))

    async def answer(self) -> int:
        """Answer until the asker ends the session, and return how many rows were asked for."""
        try:
            async with asyncio.TaskGroup() as group:
                return await self._answer(group)
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None

    async def _answer(self, group: asyncio.TaskGroup) -> int:
        asked, room = 0, asyncio.Semaphore(UNDER_WAY if self.scorer.overlaps else 1)

        async def score(rows: Rows) -> None:
            await self.scorer.score(self, rows)
            room.release()

        async for waiting in self.net.stream(Score, patient=True):
            for sender, request in waiting:
                if sender != self.asker or request.tag != self._requests:
                    raise out_of_turn(sender, request, f"it asks out of turn in a session of {self.asker}")
                self._requests += 1
                if not request.rows.size:
                    return asked
                rows = request.rows
                # each one of the common ones, and no more at once than an honest asker names
                expect(sender, request, {"rows": whole(None, high=self.scorer.rows - 1)})
                if len(rows) > CHUNK:
                    raise out_of_turn(sender, request, f"it asks for {len(rows)} rows at once, over {CHUNK}")
                await room.acquire()
                asked += len(rows)
                self._allow(rows)
                group.create_task(score(rows))
        return asked
