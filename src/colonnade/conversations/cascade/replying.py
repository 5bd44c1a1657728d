"""What the server replies to the questions of a wave.

Usually every client is told something of its own (`Answers`): values, deltas or a gradient, packed for it. In
C-VFL everybody is told everything (`exchange.Everything`).

What each side learns is in `cascade`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from colonnade.arrays import Numbers, Rows
from colonnade.compress.rows import Sending
from colonnade.conversations.cascade.diverged import check_size
from colonnade.losses import Loss
from colonnade.optim.replies import ReplyServer, Seed


@dataclass(frozen=True, eq=False)
class ClientQuestion:
    """One client's upload: as it came, and the outputs [vectors, rows, outputs] that it holds."""

    client: str
    tag: int
    packed: Numbers
    outputs: Numbers


class Replying(Protocol):
    @property
    def downlinks(self) -> Mapping[str, Sending]:
        """What packs the replies to every client, where each has one of its own."""
        ...

    def replies(
        self, wave: Sequence[ClientQuestion], rows: Rows, C: Numbers, y: Numbers
    ) -> Iterator[Numbers]:
        """Return what to send to every client of a wave about these rows, whose latest outputs are C."""
        ...

    def evaluations(self, outputs: Numbers) -> int:
        """Return how many times F0 is evaluated for every row of a reply to these outputs."""
        ...


@dataclass(frozen=True, eq=False)
class Answers:
    """A reply of its own for every client, computed from the labels and packed."""

    answering: ReplyServer
    columns: Mapping[str, slice]  # of every client among the outputs of all
    downlinks: Mapping[str, Sending]
    seed: Callable[[str], Seed]
    loss: Loss

    def replies(
        self, wave: Sequence[ClientQuestion], rows: Rows, C: Numbers, y: Numbers
    ) -> Iterator[Numbers]:
        for asked in wave:
            own, seed = self.columns[asked.client], (*self.seed(asked.client), asked.tag)
            values = self.answering.answer(C, own, asked.outputs, y, seed)
            check_size("what the server replies is", values, self.loss)
            yield self.downlinks[asked.client].pack(rows, values)

    def evaluations(self, outputs: Numbers) -> int:
        return self.answering.evaluations(outputs)
