"""Finds how smooth the common objective is, by a few power iterations; the automatic step follows from it.

The largest eigenvalue of X'X / n belongs to all columns together, so no party can know it alone. On a
sample of rows the parties iterate v -> X' X v: X v is summed securely to one active party, which returns
it, and every party keeps its own part of v. The worst row is bounded by the sum of every block's worst.

The first result is a bound for any weights. Once training has moved, the same iteration at the present
weights, started from the vector found before, finds the smaller curvature that is really there.

The same sums tell how many numbers a row has at a party, in the mean of all parties: whether it pays to give
shares early is decided by that, and must be decided alike by all.

What each side learns: the active party and, from its answer, every other party see the joint scores of
the sampled rows for a few random directions; in training they see the like for every row. And they learn how
many numbers the rows have at all parties together.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from colonnade.arrays import Floats, Rows
from colonnade.conversations.context import Context
from colonnade.conversations.linear.settings import LinearSettings
from colonnade.conversations.pieces import collect_pieces, cut, give_pieces, hear, messages, tell
from colonnade.messages import Topic, tag_of
from colonnade.models.linear import longest_row, rows_of
from colonnade.net.expect import Array, floats
from colonnade.optim.steps import Smoothness
from colonnade.state import Declared

SAMPLE = 2048
FIRST, AGAIN = 10, 4  # power iterations from a random vector, and from the last one found
# the Rayleigh quotient climbs towards the eigenvalue from below
MARGIN = 1.05
EXTRA = 3  # numbers that are summed beside the scores of the sample
NOTHING = np.zeros(0)  # what only the evaluator knows, elsewhere


@dataclass
class Tuner:
    """Measures the smoothness; it keeps the vector `v` it found, so that measuring again takes few sums."""

    STATE = Declared(kept=("v", "exchanges", "values_a_row"))

    context: Context[LinearSettings]
    sample: Rows
    v: Floats = field(init=False)
    exchanges: int = 0
    values_a_row: float = 0.0  # stored ones, at a party, in the mean of all parties

    def __post_init__(self) -> None:
        X = self.context.train.X
        self.sample = self.sample[:SAMPLE]
        self.v = self.context.rng(1).standard_normal(int(X.shape[1]))
        self._rows = rows_of(X, self.sample)
        self._worst = longest_row(X)

    async def measure(self, w: Floats, *, first: bool = False) -> Smoothness:
        """Return the smoothness of the mean loss and of the worst row: at the weights w or, at first, for
        any."""
        context, n = self.context, len(self.sample)
        penalty = context.penalty.smoothness
        anywhere = first and np.isfinite(context.loss.smoothness)
        bent, steepest = self._anywhere(n) if anywhere else await self._bent(w)
        eigenvalue = worst = 0.0
        for _ in range(FIRST if first else AGAIN):
            own = [self.v @ self.v, self._worst, self._rows.values(0, n) / n]
            piece = np.concatenate([self._rows.scores(0, n, self.v), own])
            news = await sum_to_all(
                context, piece, self._next(), partial(_iterate, bent, steepest), floats(len(piece))
            )
            eigenvalue, worst, values = map(float, news[-EXTRA:])
            # of length near 1 at any scale of columns, or it would leave the range of the fixed-point sum
            self.v = self._rows.gradient(0, n, news[:-EXTRA]) / (n * eigenvalue or 1.0)
            self.values_a_row = values / len(context.plan.parties)
        mean = MARGIN * eigenvalue + penalty
        return Smoothness(mean=mean, worst_row=max(worst + penalty, mean))

    def _anywhere(self, n: int) -> tuple[Floats, float]:
        """Return the largest curvature of the loss at sampled rows, for any scores, and at any row."""
        if self.context.me != self.context.evaluator:
            return NOTHING, 0.0
        most = self.context.label_holder.steepest
        return (np.full(n, most), float(most)) if most.ndim == 0 else (most[self.sample], float(most.max()))

    async def _bent(self, w: Floats) -> tuple[Floats, float]:
        """Return the curvature of the loss at every sampled row, and a bound for all rows; at the
        evaluator."""
        context, n = self.context, len(self.sample)
        scores, tag = self._rows.scores(0, n, w), tag_of(Topic.TUNE, self._next())
        if context.me != context.evaluator:
            await context.sum.give(scores, root=context.evaluator, tag=tag)
            return NOTHING, 0.0
        holder = context.label_holder
        bent = holder.curvature(await context.sum.collect(scores, tag=tag), self.sample)
        steepest = float(holder.steepest.max())
        return bent, steepest if np.isfinite(steepest) else float(bent.max())

    def _next(self) -> int:
        self.exchanges += 1
        return self.exchanges - 1


def _iterate(bent: Floats, steepest: float, total: Floats) -> Floats:
    """Return the evaluator's answer: L'' X v of the unit vector v, its Rayleigh quotient, the worst row's
    bound.

    The last of what was summed goes back as it is.
    """
    scores, (squared_norm, worst, values) = total[:-EXTRA], total[-EXTRA:]
    norm = max(float(np.sqrt(squared_norm)), 1e-300)
    answer = bent * scores / norm
    return np.concatenate([answer, [float(answer @ scores) / (norm * len(scores)), steepest * worst, values]])


async def sum_to_all(
    context: Context[Any],
    piece: Floats,
    number: int,
    answer: Callable[[Floats], Floats],
    due: Array,
    topic: Topic = Topic.TUNE,
    longest: int = 0,
) -> Floats:
    """Sum all parties' pieces at the evaluator; returns its answer to the total, at every party.

    `due` is what the answer must be. It has no more values than what it answers, or `longest`. What does not
    fit one message takes the numbers that follow as well, `pieces.messages` of them.
    """
    net, root = context.net, context.evaluator
    tags = [tag_of(topic, number + more) for more in range(messages(max(longest, piece.size)))]
    parts = cut(piece)
    if context.me != root:
        await give_pieces(net, context.sum, iter(parts), root=root, tags=tags[: len(parts)])
        return await hear(net, root, tags, due)
    totals = collect_pieces(net, context.sum, iter(parts), tags=tags[: len(parts)])
    total = [each async for each in totals]
    news = answer(total[0] if len(total) == 1 else np.concatenate(total))
    await tell(net, news, tags)
    return news
