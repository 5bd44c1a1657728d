"""Which rows belong to which round, and who dominates it: derived from the job's seed by everyone.

Because every party knows the schedule, a partial score can be sent before anybody asks for it, and a
message names its rows by the number of its round.

Up to `BLOCK` rows are one shuffle. More are shuffled block by block: the file is cut into slices of
neighbouring rows, a block is this many slices from anywhere in it, and the rows of a block are shuffled. So
an epoch is read in stretches that a disk reads well, nobody needs the order of more than the blocks at hand,
and a file that is sorted still gives mixed batches.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np

from colonnade.arrays import Rows
from colonnade.errors import JobError
from colonnade.job.sections import SamplingName

BLOCK = 2**20
"""Rows that are shuffled among each other."""

SLICE = 2**12
"""Neighbouring rows of the file that stay in one block, where there are several."""


class Round(NamedTuple):
    """One batch: rows `start` to `end` of the order of its epoch."""

    number: int
    epoch: int
    start: int
    end: int

    @property
    def size(self) -> int:
        """How many rows it has."""
        return self.end - self.start


@dataclass(frozen=True)
class Schedule:
    """All rounds of a run: every epoch is a shuffled pass over the rows, and dominators take turns.

    A pass is cut into equal batches of at most `batch` rows. A short batch at the end would make a whole
    step from few rows, and SAGA diverges on such noise.

    Without `reshuffle` all epochs have the order of the first, and no party needs a copy of its rows for
    every epoch. With `replaced` the rows of an "epoch" are drawn independently, so that every batch is one of
    all rows with replacement, as the papers have it; there are as many batches as in a pass.
    """

    rows: int
    batch: int
    epochs: int
    seed: int
    dominators: tuple[str, ...]
    reshuffle: bool = True
    replaced: bool = False

    @cached_property
    def per_epoch(self) -> int:
        """Rounds of one epoch."""
        return -(-self.rows // self.batch)

    @property
    def rounds(self) -> int:
        """Rounds of the whole run."""
        return self.per_epoch * self.epochs

    def shuffle(self, epoch: int) -> int:
        """Return the number of the shuffle that an epoch uses."""
        return epoch if self.reshuffle else 0

    def order(self, epoch: int) -> Rows:
        """Return all rows in the order of an epoch."""
        parts = [self.block(epoch, number) for number in range(self.blocks)]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    @property
    def block_size(self) -> int:
        """The rows of a block; the last may have fewer."""
        return min(BLOCK, self.rows)

    @property
    def blocks(self) -> int:
        """How many blocks an epoch has."""
        return -(-self.rows // BLOCK)

    def block(self, epoch: int, number: int) -> Rows:
        """Return the rows of one block of an epoch's order; all blocks but the last have `BLOCK` of them."""
        if self.replaced:
            return _drawn(self.rows, self.seed, epoch)
        return _shuffle(self.rows, self.seed, epoch if self.reshuffle else 0, number)

    def places(self, epoch: int, start: int, end: int) -> Rows:
        """Return the rows from `start` to `end` of an epoch's order."""
        first, last = start // BLOCK, max(start, end - 1) // BLOCK
        if first == last:
            order = self.block(epoch, first)
            return order[start - first * BLOCK : end - first * BLOCK]
        parts = [
            self.block(epoch, number)[max(0, start - number * BLOCK) : end - number * BLOCK]
            for number in range(first, last + 1)
        ]
        return np.concatenate(parts)

    def rows_of(self, batch: Round) -> Rows:
        """Return the rows of a batch."""
        return self.places(batch.epoch, batch.start, batch.end)

    @cached_property
    def largest(self) -> int:
        """The rows of the largest batch; every other has as many, or one less."""
        return -(-self.rows // self.per_epoch)

    def round(self, number: int, offset: int = 0) -> Round:
        """Return the batch of a round; with an offset a pass begins that many batches later and wraps
        around."""
        per_epoch, starts = self.per_epoch, self._starts
        epoch, position = divmod(number, per_epoch)
        position = (position + offset) % per_epoch
        return Round(number, epoch, starts[position], starts[position + 1])

    @cached_property
    def _starts(self) -> list[int]:
        """Where every batch of a pass begins, and where the last one ends."""
        size, longer = divmod(self.rows, self.per_epoch)
        return [position * size + min(position, longer) for position in range(self.per_epoch + 1)]

    def dominator(self, number: int) -> str:
        """Return the label holder that a round's scores are summed to."""
        return self.dominators[number % len(self.dominators)]

    def given(self, me: str) -> list[Iterator[int]]:
        """Return the rounds of others, to which a party gives its shares: those of one list in its order."""
        if set(self.dominators) == {me}:
            return []
        others = (number for number in itertools.count() if self.dominator(number) != me)
        return [others]

    def led(self, me: str) -> Iterator[int]:
        """Return the rounds that a party dominates."""
        return itertools.count(self.dominators.index(me), len(self.dominators))

    def epochs_of(self, numbers: Iterable[int]) -> set[int]:
        """Return the epochs that some rounds belong to."""
        return {self.round(number).epoch for number in numbers}


@dataclass(frozen=True)
class OwnTurns(Schedule):
    """Every dominator takes its turns at its own pace; `rounds` are those of all together.

    Round k of dominator j, of m, has the number k m + j and the batch of that number. So dominators of equal
    speed together see every row once an epoch, and what they work on at one time lies side by side: one
    product for all. Of every shuffle a dominator sees the m-th part that is its own.
    """

    def given(self, me: str) -> list[Iterator[int]]:
        """Return the rounds of others: a list for every other dominator."""
        others = len(self.dominators)
        return [itertools.count(j, others) for j, party in enumerate(self.dominators) if party != me]


@dataclass(frozen=True)
class OwnPasses(OwnTurns):
    """Every dominator passes over all rows for itself, at its own pace.

    All use the shuffle of their k-th pass, so there is one for every m epochs of the run. In a pass a
    dominator goes on by m batches, and around as often as it takes to meet every batch once.

    >>> both = OwnPasses(rows=4, batch=1, epochs=2, seed=0, dominators=("a", "b"))
    >>> [[both.round(number).start for number in range(j, 8, 2)] for j in (0, 1)]
    [[0, 2, 1, 3], [1, 3, 2, 0]]
    """

    def round(self, number: int, offset: int = 0) -> Round:
        """Return the batch of a round, in its dominator's own pass."""
        per_epoch, starts = self.per_epoch, self._starts
        epoch, turn = divmod(number // len(self.dominators), per_epoch)
        # a dominator that is back at its first batch goes around once more, one batch further
        position = (number + turn // self._lap + offset) % per_epoch
        return Round(number, epoch, starts[position], starts[position + 1])

    @cached_property
    def _lap(self) -> int:
        """After how many of its rounds a dominator that goes on by m batches is back where it began."""
        return self.per_epoch // math.gcd(self.per_epoch, len(self.dominators))


def at_own_pace(*, remembers: bool) -> type[OwnTurns]:
    """Return how dominators that have a pace of their own go over the rows.

    An estimator that remembers the latest thetas, as SAGA does, needs another shuffle in every epoch of the
    run. What it remembers of a run's first batches is of
    weights that knew nothing: met again as the same batches, one after the other, they are a row of steps
    that lead far off; scattered over all batches they cancel against the mean.

    >>> at_own_pace(remembers=True).__name__, at_own_pace(remembers=False).__name__
    ('OwnTurns', 'OwnPasses')
    """
    return OwnTurns if remembers else OwnPasses


def check_drawn(sampling: SamplingName, rows: int) -> None:
    """Refuse rows that are drawn with replacement where there are more than one block of them."""
    if sampling == "replacement" and rows > BLOCK:
        raise JobError(f"train.sampling = 'replacement': {rows:,} rows; it is for {BLOCK:,} at most")


@lru_cache(maxsize=8)
def _shuffle(rows: int, seed: int, epoch: int, block: int) -> Rows:
    """Return the rows of a block in a shuffle. It is the same at all parties: those in one process draw it
    once."""
    if rows <= BLOCK:
        order = np.random.default_rng([seed, epoch]).permutation(rows)
    else:
        slices = _slices(rows, seed, epoch)[block * (BLOCK // SLICE) : (block + 1) * (BLOCK // SLICE)]
        order = (SLICE * slices[:, None] + np.arange(SLICE)).ravel()
        order = order[order < rows]  # the last slice of the file may be short
        np.random.default_rng([seed, epoch, block]).shuffle(order)
    order.flags.writeable = False
    return order


@lru_cache(maxsize=8)
def _drawn(rows: int, seed: int, epoch: int) -> Rows:
    """Return as many rows as there are, each drawn from all of them; at most one block of rows has this."""
    order = np.random.default_rng([seed, epoch, 1]).integers(rows, size=rows)
    order.flags.writeable = False
    return order


@lru_cache(maxsize=2)
def _slices(rows: int, seed: int, epoch: int) -> Rows:
    """Return the slices of a shuffle; the last one of the file stays the last, so that all other blocks are
    full."""
    whole = rows // SLICE
    return np.append(np.random.default_rng([seed, epoch]).permutation(whole), whole)
