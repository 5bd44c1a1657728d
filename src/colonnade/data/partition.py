"""Who holds which columns, and which rows are for training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from colonnade.data.prepare import Labels
from colonnade.data.table import RawTable, Rows, Table


def split_by_count(columns: Sequence[str], parties: int, seed: int) -> dict[str, tuple[int, ...]]:
    """Near-equal random split of the columns over party-0, party-1, ..."""
    raise NotImplementedError


def split_by_name(
    columns: Sequence[str], holders: Mapping[str, Sequence[str]]
) -> dict[str, tuple[int, ...]]:
    """The split the job names: every column at exactly one party."""
    raise NotImplementedError


def load_party_files(
    files: Mapping[str, str | Path],
    *,
    id: str,  # noqa: A002
    label: str | None = None,
    label_at: str | Sequence[str] | None = None,
    categorical: Sequence[str] = (),
) -> dict[str, RawTable]:
    """One file per party, joined by id: the same ids everywhere, rows sorted by id."""
    raise NotImplementedError


def train_test_rows(n: int, fraction: float, seed: int) -> tuple[Rows, Rows]:
    """Disjoint (training, test) rows, each in file order; `fraction` of the rows are for the test."""
    raise NotImplementedError


@dataclass(frozen=True)
class Parties:
    """Every party's table, for a federation in one process. Only the active parties' tables carry y."""

    tables: dict[str, Table]
    active: tuple[str, ...]
    columns: dict[str, tuple[int, ...]]
    labels: Labels | None = None


def split_columns(
    X: Any,
    y: Any = None,
    parties: int = 8,
    active: int | None = None,
    seed: int = 0,
    like: Parties | None = None,
    columns: Mapping[str, Sequence[str]] | None = None,
) -> Parties:
    """Split one data set's columns over parties; the first `active` (3 unless told) hold the label."""
    raise NotImplementedError
