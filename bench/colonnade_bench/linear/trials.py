"""What the benches of the linear papers share: prepared data sets, one call to train, times to a target.

A data set is read once per seed and number of parties, and its pooled optimum computed once. A run gives
a `Trace`: the moments that were measured, each with its distance from the pooled optimum, and the shares of
all parties. Time is simulated unless a section says otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal

import numpy as np

from colonnade.arrays import Floats, Matrix
from colonnade.baselines.pooled import fit_pooled, pool
from colonnade.conversations.pooling import free_columns
from colonnade.data.table import Table
from colonnade.errors import Diverged, FixedPointOverflow
from colonnade.job import Data, job_from
from colonnade.losses import LOSSES
from colonnade.metrics import metrics_of
from colonnade.models.linear import rows_of
from colonnade.regularizers import REGULARIZERS, Penalty
from colonnade.result import Moment
from colonnade.run.federate import Tables, plan_for
from colonnade.run.launch import launch
from colonnade.run.party import Share
from colonnade.run.world import Launch
from colonnade_bench.party_tables import first_rows, held_out, label_of, read_tables

PARTIES, ACTIVE, L2 = 8, 3, 1e-4
# sets whose label is rare or whose columns are centred need a constant column, held by the first party
INTERCEPT = {"givemesomecredit", "cod-rna", "w8a"}
# after one-hot, amounts between 0 and 1 are better conditioned than z-scores
SCALE: dict[str, Literal["minmax"]] = {"uci-credit": "minmax", "givemesomecredit": "minmax"}
# counts that the papers one-hot
CATEGORICAL = {
    "givemesomecredit": [
        "NumberOfTime30-59DaysPastDueNotWorse",
        "NumberOfTimes90DaysLate",
        "NumberRealEstateLoansOrLines",
        "NumberOfTime60-89DaysPastDueNotWorse",
    ]
}
# classes that are one where a set has several
POSITIVE: dict[str, list[str | int | float]] = {"mnist": [5, 6, 7, 8, 9]}
# a penalty that stays bounded cannot keep the weights of thousands of words finite: there is no minimum
ENDLESS = {(name, "nonconvex") for name in ("news20-binary", "news20.binary", "webspam")}


@dataclass(frozen=True, eq=False)
class Problem:
    """One data set, its columns split over parties."""

    name: str
    train: dict[str, Table]
    test: dict[str, Table]
    y: Floats
    y_test: Floats
    _optima: dict[str, Optimum] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        return len(self.y)

    @property
    def pooled(self) -> Matrix:
        """All parties' training columns side by side."""
        return pool([table.X for table in self.train.values()])

    def optimum(self, regularizer: str = "l2") -> Optimum:
        """The pooled optimum, computed once and kept for as long as the data is."""
        if regularizer not in self._optima:
            self._optima[regularizer] = _optimum(self, regularizer)
        return self._optima[regularizer]

    @property
    def majority(self) -> float:
        """The accuracy of always guessing the commoner label, which a claim about accuracy has to beat."""
        positive = float(np.mean(self.y_test > 0))
        return max(positive, 1 - positive)

    def part(self, rows: int) -> Problem:
        """The same columns with fewer training rows."""
        return Problem(self.name, first_rows(self.train, rows), self.test, self.y[:rows], self.y_test)

    def tables(self, active: int) -> Tables:
        """The tables of a run in which so many parties are active."""
        return Tables(self.name, self.train, self.test, tuple(self.train)[:active])


KNOWN_TO = 1e-10
"""How exactly the pooled optimum is known: gaps below are noise, and some of them negative."""


@dataclass(frozen=True)
class Optimum:
    """The pooled optimum: what sub-optimality is counted from, and the accuracy to be matched.

    Where there is none, sub-optimality is counted from 0, below which no loss can be.
    """

    loss: float
    accuracy: float


@dataclass(frozen=True, eq=False)
class Trace:
    """One finished run: what the evaluator measured, how far each loss is above the optimum, all shares."""

    moments: Sequence[Moment]
    gaps: Sequence[float]
    metrics: Mapping[str, float]
    shares: Mapping[str, Share]
    bad: str | None = None  # why there is no model: the loss ended above that without training, or overflowed

    def times(self) -> list[float]:
        """Seconds at every moment: simulated ones, where the world is simulated."""
        return [m.seconds if m.virtual_seconds is None else m.virtual_seconds for m in self.moments]

    def time_to(self, gap: float) -> float | None:
        """Seconds until the gap is first met, between two measurements by the logarithm of the gap."""
        return crossing(self.times(), self.gaps, gap)

    def rounds_to(self, gap: float) -> int | None:
        """Rounds at the first measurement that meets the gap; nothing is interpolated."""
        return next((m.rounds for m, g in zip(self.moments, self.gaps, strict=True) if g <= gap), None)

    def epochs_to(self, gap: float) -> int | None:
        """Epochs at the first measurement that meets the gap."""
        return next((m.epoch for m, g in zip(self.moments, self.gaps, strict=True) if g <= gap), None)

    @property
    def seconds(self) -> float:
        """Seconds of the whole run."""
        return self.times()[-1]

    @property
    def best(self) -> float:
        """The smallest gap that was measured."""
        return min(self.gaps)

    @property
    def updates(self) -> list[int]:
        """How many updates every party made."""
        return [share.updates for share in self.shares.values()]

    def line(self, axis: str = "seconds") -> list[tuple[float, float]]:
        """(x, gap) for a figure on a logarithmic scale."""
        xs = self.times() if axis == "seconds" else [float(getattr(m, axis)) for m in self.moments]
        return [(x, gap) for x, gap in zip(xs, self.gaps, strict=True) if gap > 0]


