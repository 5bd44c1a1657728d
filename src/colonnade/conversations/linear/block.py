"""One party's block of the model: its columns, its weights, and the gradient that thetas give it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from operator import itemgetter

import numpy as np
from scipy.sparse import csr_array

from colonnade.arrays import Floats, Rows
from colonnade.conversations.context import Context
from colonnade.conversations.evaluate import Scored
from colonnade.conversations.linear.settings import LinearSettings
from colonnade.conversations.pacing.schedule import Round, Schedule
from colonnade.engines.engine import INLINE, Engine
from colonnade.job import MEMORY
from colonnade.models.linear import RowKernels, descend
from colonnade.models.shuffled import ShuffledRows
from colonnade.models.sparse import SparseRows
from colonnade.optim.estimators import Estimator
from colonnade.regularizers import Penalty
from colonnade.state import Declared

Thetas = Sequence[tuple[Round, Floats]]

_PLACE = itemgetter(1, 2, 0)  # epoch, start, number


class Block:
    """A party's columns and weights w_l, with the kernels to score rows and to step; nothing is sent.

    `classes` is (K,) for K scores a row. `memory` is how many bytes this party may use: a quarter of them for
    shuffled rows. `engine` is where it computes.
    """

    STATE = Declared(kept=("w",), parts=("estimator",), remade=("_shuffled",))

    def __init__(
        self,
        X: Floats | csr_array,
        schedule: Schedule,
        estimator: Estimator,
        penalty: Penalty,
        classes: tuple[int, ...] = (),
        memory: int = MEMORY,
        engine: Engine = INLINE,
    ) -> None:
        self.X = X
        self.w = np.zeros((X.shape[1], *classes))
        self.estimator = estimator
        self.penalty = penalty
        self.all_rows = engine.rows(X)
        self._engine = engine
        self._schedule = schedule
        self._memory = memory
        self._shuffled: dict[int, RowKernels] = {}

    def rows(self, epoch: int) -> RowKernels:
        """Return the block's rows in the order of an epoch; dropped by `keep`."""
        shuffle = epoch if self._schedule.reshuffle else 0
        known = self._shuffled.get(shuffle)
        if known is None:
            known = self._shuffled[shuffle] = self._in_order(epoch)
        return known

    def places(self, batch: Round) -> Rows:
        """Return which rows a batch has."""
        return self._schedule.places(batch.epoch, batch.start, batch.end)

    def _in_order(self, epoch: int) -> RowKernels:
        schedule = self._schedule
        if schedule.blocks == 1:
            whole = schedule.order(epoch)
            if isinstance(self.all_rows, SparseRows):  # they keep what another order needs again
                return self.all_rows.in_order(whole)
            return self._engine.rows(self.X, whole)
        # dominators may be in different blocks, and a window reaches into the next
        most = len(schedule.dominators) + 1
        size = schedule.block_size
        cells = size * int(self.X.shape[1])
        fits = most * cells * self.X.dtype.itemsize <= self._memory // 4
        order = partial(schedule.block, epoch)
        return ShuffledRows(self.X, order, size, most if fits else 0, self._engine.rows)

    def keep(self, epochs: Iterable[int]) -> None:
        """Drop the copies of rows that none of these epochs needs."""
        needed = {self._schedule.shuffle(epoch) for epoch in epochs}
        for old in [known for known in self._shuffled if known not in needed]:
            self._shuffled.pop(old, None)

    def scores(self, batch: Round) -> Floats:
        """Return the block's share of the scores of a batch."""
        return self.rows(batch.epoch).scores(batch.start, batch.end, self.w)

    def joined_scores(self, batches: Sequence[Round]) -> list[Floats]:
        """Return the same for several batches; neighbouring ones are one product."""
        shares: dict[int, Floats] = {}
        for run in neighbours(batches):
            if len(run) == 1:
                shares[run[0].number] = self.scores(run[0])
                continue
            first = run[0].start
            joined = self.rows(run[0].epoch).scores(first, run[-1].end, self.w)
            for number, _, start, end in run:
                shares[number] = joined[start - first : end - first]
        return [shares[batch.number] for batch in batches]

    def estimate(self, thetas: Thetas) -> Floats:
        """Return the sum of the batches' gradient estimates; consecutive batches are one matrix product."""
        v = self.penalty.gradient(self.w, times=len(thetas))
        for epoch, start, end, theta, batches in joined(thetas):
            rows, places = self.rows(epoch), self._schedule.places(epoch, start, end)
            step, along, change = self.estimator.coefficients(places, theta)
            if (along or change is not None) and not self.estimator.has_mean():
                raise TypeError(f"{type(self.estimator).__name__} says that it remembers nothing")
            gradient = rows.gradient(start, end, step)
            own = gradient / ((end - start) / batches)
            v += own + batches * self.estimator.mean if along else own
            if change is not None:
                learnt = gradient if change is step else rows.gradient(start, end, change)
                self.estimator.learn(places, theta, learnt)
        return v

    def step(self, thetas: Thetas, rate: float) -> None:
        """Make one update from all these thetas."""
        if self.estimator.unchanged:  # nobody is asked, and what the gradients add up to needs no room
            self.penalty.decay(self.w, rate * len(thetas))
            for epoch, start, end, theta, batches in joined(thetas):
                descend(self.rows(epoch), start, end, theta, self.w, rate * batches / (end - start))
        else:
            self.w -= rate * self.estimate(thetas)
        if self.penalty.l1:
            self.penalty.shrink(self.w, rate * len(thetas))

    def values(self, batches: Sequence[Round]) -> int:
        """Return how many stored numbers the kernels touch for these batches."""
        return sum(self.rows(batch.epoch).values(batch.start, batch.end) for batch in batches)


