"""A party's rows for a training run where they are too many to be held: its ids, and a file that stays one.

Ids are digests, 32 bytes each, which an alignment needs all at once. Columns are read in stretches: for a
sample to check the job with, for training rows to learn the preparation from, and to prepare them. What is
prepared goes straight to its place in the common order, in files that are mapped into memory when they are
used and go with this process (`data.large`).
"""

from __future__ import annotations

import os
import shutil
import weakref
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

from colonnade.arrays import Digests, Floats, Numbers, Rows
from colonnade.data.large.big_file import SAMPLE, BigFile, open_columns, release
from colonnade.data.prepare.labels import Labels
from colonnade.data.prepare.prepare import Preparation
from colonnade.data.read.files import label_gaps
from colonnade.data.read.formats import Wanted
from colonnade.data.read.ids import normal, parts_of
from colonnade.data.table import RawTable, Table
from colonnade.deploy.rows.id_digests import hashed
from colonnade.errors import DataError
from colonnade.job import Key

Part = Literal["train", "validation", "test"]


@dataclass(frozen=True, eq=False)
class LargeRows:
    """Rows that have an id and, where the party holds the label, a label; `places` are theirs in the file."""

    file: BigFile
    wanted: Wanted
    columns: tuple[str, ...]
    places: Rows

    @staticmethod
    def open(
        file: BigFile,
        label: str | None,
        columns: tuple[str, ...],
        ids: tuple[str, ...],
        keys: tuple[Key, ...],
    ) -> tuple[LargeRows, Digests]:
        """Return the rows of a file, and the digest of every row's id."""
        wanted, places, digests = file.wanted(label, ids), [], []
        for start, raw in file.stretches(wanted, ()):
            kept = _usable(raw)
            places.append(start + kept)
            digests.append(hashed(parts_of(normal(raw.take(kept), keys, ids), len(keys))))
        if not sum(map(len, digests)):
            raise DataError(f"{file.path}: no row has an id in {' + '.join(ids)} and a label")
        return LargeRows(file, file.wanted(label), columns, np.concatenate(places)), np.concatenate(digests)

    def sample(self) -> RawTable:
        """Return some rows from all over the file, to see whether a job can be done with them."""
        raw = self.file.sample(self.wanted, self.columns, None)
        return raw.take(_usable(raw))

    def picked(self, rows: Rows) -> RawTable:
        """Return some of the rows to learn from, at most about `SAMPLE`, in the order of the file."""
        few = rows[:: max(1, -(-len(rows) // SAMPLE))]
        return self.file.picked(self.wanted, self.columns, np.sort(self.places[few]))

    def stretches(self) -> Iterator[tuple[slice, RawTable]]:
        """Yield all rows in the order of the file; and which of them each stretch has."""
        first = 0
        for start, raw in self.file.stretches(self.wanted, self.columns):
            last = int(np.searchsorted(self.places, start + raw.rows))
            if last > first:
                yield slice(first, last), raw.take(self.places[first:last] - start)
            first = last


class StoredTables:
    """The common rows, prepared and in their order, in files that go with this object."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)

    def write(
        self, own: LargeRows, parts: Mapping[Part, Rows], made: Preparation, labels: Labels | None
    ) -> None:
        """Prepare the rows of every part: `parts` are places among the own rows, in their order."""
        part, place = np.zeros(len(own.places), np.uint8), np.zeros(len(own.places), np.int64)
        for number, chosen in enumerate(parts.values(), 1):
            part[chosen], place[chosen] = number, np.arange(len(chosen))
        X = self._files(parts, "X", (len(made.outputs),), single=not own.file.fine & set(own.columns))
        fine = labels is not None and labels.task == "regression" and own.wanted.label in own.file.fine
        y = {} if labels is None else self._files(parts, "y", (), single=not fine)
        for rows, raw in own.stretches():
            table = made.transform(replace(raw, y=None), _coded(raw, labels))
            values = table.X if isinstance(table.X, np.ndarray) else table.X.toarray()
            for number, name in enumerate(parts, 1):
                here = np.flatnonzero(part[rows] == number)
                X[name][place[rows][here]] = values[here]
                if table.y is not None:
                    y[name][place[rows][here]] = table.y[here]
        release()

    def table(self, name: Part, party: str, made: Preparation) -> Table:
        """Return the rows of a part, mapped into memory."""
        y = self._path(name, "y")
        return Table(
            party,
            made.outputs,
            open_columns(self._path(name, "X")),
            open_columns(y) if y.exists() else None,
            categories=made.numbered,
        )

    def _files(
        self, parts: Mapping[Part, Rows], kind: str, shape: tuple[int, ...], *, single: bool
    ) -> dict[Part, Numbers]:
        """Return a file for each part, to be written in any order."""
        dtype = np.dtype(np.float32 if single else np.float64)
        return {
            name: np.lib.format.open_memmap(self._path(name, kind), "w+", dtype, (len(rows), *shape))
            for name, rows in parts.items()
        }

    def _path(self, name: Part, kind: str) -> Path:
        return self._folder / f"{name}.{kind}.npy"


def fresh_folder(root: Path, run: int) -> Path:
    """Return a folder for the prepared columns of a run; those of processes that were killed are removed."""
    for old in root.glob("*-*"):
        owner = old.name.partition("-")[0]
        if old.is_dir() and owner.isdigit() and not _lives(int(owner)):
            shutil.rmtree(old, ignore_errors=True)
    folder = root / f"{os.getpid()}-{run:08x}"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _usable(raw: RawTable) -> Rows:
    """Return the rows that have an id and a label, as far as these were read."""
    gaps = np.zeros(raw.rows, dtype=np.bool_)
    if raw.ids is not None:
        gaps |= raw.ids == ""
    if raw.y is not None:
        gaps |= label_gaps(raw, raw.y)
    return np.flatnonzero(~gaps)


def _coded(raw: RawTable, labels: Labels | None) -> Floats | None:
    if labels is None or raw.y is None:
        return None
    return labels.transform(raw.y, name=raw.name, origin=raw.origin)
