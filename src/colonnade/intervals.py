"""How sure test metrics are: 95% intervals of each, and of the difference of two models on the same rows.

Every metric has an influence function: what one row adds to it, zero in the mean. The standard error of the
metric is that of the mean influence, and where two models are measured on the same rows the difference of
their influences gives that of their difference, without assuming that the models know nothing of each other.

- AUC: the parts of DeLong, DeLong and Clarke-Pearson (1988), so these are DeLong's intervals.
- Accuracy and loss: a mean over rows. Accuracy by itself has Wilson's interval, which holds near 0 and 1.
- RMSE, R2 and D2: the delta method, as they are functions of means.

Weights of rows count as they do in the metrics (`metrics.metrics_of`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from colonnade.arrays import Floats
from colonnade.losses import Loss, labels_of, weights_of
from colonnade.metrics import metrics_of

Interval = tuple[float, float]
NORMAL = 1.959963984540054  # 97.5% of a normal distribution lies below
LEAST = 10  # rows, and rows of each of two classes: of fewer nothing is said
PARTS = ("test_accuracy", "test_auc")  # metrics between 0 and 1


def influences(loss: Loss, z: Floats, y: Floats) -> dict[str, Floats]:
    """Return what every row adds to each metric of these scores, zero in the mean; none of too few rows."""
    labels, weight = labels_of(y), weights_of(y)
    w = np.ones(len(labels)) if weight is None else weight / weight.mean()
    if len(labels) < LEAST:
        return {}
    losses = loss.value(z, labels)
    found = {"test_loss": _centred(losses, w)}
    if loss.task == "regression":
        return found | _of_numbers(loss, z, labels, w, losses)
    found["test_accuracy"] = _centred((loss.predict(z) == labels).astype(np.float64), w)
    positive = labels > 0
    if loss.task == "binary" and min(positive.sum(), (~positive).sum()) >= LEAST:
        found["test_auc"] = _of_auc(z, positive, w)
    return found


def intervals(loss: Loss, z: Floats, y: Floats) -> dict[str, Interval]:
    """Return the 95% interval of every metric of these scores."""
    values, weight, found = metrics_of(loss, z, y), weights_of(y), {}
    for name, influence in influences(loss, z, y).items():
        if name not in values:
            continue
        half, value = NORMAL * _standard_error(influence), values[name]
        if name == "test_accuracy" and weight is None:
            found[name] = _wilson(value, len(y))
        elif name in PARTS:
            found[name] = (max(value - half, 0.0), min(value + half, 1.0))
        else:
            found[name] = (value - half, value + half)
    return found


def gains(loss: Loss, z: Floats, other: Floats, y: Floats) -> dict[str, tuple[float, float, float]]:
    """Return by how much each metric of scores `z` is above that of the `other`, and its 95% interval."""
    value, before = metrics_of(loss, z, y), metrics_of(loss, other, y)
    ours, others = influences(loss, z, y), influences(loss, other, y)
    found = {}
    for name in ours.keys() & others.keys() & value.keys():
        gain, half = value[name] - before[name], NORMAL * _standard_error(ours[name] - others[name])
        found[name] = (gain, gain - half, gain + half)
    return found


def _standard_error(influence: Floats) -> float:
    """Return the standard error of a metric whose rows have this influence."""
    return float(np.sqrt((influence**2).sum()) / len(influence))


def _centred(x: Floats, w: Floats) -> Floats:
    """Return the influence of rows on the weighted mean of x."""
    n = len(x)
    centred: Floats = w * (x - np.average(x, weights=w)) * np.sqrt(n / (n - 1))
    return centred


def _of_numbers(loss: Loss, z: Floats, y: Floats, w: Floats, losses: Floats) -> dict[str, Floats]:
    """Return the influences on RMSE, and on the part of the spread that is explained: 1 - a / b of means."""
    squares = (loss.predict(z) - y) ** 2
    found = {}
    if rmse := float(np.average(squares, weights=w)) ** 0.5:
        found["rmse"] = _centred(squares, w) / (2 * rmse)
    mean = float(np.average(y, weights=w))
    if np.ptp(y) == 0 or loss.link not in ("identity", "log"):
        return found
    if loss.link == "identity":
        name, a, b = "r2", squares, (y - mean) ** 2
    else:
        name, a, b = "d2", losses, loss.value(np.full(len(y), np.log(mean)), y)
    left, whole = float(np.average(a, weights=w)), float(np.average(b, weights=w))
    found[name] = left / whole**2 * _centred(b, w) - _centred(a, w) / whole
    return found


def _of_auc(z: Floats, positive: NDArray[np.bool_], w: Floats) -> Floats:
    """Return DeLong's parts: how much of the other class a row is on the right side of, less the AUC."""
    _, place = np.unique(z, return_inverse=True)
    found = np.empty(len(z))
    for rows, sign in ((positive, 1.0), (~positive, -1.0)):
        other = np.bincount(place, weights=w * ~rows)
        below = (np.cumsum(other) - other / 2)[place] / other.sum()
        right = below if sign > 0 else 1 - below
        count = int(rows.sum())
        spread = w[rows] * (right[rows] - np.average(right[rows], weights=w[rows]))
        found[rows] = spread * len(z) / w[rows].sum() * np.sqrt(count / (count - 1))
    return found


def _wilson(part: float, n: int) -> Interval:
    """Return Wilson's interval of a part of n rows.

    >>> [round(end, 4) for end in _wilson(0.9, 100)]
    [0.8256, 0.9448]
    """
    middle = (part + NORMAL**2 / (2 * n)) / (1 + NORMAL**2 / n)
    half = NORMAL / (1 + NORMAL**2 / n) * (part * (1 - part) / n + NORMAL**2 / (4 * n**2)) ** 0.5
    return max(middle - half, 0.0), min(middle + half, 1.0)
