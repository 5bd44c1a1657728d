"""What every conversation is given, and what it returns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Generic

import numpy as np

from colonnade.arrays import Floats, Numbers, Rows
from colonnade.conversations.cost import charge
from colonnade.conversations.evaluate import Evaluation, Scribe
from colonnade.data.table import Table
from colonnade.errors import Diverged
from colonnade.job.plan import C, Plan
from colonnade.losses import LOSSES, Loss
from colonnade.models.blackbox import Model
from colonnade.net.endpoint import Endpoint
from colonnade.net.network import Network
from colonnade.regularizers import REGULARIZERS, Regularizer
from colonnade.result import Moment
from colonnade.secure.protocol import SecureSum
from colonnade.shares import Layout


@dataclass(frozen=True)
class GivenModels:
    """A party's models given as Python objects instead of by the job: its own, and the server's F0."""

    own: Model | None = None
    head: Model | None = None


NO_MODELS = GivenModels()


@dataclass(frozen=True, eq=False)
class Measuring:
    """The network and the secure sum for measuring the model; those of training, where it has none apart."""

    net: Network
    sum: SecureSum


@dataclass(frozen=True, eq=False)
class LabelHolder:
    """The labels and the loss, at a party that holds them."""

    y: Floats
    loss: Loss

    def theta(self, z: Floats, rows: Rows, number: int = 0) -> Floats:
        """dL/dz of these rows; `number` is the round that an error names."""
        theta = self.loss.dz(z, self.y[rows])
        if not np.isfinite(theta).all():
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
    progress: Callable[[Moment], None] = lambda moment: None
    models: GivenModels = NO_MODELS

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
    def holds_label(self) -> bool:
        return self.me in self.plan.label_holders

    @property
    def label_holder(self) -> LabelHolder:
        """The labels of this party; an error at a party that holds none."""
        if not self.holds_label or self.train.y is None:
            raise RuntimeError(f"{self.me} holds no label and was asked for one")
        return LabelHolder(self.train.y, self.loss)

    def rng(self, purpose: int) -> np.random.Generator:
        """This party's random generator for a purpose; another purpose has another generator."""
        return np.random.default_rng([self.plan.seed, self.net.parties.index(self.me), purpose])

    async def charge(self, values: float) -> None:
        """Let virtual time pass for touching so many numbers; does nothing on a real clock."""
        if self.net.clock.virtual:
            await charge(self.net.clock, self.plan.network, values)

    def evaluation(self) -> Evaluation:
        """This party's part in measuring the model."""
        scribe = None
        if self.me == self.evaluator:
            y_test = self.test.y if self.test is not None else None
            scribe = Scribe(self.loss, self.label_holder.y, y_test, self.net.clock, self.progress)
        measuring = self.measuring
        return Evaluation(measuring.net, measuring.sum, self.evaluator, self.net.meter.bytes, scribe)


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a conversation returns to one party; the weights are its own and stay with it."""

    weights: dict[str, Numbers]
    step: float
    rounds: int
    updates: int
    evaluation: Evaluation
    delays: Counter[int] = field(default_factory=Counter)
    epsilon: float | None = None  # spent by private replies
    tensors: Mapping[str, Layout] = field(default_factory=dict)  # in the vectors of `weights`, by its names