def scored_by(rows: RowKernels, count: int, w: Floats) -> Scored:
    """Return the scores of rows by weights as they are now, for measuring."""
    frozen = w.copy()
    return Scored(count, lambda start, end: rows.scores(start, end, frozen))


def joined(thetas: Thetas) -> list[tuple[int, int, int, Floats, int]]:
    """Return thetas of neighbouring batches as one: the epoch, from which row to which, theta, of how many
    batches.

    >>> one, two = np.array([0.5, 1.0]), np.array([0.0, 2.0])
    >>> joined([(Round(7, 1, 2, 4), two), (Round(6, 1, 0, 2), one)])
    [(1, 0, 4, array([0.5, 1. , 0. , 2. ]), 2)]
    """
    if len(thetas) == 1:
        ((_, epoch, start, end), theta) = thetas[0]
        return [(epoch, start, end, theta, 1)]
    theta_of, found = dict(thetas), []
    for run in neighbours(list(theta_of), alike=True):
        theta = np.concatenate([theta_of[batch] for batch in run])
        found.append((run[0].epoch, run[0].start, run[-1].end, theta, len(run)))
    return found


def neighbours(batches: Sequence[Round], *, alike: bool = False) -> list[list[Round]]:
    """Group batches into runs whose rows follow each other in one epoch, and that are `alike` in size.

    >>> rounds = [Round(4, 0, 40, 50), Round(5, 0, 50, 60), Round(7, 0, 70, 80), Round(8, 1, 0, 10)]
    >>> [[batch.number for batch in run] for run in neighbours(rounds)]
    [[4, 5], [7], [8]]
    >>> len(neighbours([Round(0, 0, 0, 5), Round(3, 0, 5, 9)], alike=True))
    2
    """
    if len(batches) == 1:
        return [list(batches)]
    runs: list[list[Round]] = []
    end, size, shuffle = -1, 0, -1
    for batch in sorted(batches, key=_PLACE):
        _, epoch, start, stop = batch
        if start == end and epoch == shuffle and (not alike or stop - start == size):
            runs[-1].append(batch)
        else:
            runs.append([batch])
        end, size, shuffle = stop, stop - start, epoch
    return runs


def block_of(context: Context[LinearSettings], schedule: Schedule) -> Block:
    """Return the party's columns with weights of zero, but for an intercept that begins as the loss says."""
    classes, table = context.plan.objective.shape, context.train
    estimator = context.plan.settings.kind(table.rows, (table.width, *classes))
    estimator.repeats = schedule.replaced
    block = Block(table.X, schedule, estimator, context.penalty, classes, context.memory, context.engine)
    if table.free and context.holds_label:
        block.w[list(table.free)] = context.label_holder.start
    return block
