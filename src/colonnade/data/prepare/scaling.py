"""Number columns: finding gaps, filling them, capping outliers or drawing them nearer, and scaling.

Everything here works on a dense matrix and on a sparse one without filling its zeros.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from colonnade.arrays import Floats, Matrix
from colonnade.data.read.dates import days_of
from colonnade.data.read.recognise import number_of
from colonnade.data.table import RawTable, first_place, int32_indices, stored_values
from colonnade.errors import DataError

Scale = Literal["auto", "none", "zscore", "minmax", "maxabs"]
Tails = Literal[
    "cap", "bend", "keep"
]  # outliers become the last value that is none, are drawn nearer, or stay

# A value is an outlier if it lies further beyond the 5% or the 95% quantile than these are from each other.
# Chosen on held-back training rows of eight sets (two of credit, Adult, cod-rna, four small ones) among
# twenty rules: where tails are heavy it is worth fifteen points of AUC (GiveMeSomeCredit: 0.856, not 0.701),
# and it leaves columns without outliers as they are; caps at quantiles or at a number of deviations do not.
TAIL, REACH = 0.05, 1.0
# A linear model of a number needs its outliers: what grows with a column does so to its end. They begin
# further out, and are drawn nearer by a logarithm. Chosen on held-back training rows of 228 tables among
# thirty rules: the squared error is a tenth less than with caps (a fifth or more above the best rule's in 17
# tables, not 39) and as small as with columns as they are, but a new row far outside does less. For classes
# caps are best (209 tables). Where outliers had better stay as they are is in `outliers`.
BENT_TAIL = 0.01
SPARE_TAIL = 0.01  # where nine of ten values are the same
SAMPLE = 50_000  # rows are enough for quantiles
MOST = 1e300  # of what a logarithm is taken
FAR = 10.0  # times a column's range


def numbers(raw: RawTable, columns: list[str], dates: Mapping[str, str]) -> Matrix:
    """Return these columns as a fresh float64 matrix that may be changed in place.

    `dates` are columns of dates with the pattern that they are written in, where a table has them as text.
    """
    if raw.sparse:
        chosen = raw.values if len(columns) == len(raw.columns) else raw.select(columns).values
        return int32_indices(csr_array(chosen, dtype=np.float64, copy=True))
    if not isinstance(raw.values, tuple):
        values = raw.values if len(columns) == len(raw.columns) else raw.values[:, raw.positions(columns)]
        return np.array(values, dtype=np.float64, order="C")
    X = np.empty((raw.rows, len(columns)))
    for j, c in enumerate(columns):
        values = raw.column(c)
        X[:, j] = _from_text(raw, c, values, dates.get(c)) if values.dtype == object else values
    return X


def _from_text(raw: RawTable, column: str, values: NDArray[Any], date: str | None) -> Floats:
    """Return a text column as numbers, gaps as NaN; it was a column of numbers or dates in the training
    rows."""
    parsed = np.full(len(values), np.nan)
    for row, value in enumerate(values):
        text = str(value).strip()
        number = days_of(text, date) if date else number_of(text)
        if text and (number is None or np.isnan(number)):
            raise DataError(
                f"{raw.name}: column '{column}', row {raw.row_number(row)} holds '{text[:40]}', which is not "
                f"a {'date' if date else 'number'} as in the training rows; correct it"
            )
        parsed[row] = np.nan if number is None else number
    return parsed


def caps(X: Floats, tail: float = TAIL) -> tuple[Floats, Floats, Floats]:
    """Return the least and the greatest value of each column that is no outlier, and how far apart quantiles
    are.

    Gaps do not count.
    """
    low, high, apart = (np.zeros(X.shape[1]) for _ in range(3))
    step = -(-len(X) // SAMPLE)
    for j in range(X.shape[1]):
        there = X[~np.isnan(X[:, j]), j]
        if not len(there):
            continue
        low[j], high[j] = there.min(), there.max()
        for part in (tail, SPARE_TAIL):
            lower, upper = np.quantile(there[::step], [part, 1 - part])
            if upper > lower:
                apart[j] = REACH * (upper - lower)
                low[j], high[j] = max(low[j], lower - apart[j]), min(high[j], upper + apart[j])
                break
    return low, high, apart


def far(X: Floats) -> tuple[Floats, Floats]:
    """Return how far new rows may lie beyond a column's least and greatest value where outliers stay as they
    are.

    Nothing is known of what lies further, and a score that no fixed-point number holds would end a run.
    """
    low, high = (np.nan_to_num(edge) for edge in _edges(X))
    with np.errstate(over="ignore"):
        room = np.minimum(FAR * (high - low), MOST)
    return low - room, high + room


def _edges(X: Floats) -> tuple[Floats, Floats]:
    """Return the least and the greatest value of each column, without gaps; NaN where there is none."""
    return np.fmin.reduce(X, axis=0), np.fmax.reduce(X, axis=0)


def tame(X: Floats, low: Floats, high: Floats, bend: Floats | None = None) -> None:
    """Make values beyond `low` and `high` these, in place; with `bend` they are drawn nearer by a logarithm.

    >>> X = np.array([[0.5], [3.0], [8.0]])
    >>> tame(X, np.array([0.0]), np.array([1.0]), np.array([1.0]))
    >>> X.ravel().round(2).tolist()
    [0.5, 2.1, 3.08]
    """
    if bend is None:
        np.clip(X, low, high, out=X)
        return
    width = np.where(bend > 0, bend, 1.0)  # a column without width has no value beyond
    near = np.clip(X, low, high)
    with np.errstate(over="ignore"):
        far = np.clip((X - near) / width, -MOST, MOST)
    X[...] = near + width * np.sign(far) * np.log1p(np.abs(far))


def outliers(X: Floats, low: Floats, high: Floats) -> NDArray[np.int64]:
    """Return how many values of each column lie beyond its caps."""
    return np.asarray(((low > X) | (high < X)).sum(axis=0), dtype=np.int64)


def first_gap(X: Matrix) -> tuple[int, int] | None:
    """Return the row and column of the first NaN, or None if there is none."""
    return first_place(X, np.isnan(stored_values(X)))


def means(X: Matrix) -> Floats:
    """Return each column's mean over the values that are there (0 where none is)."""
    n, d = X.shape
    if isinstance(X, csr_array):
        gap = np.isnan(X.data)
        gaps = np.bincount(X.indices, weights=gap, minlength=d)
        total = np.bincount(X.indices, weights=np.where(gap, 0.0, X.data), minlength=d)
    else:
        gap = np.isnan(X)
        gaps, total = gap.sum(axis=0), (np.where(gap, 0.0, X) if gap.any() else X).sum(axis=0)
    return np.asarray(total / np.maximum(n - gaps, 1), dtype=np.float64)


