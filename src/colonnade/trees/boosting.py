"""Boosting: one tree after another, each on the derivatives of the loss at the scores so far.

`Sampling` says which rows and columns a tree learns from: everybody derives it from the plan's seed.
`Boosting` is what only the label holder knows: labels, scores, derivatives, and when the held-back rows say
that it is enough.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from colonnade.arrays import Floats
from colonnade.job import Trees
from colonnade.losses import Loss, labels_of, mean_loss, weights_of
from colonnade.state import Declared
from colonnade.trees.bins import Counts, Flags
from colonnade.trees.gradients import Lesson, derivatives, quantised
from colonnade.trees.tree import Forest, Tree

HELD_BACK, ROWS, COLUMNS, ROUNDING = range(4)  # what randomness is for


@dataclass(frozen=True)
class Sampling:
    """Which rows and columns a tree learns from."""

    rules: Trees
    seed: int
    rows: int

    @cached_property
    def held_back(self) -> Flags:
        """The rows that no tree learns from, which say when to stop; none without early stopping."""
        if not self.rules.early_stopping_rounds:
            return np.zeros(self.rows, dtype=bool)
        return self._rng(HELD_BACK).random(self.rows) < self.rules.validation_fraction

    def rows_of(self, tree: int) -> Flags:
        """Return the rows that a tree learns from."""
        learnt = ~self.held_back
        if self.rules.subsample < 1:
            learnt &= self._rng(ROWS, tree).random(self.rows) < self.rules.subsample
        return learnt

    def columns_of(self, tree: int, party: int, columns: int) -> Counts:
        """Return the columns of one party that a tree may use: a part of each party's, and at least one."""
        if self.rules.colsample_bytree == 1 or not columns:
            return np.arange(columns)
        count = max(1, round(self.rules.colsample_bytree * columns))
        return np.sort(self._rng(COLUMNS, tree, party).choice(columns, count, replace=False))

    def _rng(self, *purpose: int) -> np.random.Generator:
        return np.random.default_rng([self.seed, *purpose])


@dataclass
class Boosting:
    """The label holder's state: the scores of all training rows, [rows, classes], and the trees so far."""

    STATE = Declared(kept=("z", "trees", "best", "_best_z"))

    loss: Loss
    y: Floats  # with weights beside them, if rows have some
    classes: int  # 0: one score that is not in an array of its own
    rules: Trees
    sampling: Sampling
    z: Floats = field(init=False)
    trees: list[Tree] = field(default_factory=list)
    best: tuple[float, int] = (np.inf, 0)  # the loss of held-back rows, and after how many rounds

    def __post_init__(self) -> None:
        self.base = base_scores(self.loss, self.y[~self.sampling.held_back], self.classes)
        self.z = np.repeat(self.base[None], len(self.y), axis=0)
        self._held_back = self.sampling.held_back
        self._best_z = self.z  # replaced by a copy after the first round that is measured

    @property
    def outputs(self) -> int:
        """How many trees a round has."""
        return len(self.base)

    @property
    def rounds(self) -> int:
        """How many rounds there were."""
        return len(self.trees) // self.outputs

    def shaped(self, z: Floats) -> Floats:
        """Return scores as losses have them."""
        return z if self.classes else z[:, 0]

    def lessons(self) -> list[Lesson]:
        """Return what every tree of the next round learns from."""
        g, h = derivatives(self.loss, self.shaped(self.z), self.y)
        g, h = g.reshape(len(g), -1), h.reshape(len(h), -1)
        rng = np.random.default_rng([self.sampling.seed, ROUNDING, self.rounds])
        fine = [quantised(g[:, k], h[:, k], rng) for k in range(self.outputs)]
        bits = self.rules.bits
        few = [quantised(g[:, k], h[:, k], rng, bits) for k in range(self.outputs)] if bits else fine
        return [Lesson(*one, *other) for one, other in zip(few, fine, strict=True)]

    def add(self, tree: Tree, at: Counts) -> None:
        """Take a tree in, with the node in which every row ended."""
        self.z[:, len(self.trees) % self.outputs] += tree.value[at]
        self.trees.append(tree)

    def enough(self) -> bool:
        """Return whether held-back rows have not gained for as many rounds as the rules say; asked after
        every round."""
        patience = self.rules.early_stopping_rounds
        if not patience or not self._held_back.any():
            return False
        held = self._held_back
        loss = mean_loss(self.loss, self.shaped(self.z[held]), self.y[held])
        if loss < self.best[0]:
            self.best, self._best_z = (loss, self.rounds), self.z.copy()
        return self.rounds - self.best[1] >= patience

    def finish(self) -> Forest:
        """Return the trees that are kept: with early stopping those up to the best round. The scores are
        theirs."""
        kept = len(self.trees)
        if self.rules.early_stopping_rounds and self._held_back.any():
            kept, self.z = self.best[1] * self.outputs, self._best_z
        return Forest(self.base, tuple(self.trees[:kept]), np.arange(kept) % self.outputs)


def base_scores(loss: Loss, y: Floats, classes: int) -> Floats:
    """Return the score of a row before any tree: the best that is the same for all rows."""
    labels, weight = labels_of(y), weights_of(y)
    if loss.task == "multiclass":
        counts = np.bincount(labels.astype(np.int64), weights=weight, minlength=classes)
        priors: Floats = np.log(np.maximum(counts, 1e-9) / counts.sum())
        return priors
    mean = float(np.average(labels, weights=weight))
    match loss.link:
        case "logit":
            rate = min(max((1 + mean) / 2, 1e-6), 1 - 1e-6)
            return np.array([np.log(rate / (1 - rate))])
        case "log":
            return np.array([np.log(max(mean, 1e-12))])
    return np.array([mean])
