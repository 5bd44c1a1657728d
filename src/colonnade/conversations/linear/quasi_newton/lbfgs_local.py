"""Every block its own H: stochastic damped L-BFGS with curvature from one of three sources.

`paper` is AsySQN's Algorithm 1 and nothing else: before its step with the gradient v_k a party takes in the
pair s = w_k - w_(k-1), y = v_k - v_(k-1), and steps along H_k v_k. The two gradients are of two different
batches, so y is mostly their noise.
What works compares two gradients on the same rows:
- `batch`: theta of a fixed sample of rows at both weights, one more exchange of scores a pair;
- `hvp`: the local Hessian-vector product X_l' diag(L'') X_l s_l on the latest batch; L'' follows from
  theta, so nothing is sent.
One H over all blocks (`joint`) is in `lbfgs_joint`.

H comes from few rows. Where a column is the same in all rows but a few, H takes it for flat, and batches with
one of the few lead ever further off. Every party sees that by itself: where theta of all rows is far
larger in a pass than it has been, the party goes back to its weights of the best pass, and first order is
left. `paper` has no such net.

What each side learns: nothing beyond theta.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from colonnade.arrays import Floats, Rows
from colonnade.conversations.context import Context
from colonnade.conversations.linear.block import Block, Thetas
from colonnade.conversations.linear.settings import LinearSettings
from colonnade.conversations.linear.step_sizes import StepSizes
from colonnade.conversations.linear.tune import sum_to_all
from colonnade.conversations.pacing.schedule import Round
from colonnade.messages import Topic
from colonnade.models.linear import rows_of
from colonnade.net.expect import floats
from colonnade.optim.lbfgs import LimitedMemory
from colonnade.state import Declared

SAMPLE = 2048
CAUTION = 0.1  # the smallest cosine between s and y that a `batch` pair may have
RUNAWAY = 2.0  # times the least mean square of theta in a pass: what no noise of batches makes of it


@dataclass
class CurvatureState:
    """What rounds change: the pairs of a block's own H, and what the next pair is compared with."""

    memory: LimitedMemory
    last_w: Floats
    last_v: Floats | None = None
    last_theta: Floats | None = None
    updates: int = 0
    squares: float = 0.0  # of theta in this pass, summed
    rows: int = 0  # of this pass
    least: float = math.inf  # mean square of theta in a pass
    best_w: Floats | None = None  # at the end of that pass
    off: bool = False  # weights ran away: H adds nothing any more


