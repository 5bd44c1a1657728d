"""Preparation: each party turns its own columns into numbers, by itself.

Statistics come from training rows only, so nothing of the test rows leaks into the model, and from the
party's own columns only, so nothing crosses a boundary. What was learnt is plain data (`to_dict`) and is
stored beside the party's share of the model: new rows are prepared exactly like the training rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, get_args

import msgspec
import numpy as np
from scipy.sparse import csr_array, hstack

from colonnade.arrays import Floats, Matrix, Rows
from colonnade.data import scaling
from colonnade.data.labels import category_codes, category_names
from colonnade.data.scaling import Scale
from colonnade.data.table import RawTable, Table, int32_indices, stored_values
from colonnade.data.woe import Weighed, weigh_columns
from colonnade.errors import DataError

Missing = Literal["error", "zero", "mean"]

INTERCEPT = "(intercept)"
WIDE, FILLED = 256, 0.25  # one-hot columns beyond this width and below this fill are kept sparse


@dataclass(frozen=True)
class Preparation:
    """How raw columns become numbers, as learnt from training rows.

    A number x becomes (x - shift) / divisor. A categorical column becomes one column per category.
    `shift`, `divisor` and `fill` (what takes the place of a gap) have one entry per number column. The
    columns in `constant` had one value in all training rows: they teach nothing and become 0. A gap or
    an unknown value in a categorical column is 0 in all its columns.
    """

    columns: tuple[str, ...]
    scale: Scale | float
    missing: Missing
    categories: dict[str, tuple[str, ...]]
    shift: tuple[float, ...]
    divisor: tuple[float, ...]
    fill: tuple[float, ...]
    constant: tuple[str, ...]
    sparse: bool
    intercept: bool
    woe: tuple[Weighed, ...] = ()  # what each column becomes before it is prepared as a number

    @staticmethod
    def fit(
        raw: RawTable,
        *,
        scale: Scale | float = "none",
        categorical: Sequence[str] = (),
        missing: Missing = "error",
        intercept: bool = False,
        woe: tuple[Weighed, ...] = (),
    ) -> Preparation:
        """Learn the preparation from training rows. If `scale` is a number, every column is divided by it.

        With `woe` every column is its weight of evidence first: a number, whatever it was.
        """
        if woe:
            raw, categorical = weigh_columns(raw, woe), ()
        _check_options(raw, scale, missing, categorical)
        for c in categorical:
            _check_gaps(raw, c, missing)
        categories = {c: category_names(raw.column(c)) for c in raw.columns if c in categorical}
        numeric = [c for c in raw.columns if c not in categories]
        X = _numbers(raw, numeric, missing)
        fill = scaling.means(X) if missing == "mean" else np.zeros(len(numeric))
        scaling.fill_gaps(X, fill)
        shift, divisor, flat = scaling.statistics(X, scale, raw, numeric)
        constant = {c for c, one_value in zip(numeric, flat, strict=True) if one_value}
        constant |= {c for c, names in categories.items() if len(names) < 2}
        if raw.columns and len(constant) == len(raw.columns):
            shown = ", ".join(raw.columns[:4]) + (", ..." if len(raw.columns) > 4 else "")
            raise DataError(
                f"{raw.name}: every column ({shown}) is constant in the training rows; "
                "this party has nothing to learn from, give it other columns"
            )
        return Preparation(
            columns=raw.columns,
            scale=scale,
            missing=missing,
            categories=categories,
            shift=tuple(shift.tolist()),
            divisor=tuple(divisor.tolist()),
            fill=tuple(fill.tolist()),
            constant=tuple(c for c in raw.columns if c in constant),
            sparse=raw.sparse,
            intercept=intercept,
            woe=woe,
        )

    @property
    def outputs(self) -> tuple[str, ...]:
        """The names of the prepared columns; that of a category is column=value."""
        names: list[str] = []
        for c in self.columns:
            names += [f"{c}={value}" for value in self.categories[c]] if c in self.categories else [c]
        return (*names, INTERCEPT) if self.intercept else tuple(names)

    def transform(self, raw: RawTable, y: Floats | None = None) -> Table:
        """Any rows of the same columns as numbers. `y` is their labels, coded by `Labels`, if held here."""
        if raw.columns != self.columns:
            raw = raw.select(self.columns)
        if self.woe:
            raw = weigh_columns(raw, self.woe)
        # the training file decides whether columns are sparse; a test file may be emptier or fuller
        if raw.sparse != self.sparse:
            sparse = csr_array(raw.values)
            raw = replace(raw, values=sparse if self.sparse else sparse.toarray())
        numeric = [c for c in self.columns if c not in self.categories]
        X = _numbers(raw, numeric, self.missing)
        scaling.fill_gaps(X, np.array(self.fill))
        constant = set(self.constant)
        keep = np.array([c not in constant for c in numeric], dtype=bool)
        scaling.apply(X, np.array(self.shift), np.array(self.divisor), keep)
        if not np.isfinite(stored_values(X)).all():
            raise DataError(f"{raw.name}: values too large to scale; look for outliers or use scale = 'none'")
        if self.sparse and self.intercept:
            X = int32_indices(csr_array(hstack([X, np.ones((raw.rows, 1))], format="csr")))
        elif self.categories or self.intercept:
            X = self._assemble(raw, X)
        return Table(raw.name, self.outputs, X, y, raw.ids)

    def to_dict(self) -> dict[str, Any]:
        """The same as plain lists, numbers and text, for JSON."""
        return {**asdict(self), "woe": msgspec.to_builtins(self.woe)}

    @staticmethod
    def from_dict(plain: dict[str, Any]) -> Preparation:
        """The preparation that `to_dict` described, also after a journey through JSON."""
        lists = ("columns", "shift", "divisor", "fill", "constant")
        categories = {c: tuple(names) for c, names in plain["categories"].items()}
        woe = msgspec.convert(plain.get("woe", ()), tuple[Weighed, ...])
        kept = {**plain, **{k: tuple(plain[k]) for k in lists}}
        return Preparation(**{**kept, "categories": categories, "woe": woe})

    def _assemble(self, raw: RawTable, numbers: Floats) -> Matrix:
        """One matrix of number columns, one-hot columns and the intercept, in the order of `outputs`."""
        rows = np.arange(raw.rows)
        places: list[int] = []  # of the number columns
        i, j = [rows[:0]], [rows[:0]]  # where the ones go
        width = 0
        for c in self.columns:
            if c not in self.categories:
                places.append(width)
                width += 1
                continue
            _check_gaps(raw, c, self.missing)
            code = category_codes(raw.column(c), self.categories[c])
            known = (code >= 0) & (c not in self.constant)
            i.append(rows[known])
            j.append(width + code[known])
            width += len(self.categories[c])
        if self.intercept:
            i.append(rows)
            j.append(np.full(raw.rows, width))
            width += 1
        ones = np.concatenate(i), np.concatenate(j)
        if width > WIDE and len(places) + len(self.categories) + self.intercept < FILLED * width:
            return _sparse(numbers, places, ones, (raw.rows, width))
        X = np.zeros((raw.rows, width))
        X[:, places] = numbers
        X[ones] = 1.0
        return X


def _check_options(raw: RawTable, scale: Scale | float, missing: Missing, categorical: Sequence[str]) -> None:
    """Refuse options that are not known or do not go with this table."""
    divides = not isinstance(scale, str) and np.isfinite(scale) and scale > 0
    if scale not in get_args(Scale) and not divides:
        raise DataError(
            f"scale = {scale!r} is not known; use {', '.join(get_args(Scale))} or a positive number"
        )
    if missing not in get_args(Missing):
        raise DataError(f"missing = {missing!r} is not known; use {', '.join(get_args(Missing))}")
    if raw.rows == 0:
        raise DataError(f"{raw.name}: no training rows")
    if raw.sparse and categorical:
        raise DataError(f"{raw.name}: the columns of a sparse file are numbers; none can be categorical")
    if raw.sparse and scale == "zscore":
        raise DataError(
            f"{raw.name}: scale = 'zscore' would fill every zero of a sparse file; "
            "use 'maxabs', or 'minmax' where no value is negative"
        )


def _numbers(raw: RawTable, numeric: list[str], missing: Missing) -> Matrix:
    """The number columns as a fresh matrix; a gap is NaN, or refused where `missing` is "error"."""
    X = scaling.numbers(raw, numeric)
    gap = scaling.first_gap(X) if missing == "error" else None
    if gap is not None:
        raise _gap(raw, numeric[gap[1]], gap[0])
    return X


def _check_gaps(raw: RawTable, categorical: str, missing: Missing) -> None:
    """Refuse a gap in a categorical column where `missing` is "error"."""
    values = raw.column(categorical)
    gaps = values == "" if values.dtype == object else np.isnan(values.astype(np.float64))
    if missing == "error" and gaps.any():
        raise _gap(raw, categorical, int(gaps.argmax()))


def _gap(raw: RawTable, column: str, row: int) -> DataError:
    """The error that names a gap."""
    return DataError(
        f"{raw.name}: column '{column}', row {raw.row_number(row)} has no value; "
        "fill it in, or set missing = 'mean' or 'zero'"
    )


def _sparse(numbers: Floats, places: list[int], ones: tuple[Rows, Rows], shape: tuple[int, int]) -> csr_array:
    """A sparse matrix with number columns at `places`, and with ones at rows and columns `ones`."""
    r, k = np.nonzero(numbers)
    i = np.concatenate([ones[0], r])
    j = np.concatenate([ones[1], np.array(places, dtype=np.int64)[k]])
    values = np.concatenate([np.ones(len(ones[0])), numbers[r, k]])
    return int32_indices(csr_array((values, (i, j)), shape=shape))
