"""All parties' columns in one place, and the linear model trained there: what a run is compared with.

No party takes part in this. It is made where the run is launched, and `compare = false` switches it off.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from colonnade.arrays import Floats, Matrix, Numbers
from colonnade.data.table import INTERCEPT, Table
from colonnade.job.plan import Plan
from colonnade.losses import LOSSES, Loss
from colonnade.metrics import metrics_of
from colonnade.models.blackbox import Model
from colonnade.regularizers import REGULARIZERS, Penalty


@dataclass(frozen=True)
class Pooled:
    """How good the model is on pooled data: `optimum` is the loss that sub-optimality is counted from."""

    optimum: float
    metrics: dict[str, float]
    test_scores: Numbers | None = None


@dataclass(frozen=True, eq=False)
class AllColumns:
    """Every party's prepared columns, and the models that were given as objects."""

    train: dict[str, Table]
    test: dict[str, Table] | None
    label_holder: str
    models: Mapping[str, Model] = field(default_factory=dict)
    head: Model | None = None

    @property
    def free(self) -> tuple[int, ...]:
        """The places of intercepts among all columns."""
        return free_columns(self.train.values())

    def pooled(self) -> tuple[Matrix, Floats]:
        """Return the training rows' columns side by side, and their labels with the weights that they
        have."""
        return self._pooled(self.train)

    def measured(
        self, loss: Loss, scores: Callable[[Matrix], Numbers], objective: float, penalty: float
    ) -> Pooled:
        """Return the loss of a fit, with its penalty (`objective`) and without, and its metrics on the test
        rows if there are any; `scores` scores new rows."""
        metrics = {"train_loss": objective - penalty, "objective": objective}
        if self.test is None:
            return Pooled(objective, metrics)
        X, y = self._pooled(self.test)
        z = scores(X)
        return Pooled(objective, metrics | metrics_of(loss, z, y), z)

    def _pooled(self, tables: dict[str, Table]) -> tuple[Matrix, Floats]:
        y = tables[self.label_holder].labels
        if y is None:
            raise RuntimeError(f"{self.label_holder} holds no label")
        from colonnade.baselines.pooled import pool

        return pool([table.X for table in tables.values()]), y


def free_columns(tables: Iterable[Table]) -> tuple[int, ...]:
    """Return the places of columns that are not penalised, where the tables' columns lie side by side."""
    names = [column for table in tables for column in table.columns]
    return tuple(place for place, column in enumerate(names) if column == INTERCEPT)


def pooled_optimum(plan: Plan[Any], columns: AllColumns) -> Pooled:
    """Return the linear model at its optimum on pooled columns."""
    from colonnade.baselines.pooled import fit_pooled  # brings SciPy's optimisers, which no party needs

    objective, (X, y) = plan.objective, columns.pooled()
    loss = LOSSES[objective.loss]
    penalty = Penalty(REGULARIZERS[objective.regularizer], objective.l2, objective.l1, columns.free)
    fit = fit_pooled(X, y, loss, penalty, classes=objective.classes or None)
    return columns.measured(loss, fit.scores, fit.loss, penalty.value(fit.w))
