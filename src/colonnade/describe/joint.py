"""How the columns of all parties go together: Pearson's correlations, and what follows from them alone.

    VIF_j = (R^-1)_jj                 variance inflation, R the correlations of the columns
    beta  = R^-1 r                    least squares of the label, r its correlations, all in deviations
    se_j  = sqrt((1 - r'beta) VIF_j / (n - d - 1))

Correlations that were told with noise of deviation tau move beta by R^-1 (noise), so that se has tau^2 (1 +
|beta|^2) (R^-2)_jj beside (to first order). Where R has an eigenvalue that noise alone could make, the
inverse says nothing: then no coefficient is given, and VIF is a lower bound.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
import numpy as np

from colonnade.arrays import Floats
from colonnade.errors import DataError

SINGULAR = 1e-10
NOISE = 0.5  # of each party, in standard errors of a correlation


class JointColumn(msgspec.Struct, frozen=True, kw_only=True):
    """One column among those of all parties: variance inflation, and its part in a fit of the label.

    `beta`, its standard error, its statistic (t, or Wald's z) and p-value are None without a fit.
    """

    party: str
    column: str
    vif: float
    beta: float | None = None
    error: float | None = None
    statistic: float | None = None
    p: float | None = None


class Fit(msgspec.Struct, frozen=True, kw_only=True):
    """What was fitted to columns in deviations: least squares, or a logistic model of largest likelihood."""

    model: str
    rows: int
    r2: float | None = None


class Statistics(msgspec.Struct, frozen=True, kw_only=True):
    """All of it, as it is shown and stored. `correlations` are those of all columns, the label last."""

    rows: int
    names: list[tuple[str, str]]
    label_at: str | None
    correlations: list[list[float]]
    error: float  # standard error of a correlation of 0: 1 / sqrt(rows)
    noise: float  # deviation of what was added to a correlation between two parties; 0: exact
    columns: list[JointColumn]
    fit: Fit | None = None
    crowded: bool = False  # noise hides how columns repeat each other: VIF is a lower bound


@dataclass(frozen=True, eq=False)
class JointCorrelations:
    """Correlations of all columns by (party, column), the label last where there is one."""

    names: tuple[tuple[str, str], ...]
    R: Floats
    rows: int
    label: bool
    noise: float = 0.0

    @property
    def width(self) -> int:
        """How many columns there are, the label left out."""
        return len(self.names) - self.label

    @property
    def crowded(self) -> bool:
        """Whether noise could make the smallest eigenvalue that there is."""
        least = float(np.linalg.eigvalsh(self.R[: self.width, : self.width])[0])
        return bool(least <= max(2 * self.noise * self.width**0.5, SINGULAR))

    def inverse(self) -> Floats:
        """Return R^-1 of the columns; where they are crowded, of eigenvalues that are no smaller than what
        noise could make."""
        values, vectors = np.linalg.eigh(self.R[: self.width, : self.width])
        floor = max(2 * self.noise * self.width**0.5, SINGULAR)
        found: Floats = (vectors / np.maximum(values, floor)) @ vectors.T
        return found

    def statistics(self) -> Statistics:
        """Return variance inflation and, where there is a label, least squares with p-values."""
        if self.width == 0:
            raise DataError("no party has a column that varies, so nothing goes together with anything")
        inverse = self.inverse()
        inflation = np.diag(inverse)
        betas: Floats | None = None
        errors, freedom, r2 = inflation, self.rows - self.width - 1, 0.0
        if self.label and not self.crowded:
            r = self.R[: self.width, self.width]
            beta = inverse @ r
            r2 = float(r @ beta)
            if freedom > 0 and r2 < 1:
                sampled = max(1 - r2, 0.0) * inflation / freedom
                moved = self.noise**2 * (1 + beta @ beta) * (inverse**2).sum(axis=1)
                betas, errors = beta, np.sqrt(sampled + moved)
        fit = None if betas is None else Fit(model="least squares", rows=self.rows, r2=r2)
        return self.told(inflation, fit, betas, errors, freedom)

    def told(
        self, inflation: Floats, fit: Fit | None, betas: Floats | None, errors: Floats, freedom: float
    ) -> Statistics:
        """Return everything in words and numbers; p-values by Student's t, by the normal law where freedom is
        infinite."""
        label = self.names[-1][0] if self.label else None
        none: list[tuple[float, float] | None] = [None] * self.width
        fitted = none if betas is None else list(zip(betas.tolist(), errors.tolist(), strict=True))
        return Statistics(
            rows=self.rows,
            names=list(self.names),
            label_at=label,
            correlations=self.R.tolist(),
            error=self.rows**-0.5,
            noise=self.noise,
            columns=[
                _column(name, float(v), each, freedom)
                for name, v, each in zip(self.names[: self.width], inflation, fitted, strict=True)
            ],
            fit=fit,
            crowded=self.crowded,
        )


def _column(
    name: tuple[str, str], inflation: float, fitted: tuple[float, float] | None, freedom: float
) -> JointColumn:
    from scipy.stats import norm, t

    party, column = name
    if fitted is None:
        return JointColumn(party=party, column=column, vif=inflation)
    beta, error = fitted
    statistic = beta / error
    p = 2 * (norm.sf(abs(statistic)) if np.isinf(freedom) else t.sf(abs(statistic), freedom))
    return JointColumn(
        party=party, column=column, vif=inflation, beta=beta, error=error, statistic=statistic, p=float(p)
    )


def logistic(joint: JointCorrelations, X: Floats, y: Floats) -> Statistics:
    """Return the same with a logistic model in the place of least squares; X are all columns, y 0 or 1.

    Newton's method, to the maximum of the likelihood; without a fit where the classes are separated.
    """
    ones = np.column_stack([np.ones(len(X)), X])
    w = np.zeros(ones.shape[1])
    for _ in range(50):
        p = 1 / (1 + np.exp(-np.clip(ones @ w, -40, 40)))
        information = ones.T @ ((p * (1 - p))[:, None] * ones)
        if not np.linalg.cond(information) < 1e12:
            return joint.told(np.diag(joint.inverse()), None, None, w, np.inf)
        step = np.linalg.solve(information, ones.T @ (y - p))
        w = w + step
        if np.abs(step).max() < 1e-10:
            break
    else:
        return joint.told(np.diag(joint.inverse()), None, None, w, np.inf)
    errors = np.sqrt(np.diag(np.linalg.inv(information)))
    fit = Fit(model="logistic", rows=len(y))
    return joint.told(np.diag(joint.inverse()), fit, w[1:], errors[1:], np.inf)


def step_of(noise: float, rows: int) -> float:
    """Return in which steps a correlation is told: the largest power of two that is no larger than its
    noise, which is counted in standard errors.

    >>> step_of(0.5, 30_000)
    0.001953125
    """
    return float(2.0 ** np.floor(np.log2(max(noise, 2.0**-24) * rows**-0.5)))
