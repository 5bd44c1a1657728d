"""The regressor: a number of every row."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score

from colonnade.arrays import Floats
from colonnade.errors import DataError
from colonnade.estimators.base import Vertical
from colonnade.estimators.inputs import checked_labels
from colonnade.job.plan import Task


class VerticalRegressor(RegressorMixin, Vertical):  # type: ignore[misc]
    """Predicts a number from columns that several parties hold."""

    _tasks = ("regression",)

    def predict(self, X: Any) -> Floats:
        """The predicted number of every row."""
        return self._scores(X)

    def score(self, X: Any, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> float:
        """R2: 1 for a perfect prediction, 0 for the mean; with Parties, their own labels are the truth."""
        truth = checked_labels(X, y, len(predicted := self.predict(X)), type(self).__name__)
        return float(r2_score(_numbers(truth), predicted, sample_weight=sample_weight))

    def _task(self) -> tuple[Task, int | None]:
        return "regression", None

    def _encode(self, y: NDArray[Any]) -> Floats:
        return _numbers(y)


def _numbers(y: NDArray[Any]) -> Floats:
    """The labels as numbers; text is refused."""
    try:
        return np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(
            "y is text; VerticalRegressor predicts numbers, VerticalClassifier predicts classes"
        ) from None
