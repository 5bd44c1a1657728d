"""The same model trained where all columns lie together: what a federation is measured against."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array, hstack

from colonnade.arrays import Floats, Matrix
from colonnade.losses import Loss, loss_for
from colonnade.metrics import metrics_of
from colonnade.models.linear import RowKernels, rows_of
from colonnade.models.threads import single_threaded
from colonnade.regularizers import Penalty


@dataclass(frozen=True)
class PooledFit:
    """Weights of all columns, and the training loss with its penalty that they reach."""

    w: Floats
    loss: float

    def scores(self, X: Matrix) -> Floats:
        return rows_of(X).scores(0, int(X.shape[0]), self.w)

    def metrics(self, loss: Loss, X_test: Matrix, y_test: Floats) -> dict[str, float]:
        return {"objective": self.loss, **metrics_of(loss, self.scores(X_test), y_test)}


def pool(blocks: list[Matrix]) -> Matrix:
    """Return all blocks of columns side by side; sparse if any block is."""
    if all(isinstance(block, np.ndarray) for block in blocks):
        joined: Floats = np.hstack(blocks)
        return joined
    return csr_array(hstack(blocks, format="csr"))


def objective(w: Floats, rows: RowKernels, y: Floats, loss: Loss, penalty: Penalty) -> tuple[float, Floats]:
    """Return the mean loss plus the penalty, and the gradient of the smooth part of it.

    `y` may have weights beside the labels, with a loss for them (`losses.loss_for`).
    """
    n = len(y)
    z = rows.scores(0, n, w)
    value = float(loss.value(z, y).mean()) + penalty.value(w)
    return value, rows.gradient(0, n, loss.dz(z, y)) / n + penalty.gradient(w)


def fit_pooled(
    X: Matrix, y: Floats, loss: Loss, penalty: Penalty, *, classes: int | None = None
) -> PooledFit:
    """Return the optimum, by L-BFGS to the limit of double precision; it starts where a federation does."""
    from scipy.optimize import minimize  # loads as long as all the rest, and `pool` needs none of it

    rows, loss = rows_of(X), loss_for(loss, y)
    start = np.zeros((int(X.shape[1]), classes) if classes else (int(X.shape[1]),))
    start[list(penalty.free)] = loss.start(y)
    halves = _Halves(start, penalty) if penalty.l1 else None

    def flat(v: Floats) -> tuple[float, Floats]:
        w = v.reshape(start.shape) if halves is None else halves.join(v)
        value, gradient = objective(w, rows, y, loss, penalty)
        return value, gradient.ravel() if halves is None else halves.gradient(gradient)

    # on a busy machine the threads of a pool wait for each other longer than they compute
    with single_threaded(), np.errstate(over="ignore", invalid="ignore"):  # a line search may go too far
        found = minimize(
            flat,
            start.ravel() if halves is None else halves.start,
            jac=True,
            method="L-BFGS-B",
            bounds=None if halves is None else halves.bounds,
            options={"maxiter": 20_000, "maxfun": 40_000, "maxcor": 30, "ftol": 1e-16, "gtol": 1e-9},
        )
    return PooledFit(
        found.x.reshape(start.shape) if halves is None else halves.join(found.x), float(found.fun)
    )


class _Halves:
    """Weights as a difference of two parts that are not negative: on these sum |w| is smooth."""

    def __init__(self, start: Floats, penalty: Penalty) -> None:
        self._shape, self._l1 = start.shape, penalty.l1
        is_free = np.zeros(start.shape, dtype=bool)
        is_free[list(penalty.free)] = True
        self._free = is_free.ravel()
        self.start = np.concatenate([start.ravel(), np.zeros(start.size)])
        least = np.where(self._free, -np.inf, 0.0)
        most = np.where(self._free, 0.0, np.inf)
        self.bounds = [*((low, np.inf) for low in least), *((0.0, high) for high in most)]

    def join(self, v: Floats) -> Floats:
        """Return the weights."""
        plus, minus = np.split(v, 2)
        return (plus - minus).reshape(self._shape)

    def gradient(self, smooth: Floats) -> Floats:
        """Return the gradient by both parts."""
        slope = np.where(self._free, 0.0, self._l1)
        return np.concatenate([smooth.ravel() + slope, slope - smooth.ravel()])
