"""How sure a coefficient is, and whether columns repeat each other: p-values and variance inflation.

Both need products of every two columns, X'DX, of all parties. They are computed where all columns lie
together (a run on one machine): a secure sum of these products would show its reader how columns of
different parties go together, which training never shows. Between companies they are not computed.

Wald's test: the estimate w of a fit with penalty l2 / 2 ||w||^2 has the covariance H^-1 X'DX H^-1 with H =
X'DX + n l2 (the intercept not penalised) and D = p (1 - p); without a penalty that is the inverse of X'DX.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from colonnade.arrays import Floats
from colonnade.data.table import INTERCEPT
from colonnade.errors import DataError


@dataclass(frozen=True)
class Coefficient:
    """One prepared column: its weight, its standard error, Wald's z and the two-sided p-value."""

    party: str
    column: str
    weight: float
    error: float
    z: float
    p: float
    vif: float | None


def coefficient_table(
    names: Sequence[tuple[str, str]], X: Floats, weights: Floats, l2: float = 0.0
) -> list[Coefficient]:
    """Return the table of a logistic model on prepared columns X, whose names are (party, column)."""
    from scipy.special import expit
    from scipy.stats import norm

    p = expit(X @ weights)
    D = p * (1 - p)
    information = X.T @ (D[:, None] * X)
    penalised = np.array([column != INTERCEPT for _, column in names])
    H = information + np.diag(len(X) * l2 * penalised)
    if _singular(H):
        raise DataError(
            "the columns repeat each other and nothing is penalised, so single coefficients have no standard "
            "errors; drop a column, or train with a penalty (l2)"
        )
    inverse = np.linalg.inv(H)
    errors = np.sqrt(np.diag(inverse @ information @ inverse))
    scores = weights / errors
    inflation = iter(vif(X[:, penalised]).tolist())
    return [
        Coefficient(party, column, float(w), float(e), float(s), float(2 * norm.sf(abs(s))), v)
        for (party, column), w, e, s, v in zip(
            names,
            weights,
            errors,
            scores,
            [next(inflation) if each else None for each in penalised],
            strict=True,
        )
    ]


def vif(X: Floats) -> Floats:
    """Return the variance inflation of every column: 1 / (1 - R2) of its regression on all others.

    Infinite for a column that the others give exactly, as the categories of one column do among themselves.
    """
    centred = X - X.mean(axis=0)
    spread = np.sqrt((centred**2).sum(axis=0))
    if (spread == 0).any():
        raise DataError("vif: a column is constant; leave it out")
    units = centred / spread
    correlation = units.T @ units
    if not _singular(correlation):
        found: Floats = np.diag(np.linalg.inv(correlation)).copy()
        return found
    return np.array([_inflation(units, j) for j in range(units.shape[1])])


def _inflation(units: Floats, j: int) -> float:
    """Return 1 / (1 - R2) of one column of length 1, where columns repeat each other."""
    others = np.delete(units, j, axis=1)
    coefficients, *_ = np.linalg.lstsq(others, units[:, j], rcond=None)
    left = float(np.sum((units[:, j] - others @ coefficients) ** 2))
    return 1 / left if left > 1e-10 else np.inf


def _singular(A: Floats) -> bool:
    return bool(np.linalg.cond(A) > 1e12)
