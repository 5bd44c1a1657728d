"""Statistics of a linear and a logistic model from their definitions, by plain algebra and an optimiser."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, stats

Floats = NDArray[np.float64]


class Table(NamedTuple):
    """Coefficients of columns in deviations, without the constant."""

    beta: Floats
    error: Floats
    statistic: Floats
    p: Floats


def with_constant(X: Floats) -> Floats:
    return np.column_stack([np.ones(len(X)), X])


def ols(X: Floats, y: Floats) -> Table:
    """Least squares of y in deviations on X, with Student's t."""
    ones, target = with_constant(X), (y - y.mean()) / y.std()
    beta, *_ = np.linalg.lstsq(ones, target, rcond=None)
    left = target - ones @ beta
    freedom = len(y) - ones.shape[1]
    error = np.sqrt(left @ left / freedom * np.diag(np.linalg.inv(ones.T @ ones)))
    statistic = beta / error
    return Table(beta[1:], error[1:], statistic[1:], 2 * stats.t.sf(np.abs(statistic), freedom)[1:])


def logit(X: Floats, y: Floats) -> Table:
    """The logistic model of largest likelihood, y being 0 or 1, with Wald's z."""
    ones = with_constant(X)

    def loss(w: Floats) -> Any:
        return np.logaddexp(0, ones @ w).sum() - y @ (ones @ w)

    def slope(w: Floats) -> Any:
        return ones.T @ (1 / (1 + np.exp(-ones @ w)) - y)

    w = optimize.minimize(loss, np.zeros(ones.shape[1]), jac=slope, method="BFGS", options={"gtol": 1e-9}).x
    p = 1 / (1 + np.exp(-ones @ w))
    error = np.sqrt(np.diag(np.linalg.inv(ones.T @ ((p * (1 - p))[:, None] * ones))))
    return Table(w[1:], error[1:], (w / error)[1:], 2 * stats.norm.sf(np.abs(w / error))[1:])


def vif(X: Floats) -> list[float]:
    """1 / (1 - R2) of every column's regression on all others."""
    found = []
    for j in range(X.shape[1]):
        others = with_constant(np.delete(X, j, axis=1))
        left = X[:, j] - others @ np.linalg.lstsq(others, X[:, j], rcond=None)[0]
        found.append(float(X[:, j].var() / left.var()))
    return found
