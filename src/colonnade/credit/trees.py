"""Boosted trees whose shares lie together: which columns did what, and why a row has its score.

On its way to a leaf a row passes nodes, each with the score it would have as a leaf. What a split changes
there belongs to the column that it compares. So a score is the mean over the training rows, which the roots
have, and one part of every column, exactly; the parts follow the row's own way and are no Shapley values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from colonnade.arrays import Floats, Matrix
from colonnade.credit.linear import raw_column
from colonnade.data.prepare.prepare import Preparation
from colonnade.data.table import RawTable
from colonnade.errors import ShareError
from colonnade.losses import USUAL
from colonnade.run.run_shares import KeptModel
from colonnade.trees.bins import Counts, Flags
from colonnade.trees.importance import importance_of
from colonnade.trees.tree import LEAF, Forest, Splits, Tree


@dataclass(frozen=True)
class ColumnImportance:
    """What one raw column did: its part of all gain, its part of all cover, and how many splits it has."""

    party: str
    column: str
    gain: float
    cover: float
    splits: int


class CardSplit(NamedTuple):
    """What a node compares: a column, among all prepared ones, with a threshold or a set of categories."""

    column: int
    threshold: float
    gaps_left: bool
    categories: Counts | None  # that go left; None: a column of numbers


@dataclass(frozen=True, eq=False)
class TreeModel:
    """All shares of boosted trees: the label holder's forest, and every party's splits and preparation."""

    forest: Forest
    splits: dict[str, Splits]
    preparations: dict[str, Preparation]
    loss: str = USUAL["binary"]
    classes: tuple[str, ...] = ()

    @staticmethod
    def of(model: KeptModel) -> TreeModel:
        """Return the trees that a run kept; ShareError if it kept another kind of model."""
        for party, share in model.shares.items():
            if share.manifest.kind != "trees":
                raise ShareError(f"{party}: a {share.manifest.kind} share; this is about boosted trees")
        plan, labels = model.plan, model.labels
        names: tuple[str, ...] = tuple(labels.classes)
        if labels.task == "binary":
            names = "/".join(labels.negative), "/".join(labels.positive)
        return TreeModel(
            Forest.from_arrays(model.shares[plan.evaluator].arrays),
            {party: Splits.from_arrays(model.shares[party].arrays) for party in plan.parties},
            {party: model.shares[party].preparation for party in plan.parties},
            plan.objective.loss,
            names,
        )

    @property
    def columns(self) -> list[tuple[str, str]]:
        """Party and name of every raw column, in the order of `parts`."""
        return [(party, c) for party, made in self.preparations.items() for c in made.columns]

    @property
    def intercept(self) -> float:
        """The score before any split: the base, and the roots of all trees."""
        self._require_one_score()
        return float(self.forest.base[0] + sum(tree.value[0] for tree in self.forest.trees))

    def parts(self, tables: Mapping[str, RawTable]) -> Floats:
        """Return every raw column's part of every row's score, [rows, columns]."""
        self._require_one_score()
        left = self.sides(
            {party: made.transform(tables[party]).X for party, made in self.preparations.items()}
        )
        rows = next(iter(tables.values())).rows
        parts = np.zeros((rows, len(self.columns)))
        columns = self._raw_columns()
        for tree in self.forest.trees:
            at = np.zeros(rows, dtype=np.int64)
            for node, column in _splitting(tree, columns):  # a child comes after its parent
                here = np.flatnonzero(at == node)
                goes_left = left[int(tree.party[node])][int(tree.split[node])][here]
                at[here] = np.where(goes_left, tree.left[node], tree.right[node])
                parts[here, column] += tree.value[at[here]] - tree.value[node]
        return parts

    def scores(self, tables: Mapping[str, RawTable]) -> Floats:
        """Return the score of every row."""
        z: Floats = self.parts(tables).sum(axis=1) + self.intercept
        return z

    def importances(self) -> list[ColumnImportance]:
        """Return what every raw column did, the largest gain first."""
        found: dict[tuple[str, str], list[float]] = {name: [0.0, 0.0, 0.0] for name in self.columns}
        for number, (party, made) in enumerate(self.preparations.items()):
            each = importance_of(self.forest, number, self.splits[party], len(made.outputs))
            for j, output in enumerate(made.outputs):
                sums = found[party, made.columns[raw_column(made, output, party)]]
                for k, value in enumerate((each.gain[j], each.cover[j], each.splits[j])):
                    sums[k] += float(value)
        gain, cover, _ = np.sum(list(found.values()), axis=0).tolist()
        rows = [
            ColumnImportance(*name, sums[0] / (gain or 1.0), sums[1] / (cover or 1.0), int(sums[2]))
            for name, sums in found.items()
        ]
        return sorted(rows, key=lambda row: -row.gain)

    def split(self, tree: Tree, node: int) -> CardSplit:
        """Return a split, with its column among all prepared ones."""
        party, number = int(tree.party[node]), int(tree.split[node])
        own = list(self.splits.values())[party]
        before = sum(len(made.outputs) for made in list(self.preparations.values())[:party])
        left = own.sets.get(number)
        return CardSplit(
            before + int(own.column[number]),
            0.0 if left is not None else float(own.threshold[number]),
            bool(own.gaps_left[number]),
            left,
        )

    def sides(self, X: Mapping[str, Matrix]) -> dict[int, Flags]:
        """Return which prepared rows go left in every party's splits."""
        return {number: self.splits[party].left(X[party]) for number, party in enumerate(self.splits)}

    def _require_one_score(self) -> None:
        if len(self.forest.base) > 1:
            raise ShareError("parts of a score need one score per row; this model has one for every class")

    def _raw_columns(self) -> dict[int, list[int]]:
        """Return the place among `columns` of the raw column behind every split of a party."""
        found, first = {}, 0
        for number, (party, made) in enumerate(self.preparations.items()):
            sources = [first + raw_column(made, output, party) for output in made.outputs]
            found[number] = [sources[column] for column in self.splits[party].column.tolist()]
            first += len(made.columns)
        return found


def _splitting(tree: Tree, columns: Mapping[int, list[int]]) -> list[tuple[int, int]]:
    """Return the nodes of a tree that split, each with the raw column that it compares."""
    nodes = np.flatnonzero(tree.party != LEAF).tolist()
    return [(node, columns[int(tree.party[node])][int(tree.split[node])]) for node in nodes]
