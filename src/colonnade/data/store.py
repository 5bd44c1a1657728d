"""A party's data as files: what its own process reads, and nothing of anybody else.

    party.json                      its name, the names of its columns, how to prepare them
    train.parquet or train.npz      training rows: numbers and text are Parquet, sparse columns SciPy's npz
    train.labels.npy                their labels, at a party that holds them
    train.weights.npy               how much every row counts, if that is said, at the same party
    test.*                          the same of test rows

None of these formats can carry code. Reading needs neither scikit-learn nor, for sparse columns, pyarrow.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from scipy.sparse import csr_array, load_npz, save_npz

from colonnade.arrays import Floats
from colonnade.data.party_data import PartyData, Recipe
from colonnade.data.table import Column, RawTable, Reading, Values, stack


class _Header(msgspec.Struct, frozen=True):
    """What party.json says."""

    party: str
    recipe: Recipe
    columns: tuple[str, ...]
    reading: Reading = Reading()
    rows: dict[str, int] = {}  # by table: a file without columns has none to count


def save(folder: Path, data: PartyData) -> None:
    """Write a party's data into its folder, which is made if it is not there."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = {"train": data.train.rows} | ({} if data.test is None else {"test": data.test.rows})
    header = _Header(data.party, data.recipe, data.train.columns, data.train.reading, rows)
    (folder / "party.json").write_bytes(msgspec.json.encode(header))
    _save(folder / "train", data.train)
    if data.test is not None:
        _save(folder / "test", data.test)


def load(folder: Path) -> PartyData:
    """Read what `save` wrote. Ids are not stored, and the tables carry the party's name."""
    header = msgspec.json.decode((folder / "party.json").read_bytes(), type=_Header)
    train = _load(folder / "train", header)
    test = _load(folder / "test", header) if any(folder.glob("test.*")) else None
    return PartyData(header.party, train, test, header.recipe)


def _save(path: Path, raw: RawTable) -> None:
    """Write the rows and their labels; `path` has no suffix yet."""
    if raw.sparse:
        save_npz(path.with_suffix(".npz"), raw.values, compressed=False)
    else:
        import pyarrow as pa
        import pyarrow.parquet as pq

        # columns are stored by position: no two share a name, but a name may be anything
        arrays = {str(j): pa.array(raw.column(name)) for j, name in enumerate(raw.columns)}
        pq.write_table(pa.table(arrays), path.with_suffix(".parquet"))
    if raw.y is not None:
        np.save(path.with_suffix(".labels.npy"), raw.y, allow_pickle=False)
    if raw.weight is not None:
        np.save(path.with_suffix(".weights.npy"), raw.weight, allow_pickle=False)


def _load(path: Path, header: _Header) -> RawTable:
    """Read what `_save` wrote."""
    y, weight = (_array(path.with_suffix(suffix)) for suffix in (".labels.npy", ".weights.npy"))
    values: Values
    if path.with_suffix(".npz").exists():
        values = csr_array(load_npz(path.with_suffix(".npz")))
    else:
        import pyarrow.parquet as pq

        # pq.read_table would import pyarrow's data sets, which take longer than most reads
        with pq.ParquetFile(path.with_suffix(".parquet")) as file:
            table = file.read()
        rows = table.num_rows if header.columns else header.rows[path.name]
        values = stack([_column(column) for column in table.columns], rows)
    return RawTable(header.party, header.columns, values, y=y, weight=weight, reading=header.reading)


def _array(path: Path) -> Floats | None:
    """An array, or None where there is no such file."""
    return np.load(path, allow_pickle=False) if path.exists() else None


def _column(column: Any) -> Column:
    """A pyarrow column as float64, or as text."""
    import pyarrow as pa

    if pa.types.is_floating(column.type):
        numbers: Column = column.to_numpy()
        return numbers
    return np.array(column.to_pylist(), dtype=object)
