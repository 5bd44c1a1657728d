"""A linear model whose shares lie together, and why it gave a row its score.

The score is a sum over columns, so each column's part of it is exact. A reason is a column's part less its
mean over the training rows; the mean score and all reasons add up to the score. A party can compute the
reasons of its own columns alone, from its own share.

Other models whose score is a sum of such parts have reasons by the same function (`credit.trees`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from colonnade.arrays import Floats
from colonnade.data.prepare.prepare import Preparation
from colonnade.data.table import INTERCEPT, RawTable
from colonnade.errors import ShareError
from colonnade.losses import LOSSES, USUAL
from colonnade.run.run_shares import KeptModel


@dataclass(frozen=True, eq=False)
class LinearBlock:
    """One party's share of a linear model: how its columns become numbers, and the weight of each number."""

    party: str
    preparation: Preparation
    weights: Floats

    @property
    def intercept(self) -> float:
        """The constant of the model, at the party that holds it; 0 elsewhere."""
        outputs = self.preparation.outputs
        return float(self.weights[outputs.index(INTERCEPT)]) if INTERCEPT in outputs else 0.0

    def parts(self, table: RawTable) -> Floats:
        """Return every raw column's part of every row's score, [rows, columns], the intercept left out."""
        X = self.preparation.transform(table).X
        parts = np.zeros((table.rows, len(self.preparation.columns)))
        for j, output in enumerate(self.preparation.outputs):
            if output != INTERCEPT:
                column = X[:, [j]] if isinstance(X, np.ndarray) else X[:, [j]].toarray()
                parts[:, raw_column(self.preparation, output, self.party)] += column[:, 0] * self.weights[j]
        return parts


def raw_column(preparation: Preparation, output: str, party: str) -> int:
    """Return the raw column that a prepared one was made of: itself, or that before the sign,
    `column=value`."""
    columns = preparation.columns
    made = [c for c in columns if output == c or output.startswith((f"{c}=", f"{c} "))]
    if not made:
        raise ShareError(f"{party}: no column is behind '{output}'; the share is of another version")
    return columns.index(max(made, key=len))


class Additive(Protocol):
    """A model whose score is a constant and one part of every raw column."""

    @property
    def columns(self) -> list[tuple[str, str]]:
        """Party and name of every raw column, in the order of `parts`."""
        ...

    @property
    def intercept(self) -> float:
        """The constant."""
        ...

    def parts(self, tables: Mapping[str, RawTable]) -> Floats:
        """Return every column's part of every score, parties side by side."""
        ...


@dataclass(frozen=True, eq=False)
class LinearModel:
    """All shares of a linear model with one score per row."""

    blocks: dict[str, LinearBlock]
    loss: str = USUAL["binary"]
    classes: tuple[str, str] = ("-1", "1")  # the label of goods, and that of bads

    @staticmethod
    def of(model: KeptModel) -> LinearModel:
        """Return the model that a run kept; ShareError if it is not linear or has several scores per row."""
        blocks = {}
        for party, share in model.shares.items():
            weights = share.arrays.get("w")
            if share.manifest.kind != "linear" or weights is None or weights.ndim != 1:
                raise ShareError(
                    f"{party}: a {share.manifest.kind} share with {share.arrays.keys() and 'other'} arrays; "
                    "points, reasons, p-values and exports are of linear models with one score per row"
                )
            blocks[party] = LinearBlock(party, share.preparation, np.asarray(weights, dtype=np.float64))
        labels = model.labels
        if labels.task != "binary":
            return LinearModel(blocks, model.plan.objective.loss)
        names = "/".join(labels.negative), "/".join(labels.positive)
        return LinearModel(blocks, model.plan.objective.loss, names)

    def require_logistic(self, what: str) -> None:
        """Raise ShareError unless scores are log odds, which probabilities and points are made of."""
        if LOSSES[self.loss].link != "logit":
            raise ShareError(f"{what} needs log odds, and this model was trained on the {self.loss} loss")

    @property
    def intercept(self) -> float:
        return sum(block.intercept for block in self.blocks.values())

    @property
    def columns(self) -> list[tuple[str, str]]:
        """Party and name of every raw column, in the order of `parts`."""
        return [(party, c) for party, block in self.blocks.items() for c in block.preparation.columns]

    def parts(self, tables: Mapping[str, RawTable]) -> Floats:
        """Return every column's part of every score, parties side by side."""
        return np.hstack([block.parts(tables[party]) for party, block in self.blocks.items()])

    def scores(self, tables: Mapping[str, RawTable]) -> Floats:
        """Return the score of every row."""
        z: Floats = self.parts(tables).sum(axis=1) + self.intercept
        return z


@dataclass(frozen=True)
class Reasons:
    """Why a row has its score: `base` is the mean score, and with all `reasons` it adds up to the score."""

    base: float
    score: float
    reasons: list[tuple[str, str, float]]  # party, column, effect; what raises the score most comes first


def reasons(
    model: Additive, tables: Mapping[str, RawTable], reference: Mapping[str, RawTable]
) -> list[Reasons]:
    """Return the reasons of every row, measured from the mean row of `reference` (the training rows)."""
    mean = model.parts(reference).mean(axis=0)
    base = float(mean.sum() + model.intercept)
    found = []
    for row in model.parts(tables) - mean:
        effects = [(*name, float(e)) for name, e in zip(model.columns, row, strict=True)]
        score = base + sum(effect for _, _, effect in effects)
        found.append(Reasons(base, score, sorted(effects, key=lambda each: -each[2])))
    return found
