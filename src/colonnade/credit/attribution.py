"""SHAP values of a model whose shares lie together: every raw column's part of a row's score.

Linear models: interventional. A column's value is its part of the score less its mean part over the training
rows (those of the model's own preparation). For a score that is a sum over columns that is the Shapley value
exactly, with any correlation of columns.

Boosted trees: path-dependent (`trees.attribution`). What goes which way where a column is unknown is as the
cover of the trees says, so no training row is needed.

With the base, values add up to the score: log odds where there are classes. Which value is whose is by
party and column; a category's columns, and those of gaps, count as the raw column that they were made of.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from colonnade.arrays import Arrays, Floats, Matrix
from colonnade.credit.linear import raw_column
from colonnade.data.prepare.prepare import Preparation
from colonnade.data.table import INTERCEPT, RawTable
from colonnade.errors import ShareError
from colonnade.job.plan import Plan
from colonnade.run.registry import CONVERSATIONS
from colonnade.run.run_shares import KeptModel
from colonnade.trees.attribution import numbers_of, tree_shapley
from colonnade.trees.tree import Forest, Splits

Kind = Literal["interventional", "path-dependent"]


@dataclass(frozen=True, eq=False)
class Attributions:
    """SHAP values: `values[row, column]`, with a last axis of classes where there is a score for each.

    `columns` names party and raw column; `base` and all values of a row add up to its score.
    """

    columns: list[tuple[str, str]]
    base: Floats
    values: Floats
    kind: Kind

    @property
    def scores(self) -> Floats:
        """The score of every row."""
        z: Floats = self.base + self.values.sum(axis=1)
        return z

    def by_party(self) -> dict[str, Floats]:
        """Return the sum of every party's values, row by row."""
        parties = list(dict.fromkeys(party for party, _ in self.columns))
        mine = {p: [k for k, (party, _) in enumerate(self.columns) if party == p] for p in parties}
        return {party: self.values[:, places].sum(axis=1) for party, places in mine.items()}

    def reasons(self, most: int) -> list[list[tuple[str, str, float]]]:
        """Return reason codes: of every row the columns that raise its score most, those that do at all."""
        if self.values.ndim == 3:
            raise ShareError("reason codes need one score per row; this model has one for every class")
        found = []
        for row in self.values:
            places = np.argsort(-row, kind="stable")[:most].tolist()
            found.append([(*self.columns[k], float(row[k])) for k in places if row[k] > 0])
        return found


def attributions(
    plan: Plan[Any],
    preparations: Mapping[str, Preparation],
    shares: Mapping[str, Arrays],
    tables: Mapping[str, RawTable],
    means: Mapping[str, Floats],
) -> Attributions:
    """Return the SHAP values of rows; ShareError for a model that has none here.

    `means` are those of every party's prepared training columns, which linear models go by.
    """
    kind = CONVERSATIONS[plan.conversation].share.name
    X = {party: made.transform(tables[party]).X for party, made in preparations.items()}
    if kind == "linear":
        blocks = [linear_values(p, made, shares[p], X[p], means[p]) for p, made in preparations.items()]
        base = np.sum([each.base for each in blocks], axis=0)
        values = np.concatenate([each.values for each in blocks], axis=1)
        return Attributions(_names(preparations), base, values, "interventional")
    if kind == "trees":
        return _of_trees(plan, preparations, shares, X)
    raise ShareError(f"SHAP values are of linear models and boosted trees; this is a {kind} share")


def linear_values(party: str, made: Preparation, arrays: Arrays, X: Matrix, means: Floats) -> Attributions:
    """Return the values of one party's columns, from its own share and its own columns alone."""
    if "w" not in arrays:
        raise ShareError(f"{party}: nobody knows the weights of this model, so a score has no parts")
    w = np.asarray(arrays["w"], dtype=np.float64)
    rows, shape = int(X.shape[0]), w.shape[1:]
    values = np.zeros((rows, len(made.columns), *shape))
    base = np.zeros(shape)
    for j, output in enumerate(made.outputs):
        if output == INTERCEPT:
            base = base + w[j]
            continue
        column = X[:, [j]] if isinstance(X, np.ndarray) else X[:, [j]].toarray()
        base = base + means[j] * w[j]
        away = (column[:, 0] - means[j]).reshape(-1, *(1 for _ in shape))
        values[:, raw_column(made, output, party)] += away * w[j]
    return Attributions([(party, c) for c in made.columns], base, values, "interventional")


def _of_trees(
    plan: Plan[Any],
    preparations: Mapping[str, Preparation],
    shares: Mapping[str, Arrays],
    X: Mapping[str, Matrix],
) -> Attributions:
    """Return the values of all parties' columns in boosted trees."""
    splits = {party: Splits.from_arrays(shares[party]) for party in plan.parties}
    forest = Forest.from_arrays(shares[plan.evaluator])
    columns, first = {}, 0
    for number, party in enumerate(plan.parties):
        made = preparations[party]
        sources = [first + raw_column(made, output, party) for output in made.outputs]
        columns[number] = numbers_of(splits[party].column, sources)
        first += len(made.columns)
    left = {number: splits[party].left(X[party]) for number, party in enumerate(plan.parties)}
    ordered = {party: preparations[party] for party in plan.parties}
    rows = int(X[plan.evaluator].shape[0])
    base, values = tree_shapley(forest, left, columns, rows, first)
    if not plan.objective.classes:
        base, values = base[0], values[:, :, 0]
    return Attributions(_names(ordered), np.asarray(base), values, "path-dependent")


def _names(preparations: Mapping[str, Preparation]) -> list[tuple[str, str]]:
    return [(party, column) for party, made in preparations.items() for column in made.columns]


def means_of(X: Matrix) -> Floats:
    """Return the mean of every prepared column."""
    found: Floats = np.asarray(X.mean(axis=0), dtype=np.float64).ravel()
    return found


def of_model(
    model: KeptModel, tables: Mapping[str, RawTable], training: Mapping[str, RawTable] | None
) -> Attributions:
    """Return the SHAP values of rows by the model of a run; linear ones need its training rows."""
    made = {party: share.preparation for party, share in model.shares.items()}
    means = {}
    if training is not None:
        means = {party: means_of(each.transform(training[party]).X) for party, each in made.items()}
    arrays = {party: share.arrays for party, share in model.shares.items()}
    return attributions(model.plan, made, arrays, tables, means)
