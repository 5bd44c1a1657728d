"""How sure a coefficient is, and whether columns repeat each other: p-values and variance inflation.

Both need products of every two columns, X'DX, of all parties. They are computed where all columns lie
together (a run on one machine): a secure sum of these products would show whoever reads it how columns of
different parties go together, which training never shows. Between companies they are not computed.

Wald's test: the estimate w of a fit with penalty l2 / 2 ||w||^2 has the covariance H^-1 X'DX H^-1 with H =
X'DX + n l2 (the intercept not penalised) and D = p (1 - p); without a penalty that is the inverse of X'DX.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

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
    """The table of a logistic model on prepared columns X, whose names are (party, column)."""
    from scipy.stats import norm

    p = expit(X @ weights)
    D = p * (1 - p)
    information = X.T @ (D[:, None] * X)
    penalised = np.array([column != INTERCEPT for _, column in names])
    H = information + np.diag(len(X) * l2 * penalised)
    _refuse_singular(H)
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
    """Variance inflation of every column: 1 / (1 - R2) of its regression on all others."""
    centred = X - X.mean(axis=0)
    spread = np.sqrt((centred**2).sum(axis=0))
    if (spread == 0).any():
        raise DataError("vif: a column is constant; leave it out")
    correlation = (centred / spread).T @ (centred / spread)
    _refuse_singular(correlation)
    found: Floats = np.diag(np.linalg.inv(correlation)).copy()
    return found


def _refuse_singular(A: Floats) -> None:
    if np.linalg.cond(A) > 1e12:
        raise DataError(
            "the columns repeat each other (categories with all their values beside an intercept do), "
            "so single coefficients have no standard errors; drop a column, or weigh columns with data.woe"
        )
