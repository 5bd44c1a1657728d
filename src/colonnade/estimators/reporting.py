"""What a report says of a model that `fit` trained, and how good it is on test rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from msgspec import structs

from colonnade.arrays import Floats
from colonnade.data.table import RawTable, Table
from colonnade.estimators.fitted import Fitted
from colonnade.losses import LOSSES
from colonnade.metrics import metrics_of
from colonnade.report.facts import Part, ReportFacts
from colonnade.result import Result
from colonnade.run.compared import compared
from colonnade.test_scores import TestScores


def facts_of(
    fitted: Fitted,
    result: Result,
    own: Table | None,
    tables: Mapping[str, RawTable] | None = None,
    y: Floats | None = None,
) -> ReportFacts:
    """Return all that a report is made from: the run, all parties' parts of the model, scores of test rows.

    `own` are the label holder's training columns; without them nobody can say what it reaches alone.
    """
    parts = tuple(_part(fitted, party) for party in fitted.preparations)
    if tables is None or y is None:
        return ReportFacts(result, parts=parts)
    plan, z = fitted.plan, fitted.scores(tables)
    loss, evaluator = LOSSES[plan.objective.loss], fitted.plan.evaluator
    test = replace(fitted.preparations[evaluator].transform(tables[evaluator]), y=y)
    quality = structs.replace(
        result,
        metrics={**result.metrics, **metrics_of(loss, z, y)},
        data=structs.replace(result.data, rows={**result.data.rows, "test": len(y)}),
        compared=compared(plan, own, test, z, None),
    )
    likely = loss.link == "logit"
    return ReportFacts(quality, scores=TestScores(y, z, with_probabilities=likely), parts=parts)


def _part(fitted: Fitted, party: str) -> Part:
    """Return one party's part of the model."""
    preparation, share = fitted.preparations[party], fitted.shares[party]
    w = np.asarray(share["w"]) if fitted.kind.name == "linear" and "w" in share else None
    return Part(
        party=party,
        kind=fitted.kind.name,
        columns=preparation.outputs,
        weights=w if w is not None and len(w) == len(preparation.outputs) else None,
        parameters=sum(np.asarray(array).size for array in share.values()),
        constant=frozenset(preparation.constant),
        gains=fitted.importances()[party] if fitted.kind.name == "trees" else None,
    )
