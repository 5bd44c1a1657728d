"""Directions of L-BFGS over all blocks: every party has its part of the vectors, all have the inner products.

Each party computes its part of d = -H g with coefficients that follow from inner products over all blocks,
which are one secure sum of plain numbers.

What is summed has a length near 1: near the optimum gradients and steps become smaller than the fixed-point
step of the secure sums. Nobody knows how long a gradient is before it is summed, and it can be far longer
than the one before: products beyond the range are cut to its edge, all see that, and sum shorter vectors.

What each side learns: inner products over all blocks of gradients and steps.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

import numpy as np

from colonnade.arrays import Floats
from colonnade.errors import ProtocolError
from colonnade.optim.lbfgs import LimitedMemory
from colonnade.secure.ring import limit

RIGHT_ANGLE = 1e-10  # a pair whose cosine is smaller says nothing
SHORTER = 1e-4  # what does not fit the range of the sums is tried again so much shorter, or longer
FLAT = 1e-13  # of the longest gradient: what is shorter is rounding


@dataclass
class FullState:
    """What steps change: the weights, the gradient there, the direction taken last, the pairs, the counts."""

    w: Floats
    gradient: Floats
    direction: Floats  # over all blocks its length is 1
    memory: LimitedMemory
    length: float = 1.0  # of the gradient over all blocks, as it was last known
    longest: float = 0.0  # gradient of the run
    natural: float = 1.0  # how far along the direction H itself would go
    step: float = 0.0  # how far the last step went along its direction
    steps: int = 0
    sums: int = 0
    tags: int = 0  # that sums have used: those of all rows may take several
    converged: bool | None = None  # as the evaluator said

    @property
    def flat(self) -> bool:
        """Whether the gradient is nothing but rounding."""
        return self.length <= FLAT * self.longest


@dataclass
class Directions:
    """One party's part of the directions to go, each from the gradient and the step before."""

    state: FullState
    summed: Callable[[Floats], Awaitable[Floats]]  # the totals of a table over all parties
    parties: int
    told_by: Sequence[str]  # who answers with totals

    async def turn(self, gradient: Floats) -> None:
        """Turn the direction to where H points at this gradient, with the pair of the step before."""
        state = self.state
        # a pair of any length gives the same H: that of a step of length 1 stays in the range of the sums
        s, y = state.direction, (gradient - state.gradient) / (state.step or 1.0)
        state.gradient = gradient
        s, y, v, totals = await self._products(s, y, gradient / state.length)
        with_v = totals[:-1, 2]
        if not self._add_pair(s, y, totals[:-1, :2]):
            with_v = with_v[:-2]
        with_v = with_v[len(with_v) - len(state.memory.vectors) :]  # the oldest pair may have gone
        along, squared_length = state.memory.inverse.measures(with_v, totals[-1, 2])
        if not (along > 0 and squared_length > 0):  # rounded away: H is of no use any more
            state.memory = LimitedMemory(state.memory.memory, 0.0)
            with_v, squared_length = with_v[:0], totals[-1, 2]
        length = math.sqrt(squared_length) or 1.0
        state.direction = -state.memory.direction(v, with_v) / length
        state.natural = length * state.length
        state.length *= math.sqrt(totals[-1, 2]) or 1.0
        state.longest = max(state.longest, state.length)

    async def _products(self, s: Floats, y: Floats, v: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """Return the inner products over all blocks of a pair and v with each other and with the pairs
        before.

        Where they do not fit the range of the sums all three vectors are shortened alike, and returned so;
        where v is so short that its products are rounded to nothing, it is lengthened. The products of
        vectors with themselves tell: no party's part of these takes from another's, and no other product is
        larger.
        """
        edge = limit(self.parties) / 2
        while True:
            dots = np.clip(self.state.memory.dots(s, y, v), -edge, edge)
            totals = await self.summed(dots)
            squares = totals[-3:].diagonal()
            if squares.min() < 0:
                raise ProtocolError(f"{', '.join(self.told_by)} told inner products that no vectors have")
            if squares.max() >= edge:
                s, y, v = SHORTER * s, SHORTER * y, SHORTER * v
                self.state.length /= SHORTER
            elif not squares[-1] and not self.state.flat:  # one step may lead from far away to the optimum
                v = v / SHORTER
                self.state.length *= SHORTER
            else:
                return s, y, v, totals

    def _add_pair(self, s: Floats, y: Floats, products: Floats) -> bool:
        """Take a pair into H; False where there was no step before, or it says nothing."""
        ss, sy, yy = products[-2, 0], products[-2, 1], products[-1, 1]
        if not (self.state.step > 0 and yy > 0 and sy > RIGHT_ANGLE * math.sqrt(ss * yy)):
            return False
        self.state.memory.append(s, y, products, gamma=float(yy / sy))
        return True
