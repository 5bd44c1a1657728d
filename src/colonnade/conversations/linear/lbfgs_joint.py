"""One H over all blocks (`pairs = "joint"`): every party has its part of the vectors, all have the table.

Every party keeps its own parts of s and y and computes its part of H v; what is summed is plain numbers:
inner products of the stored vectors, and scores of a fixed sample of rows. These ride with the scores of
the next round (see `errands`), so a round stays one secure sum, and a step comes `ahead` rounds after its
gradient. A pair rides twice: X s and X w of the sample go out, L'' X s comes back and gives y; then the
inner products of s and y.

The steepest directions are found by Lanczos iterations on the sample, where training pauses to tune
itself: at the start and after 1, 3, 7, ... epochs. They are pinned in the memory and say how large H_0 may
be; all other pairs come from the way that the weights take.

One H must be the same H everywhere. Delays, and with them steps, differ from party to party, so the step of
a round's dominator holds for all. Near the optimum s and v become smaller than the fixed-point step of the
secure sums; they are brought to a length near 1 first, by factors that all parties derive from the inner
products before.

What each side learns: the totals of X s and X q on the sample (as in tuning) and inner products over all
blocks.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from colonnade.arrays import Floats, Rows
from colonnade.conversations.context import Context
from colonnade.conversations.linear.block import Block
from colonnade.conversations.linear.piggyback import Errand, Errands
from colonnade.conversations.linear.tune import sum_to_all
from colonnade.conversations.schedule import Round
from colonnade.messages import Topic
from colonnade.models.linear import rows_of
from colonnade.optim.lanczos import Lanczos
from colonnade.optim.lbfgs import LimitedMemory

SAMPLE = 2048
STEEPEST = 4  # pinned directions
FIRST, AGAIN = 10, 6  # products to find them, from a random vector and from those found before


@dataclass
class Joint:
    """One party's part of the common H."""

    context: Context
    block: Block
    sample: Rows
    every: int
    errands: Errands
    step: Callable[[], float]  # gamma of the next update
    memory: LimitedMemory = field(init=False)
    exchanges: int = 0  # secure sums of its own, at pauses
    _last_w: Floats = field(init=False)
    _steep: Floats | None = None
    _zoom_s: float = 1.0
    _zoom_v: float = 1.0

    def __post_init__(self) -> None:
        terms = self.context.job.direction
        self.memory = LimitedMemory(terms.memory, terms.delta)
        self.sample = self.sample[:SAMPLE]
        self._rows = rows_of(self.block.X, self.sample)
        self._last_w = self.block.w.copy()

    # -- rounds -------------------------------------------------------------------------------------

    def load(self, batch: Round, share: Floats) -> Floats:
        """The share of a round's scores and what rides with it."""
        return self.errands.load(batch.number, share)

    def reply(self, batch: Round, total: Floats, theta_of: Callable[[Floats], Floats]) -> Floats:
        """At the dominator: theta of the round and the answers to what rode with it."""
        z, ridden = self._split(batch, total)
        return np.concatenate([theta_of(z).ravel(), self.errands.answers(batch.number, ridden)])

    def take(self, batch: Round, reply: Floats) -> None:
        """The reply of a round, one after another: steps that are answered now, and a new gradient."""
        theta, answers = self._split(batch, reply)
        v = self.block.estimate([(batch, theta)])
        self.errands.settle(batch.number, answers)
        self._ask_step(batch.number, v)
        if (batch.number + 1) % self.every == 0:
            self._ask_pair(batch.number)

    def _split(self, batch: Round, values: Floats) -> tuple[Floats, Floats]:
        classes = self.block.w.shape[1:]
        size = batch.size * math.prod(classes)
        return values[:size].reshape(batch.size, *classes), values[size:]

    def _ask_step(self, number: int, v: Floats) -> None:
        zoom, inverse = self._zoom_v, self.memory.inverse
        v = zoom * v

        def step(answer: Floats) -> None:
            products, squared_length, gamma = answer[:-2], answer[-2], answer[-1]
            self.block.w -= (gamma / zoom) * inverse.direction(v, products)
            self._zoom_v = _zoomed(zoom, squared_length)

        piece = inverse.dots(v)[:, 0]
        errand = Errand(piece, lambda total: np.append(total, self.step()), len(piece) + 1, step)
        self.errands.add(number, errand)

    # -- pairs --------------------------------------------------------------------------------------

    def _ask_pair(self, number: int) -> None:
        """s is the way since the last pair; X s and X w of the sample ride, and give y."""
        zoom = self._zoom_s
        s = zoom * (self.block.w - self._last_w)  # a pair of any length gives the same H
        self._last_w = self.block.w.copy()
        along, z = (self._rows.scores(0, len(self.sample), each) for each in (s, self.block.w))
        penalty = self._penalty(s)

        def bend(total: Floats) -> Floats:
            summed = total.reshape(2, *along.shape)
            return self._bend(self._theta(summed[1]), summed[0]).ravel()

        def ask_products(bent: Floats) -> None:
            y = self._gradient(bent.reshape(along.shape)) + penalty
            dots, vectors = self.memory.dots(s, y), self.memory.vectors

            def add(flat: Floats) -> None:
                products = flat.reshape(dots.shape)
                self._zoom_s = _zoomed(zoom, products[-2, 0])
                if self.memory.vectors is vectors:  # else others were pinned meanwhile
                    self.memory.add(s, y, products, 0.0)

            self.errands.add(number + self.errands.ahead, Errand(dots.ravel(), np.array, dots.size, add))

        piece = np.concatenate([along.ravel(), z.ravel()])
        self.errands.add(number, Errand(piece, bend, along.size, ask_products))

    # -- pauses -------------------------------------------------------------------------------------

    async def pin(self) -> None:
        """Find the steepest directions at the weights of now, and how steep it is beside them."""
        if self._steep is None:
            start = np.asarray(self.context.rng(2).standard_normal(self.block.w.shape))
            values, pairs = await self._lanczos(start, FIRST)
        else:
            values, pairs = await self._lanczos(self._steep, AGAIN)
        self._steep = np.array([s for s, _ in pairs]).sum(axis=0)
        vectors = [vector for pair in pairs for vector in pair]
        self.memory.unpin()
        dots = self.memory.dots(*vectors)
        *products, gamma = await self._exchange(dots.ravel(), lambda total: np.append(total, self.step()))
        # with several classes a direction is steep once for each of them, and only one of these is found:
        # H_0 is left with the others, and gamma H_0 must be a step that they survive
        below = values[-1] if self.block.w.ndim == 1 else min(1.0, 2 * gamma) * values[0]
        self.memory.pin(vectors, np.reshape(products, dots.shape), max(below, 0.01 * values[0]))

    async def _lanczos(self, start: Floats, steps: int) -> tuple[list[float], list[tuple[Floats, Floats]]]:
        n, iteration = len(self.sample), Lanczos(start)
        weights = self._rows.scores(0, n, self.block.w)
        theta: Floats | None = None

        def multiply(total: Floats) -> Floats:
            """L'' X q, the length that q had, and q'Aq."""
            nonlocal theta
            squared_length, penalty = total[-2:]
            scores = total[:-2].reshape(-1, *weights.shape)
            if theta is None:
                theta = self._theta(scores[1])
            length = float(np.sqrt(squared_length)) if squared_length > 0 else 1.0
            q = scores[0] / length
            # at first the largest curvature that the loss has anywhere: it may be flat where we start
            bent = self._bend(theta, q) if self._steep is not None else self.context.loss.smoothness * q
            alpha = float(np.vdot(bent, q)) / n + penalty / length**2
            return np.append(bent.ravel(), [np.sqrt(max(squared_length, 0.0)), alpha])

        for step in range(steps):
            vector = iteration.vector
            piece = [self._rows.scores(0, n, vector).ravel(), *([weights.ravel()] if step == 0 else [])]
            numbers = [np.vdot(vector, vector), np.vdot(vector, self._penalty(vector))]
            answer = await self._exchange(np.concatenate([*piece, numbers]), multiply)
            bent, (length, alpha) = answer[:-2].reshape(weights.shape), answer[-2:]
            if iteration.ends(length):
                break
            q = iteration.unit(length)
            iteration.take(length, alpha, self._gradient(bent) + self._penalty(q))
        return iteration.steepest(STEEPEST)

    async def _exchange(self, piece: Floats, answer: Callable[[Floats], Floats]) -> Floats:
        self.exchanges += 1
        return await sum_to_all(self.context, piece, self.exchanges - 1, answer, Topic.CURVATURE)

    # -- the quadratic ------------------------------------------------------------------------------

    def _theta(self, z: Floats) -> Floats:
        y = self.context.y
        assert y is not None  # noqa: S101  only label holders are asked
        return self.context.loss.dz(z, y[self.sample])

    def _bend(self, theta: Floats, along: Floats) -> Floats:
        return self.context.loss.bend(theta, along)

    def _gradient(self, bent: Floats) -> Floats:
        return self._rows.gradient(0, len(self.sample), bent) / len(self.sample)

    def _penalty(self, s: Floats) -> Floats:
        curved: Floats = self.block.l2 * self.block.regularizer.curvature(self.block.w) * s
        return curved


def _zoomed(zoom: float, squared_length: float) -> float:
    """The factor that gives the next vector a length near 1, if it is about as long as this one.

    A vector without any length may be one that has not moved yet, so the factor grows slowly then.

    >>> _zoomed(1.0, 0.25), _zoomed(4.0, 4.0), _zoomed(1.0, 0.0)
    (2.0, 2.0, 256.0)
    """
    return float(min(zoom / np.sqrt(max(squared_length, 2.0**-16)), 2.0**64))
