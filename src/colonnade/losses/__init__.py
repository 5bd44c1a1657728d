"""Losses of a score z and a label y: the value, the derivative theta = dL/dz, and the second derivative.

Pure functions on arrays. Every second derivative but Poisson's is a function of theta alone, so a party that
sees only theta can still compute products with the Hessian. Who wants Poisson's must know the label as well.

Rows may have weights. They stand beside the labels, `y` then has two columns (`with_weights`), and `Weighted`
is any loss for such labels: all that computes with a loss needs to know nothing of weights.
"""

from __future__ import annotations

from collections.abc import Mapping

from colonnade.choices import Choices
from colonnade.losses.classes import Logistic, SmoothHinge, Softmax
from colonnade.losses.loss import Link, Loss, SharedForm, Task, UsualLoss
from colonnade.losses.numbers import Gamma, Poisson, Squared
from colonnade.losses.weighted import (
    MeanLoss,
    Weighted,
    labels_of,
    loss_for,
    mean_loss,
    scaled_labels,
    weights_of,
    with_weights,
)

__all__ = [
    "LOSSES",
    "USUAL",
    "Gamma",
    "Link",
    "Logistic",
    "Loss",
    "Losses",
    "MeanLoss",
    "Poisson",
    "SharedForm",
    "SmoothHinge",
    "Softmax",
    "Squared",
    "Task",
    "UsualLoss",
    "Weighted",
    "labels_of",
    "loss_for",
    "mean_loss",
    "scaled_labels",
    "weights_of",
    "with_weights",
]


class Losses(Choices[Loss]):
    """Losses by name.

    >>> LOSSES.named(lambda loss: loss.task != "regression")
    "'logistic', 'smooth_hinge' or 'softmax'"
    """

    def of_counts(self, name: str | None) -> bool:
        """Return whether a job that names this loss, or none, may say over which time labels were counted."""
        return name is not None and name in self and self[name].counts


LOSSES = Losses("loss", (Logistic(), Squared(), SmoothHinge(), Softmax(), Poisson(), Gamma()))
"""Every loss there is: a job, its help and its documentation know those of this table."""

USUAL: Mapping[Task, str] = {
    "binary": Logistic.name,
    "regression": Squared.name,
    "multiclass": Softmax.name,
}
"""The loss of each kind of label where a job names none; that of classes has probabilities."""