def fill_gaps(X: Matrix, fill: Floats) -> None:
    """Fill each column's gaps with its entry in `fill`, in place."""
    if isinstance(X, csr_array):
        gap = np.isnan(X.data)
        X.data[gap] = fill[X.indices[gap]]
        return
    gap = np.isnan(X)
    if gap.any():
        X[gap] = np.broadcast_to(fill, X.shape)[gap]


def statistics(
    X: Matrix, scale: Scale | float, raw: RawTable, columns: list[str]
) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """Return each column's shift and divisor for this scale, and which columns have one value only."""
    d = len(columns)
    if d == 0:
        return np.zeros(0), np.ones(0), np.zeros(0, dtype=bool)
    low, high = _row(X.min(axis=0)), _row(X.max(axis=0))
    shift, divisor = np.zeros(d), np.ones(d)
    with np.errstate(over="ignore", invalid="ignore"):
        match scale:
            case "zscore":
                shift, divisor = X.mean(axis=0), X.std(axis=0)
            case "minmax" if isinstance(X, csr_array):
                _refuse_negative(low, raw, columns)
                divisor = high  # the zeros that are not stored are the minimum
            case "minmax":
                shift, divisor = low, high - low
            case "maxabs":
                divisor = np.maximum(np.abs(low), np.abs(high))
            case float() | int():
                divisor = np.full(d, float(scale))
    bad = ~(np.isfinite(shift) & np.isfinite(divisor))
    if bad.any():
        raise DataError(f"{raw.name}: column '{columns[int(bad.argmax())]}' has values too large to scale")
    flat = (low == high) | (divisor == 0.0)
    return shift, np.where(flat, 1.0, divisor), flat


def _refuse_negative(low: Floats, raw: RawTable, columns: list[str]) -> None:
    """Refuse minmax for sparse columns of which one has negative values."""
    if (low < 0).any():
        raise DataError(
            f"{raw.name}: column '{columns[int((low < 0).argmax())]}' has negative values, so scale = "
            "'minmax' would fill every zero of a sparse file; use 'maxabs'"
        )


def apply(X: Matrix, shift: Floats, divisor: Floats, keep: NDArray[np.bool_]) -> None:
    """Make (x - shift) / divisor of the columns to keep and 0 of the others, in place.

    A sparse matrix has no shift: it would fill every zero.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        if isinstance(X, csr_array):
            X.data = np.where(keep[X.indices], X.data / divisor[X.indices], 0.0)
            X.eliminate_zeros()
            return
        X -= shift
        X /= divisor
    X[:, ~keep] = 0.0


def _row(values: Any) -> Floats:
    """Return one number per column as a dense vector, whichever form SciPy gave it."""
    return np.asarray(values.toarray() if issparse(values) else values, dtype=np.float64).ravel()
