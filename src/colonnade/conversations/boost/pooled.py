"""The same trees on pooled columns: what a run is compared with. No party takes part in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from colonnade.arrays import Floats, Matrix
from colonnade.conversations.boost.settings import BoostSettings
from colonnade.conversations.pooling import AllColumns, Pooled
from colonnade.data.table import Table
from colonnade.job.plan import Plan
from colonnade.losses import LOSSES, mean_loss
from colonnade.metrics import metrics_of
from colonnade.trees.boosting import Boosting, Sampling
from colonnade.trees.estimate import Told, beside
from colonnade.trees.grow import Growth, TreeColumns
from colonnade.trees.own_columns import OwnColumns, joined_sides
from colonnade.trees.tree import Forest, Splits


@dataclass(frozen=True, eq=False)
class PooledTrees:
    """Trees that were grown where all columns lie: every party's splits, and what leaves score."""

    forest: Forest
    splits: list[Splits]
    z: Floats  # of the training rows

    def scores(self, tables: Sequence[Matrix]) -> Floats:
        """Return the scores of rows, [rows, classes], from every party's columns."""
        left = {party: own.left(X) for party, (own, X) in enumerate(zip(self.splits, tables, strict=True))}
        return self.forest.scores(left, int(tables[0].shape[0]))


def fit(plan: Plan[BoostSettings], tables: Sequence[Table], y: Floats) -> PooledTrees:
    """Grow all trees of a plan; tables and y are the training rows', tables in the order of the parties.

    They are the trees of a run, to the last bit: owners tell as little here.
    """
    settings, objective = plan.settings, plan.objective
    rules, sampling = settings.trees, Sampling(settings.trees, plan.seed, len(y))
    boosting = Boosting(LOSSES[objective.loss], y, objective.classes, rules, sampling)
    holder = plan.parties.index(plan.evaluator)
    owners = [
        OwnColumns(
            table.X, sampling, party, table.columns, categories=table.categories, exact=party == holder
        )
        for party, table in enumerate(tables)
    ]
    counts, number = [0] * len(owners), 0
    while boosting.rounds < plan.pace.epochs:
        for lesson in boosting.lessons():
            columns = TreeColumns.of([own.grid for own in owners], [own.begin(number) for own in owners])
            growth = Growth(rules, columns, lesson, sampling.rows_of(number))
            if settings.additive and rules.turns == "round":
                holders = [party for party, own in enumerate(owners) if own.grid.columns]
                growth.allowed = holders[boosting.rounds % len(holders)]
            _grow(growth, owners, counts, number, alone=settings.additive)
            boosting.add(growth.finish(), growth.at)
            number += 1
        if boosting.enough():
            break
    forest = boosting.finish()
    splits = [own.splits.first(forest.splits_of(party)) for party, own in enumerate(owners)]
    return PooledTrees(forest, splits, boosting.z)


def _grow(growth: Growth, owners: list[OwnColumns], counts: list[int], number: int, *, alone: bool) -> None:
    """Grow one tree to its end."""
    while growth.open:
        frontier = growth.frontier
        level = growth.decide(beside([_told(own, growth, number) for own in owners]), counts)
        if alone and level.split.any():
            growth.allowed = int(level.party[level.split][0])
        sides = [(own.party, own.left(level, frontier)) for own in owners]
        growth.divide(level, joined_sides(sides, level, frontier))


def _told(own: OwnColumns, growth: Growth, number: int) -> Told:
    """Return what an owner tells of a level."""
    sums, counts = own.sums(growth.lesson.words, growth.frontier), np.zeros((0, 0), dtype=np.int64)
    if own.floors is not None:
        counts = own.counts(growth.frontier)
    return own.told(sums, counts, number, growth.depth)


def pooled(plan: Plan[BoostSettings], columns: AllColumns) -> Pooled:
    """Return the loss and metrics of the trees on pooled columns."""
    y = columns.train[columns.label_holder].labels
    if y is None:
        raise RuntimeError(f"{columns.label_holder} holds no label")
    grown = fit(plan, [columns.train[party] for party in plan.parties], y)
    loss, several = LOSSES[plan.objective.loss], bool(plan.objective.classes)
    train_loss = mean_loss(loss, grown.z if several else grown.z[:, 0], y)
    metrics, scores = {"train_loss": train_loss, "objective": train_loss}, None
    if columns.test is not None:
        z = grown.scores([columns.test[party].X for party in plan.parties])
        scores = z if several else z[:, 0]
        known = columns.test[columns.label_holder].labels
        if known is not None:
            metrics |= metrics_of(loss, scores, known)
    return Pooled(train_loss, metrics, scores)
