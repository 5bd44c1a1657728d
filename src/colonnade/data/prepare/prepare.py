"""Preparation: each party turns its own columns into numbers, by itself.

Statistics come from training rows only, so nothing of the test rows leaks into the model, and from the
party's own columns only, so nothing crosses a boundary. What was learnt is plain data (`to_dict`) and is
stored beside the party's share of the model: new rows are prepared exactly like the training rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, get_args

import msgspec
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, hstack

from colonnade.arrays import Floats, Matrix, Rows
from colonnade.data.prepare import scaling
from colonnade.data.prepare.categories import MISSING, codes_in, gaps_in
from colonnade.data.prepare.scaling import Scale, Tails
from colonnade.data.prepare.woe import Weighed, weigh_columns
from colonnade.data.table import INTERCEPT, RawTable, Table, int32_indices, some, stored_values
from colonnade.errors import DataError

Missing = Literal["auto", "error", "zero", "mean", "keep"]
Rare = int | Literal["auto"]

WIDE, FILLED = 256, 0.25  # one-hot columns beyond this width and below this fill are kept sparse


@dataclass(frozen=True)
class Numbers:
    """Number columns: x becomes (x - shift) / divisor, after outliers were capped and gaps filled.

    The other tuples have one entry for each of `names`; `low` and `high` are empty where outliers stay, and
    `bend` is where they are capped and not drawn nearer.
    """

    names: tuple[str, ...]
    fill: tuple[float, ...]
    shift: tuple[float, ...]
    divisor: tuple[float, ...]
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    bend: tuple[float, ...] = ()

    def of(self, raw: RawTable, dates: dict[str, str], missing: Missing, zero: tuple[str, ...]) -> Matrix:
        """Return these columns of any rows; those in `zero` become 0."""
        X = scaling.numbers(raw, list(self.names), dates)
        if missing == "error":
            refuse_gaps(raw, self.names, X)
        if self.low:
            bend = np.array(self.bend) if self.bend else None
            scaling.tame(X, np.array(self.low), np.array(self.high), bend)
        if missing != "keep":
            scaling.fill_gaps(X, np.array(self.fill))
        flat = set(zero)
        keep = np.array([c not in flat for c in self.names], dtype=bool)
        scaling.apply(X, np.array(self.shift), np.array(self.divisor), keep)
        if np.isinf(stored_values(X)).any():
            raise DataError(f"{raw.name}: values too large to scale; look for outliers or use scale = 'none'")
        return X


@dataclass(frozen=True)
class Preparation:
    """How raw columns become numbers, as learnt from training rows.

    A categorical column becomes one column per category, a gap or an unknown value the category for it, if
    there is one. `gaps` are number columns of which one more column says where they had no value. The columns
    in `constant` had one value in all training rows: they teach nothing and become 0 or are left out, but
    for one where none would be left, since every party takes part in every sum. With
    missing = "keep", for trees, gaps stay gaps, and a categorical column becomes the number of its category.
    A column that is in neither `numbers` nor `categories` nor `gaps` is left out.
    """

    columns: tuple[str, ...]
    missing: Missing
    intercept: bool
    sparse: bool
    numbers: Numbers
    categories: dict[str, tuple[str, ...]]
    gaps: tuple[str, ...]
    constant: tuple[str, ...]
    dates: dict[str, str]
    sentences: dict[str, tuple[str, ...]]  # what was "done", and "warnings"
    woe: tuple[Weighed, ...] = ()  # what each column becomes before it is prepared as a number
    decimal: str | None = None  # the mark in the numbers of the training file, where that is sure

    @staticmethod
    def fit(
        raw: RawTable,
        *,
        scale: Scale | float = "auto",
        tails: Tails = "cap",
        categorical: Sequence[str] = (),
        missing: Missing = "auto",
        rare: Rare = "auto",
        intercept: bool = False,
        woe: tuple[Weighed, ...] = (),
    ) -> Preparation:
        """Learn the preparation from training rows. If `scale` is a number, every column is divided by it.

        "auto" scales dense columns to mean 0 and deviation 1 with outliers treated as `tails` says, sparse
        ones to at most 1, and leaves constant columns out; any other scale keeps them, as 0, so that an image
        keeps its pixels. Categories of fewer rows than `rare` are joined. Labels in `raw` are only looked at
        for warnings.
        With `woe` every column is its weight of evidence first: a number, also where it was text.
        """
        from colonnade.data.prepare.learn import learn

        if woe:
            raw, categorical = weigh_columns(raw, woe), ()
            scale = "none" if scale == "auto" else scale  # WOE has a scale of its own
        check_options(raw, scale, missing, categorical)
        learnt = learn(raw, scale, tails, tuple(categorical), missing, rare, intercept)
        sentences = _with_evidence(learnt.sentences, len(woe))
        if raw.columns and not learnt.teaches:
            sentences = {**sentences, "warnings": (*sentences["warnings"], _idle(raw.columns))}
        return replace(learnt, woe=woe, sentences=sentences)

    @property
    def outputs(self) -> tuple[str, ...]:
        """The names of the prepared columns; that of a category is column=value."""
        names: list[str] = []
        numbers, gaps = set(self.numbers.names), set(self.gaps)
        for c in self.columns:
            names += [c] if c in numbers else []
            if c in self.categories and self.missing == "keep":
                names.append(c)
            else:
                names += [f"{c}={value}" for value in self.categories.get(c, ())]
            names += [f"{c} {MISSING}"] if c in gaps else []
        return (*names, INTERCEPT) if self.intercept else tuple(names)

    @property
    def numbered(self) -> tuple[int, ...]:
        """The places of prepared columns that are numbers of categories."""
        if self.missing != "keep":
            return ()
        return tuple(place for place, c in enumerate(self.outputs) if c in self.categories)

    @property
    def needed(self) -> tuple[str, ...]:
        """The raw columns that are used; the others may be absent."""
        used = {*self.numbers.names, *self.categories, *self.gaps}
        return tuple(c for c in self.columns if c in used)

    @property
    def teaches(self) -> bool:
        """Whether the columns differ from row to row, so that something can be learnt from them."""
        return bool(self.gaps or {*self.numbers.names, *self.categories} - set(self.constant))

    def done(self) -> list[str]:
        """Return what was done to the columns, in sentences that name this party's own columns."""
        return list(self.sentences["done"])

    @property
    def warnings(self) -> list[str]:
        """What should be looked at: columns that look like ids or like the label."""
        return list(self.sentences["warnings"])

    def transform(self, raw: RawTable, y: Floats | None = None) -> Table:
        """Return any rows of the same columns as numbers. `y` is their labels, coded by `Labels`, if held
        here."""
        if self.woe:
            raw = weigh_columns(raw, self.woe)
        else:
            self._refuse_other_kinds(raw)
        if raw.columns != self.needed:
            raw = raw.select(self.needed)
        # the training file decides whether columns are sparse; a test file may be emptier or fuller
        if raw.sparse != self.sparse and not isinstance(raw.values, tuple):
            sparse = csr_array(raw.values)
            raw = replace(raw, values=sparse if self.sparse else sparse.toarray())
        X = self.numbers.of(raw, self.dates, self.missing, self.constant)
        if self.sparse and self.intercept:
            X = int32_indices(csr_array(hstack([X, np.ones((raw.rows, 1))], format="csr")))
        elif self.missing == "keep":
            X = self._numbered(raw, X)
        elif self.categories or self.gaps or self.intercept:
            X = self._assemble(raw, X)
        return Table(raw.name, self.outputs, X, y, raw.ids, categories=self.numbered)

    def _refuse_other_kinds(self, raw: RawTable) -> None:
        """Refuse numbers where training had dates, and dates where it had numbers."""
        found = raw.reading.dates
        for c in self.numbers.names:
            if (c in self.dates) == (c in found) or c not in raw.columns:
                continue
            values = raw.column(c)
            if values.dtype == object or np.isnan(values).all():
                continue  # text is read as the dates of training were
            what, before = ("dates", "numbers") if c in found else ("numbers", "dates")
            raise DataError(
                f"{raw.name}: column '{c}' has {what}, and training had {before} there; write them alike"
            )

    def to_dict(self) -> dict[str, Any]:
        """Return the same as plain lists, numbers and text, for JSON."""
        return {**asdict(self), "woe": msgspec.to_builtins(self.woe)}

    @staticmethod
    def from_dict(plain: dict[str, Any]) -> Preparation:
        """Return the preparation that `to_dict` described, also after a journey through JSON."""
        lists = {key: tuple(plain[key]) for key in ("columns", "gaps", "constant")}
        texts = {
            key: {name: tuple(values) for name, values in plain[key].items()}
            for key in ("categories", "sentences")
        }
        numbers = Numbers(**{key: tuple(values) for key, values in plain["numbers"].items()})
        woe = msgspec.convert(plain.get("woe", ()), tuple[Weighed, ...])
        return Preparation(**{**plain, **lists, **texts, "numbers": numbers, "woe": woe})

    def _numbered(self, raw: RawTable, numbers: Matrix) -> Matrix:
        """Number columns and categories by their numbers, in the order of `outputs`; the unknown is a gap."""
        if not self.categories:
            return numbers
        place = {c: j for j, c in enumerate(self.numbers.names)}
        X = np.empty((raw.rows, len(self.outputs)))
        for j, c in enumerate(self.outputs):
            if c in place:
                X[:, j] = numbers[:, place[c]]
            else:
                code = codes_in(raw.column(c), self.categories[c])
                X[:, j] = np.where(code < 0, np.nan, code)
        return X

    def _assemble(self, raw: RawTable, numbers: Floats) -> Matrix:
        """Return one matrix of number columns, one-hot columns and the intercept, in the order of
        `outputs`."""
        rows, names, gaps = np.arange(raw.rows), set(self.numbers.names), set(self.gaps)
        places: list[int] = []  # of the number columns
        i, j = [rows[:0]], [rows[:0]]  # where the ones go
        width = 0

        def put(where: NDArray[np.bool_], columns: Rows | int, more: int) -> None:
            nonlocal width
            i.append(rows[where])
            j.append(np.broadcast_to(width + np.asarray(columns), where.shape)[where])
            width += more

        for c in raw.columns:
            if c in names:
                places.append(width)
                width += 1
            if c in self.categories:
                if self.missing == "error":
                    refuse_missing(raw, c)
                code = codes_in(raw.column(c), self.categories[c])
                put((code >= 0) & (c not in self.constant), code, len(self.categories[c]))
            if c in gaps:
                put(gaps_in(raw.column(c)), 0, 1)
        if self.intercept:
            put(np.ones(raw.rows, dtype=bool), 0, 1)
        ones = np.concatenate(i), np.concatenate(j)
        if width > WIDE and len(places) + len(self.categories) + self.intercept < FILLED * width:
            return _sparse(numbers, places, ones, (raw.rows, width))
        X = np.zeros((raw.rows, width))
        X[:, places] = numbers
        X[ones] = 1.0
        return X


