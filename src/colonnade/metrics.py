"""Test metrics: what is reported of a model on rows it has not seen."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from colonnade.arrays import Floats
from colonnade.losses import Loss


def metrics_of(loss: Loss, z: Floats, y: Floats, penalty: float) -> dict[str, float]:
    """Metrics of scores z by name: the loss with accuracy and AUC, or, for numbers, with RMSE and R2."""
    metrics = {"test_loss": float(loss.value(z, y).mean() + penalty)}
    if loss.task == "regression":
        squared_error = float(np.mean((z - y) ** 2))
        metrics["rmse"] = squared_error**0.5
        if (spread := float(np.var(y))) > 0:
            metrics["r2"] = 1 - squared_error / spread
        return metrics
    metrics["test_accuracy"] = float(np.mean(loss.predict(z) == y))
    if loss.task == "binary" and (y > 0).any() and (y <= 0).any():
        metrics["test_auc"] = auc(z, y > 0)
    return metrics


def auc(z: Floats, positive: NDArray[np.bool_]) -> float:
    """AUC: the chance that a positive row scores above a negative one, ties counting half.

    >>> auc(np.array([0.1, 0.9, 0.9, 0.3]), np.array([False, True, False, True]))
    0.625
    """
    _, inverse, counts = np.unique(z, return_inverse=True, return_counts=True)
    middle_rank = np.cumsum(counts) - (counts - 1) / 2
    n_positive = int(positive.sum())
    n_negative = len(z) - n_positive
    rank_sum = float(middle_rank[inverse][positive].sum())
    return (rank_sum - n_positive * (n_positive + 1) / 2) / (n_positive * n_negative)
