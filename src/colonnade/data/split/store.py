"""A party's data as files: what its own process reads, and nothing of anybody else.

    party.json                      its name, the names of its columns, how to prepare them
    train.npy                       training rows, where all columns are numbers; final ones are mapped
    train.parquet or train.npz      the same where some are text, or where they are sparse
    train.labels.npy                their labels, at a party that holds them
    train.weights.npy               how much every row counts, if that is said, at the same party
    test.*                          the same of test rows

None of these formats can carry code. Reading needs neither scikit-learn nor, unless there is text, pyarrow.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from scipy.sparse import csr_array, load_npz, save_npz

from colonnade.arrays import Floats, Numbers
from colonnade.data.large.big_file import open_columns
from colonnade.data.prepare.party_data import PartyData, Recipe
from colonnade.data.prepare.prepare import Preparation
from colonnade.data.table import Column, RawTable, Reading, Values, array_of, numbers_of, stack

MAPPED = 2**26  # bytes from which on labels are mapped into memory


class _Header(msgspec.Struct, frozen=True):
    """What party.json says."""

    party: str
    recipe: Recipe
    columns: tuple[str, ...]
    reading: Reading = Reading()
    rows: dict[str, int] = {}  # by table: a file without columns has none to count
    preparation: dict[str, Any] | None = None  # by which columns that are ready were made so


def save(folder: Path, data: PartyData) -> None:
    """Write a party's data into its folder, which is made if it is not there."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = {"train": data.train.rows} | ({} if data.test is None else {"test": data.test.rows})
    learnt = None if data.preparation is None else data.preparation.to_dict()
    header = _Header(data.party, data.recipe, data.train.columns, data.train.reading, rows, learnt)
    (folder / "party.json").write_bytes(msgspec.json.encode(header))
    _save(folder / "train", data.train, ready=data.recipe.ready)
    if data.test is not None:
        _save(folder / "test", data.test, ready=data.recipe.ready)


def load(folder: Path) -> PartyData:
    """Read what `save` wrote. Ids are not stored, and the tables carry the party's name."""
    header = msgspec.json.decode((folder / "party.json").read_bytes(), type=_Header)
    train = _load(folder / "train", header)
    test = _load(folder / "test", header) if any(folder.glob("test.*")) else None
    learnt = None if header.preparation is None else Preparation.from_dict(header.preparation)
    return PartyData(header.party, train, test, header.recipe, learnt)


def _save(path: Path, raw: RawTable, *, ready: bool) -> None:
    """Write the rows and their labels; `path` has no suffix yet."""
    if raw.sparse:
        save_npz(path.with_suffix(".npz"), raw.values, compressed=False)
    elif isinstance(raw.values, np.ndarray):
        _save_array(path.with_suffix(".npy"), raw.values if ready else np.ascontiguousarray(raw.values))
    else:
        import pyarrow as pa
        import pyarrow.parquet as pq

        # columns are stored by position: no two share a name, but a name may be anything
        arrays = {str(j): array_of(raw.column(name)) for j, name in enumerate(raw.columns)}
        pq.write_table(pa.table(arrays), path.with_suffix(".parquet"))
    if raw.y is not None:
        _save_array(path.with_suffix(".labels.npy"), raw.y)
    if raw.weight is not None:
        np.save(path.with_suffix(".weights.npy"), raw.weight, allow_pickle=False)


def _load(path: Path, header: _Header) -> RawTable:
    """Read what `_save` wrote."""
    y, weight = (_array(path.with_suffix(suffix)) for suffix in (".labels.npy", ".weights.npy"))
    values: Values
    if path.with_suffix(".npz").exists():
        values = csr_array(load_npz(path.with_suffix(".npz")))
    elif path.with_suffix(".npy").exists():
        source = path.with_suffix(".npy")
        values = open_columns(source) if header.recipe.ready else np.load(source, allow_pickle=False)
    else:
        import pyarrow.parquet as pq

        # pq.read_table would import pyarrow's data sets, which take longer than most reads
        with pq.ParquetFile(path.with_suffix(".parquet")) as file:
            table = file.read()
        rows = table.num_rows if header.columns else header.rows[path.name]
        values = stack([_column(column) for column in table.columns], rows)
    return RawTable(header.party, header.columns, values, y=y, weight=weight, reading=header.reading)


def _array(path: Path) -> Floats | None:
    """Return an array, or None where there is no such file; one that is large is mapped into memory."""
    if not path.exists():
        return None
    return open_columns(path) if path.stat().st_size > MAPPED else np.load(path, allow_pickle=False)


def _save_array(path: Path, values: Numbers) -> None:
    """Write an array; one that lies in a file is linked or copied as it is, without passing through here."""
    source = getattr(values, "filename", None)
    if isinstance(values, np.memmap) and source is not None and _is_all_of(values, Path(source)):
        try:
            os.link(source, path)
        except OSError:  # another disk
            shutil.copyfile(source, path)
        return
    np.save(path, values, allow_pickle=False)


def _is_all_of(values: Numbers, source: Path) -> bool:
    """Return whether a mapped array is the whole of its file, and not a part."""
    whole = open_columns(source)
    return whole.shape == values.shape and whole.dtype == values.dtype


def _column(column: Any) -> Column:
    """Return a pyarrow column as float64, or as text."""
    import pyarrow as pa

    if pa.types.is_floating(column.type):
        return numbers_of(column)
    return np.array(column.to_pylist(), dtype=object)
