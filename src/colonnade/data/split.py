"""Who holds which columns, and which rows are for training.

A vertical split gives every column to exactly one party. It comes from a number of parties (at random,
for experiments on one data set), from names in the job, or from one file per party joined by id.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from colonnade.arrays import Floats, Matrix, Rows
from colonnade.data.dialect import Dialect
from colonnade.data.files import AS_FOUND, load
from colonnade.data.keys import shown
from colonnade.data.labels import Labels
from colonnade.data.table import RawTable, Table, first_place, int32_indices, stored_values
from colonnade.errors import DataError, suggest
from colonnade.job import Key, numbered_parties

Split = dict[str, tuple[int, ...]]
NOT_EVERYWHERE = "an id that not all parties have"


def split_by_count(columns: Sequence[str], parties: int, seed: int) -> Split:
    """Split the columns at random over party-0, party-1, ..., as evenly as possible.

    >>> split_by_count(["a", "b", "c", "d", "e"], parties=2, seed=0)
    {'party-0': (2, 3, 4), 'party-1': (0, 1)}
    """
    if not 1 <= parties <= len(columns):
        raise DataError(
            f"parties = {parties} with {len(columns)} columns; every party needs at least one column"
        )
    shuffled = np.random.default_rng(seed).permutation(len(columns))
    parts = np.array_split(shuffled, parties)
    return {
        party: tuple(sorted(int(j) for j in part))
        for party, part in zip(numbered_parties(parties), parts, strict=True)
    }


def split_by_name(columns: Sequence[str], holders: Mapping[str, Sequence[str]]) -> Split:
    """Split the columns as `holders` names them; every column must be at exactly one party.

    >>> split_by_name(["age", "income", "visits"], {"bank": ["income", "age"], "shop": ["visits"]})
    {'bank': (1, 0), 'shop': (2,)}
    """
    place = {c: j for j, c in enumerate(columns)}
    holder: dict[str, str] = {}
    for party, names in holders.items():
        for c in names:
            if c not in place:
                raise DataError(f"party '{party}': no column '{c}'; {suggest(c, columns)}")
            if c in holder:
                raise DataError(
                    f"column '{c}' is given to '{holder[c]}' and to '{party}'; one party holds a column"
                )
            holder[c] = party
    left = [c for c in columns if c not in holder]
    if left:
        raise DataError(f"column '{left[0]}' and {len(left) - 1} more belong to no party; give them to one")
    return {party: tuple(place[c] for c in names) for party, names in holders.items()}


def check_holders(widths: Mapping[str, int], server: str) -> None:
    """Refuse parties without columns, except the first label holder, which may be a server and no more."""
    without = [party for party, width in widths.items() if not width]
    if len(without) == len(widths):
        raise DataError("no party has any columns; there is nothing to learn from")
    for party in without:
        if party != server:
            raise DataError(
                f"party '{party}' has no columns; only the first active party ('{server}'), as the server of "
                "a cascade, may hold nothing but the label"
            )


def train_test_rows(n: int, fraction: float, seed: int) -> tuple[Rows, Rows]:
    """Training and test rows, picked at random, each in file order; `fraction` of all are for the test."""
    tested = round(n * fraction)
    if not 0 < fraction < 1 or not 0 < tested < n:
        raise DataError(f"test_fraction = {fraction} of {n} rows leaves no rows to train or none to test on")
    shuffled = np.random.default_rng(seed).permutation(n)
    return np.sort(shuffled[tested:]), np.sort(shuffled[:tested])


# --- one file per party -----------------------------------------------------------------------------


def load_party_files(
    files: Mapping[str, str | Path],
    *,
    id: str | Sequence[str],  # noqa: A002
    keys: Sequence[Key] | None = None,
    label: str | None = None,
    label_at: str | Sequence[str] = (),
    categorical: Sequence[str] = (),
    dialect: Dialect = AS_FOUND,
) -> dict[str, RawTable]:
    """Read one file per party; rows whose id not all of them have are left out, the others sorted by id.

    `label` is a column of the files of the parties in `label_at`, and of no others. A file need not have all
    `categorical` columns.
    """
    holders = (label_at,) if isinstance(label_at, str) else tuple(label_at)
    for party in holders:
        if party not in files:
            raise DataError(f"label_at names '{party}', which has no file; {suggest(party, files)}")
    tables = {
        p: load(
            f,
            label=label if p in holders else None,
            id=id,
            keys=keys,
            categorical=categorical,
            bare=True,
            dialect=dialect,
        )
        for p, f in files.items()
    }
    for party, raw in tables.items():
        if label is not None and label in raw.columns:
            raise DataError(
                f"{files[party]}: has the label column '{label}', but '{party}' is not in label_at; "
                "remove the column there, or name the party"
            )
    joined = _joined(tables)
    _check_same_labels({p: joined[p] for p in holders})
    return joined


def _ids(raw: RawTable) -> NDArray[np.str_]:
    """The ids of a table that was read with an id column."""
    if raw.ids is None:
        raise DataError(f"{raw.name}: no ids; files of several parties are joined by an id column")
    return raw.ids


def _joined(tables: Mapping[str, RawTable]) -> dict[str, RawTable]:
    """The rows whose ids all tables have, sorted by id; how many others there were is noted."""
    common = reduce(np.intersect1d, [_ids(raw) for raw in tables.values()])
    if not len(common):
        first = ", ".join(f"'{shown(str(_ids(raw)[0]))}' in {raw.name}" for raw in tables.values())
        raise DataError(
            f"no id is in all files; ids are such as {first}: if they are the same people, bring their ids "
            "into one form with data.keys"
        )
    joined = {}
    for party, raw in tables.items():
        order = np.argsort(_ids(raw), kind="stable")
        rows = order[np.isin(_ids(raw)[order], common)]
        reading = raw.reading.and_left_out(raw.rows - len(rows), NOT_EVERYWHERE, f" ({len(rows):,} stay)")
        joined[party] = replace(raw.take(rows), reading=reading)
    return joined


def _check_same_labels(tables: Mapping[str, RawTable]) -> None:
    """Refuse label holders that disagree on the label of a row."""
    for (first, one), (second, other) in pairwise(tables.items()):
        differ = np.asarray(one.y != other.y)
        if differ.any():
            where = _ids(one)[int(differ.argmax())]
            raise DataError(f"{other.name}: '{second}' and '{first}' disagree on the label of id '{where}'")


# --- the Python front -------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Parties:
    """Every party's table, for a federation in one process. Only the active parties' tables carry y."""

    tables: dict[str, Table]
    active: tuple[str, ...]
    columns: Split
    labels: Labels | None = None  # set when y was text: it became 0, 1, ... in alphabetical order

    @property
    def rows(self) -> int:
        """The number of rows, the same at every party."""
        return next(iter(self.tables.values())).rows


def split_columns(
    X: Any,
    y: Any = None,
    parties: int = 8,
    active: int | None = None,
    seed: int = 0,
    like: Parties | None = None,
    columns: Mapping[str, Sequence[str]] | None = None,
) -> Parties:
    """Split one data set's columns over parties; the first `active` of them (3, if not told) hold the label.

    X is an array, a sparse matrix or a data frame. `columns` says who holds what by column name ("x0",
    "x1", ... unless X is a data frame). `like` repeats an earlier split, for test data.

    >>> parties = split_columns([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], [1, -1], parties=3, active=1)
    >>> [(name, table.X.ravel().tolist(), table.y is None) for name, table in parties.tables.items()]
    [('party-0', [3.0, 6.0], False), ('party-1', [1.0, 4.0], True), ('party-2', [2.0, 5.0], True)]
    """
    names, matrix = _matrix(X)
    if like is not None:
        holders = like.active
        split = split_by_name(names, {p: table.columns for p, table in like.tables.items()})
    else:
        split = split_by_count(names, parties, seed) if columns is None else split_by_name(names, columns)
        holders = _first_parties(list(split), active)
    labels, coded = _labels(y, matrix.shape[0], like.labels if like else None)
    check_holders({p: len(js) for p, js in split.items()}, holders[0])
    tables = {
        p: Table(p, tuple(names[j] for j in js), _columns(matrix, js), coded if p in holders else None)
        for p, js in split.items()
    }
    return Parties(tables, holders, split, labels)


def _first_parties(names: list[str], active: int | None) -> tuple[str, ...]:
    """The first `active` parties, or the first three: those that hold the label."""
    count = min(3, len(names)) if active is None else active
    if not 1 <= count <= len(names):
        raise DataError(
            f"active = {count} with {len(names)} parties; at least one and at most all hold the label"
        )
    return tuple(names[:count])


def _matrix(X: Any) -> tuple[tuple[str, ...], Matrix]:
    """The columns' names and finite float64 values of whatever a user gave."""
    names = tuple(str(c) for c in X.columns) if hasattr(X, "columns") else None
    values: Any = X
    if not issparse(X):
        try:
            values = np.asarray(X, dtype=np.float64, order="C")
        except (TypeError, ValueError) as problem:
            raise DataError(
                f"X holds something that is not a number ({problem}); encode text columns first"
            ) from None
    if values.ndim != 2 or 0 in values.shape:
        raise DataError(f"X has shape {values.shape}; it needs rows and columns")
    if issparse(X):
        values = int32_indices(csr_array(X, dtype=np.float64))
    names = names or tuple(f"x{j}" for j in range(values.shape[1]))
    bad = first_place(values, ~np.isfinite(stored_values(values)))
    if bad is not None:
        row, column = bad
        raise DataError(
            f"X: column '{names[column]}', row {row + 1} is NaN or infinite; fill it in or drop the row"
        )
    return names, values


def _columns(X: Matrix, js: Sequence[int]) -> Matrix:
    """Some columns of a matrix, as a matrix of their own."""
    return int32_indices(X[:, list(js)]) if issparse(X) else np.ascontiguousarray(X[:, list(js)])


def _labels(y: Any, rows: int, known: Labels | None) -> tuple[Labels | None, Floats | None]:
    """How text labels are coded (None: they were numbers), and the labels as numbers."""
    if y is None:
        return known, None
    values = np.asarray(y)
    if values.shape != (rows,):
        raise DataError(f"y has shape {values.shape} where X has {rows} rows")
    if values.dtype.kind in "OUS" and not all(isinstance(v, int | float | np.number) for v in values):
        text = np.array([str(v) for v in values], dtype=object)
        known = known or Labels.fit(text, "multiclass", name="y")
        return known, known.transform(text, name="y")
    numbers = values.astype(np.float64)
    if not np.isfinite(numbers).all():
        raise DataError(f"y: the label of row {int((~np.isfinite(numbers)).argmax()) + 1} is NaN or infinite")
    return known, numbers
