"""Test metrics: what is reported of a model on rows it has not seen."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from colonnade.arrays import Floats
from colonnade.losses import Loss, labels_of, mean_loss, weights_of


def metrics_of(loss: Loss, z: Floats, y: Floats) -> dict[str, float]:
    """Return metrics of scores z by name: the loss with accuracy and AUC, or, for numbers, with RMSE and R2
    or D2.

    The loss is without a penalty, so that losses of different settings compare. D2 is what R2 becomes for a
    Poisson or gamma loss: the part of the deviance that the model explains. Where weights stand beside the
    labels (`losses.with_weights`), all are weighted.
    """
    metrics = {"test_loss": mean_loss(loss, z, y)}
    labels, weight = labels_of(y), weights_of(y)
    if loss.task == "regression":
        squared_error = float(np.average((loss.predict(z) - labels) ** 2, weights=weight))
        metrics["rmse"] = squared_error**0.5
        return metrics | _explained(loss, squared_error, metrics["test_loss"], y)
    metrics["test_accuracy"] = float(np.average(loss.predict(z) == labels, weights=weight))
    if loss.task == "binary" and (labels > 0).any() and (labels <= 0).any():
        metrics["test_auc"] = auc(z, labels > 0, weight)
    return metrics


def _explained(loss: Loss, squared_error: float, deviance: float, y: Floats) -> dict[str, float]:
    """Return R2, or D2 where the deviance is no squared error; none where all labels are alike."""
    labels, weight = labels_of(y), weights_of(y)
    mean = float(np.average(labels, weights=weight))
    if np.ptp(labels) == 0:
        return {}
    if loss.link == "identity":
        return {"r2": 1 - squared_error / float(np.average((labels - mean) ** 2, weights=weight))}
    if loss.link == "log":
        return {"d2": 1 - deviance / mean_loss(loss, np.full(len(labels), np.log(mean)), y)}
    return {}


def auc(z: Floats, positive: NDArray[np.bool_], weight: Floats | None = None) -> float:
    """Return the AUC: the chance that a positive row scores above a negative one, ties counting half.

    >>> auc(np.array([0.1, 0.9, 0.9, 0.3]), np.array([False, True, False, True]))
    0.625
    """
    weight = np.ones(len(z)) if weight is None else weight
    _, place = np.unique(z, return_inverse=True)
    ups = np.bincount(place, weights=weight * positive)
    downs = np.bincount(place, weights=weight * ~positive)
    below = np.cumsum(downs) - downs / 2
    return float((ups * below).sum() / (ups.sum() * downs.sum()))
