"""The part of a plan that only linear models have: estimator, direction, how far parties may be apart."""

from __future__ import annotations

from typing import Literal

from colonnade.conversations.pacing.delay_bound import UNBOUNDED
from colonnade.job import Section
from colonnade.job.presets import EstimatorName
from colonnade.optim.estimators import ESTIMATORS, Estimator

Pairs = Literal["none", "joint", "hvp", "batch", "paper"]


class FullSettings(Section, frozen=True):
    """The choices of L-BFGS on all rows: how many pairs it remembers."""

    memory: int


class LinearSettings(Section, frozen=True):
    """The choices of one linear algorithm.

    `pairs` is where a quasi-Newton direction has its curvature from ("none": steps go along the gradient),
    `pair_every` how many rounds lie between two pairs, and `memory` how many are kept. `stale` is how many
    rounds beyond the window a party may score while behind; `stale_where_it_pays`: only where rounds get
    faster by that, as the job does not say. `lead` is how many rounds a party that pulls for itself may
    be ahead of the slowest or, in the backward conversation, how many a dominator may launch between two of
    another. `sampling` is how batches are drawn, `start` whether all rows are looked at before any step.
    """

    estimator: EstimatorName
    pairs: Pairs
    memory: int
    pair_every: int
    delta: float
    direction_step: float | Literal["auto"]
    stale: int
    reshuffle: bool
    stale_where_it_pays: bool = False
    sampling: Literal["passes", "replacement"] = "passes"
    start: Literal["steps", "all-rows"] = "steps"
    lead: int = UNBOUNDED

    @property
    def kind(self) -> type[Estimator]:
        """The kind of the estimator, which answers for itself."""
        return ESTIMATORS[self.estimator]
