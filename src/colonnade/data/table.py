"""Tables: what a file holds, and what training needs.

A `RawTable` is a file as it was read: numbers, text, gaps. A `Table` is its final form: finite float64
numbers only. `Preparation` turns one into the other. Wide sparse data (LIBSVM) stays sparse from the
file to the model; it is never made dense.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from colonnade.data import formats
from colonnade.errors import DataError

Matrix: TypeAlias = NDArray[np.float64] | csr_array
Rows: TypeAlias = NDArray[np.int64]
Column: TypeAlias = NDArray[np.float64] | NDArray[np.object_]


@dataclass(frozen=True)
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
        raise NotImplementedError


@dataclass(frozen=True)
class RawTable:
    """A file as read. `values` is one matrix when every column is a number, else one array per column.

    NaN marks a gap. `origin` remembers where in the file a row came from, so that an error found after
    rows were picked still names the row the user can look up.
    """

    name: str
    columns: tuple[str, ...]
    values: Any
    ids: NDArray[np.str_] | None = None
    y: Column | None = None
    origin: Rows | None = field(default=None, repr=False)

    @property
    def rows(self) -> int:
        raise NotImplementedError

    def column(self, name: str) -> Column:
        raise NotImplementedError

    def select(self, columns: Sequence[str] | Sequence[int]) -> RawTable:
        """The given columns, by name or by position."""
        raise NotImplementedError

    def take(self, rows: Rows) -> RawTable:
        """The given rows, in the given order."""
        raise NotImplementedError


def load(
    path: str | Path,
    *,
    label: str | None = None,
    id: str | None = None,  # noqa: A002
    n_features: int | None = None,
    categorical: Sequence[str] = (),
) -> RawTable:
    """Read LIBSVM, CSV, TSV, Parquet or IDX, plain or .gz/.xz/.bz2. `categorical` columns are read as text."""
    raise NotImplementedError
