"""What a conversation is given, and what it gives back: the same for all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from colonnade.arrays import Floats
from colonnade.conversations.evaluate import Evaluation
from colonnade.data.table import Table
from colonnade.job import Job
from colonnade.job.presets import Preset
from colonnade.losses import LOSSES, Loss
from colonnade.models.blackbox import Model
from colonnade.net.endpoint import Endpoint
from colonnade.net.network import Network
from colonnade.regularizers import REGULARIZERS, Regularizer
from colonnade.result import Moment
from colonnade.secure.protocol import SecureSum


@dataclass(frozen=True, eq=False)
class Context:
    """One party's view of a run: its columns, its line to the others, and the job all agreed on."""

    job: Job
    preset: Preset
    net: Endpoint
    sum: SecureSum
    evaluation_net: Network  # apart from training where the world can do that for free
    evaluation_sum: SecureSum
    train: Table
    test: Table | None
    active: tuple[str, ...]
    target_loss: float | None
    progress: Callable[[Moment], None]
    model: Model | None = None  # this party's own, if it was given as an object and not by the job
    server_model: Model | None = None

    @property
    def me(self) -> str:
        return self.net.me

    @property
    def evaluator(self) -> str:
        """The active party that measures the model and tunes the step."""
        return self.active[0]

    @property
    def loss(self) -> Loss:
        return LOSSES[self.job.train.loss or "logistic"]

    @property
    def regularizer(self) -> Regularizer:
        return REGULARIZERS[self.job.train.regularizer]

    @property
    def y(self) -> Floats | None:
        """The training labels, at the parties that hold them."""
        return self.train.y if self.me in self.active else None

    def rng(self, purpose: int) -> np.random.Generator:
        """A generator of this party's own, one per purpose."""
        return np.random.default_rng([self.job.seed, self.net.parties.index(self.me), purpose])

    def evaluation(self) -> Evaluation:
        test = self.test
        return Evaluation(
            net=self.evaluation_net,
            sum=self.evaluation_sum,
            root=self.evaluator,
            loss=self.loss,
            y_train=self.train.y,
            y_test=test.y if test else None,
            sent_bytes=self.net.meter.bytes,
            progress=self.progress,
        )


@dataclass(frozen=True, eq=False)
class Outcome:
    """A party's end of a finished conversation; the weights are its own and stay with it."""

    weights: dict[str, Floats]
    step: float
    rounds: int
    updates: int
    evaluation: Evaluation
    delays: Counter[int] = field(default_factory=Counter)
    epsilon: float | None = None  # spent by private replies
