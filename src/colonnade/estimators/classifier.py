"""The classifier: two classes or more."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, softmax
from sklearn.metrics import accuracy_score
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets

from colonnade.arrays import Floats
from colonnade.data.prepare.weights import normalised
from colonnade.data.split.parties import Parties
from colonnade.errors import DataError
from colonnade.estimators.base import Vertical
from colonnade.estimators.fitting import Labelled
from colonnade.estimators.habits import ClassifierMixin, available_if
from colonnade.estimators.inputs import checked_labels
from colonnade.estimators.parameters import documented
from colonnade.job.plan import Task
from colonnade.losses import LOSSES, USUAL


def _has_probabilities(classifier: Vertical) -> bool:
    """Return whether the classifier's loss has probabilities; the one that suits the labels has."""
    loss = classifier.loss
    return loss is None or (loss in LOSSES and LOSSES[loss].has_probabilities)


@documented
class VerticalClassifier(ClassifierMixin, Vertical):
    """Predicts one of two or more classes from columns that several parties hold.

    `classes_` are the values of y in order. Two classes have one score a row, above 0 for the second; more
    have a score each: then `decision_function` is (rows, classes) and so is `coef_` (columns, classes).

    >>> from colonnade import VerticalClassifier
    >>> X, y = [[0.0, 1.0], [2.0, 0.5], [0.5, 2.0], [3.0, 0.0]], ["no", "yes", "no", "yes"]
    >>> clf = VerticalClassifier(columns={"bank": [0], "shop": [1]}).fit(X, y)
    >>> clf.predict(X).tolist(), clf.score(X, y)
    (['no', 'yes', 'no', 'yes'], 1.0)
    """

    _tasks = ("binary", "multiclass")
    classes_: NDArray[Any]

    def decision_function(self, X: Any) -> Floats:
        """Return the score of every row, above 0 for the second class; of more classes, one score for
        each."""
        z = self._scores(X)
        return z[:, 1] - z[:, 0] if z.ndim == 2 and len(self.classes_) == 2 else z

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class of every row, in the values that y had."""
        z = self.decision_function(X)
        which = (z > 0).astype(np.int64) if z.ndim == 1 else z.argmax(axis=1)
        return np.asarray(self.classes_[which])

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any) -> Floats:
        """Return the probability of each class of `classes_`; only of a loss that has probabilities."""
        z = self.decision_function(X)
        if z.ndim == 2:
            p: Floats = softmax(z, axis=1)
            return p
        return np.column_stack([expit(-z), expit(z)])

    @available_if(_has_probabilities)
    def predict_log_proba(self, X: Any) -> Floats:
        """Return the logarithm of `predict_proba`."""
        with np.errstate(divide="ignore"):
            log: Floats = np.log(self.predict_proba(X))
        return log

    def __call__(self, X: Any) -> Floats:
        """Return the probabilities of rows, or scores where the loss has none: what explainers call."""
        return self.predict_proba(X) if _has_probabilities(self) else self.decision_function(X)

    def score(self, X: Any, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> float:
        """Return the part of the rows whose class is right; with Parties, their own labels are the truth."""
        truth = checked_labels(X, y, len(predicted := self.predict(X)), type(self).__name__)
        return float(accuracy_score(truth, predicted, sample_weight=sample_weight))

    def _task(self) -> tuple[Task, int | None]:
        return "binary" if len(self.classes_) == 2 else "multiclass", len(self.classes_)

    def _coded(self, y: ArrayLike) -> Floats:
        """Return the labels of other rows as the model has them; DataError for one that is no class."""
        values = np.asarray(y)
        place = np.searchsorted(self.classes_, values).clip(0, len(self.classes_) - 1)
        if (strange := self.classes_[place] != values).any():
            raise DataError(
                f"y: {values[strange][0]} is none of the classes {', '.join(map(str, self.classes_))}"
            )
        if self._model.plan.objective.classes:
            return place.astype(np.float64)
        return np.where(place == 1, 1.0, -1.0)

    def _labelled(self, parties: Parties, y: NDArray[Any], weight: Floats | None) -> Labelled:
        check_classification_targets(y)
        classes, place = np.unique(y, return_inverse=True)
        if len(classes) == 1:
            raise DataError(f"every label is {classes[0]}: one class; training needs two classes")
        given = None if self.loss is None else LOSSES[self.loss].task
        if len(classes) > 2 and given not in (None, "multiclass"):
            raise DataError(
                f"y has {len(classes)} classes, and loss = {self.loss!r} is for two; use loss = "
                f"{USUAL['multiclass']!r}, "
                f"or make two of them first, e.g. y = (y == {classes[0]!r})"
            )
        self.classes_ = classes
        if self.class_weight is not None:
            factors = compute_class_weight(self.class_weight, classes=classes, y=y, sample_weight=weight)
            weight = (np.ones(len(y)) if weight is None else weight) * factors[place]
        several = len(classes) > 2 or given == "multiclass"
        return Labelled(
            parties,
            place.astype(np.float64) if several else np.where(place == 1, 1.0, -1.0),
            None if weight is None else normalised(weight, "class_weight"),
            tuple(str(label) for label in classes),
        )
