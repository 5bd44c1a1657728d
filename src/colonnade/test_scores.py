"""The scores of a run's test rows, as a CSV file that a spreadsheet opens: what a report is drawn from.

    id,label,score,probability          two classes: the label is -1 or 1
    id,label,score                      a number is predicted
    id,label,score_0,score_1,...        several classes: the label is the number of a class

There is no id where the rows had none. Only the label holder that evaluates a model has these scores.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from colonnade.arrays import Floats
from colonnade.disk import drafted
from colonnade.errors import DataError

FILE = "test_scores.csv"


def _probability(z: Floats) -> Floats:
    """Return 1 / (1 + exp(-z)), without scipy's functions, which take longer to import than most tables to
    write."""
    return np.exp(-np.logaddexp(0.0, -z))


@dataclass(frozen=True, eq=False)
class TestScores:
    """Labels and scores of the test rows; z has a column for every class where there are several."""

    __test__ = False  # no test, in spite of its name

    y: Floats
    z: Floats
    ids: NDArray[np.str_] | None = None
    with_probabilities: bool = False  # a logistic score: its probability is written beside it

    def write(self, path: Path) -> None:
        """Write the file, whole or not at all."""
        names = (
            ["label", "score"]
            if self.z.ndim == 1
            else ["label", *(f"score_{k}" for k in range(self.z.shape[1]))]
        )
        columns: list[NDArray[np.generic]] = [self.y, *(self.z[:, None] if self.z.ndim == 1 else self.z).T]
        if self.with_probabilities and self.z.ndim == 1:
            names, columns = [*names, "probability"], [*columns, _probability(self.z)]
        if self.ids is not None:
            names, columns = ["id", *names], [self.ids, *columns]
        with drafted(path) as draft, draft.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(names)
            writer.writerows(zip(*(column.tolist() for column in columns), strict=True))

    @staticmethod
    def read(path: Path) -> TestScores:
        """Return the scores in a file that `write` wrote; DataError if it is none."""
        with path.open(newline="", encoding="utf-8") as file:
            rows = list(csv.reader(file))
        head = rows[0] if rows else []
        scores = [j for j, name in enumerate(head) if name == "score" or name.startswith("score_")]
        if "label" not in head or not scores:
            raise DataError(f"{path}: no test scores; a run writes them beside its result")
        try:
            y = np.array([float(row[head.index("label")]) for row in rows[1:]])
            z = np.array([[float(row[j]) for j in scores] for row in rows[1:]]).reshape(len(y), len(scores))
        except (ValueError, IndexError) as error:
            raise DataError(f"{path}: damaged test scores ({error})") from None
        ids = np.array([row[head.index("id")] for row in rows[1:]]) if "id" in head else None
        return TestScores(y, z[:, 0] if head[scores[0]] == "score" else z, ids, "probability" in head)
