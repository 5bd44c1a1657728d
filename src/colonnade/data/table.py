"""Tables: what a file holds, and what training needs.

A `RawTable` is a file as it was read: numbers, text, gaps. A `Table` is its final form: finite float64
numbers only. `Preparation` turns one into the other. Wide sparse data (LIBSVM) stays sparse from the
file to the model; it is never made dense.
"""

from __future__ import annotations

import lzma
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from colonnade.arrays import Matrix, Rows
from colonnade.data import formats, numbered
from colonnade.errors import DataError

Column: TypeAlias = NDArray[np.float64] | NDArray[np.object_]


@dataclass(frozen=True, eq=False)
class Table:
    """One party's columns in their final numeric form. A passive party's `y` is None."""

    name: str
    columns: tuple[str, ...]
    X: Matrix
    y: NDArray[np.float64] | None = None
    ids: NDArray[np.str_] | None = None

    @property
    def rows(self) -> int:
        return int(self.X.shape[0])

    @property
    def width(self) -> int:
        return int(self.X.shape[1])

    def take(self, rows: Rows) -> Table:
        """The given rows, in the given order."""
        return replace(self, X=self.X[rows], y=_pick(self.y, rows), ids=_pick(self.ids, rows))


@dataclass(frozen=True, eq=False)
class RawTable:
    """A file as read. `values` is one matrix when every column is a number, else one array per column.

    A gap is NaN in a number column and empty in a text column. `origin` remembers where in the file a
    row came from, so that an error found after rows were picked still names the row to look up.
    """

    name: str
    columns: tuple[str, ...]
    values: Any
    ids: NDArray[np.str_] | None = None
    y: Column | None = None
    origin: Rows | None = field(default=None, repr=False)

    @property
    def rows(self) -> int:
        return len(self.values[0]) if isinstance(self.values, tuple) else int(self.values.shape[0])

    @property
    def sparse(self) -> bool:
        return bool(issparse(self.values))

    def row_number(self, row: int) -> int:
        """The 1-based number of this row in the file."""
        return 1 + (row if self.origin is None else int(self.origin[row]))

    def positions(self, columns: Sequence[str]) -> list[int]:
        """Where the named columns are."""
        place = {c: j for j, c in enumerate(self.columns)}
        for c in columns:
            if c not in place:
                raise DataError(f"{self.name}: no column '{c}'; {formats.suggest(c, self.columns)}")
        return [place[c] for c in columns]

    def column(self, name: str) -> Column:
        """One column's values: float64, or text."""
        (j,) = self.positions([name])
        if isinstance(self.values, tuple):
            return self.values[j]  # type: ignore[no-any-return]
        values = self.values[:, [j]].toarray().ravel() if self.sparse else self.values[:, j]
        return np.asarray(values, dtype=np.float64)

    def select(self, columns: Sequence[str] | Sequence[int]) -> RawTable:
        """The given columns, by name or by position."""
        names = [c for c in columns if isinstance(c, str)]
        where = self.positions(names) if names else [int(c) for c in columns]
        chosen = tuple(self.columns[j] for j in where)
        if not where:
            return replace(self, columns=(), values=np.empty((self.rows, 0)))
        if not isinstance(self.values, tuple):
            values = self.values[:, where]
            return replace(
                self, columns=chosen, values=values if self.sparse else np.ascontiguousarray(values)
            )
        picked = [self.values[j] for j in where]
        return replace(self, columns=chosen, values=formats.stack(picked, self.rows))

    def take(self, rows: Rows) -> RawTable:
        """The given rows, in the given order."""
        picked = isinstance(self.values, tuple)
        return replace(
            self,
            values=tuple(c[rows] for c in self.values) if picked else self.values[rows],
            ids=_pick(self.ids, rows),
            y=_pick(self.y, rows),
            origin=np.asarray(rows, dtype=np.int64) if self.origin is None else self.origin[rows],
        )


def load(
    path: str | Path,
    *,
    label: str | None = None,
    id: str | None = None,  # noqa: A002
    n_features: int | None = None,
    categorical: Sequence[str] = (),
    bare: bool = False,
) -> RawTable:
    """Read LIBSVM, CSV, TSV, Parquet or IDX, plain or packed as .gz, .xz or .bz2.

    `label` and `id` name columns of CSV and Parquet files. `n_features` is for LIBSVM, where a file
    cannot say how many columns there are beyond the last one it uses: give a test file its training
    file's number. `categorical` columns are read as text, letter by letter. A file with nothing but label
    and id is refused unless it may be `bare`.
    """
    path = Path(path)
    if path.is_dir():
        raise DataError(f"{path}: this is a folder, not a file")
    if not path.is_file():
        siblings = [p.name for p in path.parent.iterdir()] if path.parent.is_dir() else []
        hint = formats.suggest(path.name, sorted(siblings)) if siblings else "give the path of a data file"
        raise DataError(f"{path}: no such file; {hint}")
    try:
        parsed = _parse(path, label, id, n_features, categorical)
    except PermissionError:
        raise DataError(f"{path}: not allowed to read this file") from None
    except (OSError, EOFError, lzma.LZMAError) as problem:
        raise DataError(f"{path}: damaged or not a {path.suffix} file ({problem})") from None
    if not parsed.columns and not bare:
        raise DataError(f"{path}: no columns besides the label and the id")
    raw = RawTable(path.name, parsed.columns, parsed.values, parsed.ids, parsed.y)
    _check_labels(raw)
    return raw


def _parse(
    path: Path, label: str | None, id_column: str | None, n_features: int | None, categorical: Sequence[str]
) -> formats.Parsed:
    name = formats.plain_name(path).lower()
    match Path(name).suffix:
        case ".csv" | ".tsv":
            return formats.read_csv(path, label, id_column, categorical)
        case ".parquet" | ".pq":
            return formats.read_parquet(path, label, id_column)
        case ".zip" | ".7z" | ".tar" | ".xls" | ".xlsx" | ".json" | ".npy" | ".npz" | ".pkl" as other:
            raise DataError(f"{path}: {other} files are not read; use CSV, TSV, Parquet, LIBSVM or IDX")
        case _ if "-images-idx3" in name:
            return numbered.read_idx(path)
        case _:  # LIBSVM files end in .libsvm, .svm, .txt, .t, .binary, .scale or nothing at all
            return numbered.read_libsvm(path, n_features)


def _check_labels(raw: RawTable) -> None:
    if raw.y is None:
        return
    gaps = raw.y == "" if raw.y.dtype == object else ~np.isfinite(raw.y.astype(np.float64))
    if gaps.any():
        raise DataError(
            f"{raw.name}: the label of row {raw.row_number(int(gaps.argmax()))} is missing or infinite"
        )


def _pick(values: Any, rows: Rows) -> Any:
    return None if values is None else values[rows]
