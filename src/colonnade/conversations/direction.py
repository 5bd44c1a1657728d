"""Directions: plain, or stochastic damped L-BFGS with curvature from one of four sources.

AsySQN takes y = v_k - v_(k-1), two gradients on two different batches (`paper`). That difference is
mostly noise: with 32 rows a batch it diverges for every step we tried, with 256 it stalls above 1e-3.
What works compares two gradients on the same rows:
- `batch`: theta of a fixed sample of rows at both weights, one more exchange of scores a pair;
- `hvp`: the local Hessian-vector product X_l' diag(L'') X_l s_l on the latest batch; L'' follows from
  theta, so nothing is sent;
- `joint`: one H over all blocks. X s is summed on the sample, every party keeps its own part of s and y,
  and the inner products of the two-loop recursion are summed as plain numbers.
`paper`, `batch` and `hvp` give every block an H of its own.

One H over all blocks must be the same H everywhere. Delays, and with them steps, differ from party to
party, so in `joint` the evaluator's step and bound on H_0 hold for all. Near the optimum s and v become
smaller than the fixed-point step of the secure sums; they are brought to a length near 1 first, by factors
that all parties derive from the inner products before.

What each side learns in `joint`: the total of X s on the sample (as in tuning) and inner products over
all blocks; in the others nothing beyond theta.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from colonnade.combinations import pairs_of
from colonnade.conversations.block import Block
from colonnade.conversations.context import Context
from colonnade.conversations.schedule import Round
from colonnade.conversations.tune import sum_to_all
from colonnade.messages import Topic
from colonnade.models.linear import rows_of
from colonnade.optim.lbfgs import LimitedMemory

Floats = NDArray[np.float64]

SAMPLE = 2048
CAUTION = 0.1  # the smallest cosine between s and y that a `batch` pair may have


@dataclass
class Curvature:
    """One party's pairs and how it makes them."""

    context: Context
    block: Block
    sample: NDArray[np.int64]
    every: int
    first_order_step: float = 1.0
    memory: LimitedMemory = field(init=False)
    _last_w: Floats = field(init=False)
    _last_v: Floats | None = None
    _last_theta: Floats | None = None
    _updates: int = 0
    _started: bool = False
    _directions: int = 0
    _zoom_s: float = 1.0
    _zoom_v: float = 1.0

    def __post_init__(self) -> None:
        terms = self.context.job.direction
        self.kind = pairs_of(self.context.job)
        self.memory = LimitedMemory(terms.memory, terms.delta)
        self._last_w = self.block.w.copy()
        self.sample = self.sample[:SAMPLE]
        self._rows = rows_of(self.block.X, self.sample)

    @property
    def shared(self) -> bool:
        """All parties share one H, so they must treat every round alike and in order."""
        return self.kind == "joint"

    @property
    def ready(self) -> bool:
        return self.memory.pairs > 0

    def local(self, v: Floats) -> Floats:
        """H_l v, with nothing but the own block's products."""
        return self.memory.direction(v, self.memory.dots(v)[:-1, 0])

    def watch(self, v: Floats, latest: tuple[Round, Floats], gamma: float) -> None:
        """After every update: the kinds of pairs that a party makes on its own."""
        self._updates += 1
        if self.kind == "paper":
            s = self._moved()
            if self._last_v is not None:
                self._add(s, v - self._last_v, gamma)
            self._last_v = v
        if self.kind == "hvp" and self._updates % self.every == 0:
            s = self._moved()
            if self._updates > self.every:  # the first stretch is the warm-up
                batch, theta = latest
                _, rows = self.block.rows(batch.epoch)
                along = rows.scores(batch.start, batch.end, s)
                bent = rows.gradient(batch.start, batch.end, self.context.loss.bend(theta, along))
                self._add(s, bent / batch.size + self._penalty(s), gamma)

    async def pair(self, number: int, gamma: float) -> None:
        """At a gate, when no update is under way: the kinds of pairs that all make together."""
        s = self._moved()
        warm_up, self._started = not self._started, True
        if self.kind == "batch":
            theta = await self._sample_theta(number)
            if self._last_theta is not None:
                change = self._rows.gradient(0, len(self.sample), theta - self._last_theta)
                y = change / len(self.sample) + self._penalty(s)
                # theta moves with all blocks: a y nearly at right angles to s is mostly the others' doing,
                # and damping, which mends s'y, would leave a y of any length in H
                if np.vdot(s, y) >= CAUTION * np.linalg.norm(s) * np.linalg.norm(y):
                    self._add(s, y, gamma)
            self._last_theta = theta
        elif self.kind == "joint" and not warm_up:
            await self._joint_pair(number, s, gamma)

    def _moved(self) -> Floats:
        """s: how far the weights have come since the last pair."""
        s = self.block.w - self._last_w
        self._last_w = self.block.w.copy()
        return s

    async def together(self, v: Floats, gamma: float) -> Floats:
        """This block's part of gamma H v, one H over all blocks."""
        v = self._zoom_v * v
        *products, squared_length, gamma = await sum_to_all(
            self.context,
            self.memory.dots(v)[:, 0],
            self._directions,
            lambda total: np.append(total, gamma),
            Topic.CURVATURE,
        )
        direction = (gamma / self._zoom_v) * self.memory.direction(v, np.array(products))
        self._directions += 1
        self._zoom_v = _zoomed(self._zoom_v, squared_length)
        return direction

    async def _joint_pair(self, number: int, s: Floats, gamma: float) -> None:
        n, loss, y = len(self.sample), self.context.loss, self.context.y
        s = self._zoom_s * s  # a pair of any length gives the same H

        def bend(total: Floats) -> Floats:
            assert y is not None  # noqa: S101  the evaluator holds the label
            along, z = total[:n], total[n:]
            return loss.bend(loss.dz(z, y[self.sample]), along)

        piece = np.concatenate([self._rows.scores(0, n, s), self._rows.scores(0, n, self.block.w)])
        bent = await sum_to_all(self.context, piece, 3 * number, bend, Topic.PAIR)
        y_block = self._rows.gradient(0, n, bent) / n + self._penalty(s)
        dots, floor = self.memory.dots(s, y_block), self._floor(gamma)
        *flat, floor = await sum_to_all(
            self.context, dots.ravel(), 3 * number + 1, lambda total: np.append(total, floor), Topic.PAIR
        )
        products = np.reshape(flat, dots.shape)
        self.memory.add(s, y_block, products, floor)
        self._zoom_s = _zoomed(self._zoom_s, products[-2, 0])

    async def _sample_theta(self, number: int) -> Floats:
        loss, y = self.context.loss, self.context.y

        def theta(z: Floats) -> Floats:
            assert y is not None  # noqa: S101  the evaluator holds the label
            return loss.dz(z, y[self.sample])

        scores = self._rows.scores(0, len(self.sample), self.block.w)
        return await sum_to_all(self.context, scores, 3 * number + 2, theta, Topic.PAIR)

    def _add(self, s: Floats, y: Floats, gamma: float) -> None:
        self.memory.add(s, y, self.memory.dots(s, y), self._floor(gamma))

    def _floor(self, gamma: float) -> float:
        """1 / H_0 at least: a step of gamma H_0 stays near what first-order steps survive."""
        return gamma / (self.first_order_step * (1 + self.memory.pairs))

    def _penalty(self, s: Floats) -> Floats:
        curved: Floats = self.block.l2 * self.block.regularizer.curvature(self.block.w) * s
        return curved


def _zoomed(zoom: float, squared_length: float) -> float:
    """The factor that gives the next vector a length near 1, if it is about as long as this one.

    >>> _zoomed(1.0, 0.25), _zoomed(4.0, 4.0)
    (2.0, 2.0)
    """
    return float(min(zoom / np.sqrt(max(squared_length, 2.0**-32)), 2.0**64))
