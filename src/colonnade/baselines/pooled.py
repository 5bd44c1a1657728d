"""The same model trained where all columns lie together: what a federation is measured against."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array, hstack
from threadpoolctl import threadpool_limits

from colonnade.arrays import Floats, Matrix
from colonnade.losses import Loss
from colonnade.metrics import metrics_of
from colonnade.models.linear import RowKernels, rows_of
from colonnade.regularizers import Regularizer


@dataclass(frozen=True)
class PooledFit:
    """Weights of all columns, and the training loss they reach."""

    w: Floats
    loss: float

    def scores(self, X: Matrix) -> Floats:
        return rows_of(X).scores(0, int(X.shape[0]), self.w)

    def metrics(self, loss: Loss, X_test: Matrix, y_test: Floats, penalty: float) -> dict[str, float]:
        return {"train_loss": self.loss, **metrics_of(loss, self.scores(X_test), y_test, penalty)}


def pool(blocks: list[Matrix]) -> Matrix:
    """All blocks of columns side by side; sparse if any block is."""
    if all(isinstance(block, np.ndarray) for block in blocks):
        joined: Floats = np.hstack(blocks)
        return joined
    return csr_array(hstack(blocks, format="csr"))


def objective(
    w: Floats, rows: RowKernels, y: Floats, loss: Loss, regularizer: Regularizer, l2: float
) -> tuple[float, Floats]:
    """Value and gradient of the mean loss plus the penalty."""
    n = len(y)
    z = rows.scores(0, n, w)
    value = float(loss.value(z, y).mean()) + l2 * regularizer.value(w)
    return value, rows.gradient(0, n, loss.dz(z, y)) / n + l2 * regularizer.gradient(w)


def fit_pooled(
    X: Matrix, y: Floats, loss: Loss, regularizer: Regularizer, l2: float, *, classes: int | None = None
) -> PooledFit:
    """The optimum, by L-BFGS to the limit of double precision; it starts from zero, as a federation does."""
    from scipy.optimize import minimize  # loads as long as all the rest, and `pool` needs none of it

    rows = rows_of(X)
    shape = (int(X.shape[1]), classes) if classes else (int(X.shape[1]),)

    def flat(w: Floats) -> tuple[float, Floats]:
        value, gradient = objective(w.reshape(shape), rows, y, loss, regularizer, l2)
        return value, gradient.ravel()

    # on a busy machine the threads of a pool wait for each other longer than they compute
    with threadpool_limits(1):
        found = minimize(
            flat,
            np.zeros(int(np.prod(shape))),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": 20_000, "maxfun": 40_000, "maxcor": 30, "ftol": 1e-16, "gtol": 1e-9},
        )
    return PooledFit(found.x.reshape(shape), float(found.fun))