def _with_evidence(sentences: dict[str, tuple[str, ...]], columns: int) -> dict[str, tuple[str, ...]]:
    """Return what was done, and that columns were weighed before it, if any were."""
    if not columns:
        return sentences
    what = f"{columns} columns" if columns > 1 else "1 column"
    said = f"{what} became the weight of evidence of bins"
    return {**sentences, "done": (said, *sentences["done"])}


def _idle(columns: Sequence[str]) -> str:
    """Return what the owner of columns is told that teach nothing."""
    return (
        f"every column ({some(columns, 4)}) is constant in the training rows or nothing but ids: this party "
        "takes part and adds nothing to the model; give it other columns"
    )


def refuse_nothing(preparations: Iterable[Preparation | None]) -> None:
    """Refuse a run in which no party has anything to learn from; None: its columns came prepared."""
    known = list(preparations)
    if known and all(each is not None and not each.teaches for each in known):
        raise DataError(
            "every column of every party is constant in the training rows or nothing but ids: there is "
            "nothing to learn from; give other columns or more rows"
        )


def check_options(raw: RawTable, scale: Scale | float, missing: Missing, categorical: Sequence[str]) -> None:
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
    raw.positions(categorical)  # an error that names a column which is not there


def refuse_gaps(raw: RawTable, columns: Sequence[str], X: Matrix) -> None:
    """Refuse a gap in a number column."""
    gap = scaling.first_gap(X)
    if gap is not None:
        raise _gap(raw, columns[gap[1]], gap[0])


def refuse_missing(raw: RawTable, categorical: str) -> None:
    """Refuse a gap in a categorical column."""
    gaps = gaps_in(raw.column(categorical))
    if gaps.any():
        raise _gap(raw, categorical, int(gaps.argmax()))


def _gap(raw: RawTable, column: str, row: int) -> DataError:
    """Return the error that names a gap."""
    return DataError(
        f"{raw.name}: column '{column}', row {raw.row_number(row)} has no value; "
        "fill it in, or set missing = 'auto', 'mean' or 'zero'"
    )


def _sparse(numbers: Floats, places: list[int], ones: tuple[Rows, Rows], shape: tuple[int, int]) -> csr_array:
    """Return a sparse matrix with number columns at `places`, and with ones at rows and columns `ones`."""
    r, k = np.nonzero(numbers)
    i = np.concatenate([ones[0], r])
    j = np.concatenate([ones[1], np.array(places, dtype=np.int64)[k]])
    values = np.concatenate([np.ones(len(ones[0])), numbers[r, k]])
    return int32_indices(csr_array((values, (i, j)), shape=shape))
