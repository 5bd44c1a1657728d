"""What is reported of a model on rows it has not seen."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import r2_score, roc_auc_score

from colonnade.losses import Loss

Floats = NDArray[np.float64]


def metrics_of(loss: Loss, z: Floats, y: Floats, penalty: float) -> dict[str, float]:
    """Test metrics of scores z: loss with accuracy and AUC, or with RMSE and R2."""
    metrics = {"test_loss": float(loss.value(z, y).mean() + penalty)}
    if loss.task == "regression":
        metrics["rmse"] = float(np.sqrt(np.mean((z - y) ** 2)))
        metrics["r2"] = float(r2_score(y, z))
        return metrics
    metrics["test_accuracy"] = float(np.mean(loss.predict(z) == y))
    if loss.task == "binary" and len(np.unique(y)) == 2:
        metrics["test_auc"] = float(roc_auc_score(y, z))
    return metrics
