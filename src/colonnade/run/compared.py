"""What a model is measured against: the base rate, the label holder's own columns, and all columns pooled.

Without these nobody can say what the partners add. Only the label holder's own columns are used, at the
label holder, so this tells nobody anything: between daemons it is in the label holder's own report alone.
The model of its own columns is the run's own where that is quickly trained (linear models, boosted trees),
and else a linear one, which is said beside it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import numpy as np

from colonnade.arrays import Numbers
from colonnade.baselines.pooled import pool
from colonnade.conversations.pooling import AllColumns, Pooled, pooled_optimum
from colonnade.data.table import INTERCEPT, Table
from colonnade.errors import DataError
from colonnade.intervals import gains, intervals
from colonnade.job.plan import Plan
from colonnade.losses import LOSSES
from colonnade.metrics import metrics_of
from colonnade.result import Compared
from colonnade.run.registry import CONVERSATIONS


def compared(
    plan: Plan[Any], train: Table | None, test: Table | None, together: Numbers | None, pooled: Pooled | None
) -> list[Compared]:
    """Return the yardsticks of a run, best known last; nothing where the test rows have no scores or labels.

    `train` and `test` are the label holder's own prepared columns, `together` the run's scores of test rows.
    Without `train` nobody knows what the label holder reaches alone.
    """
    if test is None or test.labels is None or together is None or not len(test.labels):
        return []
    loss, y = LOSSES[plan.objective.loss], test.labels
    base, alone, model = None, None, ""
    if train is not None:
        base, (alone, model) = base_scores(plan, train, test), _alone(plan, train, test)
    scores: list[tuple[str, list[str], Numbers | None, str]] = [
        ("base rate", [], base, ""),
        ("alone", [plan.evaluator], alone, model),
        ("together", list(plan.parties), together, ""),
        ("pooled", list(plan.parties), None if pooled is None else pooled.test_scores, ""),
    ]
    return [
        Compared(
            name=name,
            parties=parties,
            model=model,
            metrics=metrics_of(loss, z, y),
            intervals=intervals(loss, z, y),
            gains=gains(loss, z, alone, y) if alone is not None and name in ("together", "pooled") else {},
        )
        for name, parties, z, model in scores
        if z is not None
    ]


def base_scores(plan: Plan[Any], train: Table, test: Table) -> Numbers:
    """Return the score of every test row by a model that knows the training labels alone."""
    nothing = [replace(table, X=np.ones((table.rows, 1)), columns=(INTERCEPT,)) for table in (train, test)]
    found = _linear(plan, *nothing)
    if found is None:
        raise DataError("there are no test rows to score")
    return found


def _alone(plan: Plan[Any], train: Table, test: Table) -> tuple[Numbers | None, str]:
    """Return the test rows' scores by a model of the label holder's own columns, and what model that is.

    There is none if it holds no columns.
    """
    if not [name for name in train.columns if name != INTERCEPT] or plan.parties == (plan.evaluator,):
        return None, ""
    conversation = CONVERSATIONS[plan.conversation]
    if "quick-alone" in conversation.traits:
        own = msgspec.structs.replace(plan, parties=(plan.evaluator,), label_holders=(plan.evaluator,))
        columns = AllColumns({plan.evaluator: train}, {plan.evaluator: test}, plan.evaluator)
        return conversation.pooled(own, columns).test_scores, ""
    objective = msgspec.structs.replace(plan.objective, l2=plan.objective.l2 or 1.0 / train.rows, l1=0.0)
    own = msgspec.structs.replace(plan, objective=objective)
    return _linear(own, with_ones(train), with_ones(test)), "linear model"


def with_ones(table: Table) -> Table:
    """Return a table with a column of ones, which it may have already."""
    if INTERCEPT in table.columns:
        return table
    X = pool([table.X, np.ones((table.rows, 1))])
    return replace(table, X=X, columns=(*table.columns, INTERCEPT))


def _linear(plan: Plan[Any], train: Table, test: Table) -> Numbers | None:
    """Return the test rows' scores by a linear model."""
    columns = AllColumns({plan.evaluator: train}, {plan.evaluator: test}, plan.evaluator)
    return pooled_optimum(plan, columns).test_scores
