"""What every conversation is given, and what it returns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Generic

import numpy as np

from colonnade.arrays import Floats, Numbers, Rows
from colonnade.conversations.convergence import Ending
from colonnade.conversations.cost import charge
from colonnade.conversations.evaluate import Evaluation, Scribe
from colonnade.conversations.gates import Gates
from colonnade.conversations.pacing.delays import Lateness
from colonnade.conversations.pieces import runs
from colonnade.data.table import Table
from colonnade.engines.engine import INLINE, Engine
from colonnade.errors import Diverged
from colonnade.job import MEMORY
from colonnade.job.plan import C, Plan
from colonnade.job.presets import PRESETS
from colonnade.losses import LOSSES, Loss, MeanLoss, Weighted, labels_of, loss_for
from colonnade.models.blackbox import Model
from colonnade.net.endpoint import Endpoint
from colonnade.net.network import Network
from colonnade.openings.opening import UNKNOWN
from colonnade.regularizers import REGULARIZERS, Penalty, Regularizer
from colonnade.result import Moment
from colonnade.secure.protocol import SecureSum
from colonnade.secure.streams import PairStreams
from colonnade.shares import Layout


@dataclass(frozen=True)
class GivenModels:
    """A party's models given as Python objects instead of by the job: its own, and the server's F0."""

    own: Model | None = None
    head: Model | None = None


NO_MODELS = GivenModels()
NO_STREAMS = PairStreams("", {})


@dataclass(frozen=True, eq=False)
class Measuring:
    """The network and the secure sum for measuring the model; those of training, where it has none apart."""

    net: Network
    sum: SecureSum


@dataclass(frozen=True, eq=False)
class LabelHolder:
    """The labels and the loss, at a party that holds them.

    Where rows have weights, `y` has them beside the labels and `loss` is weighted: all of this includes them.
    """

    y: Floats
    loss: Loss

    @property
    def labels(self) -> Floats:
        """The labels alone."""
        return labels_of(self.y)

    @property
    def start(self) -> float:
        """The intercept to begin with."""
        return self.loss.start(self.y)

    @property
    def steepest(self) -> Floats:
        """The largest second derivative that a row has anywhere: one for all rows, or one for each."""
        if not isinstance(self.loss, Weighted):
            return np.array(self.loss.smoothness)
        most: Floats = self.loss.base.smoothness * self.y[:, 1]
        return most

    def curvature(self, z: Floats, rows: Rows) -> Floats:
        """Return a bound on the second derivative of these rows at the scores z."""
        return self.loss.curvature(self.theta(z, rows), self.y[rows])

    def bend(self, theta: Floats, u: Floats, rows: Rows) -> Floats:
        """Return the second derivative of these rows, whose dL/dz is theta, times u."""
        return self.loss.bend(theta, u, self.y[rows])

    def bend_most(self, theta: Floats, u: Floats, rows: Rows) -> Floats:
        """Return the same with a bound on the second derivative: for any score or, if there is none, near
        here."""
        most = self.steepest
        if not np.isfinite(most).all():
            most = self.loss.curvature(theta, self.y[rows])
        elif most.ndim:
            most = most[rows]
        bent: Floats = (most[:, None] if most.ndim and u.ndim > 1 else most) * u
        return bent

    def theta(self, z: Floats, rows: Rows | slice, number: int = 0) -> Floats:
        """Return dL/dz of these rows; `number` is the round that an error names."""
        theta = self.loss.dz(z, self.y[rows])
        # a sum of squares is finite where all numbers are, but for large ones, which are looked at again
        if not np.vdot(theta, theta) < np.inf and not np.isfinite(theta).all():
            raise Diverged(f"theta of round {number} is not finite; use a smaller step or step = 'auto'")
        return theta


@dataclass(frozen=True, eq=False)
class Context(Generic[C]):
    """One party's view of a run: the plan that all agreed on, its own columns, its network and secure sum."""

    plan: Plan[C]
    net: Endpoint
    sum: SecureSum
    measuring: Measuring
    train: Table
    test: Table | None = None
    target_loss: float | None = None
    progress: Callable[[Moment], object] = lambda moment: None
    models: GivenModels = NO_MODELS
    streams: PairStreams = NO_STREAMS
    checkpoints: Gates | None = None
    memory: int = MEMORY  # bytes that this party may use
    widest: int = UNKNOWN  # columns of a party that may learn its weights
    apart: bool = False  # whether parties are not all the caller's: then weights are told no finer than known
    engine: Engine = INLINE
    start: Floats | None = None  # own weights to begin with, where all parties of a fit have some or none

    @cached_property
    def gates(self) -> Gates:
        """Where the state is stored on the way; without checkpoints nowhere."""
        return self.checkpoints or Gates(self.net, self.evaluator)

    @property
    def me(self) -> str:
        return self.net.me

    @property
    def evaluator(self) -> str:
        """The label holder that measures the model and tunes the step."""
        return self.plan.evaluator

    @property
    def loss(self) -> Loss:
        return LOSSES[self.plan.objective.loss]

    @property
    def regularizer(self) -> Regularizer:
        return REGULARIZERS[self.plan.objective.regularizer]

    @property
    def penalty(self) -> Penalty:
        """The penalty of a linear model's weights, one row for every column of this party."""
        objective = self.plan.objective
        return Penalty(self.regularizer, objective.l2, objective.l1, self.train.free)

    @property
    def may_end_early(self) -> bool:
        """Whether the evaluator may end the run before its last epoch."""
        return self.plan.pace.open or self.target_loss is not None

    @property
    def holds_label(self) -> bool:
        return self.me in self.plan.label_holders

    @cached_property
    def label_holder(self) -> LabelHolder:
        """The labels of this party; an error at a party that holds none."""
        y = self.train.labels
        if not self.holds_label or y is None:
            raise RuntimeError(f"{self.me} holds no label and was asked for one")
        return LabelHolder(y, loss_for(self.loss, y))

    def rng(self, purpose: int) -> np.random.Generator:
        """Return this party's random generator for a purpose; another purpose has another generator."""
        return np.random.default_rng([self.plan.seed, self.net.parties.index(self.me), purpose])

    async def charge(self, values: float) -> None:
        """Let the time of one call pass, which touches this many numbers of this party's columns."""
        await charge(self.net.clock, self.plan.network, values)

    def evaluation(self, advice: str | None = None) -> Evaluation:
        """Return this party's part in measuring the model; `advice` is for a run that ends badly."""
        scribe = None
        if self.me == self.evaluator:
            y_test = self.test.labels if self.test is not None else None
            y, loss = self.label_holder.y, self.loss
            start = MeanLoss(loss)
            for rows in runs(0, len(y), self.plan.objective.shape):
                start.add(np.zeros((rows.stop - rows.start, *self.plan.objective.shape)), y[rows])
            noisy = self.plan.privacy.mechanism != "none"
            strict = not (noisy or self.plan.stands_for is not None or PRESETS[self.plan.algorithm].literal)
            ending = Ending(self.plan.pace, self.target_loss, start.value, strict)
            ending.advice = advice or ending.advice
            scribe = Scribe(loss, y, y_test, self.net.clock, ending, self.progress)
        measuring = self.measuring
        evaluation = Evaluation(measuring.net, measuring.sum, self.evaluator, self.net.meter.bytes, scribe)
        self.gates.keep(evaluation)
        if scribe is not None:
            self.gates.keep(scribe)
        return evaluation


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a conversation returns to one party; the weights are its own and stay with it."""

    weights: dict[str, Numbers]
    step: float
    rounds: int
    updates: int
    evaluation: Evaluation
    delays: Counter[int] = field(default_factory=Counter)
    launched: int = 0  # rounds that this party dominated, or pulled for itself
    lateness: Lateness = field(default_factory=Lateness)
    epsilon: float | None = None  # spent by private replies
    converged: bool | None = None  # None: nobody asked, or this party cannot know
    chosen: dict[str, float] = field(default_factory=dict)  # settings that the data decided, by name
    tensors: Mapping[str, Layout] = field(default_factory=dict)  # in the vectors of `weights`, by its names
