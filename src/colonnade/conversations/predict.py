"""The predict conversation: scores of rows whose columns lie with several parties.

All parties hold their share of the model and the same common rows (`conversations.align`). For a linear
model every party's part of a score is one number, so a request is: the asker names rows by their place in
the common order, everybody sends its parts into the secure sum, the asker reads the total. A kernel model
takes a few sums more (`kernel_predict`).

What each side learns: the asker learns the total score of the rows it names, nothing of the parts (with
two parties the total gives the other part away). The others learn which of their rows are asked for, not
the score. Who may ask many rows can solve for the others' part of a linear model: who asks is a matter of
trust, and of the policy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from colonnade.arrays import Floats, Matrix, Rows
from colonnade.conversations.kernel.predict import KernelShare, predict
from colonnade.errors import NetworkError
from colonnade.messages import Score, Topic, tag_of
from colonnade.net.network import Network
from colonnade.secure.protocol import SecureSum

CHUNK = 2**16
_END = np.empty(0, dtype=np.int64)


class Model(Protocol):
    """One party's share of a model, applied to its part of the common rows."""

    @property
    def rows(self) -> int: ...

    async def score(self, session: Session, rows: Rows) -> Floats | None:
        """The total scores of these rows at the asker, None elsewhere."""
        ...


@dataclass(frozen=True, eq=False)
class LinearPart:
    """X w of the common rows: computed once, a request only picks from it."""

    part: Floats

    @property
    def rows(self) -> int:
        return len(self.part)

    async def score(self, session: Session, rows: Rows) -> Floats | None:
        return await session.secure.sum(self.part[rows], root=session.asker, tag=session.next_tag())


@dataclass(frozen=True, eq=False)
class KernelPart:
    share: KernelShare
    X: Matrix

    @property
    def rows(self) -> int:
        return int(self.X.shape[0])

    async def score(self, session: Session, rows: Rows) -> Floats | None:
        return await predict(
            self.share,
            self.X[rows],
            net=session.net,
            secure=session.secure,
            root=session.asker,
            next_tag=session.next_tag,
        )


@dataclass
class Session:
    """Parties that score together until the asker ends it. One request at a time; put many rows in it."""

    net: Network
    secure: SecureSum
    asker: str
    model: Model
    _tags: int = 0
    _requests: int = 0

    def next_tag(self) -> int:
        self._tags += 1
        return tag_of(Topic.PREDICT, self._tags - 1)

    async def score_all(self) -> Floats | None:
        """Every common row, in the common order; all parties call this."""
        parts = []
        for start in range(0, self.model.rows, CHUNK):
            rows = np.arange(start, min(start + CHUNK, self.model.rows))
            parts.append(await self.model.score(self, rows))
        whole = [part for part in parts if part is not None]
        return np.concatenate(whole) if whole else None

    async def ask(self, rows: Rows) -> Floats:
        """At the asker: the scores of these rows."""
        await self.net.broadcast(Score(self._requests, rows))
        self._requests += 1
        scores = await self.model.score(self, rows)
        assert scores is not None  # noqa: S101  the asker is the root
        return scores

    async def end(self) -> None:
        await self.net.broadcast(Score(self._requests, _END))

    async def answer(self) -> int:
        """At everybody else: answer until the asker ends the session; how many rows were asked for."""
        asked = 0
        async for waiting in self.net.stream(Score, patient=True):
            for sender, request in waiting:
                if sender != self.asker or request.tag != self._requests:
                    raise NetworkError(f"{sender} asks out of turn in a session of {self.asker}")
                self._requests += 1
                if not request.rows.size:
                    return asked
                rows = request.rows
                if rows.dtype != np.int64 or rows.min() < 0 or rows.max() >= self.model.rows:
                    raise NetworkError(f"{sender} asks for rows that are not among the common ones")
                asked += len(rows)
                await self.model.score(self, rows)
        return asked