def both_reach(*traces: Trace) -> float:
    """A gap that all of these runs reach, with some room, and no less than the optimum is known to."""
    return max(1.05 * max(trace.best for trace in traces), KNOWN_TO)


def crossing(axis: Sequence[float], gaps: Sequence[float], target: float) -> float | None:
    """Where on an axis the target is first met, between two points by the logarithm of the gap.

    >>> crossing([1.0, 2.0, 3.0], [1e-1, 1e-2, 1e-4], 1e-3)
    2.5
    >>> crossing([1.0], [1e-1], 1e-3) is None
    True
    """
    for i, gap in enumerate(gaps):
        if gap > target:
            continue
        if i == 0:
            return axis[0]
        a, b = math.log(gaps[i - 1]), math.log(max(gap, 1e-300))
        return axis[i - 1] + (axis[i] - axis[i - 1]) * (a - math.log(target)) / (a - b)
    return None


def closed_form(q: int, s: float) -> float:
    """Synchronous over asynchronous time (CRUI) with one party at speed s and forwards for free.

    >>> round(closed_form(8, 0.3), 2), round(closed_form(8, 0.6), 2)
    (3.04, 1.58)
    """
    return ((q - 1) + s) / (q * s)


@lru_cache(maxsize=8)
def problem(name: str, q: int = PARTIES, seed: int = 0) -> Problem:
    """A data set by name, its columns split over q parties at random."""
    data = Data(
        train=name,
        parties=q,
        active=1,
        scale=SCALE.get(name),
        categorical=CATEGORICAL.get(name),
        positive=POSITIVE.get(name),
        intercept=name in INTERCEPT,
    )
    tables = read_tables(data, task="binary", seed=seed)
    test, (holder, *_) = held_out(tables), tables.active
    return Problem(name, tables.train, test, label_of(tables.train, holder), label_of(test, holder))


def _optimum(problem: Problem, regularizer: str) -> Optimum:
    """The pooled fit, and its accuracy on the test rows."""
    if (problem.name, regularizer) in ENDLESS:
        return Optimum(0.0, math.nan)
    loss, free = LOSSES["logistic"], free_columns(problem.train.values())
    fit = fit_pooled(problem.pooled, problem.y, loss, Penalty(REGULARIZERS[regularizer], L2, free=free))
    X_test = pool([table.X for table in problem.test.values()])
    z = rows_of(X_test).scores(0, len(problem.y_test), fit.w)
    return Optimum(fit.loss, metrics_of(loss, z, problem.y_test)["test_accuracy"])


def train(
    problem: Problem,
    algorithm: str,
    *,
    active: int = ACTIVE,
    seed: int = 0,
    world: str = "simulated",
    target: float | None = None,
    keep_bad: bool = False,
    train: Mapping[str, Any] | None = None,
    **sections: Any,
) -> Trace:
    """Run an algorithm on a problem; it stops at the target if there is one.

    A run that ends worse than it began raises Diverged or FixedPointOverflow or, with `keep_bad`, returns
    what was measured until then, marked.
    """
    tables = problem.tables(active)
    job = job_from(
        {
            "algorithm": algorithm,
            "world": world,
            "seed": seed,
            "data": {"train": problem.name, "parties": len(tables.train), "active": len(tables.active)},
            "train": {"loss": "logistic", "l2": L2, "tolerance": 0.0, **(train or {})},
            "secure": {"labels": "clear"},  # as in the papers
            **sections,
        }
    )
    plan, data = plan_for(job, tables)
    optimum = problem.optimum(plan.objective.regularizer).loss
    seen: list[Moment] = []
    goal = None if target is None else optimum + target
    try:
        shares = launch(Launch(plan, data, target_loss=goal, progress=seen.append))
    except (Diverged, FixedPointOverflow) as error:
        if not keep_bad:
            raise
        return Trace(seen, [moment.loss - optimum for moment in seen], {}, {}, bad=str(error))
    evaluator = shares[plan.evaluator]
    gaps = [moment.loss - optimum for moment in evaluator.history]
    return Trace(evaluator.history, gaps, evaluator.metrics, shares)


def straggler(s: float, q: int = PARTIES) -> list[float]:
    """The parties' speeds: 1, and s for the last, which has no label in the backward conversation."""
    return [1.0] * (q - 1) + [s]
