"""Losses of a score z and a label y: the value, the derivative theta = dL/dz, and the second derivative.

Pure functions on arrays. Every second derivative but Poisson's is a function of theta alone, so a party that
sees only theta can still compute products with the Hessian. Who wants Poisson's must know the label as well.

Rows may have weights. They stand beside the labels, `y` then has two columns (`with_weights`), and `Weighted`
is any loss for such labels: whatever computes with a loss needs to know nothing of weights.
"""

from __future__ import annotations

import numpy as np

from colonnade.arrays import Floats
from colonnade.losses.classes import Logistic, SmoothHinge, Softmax
from colonnade.losses.loss import Loss
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
    "Gamma",
    "Logistic",
    "Loss",
    "MeanLoss",
    "Poisson",
    "SmoothHinge",
    "Softmax",
    "Squared",
    "Weighted",
    "labels_of",
    "loss_for",
    "mean_loss",
    "scaled_labels",
    "soft_dz",
    "weights_of",
    "with_weights",
]

LOSSES: dict[str, Loss] = {
    loss.name: loss for loss in (Logistic(), Squared(), SmoothHinge(), Softmax(), Poisson(), Gamma())
}


def soft_dz(loss: Loss, z: Floats, y: Floats) -> Floats:
    """dL/dz for labels that are any numbers, as labels with noise are, not only true classes.

    It is linear in y and equals `loss.dz` at the true labels. A label of several classes is a row of
    numbers here, one-hot where it is a class.
    """
    match loss.task:
        case "binary":
            return (1 + y) / 2 * loss.dz(z, np.ones_like(y)) + (1 - y) / 2 * loss.dz(z, -np.ones_like(y))
        case "multiclass":
            from scipy.special import softmax

            p: Floats = softmax(z, axis=-1)
            return p - y
    return loss.dz(z, y)
