"""Which rows belong to which round, and who dominates it: derived from the job's seed by everyone.

Because every party knows the schedule, a partial score can be sent before anybody asks for it, and a
message names its rows by the number of its round.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np

from colonnade.arrays import Rows


class Round(NamedTuple):
    number: int
    epoch: int
    start: int
    end: int

    @property
    def size(self) -> int:
        return self.end - self.start


@dataclass(frozen=True)
class Schedule:
    """Every epoch is one shuffled pass over the rows, cut into equal batches; dominators take turns.

    `batch` is the most rows of a batch. A short one at the end would be a noisy one that makes a whole step:
    SAGA diverges on it.

    Where rows are not shuffled anew, all epochs have the order of the first, and no party needs a copy of
    its rows for every epoch.
    """

    rows: int
    batch: int
    epochs: int
    seed: int
    dominators: tuple[str, ...]
    reshuffle: bool = True

    @cached_property
    def per_epoch(self) -> int:
        return -(-self.rows // self.batch)

    @property
    def rounds(self) -> int:
        return self.per_epoch * self.epochs

    def shuffle(self, epoch: int) -> int:
        """Which of the shuffles an epoch uses."""
        return epoch if self.reshuffle else 0

    def order(self, epoch: int) -> Rows:
        return _shuffle(self.rows, self.seed, self.shuffle(epoch))

    @cached_property
    def largest(self) -> int:
        """The rows of the first batch of a pass; no other has more, or less by more than one."""
        return -(-self.rows // self.per_epoch)

    def round(self, number: int, offset: int = 0) -> Round:
        """The batch of a round; with an offset the pass begins that many batches later, and ends before."""
        epoch, position = divmod(number, self.per_epoch)
        position = (position + offset) % self.per_epoch
        size, longer = divmod(self.rows, self.per_epoch)
        start = position * size + min(position, longer)
        return Round(number, epoch, start, start + size + (position < longer))

    def dominator(self, number: int) -> str:
        return self.dominators[number % len(self.dominators)]


@lru_cache(maxsize=8)
def _shuffle(rows: int, seed: int, epoch: int) -> Rows:
    """Public and the same for all, so parties that share a process need not each draw it."""
    order = np.random.default_rng([seed, epoch]).permutation(rows)
    order.flags.writeable = False
    return order