@dataclass
class Curvature:
    """One party's own H: it makes pairs (s, y) and multiplies gradients by H."""

    STATE = Declared(kept=("state", "first_order_step"))

    context: Context[LinearSettings]
    block: Block
    sample: Rows
    first_order_step: float = 1.0
    state: CurvatureState = field(init=False)

    def __post_init__(self) -> None:
        settings = self.context.plan.settings
        self.kind, self.every = settings.pairs, settings.pair_every
        self.state = CurvatureState(LimitedMemory(settings.memory, settings.delta), self.block.w.copy())
        self.sample = self.sample[:SAMPLE]
        self._rows = rows_of(self.block.X, self.sample)

    @property
    def memory(self) -> LimitedMemory:
        return self.state.memory

    @property
    def ready(self) -> bool:
        """Whether there is a pair yet."""
        return self.memory.pairs > 0

    def local(self, v: Floats) -> Floats:
        """Return H_l v, from the own block alone."""
        return self.memory.direction(v, self.memory.dots(v)[:-1, 0])

    def step(self, thetas: Thetas, sizes: StepSizes) -> None:
        """Make one step of the own block along H v, and take in a pair if this party makes one alone."""
        v = self.block.estimate(thetas)
        self.first_order_step = sizes.rate()
        if self.kind == "paper":
            self._remember(v)
            self.block.w -= sizes.faded_gamma() * self.local(v)
            return
        self.block.w -= sizes.faded_rate() * v
        if self.state.off:
            return
        if self.ready:  # H makes the step longer where the objective is flatter than at its steepest
            # 1 / H_0 comes from a batch, and from before: it may exceed the steepest of now, and then the
            # difference would take from the first-order step instead of adding to it
            steepest = max(sizes.steepest(), self.memory.gamma)
            self.block.w -= sizes.faded_gamma() * (self.local(v) - v / steepest)
        self._watch(thetas[-1], sizes.gamma())
        self._look_back(thetas)

    def _look_back(self, thetas: Thetas) -> None:
        """Remember weights that are the best so far, after every pass over the rows, or go back to them."""
        state = self.state
        for batch, theta in thetas:
            state.squares += float(np.vdot(theta, theta))
            state.rows += batch.size
        if state.rows < self.context.train.rows:
            return
        mean, state.squares, state.rows = state.squares / state.rows, 0.0, 0
        if mean <= state.least:
            state.least, state.best_w = mean, self.block.w.copy()
        elif mean > RUNAWAY * state.least and self.ready and state.best_w is not None:
            self.block.w[:] = state.best_w
            state.off = True

    def values(self, batch: Round) -> int:
        """Return how many stored numbers a step on a batch touches beyond the batch: the pairs, and a new
        one."""
        pairs = int(self.memory.vectors.size)
        due = self.kind == "paper" or (self.kind == "hvp" and (self.state.updates + 1) % self.every == 0)
        products = 2 * self.block.values([batch]) if self.kind == "hvp" else 0
        # each vector of a pair is read for its inner product with v and for the sum that H v is
        return 2 * pairs + (2 * pairs + products if due else 0)

    def _remember(self, v: Floats) -> None:
        """Take in the paper's pair: how far weights and gradient are from those of the step before."""
        s = self._moved()
        if self.state.last_v is not None:
            y = v - self.state.last_v
            self.memory.add(s, y, self.memory.dots(s, y), 0.0)
        self.state.last_v = v

    def _watch(self, latest: tuple[Round, Floats], gamma: float) -> None:
        """Make a pair if one is due that a party makes from its latest batch (`hvp`)."""
        self.state.updates += 1
        if self.kind == "hvp" and self.state.updates % self.every == 0:
            s = self._moved()
            if self.state.updates > self.every:  # the first stretch is the warm-up
                batch, theta = latest
                rows = self.block.rows(batch.epoch)
                along = rows.scores(batch.start, batch.end, s)
                bent = rows.gradient(batch.start, batch.end, self._bend(batch, theta, along))
                self._add(s, bent / batch.size + self._penalty(s), gamma)

    async def pair(self, number: int, gamma: float) -> int:
        """Make a pair with all parties (`batch`), at a pause; returns how many secure sums it took."""
        if self.kind != "batch":
            return 0
        s = self._moved()
        theta = await self._sample_theta(number)
        if self.state.last_theta is not None:
            change = self._rows.gradient(0, len(self.sample), theta - self.state.last_theta)
            y = change / len(self.sample) + self._penalty(s)
            # theta changes with all blocks: a y nearly at right angles to s comes mostly from others' steps,
            # and damping, which corrects s'y, would leave a y of any length in H
            if np.vdot(s, y) >= CAUTION * np.linalg.norm(s) * np.linalg.norm(y):
                self._add(s, y, gamma)
        self.state.last_theta = theta
        return 1

    def _moved(self) -> Floats:
        """Return s: how far the weights have moved since this was last called."""
        s = self.block.w - self.state.last_w
        self.state.last_w = self.block.w.copy()
        return s

    async def _sample_theta(self, number: int) -> Floats:
        """Return dL/dz of the sample at the present weights; the evaluator tells all parties."""

        def theta(z: Floats) -> Floats:
            return self.context.label_holder.theta(z, self.sample, number)

        scores = self._rows.scores(0, len(self.sample), self.block.w)
        return await sum_to_all(self.context, scores, number, theta, floats(*scores.shape), Topic.PAIR)

    def _add(self, s: Floats, y: Floats, gamma: float) -> None:
        # what counts as flat depends on how steep the objective is at its steepest
        self.memory.delta = self.context.plan.settings.delta / self.first_order_step
        self.memory.add(s, y, self.memory.dots(s, y), self._floor(gamma))

    def _floor(self, gamma: float) -> float:
        """Return the least that 1 / H_0 may be: then a step of gamma H_0 stays near the first-order step."""
        return gamma / (self.first_order_step * (1 + self.memory.pairs))

    def _bend(self, batch: Round, theta: Floats, along: Floats) -> Floats:
        """Return L'' times the scores `along`; a party without labels must be able to tell it from theta
        alone."""
        if not self.context.holds_label:
            return self.context.loss.bend(theta, along)
        return self.context.label_holder.bend(theta, along, self.block.places(batch))

    def _penalty(self, s: Floats) -> Floats:
        """Return the penalty's Hessian times s."""
        return self.block.penalty.bend(self.block.w, s)
