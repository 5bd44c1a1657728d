"""The regressor: a number of every row."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import r2_score

from colonnade.arrays import Floats
from colonnade.data.prepare.weights import normalised
from colonnade.data.split.parties import Parties
from colonnade.errors import DataError, JobError
from colonnade.estimators.base import Vertical
from colonnade.estimators.fitting import Labelled
from colonnade.estimators.habits import RegressorMixin
from colonnade.estimators.inputs import checked_labels
from colonnade.estimators.parameters import documented
from colonnade.job.plan import Task
from colonnade.losses import LOSSES


@documented
class VerticalRegressor(RegressorMixin, Vertical):
    """Predicts a number from columns that several parties hold.

    >>> from colonnade import VerticalRegressor
    >>> X, y = [[0.0, 1.0], [2.0, 0.5], [0.5, 2.0], [3.0, 0.0]], [0.5, 3.5, 0.0, 6.0]
    >>> model = VerticalRegressor(parties=2, l2=1e-6).fit(X, y)
    >>> model.predict(X).round(1).tolist(), list(model.coef_)
    ([0.4, 3.8, -0.0, 5.8], ['party-0', 'party-1'])
    """

    _tasks = ("regression",)

    def predict(self, X: Any) -> Floats:
        """Return the predicted number of every row; for the Poisson and gamma losses, exp of its score."""
        z = self._scores(X)
        return LOSSES[self._model.plan.objective.loss].predict(z)

    def __call__(self, X: Any) -> Floats:
        """Return the predicted numbers: what explainers call."""
        return self.predict(X)

    def score(self, X: Any, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> float:
        """Return R2: 1 for a perfect prediction, 0 for the mean; with Parties, their own labels are the
        truth."""
        truth = checked_labels(X, y, len(predicted := self.predict(X)), type(self).__name__)
        return float(r2_score(_numbers(truth), predicted, sample_weight=sample_weight))

    def _task(self) -> tuple[Task, int | None]:
        return "regression", None

    def _coded(self, y: ArrayLike) -> Floats:
        """Return the labels of other rows as numbers."""
        return _numbers(np.asarray(y))

    def _labelled(self, parties: Parties, y: NDArray[Any], weight: Floats | None) -> Labelled:
        if self.class_weight is not None:
            raise JobError("class_weight: the labels are numbers, not classes; use sample_weight")
        return Labelled(parties, _numbers(y), None if weight is None else normalised(weight, "sample_weight"))


def _numbers(y: NDArray[Any]) -> Floats:
    """Return the labels as numbers; text is refused."""
    try:
        return np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(
            "y is text; VerticalRegressor predicts numbers, VerticalClassifier predicts classes"
        ) from None
