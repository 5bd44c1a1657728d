"""Number columns: finding gaps, filling them, and scaling.

Everything here works on a dense matrix and on a sparse one without filling its zeros.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from colonnade.arrays import Floats, Matrix
from colonnade.data.table import RawTable, first_place, int32_indices, stored_values
from colonnade.errors import DataError

Scale = Literal["none", "zscore", "minmax", "maxabs"]


def numbers(raw: RawTable, columns: list[str]) -> Matrix:
    """These columns as a fresh float64 matrix that may be changed in place."""
    if raw.sparse:
        return int32_indices(csr_array(raw.values, dtype=np.float64, copy=True))
    if not isinstance(raw.values, tuple):
        values = raw.values if len(columns) == len(raw.columns) else raw.values[:, raw.positions(columns)]
        return np.array(values, dtype=np.float64, order="C")
    X = np.empty((raw.rows, len(columns)))
    for j, c in enumerate(columns):
        values = raw.column(c)
        X[:, j] = _from_text(raw, c, values) if values.dtype == object else values
    return X


def _from_text(raw: RawTable, column: str, values: NDArray[Any]) -> Floats:
    """A text column as numbers, gaps as NaN."""
    parsed = np.empty(len(values))
    for row, text in enumerate(values):
        try:
            parsed[row] = float(text) if text else np.nan
        except ValueError:
            raise DataError(
                f"{raw.name}: column '{column}', row {raw.row_number(row)} holds '{text[:40]}', which is not "
                "a number; correct it, list the column under categorical, or leave it out"
            ) from None
    return parsed


def first_gap(X: Matrix) -> tuple[int, int] | None:
    """Row and column of the first NaN, or None if there is none."""
    return first_place(X, np.isnan(stored_values(X)))


def means(X: Matrix) -> Floats:
    """Each column's mean over the values that are there (0 where none is)."""
    n, d = X.shape
    if isinstance(X, csr_array):
        gap = np.isnan(X.data)
        gaps = np.bincount(X.indices, weights=gap, minlength=d)
        total = np.bincount(X.indices, weights=np.where(gap, 0.0, X.data), minlength=d)
    else:
        gaps, total = np.isnan(X).sum(axis=0), np.nansum(X, axis=0)
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
    """Each column's shift and divisor for this scale, and which columns have one value only."""
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
    """One number per column as a dense vector, whichever form SciPy gave it."""
    return np.asarray(values.toarray() if issparse(values) else values, dtype=np.float64).ravel()
