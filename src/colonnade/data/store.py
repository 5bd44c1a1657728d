"""A party's hand as files: what its own process reads, and nothing of anybody else.

Columns of numbers and text are Parquet, sparse columns are SciPy's npz; neither can carry code.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from scipy.sparse import csr_array, load_npz, save_npz

from colonnade.data.assign import Hand, Recipe
from colonnade.data.formats import stack
from colonnade.data.table import RawTable


def save_hand(folder: Path, hand: Hand) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "hand.json").write_text(
        json.dumps({"party": hand.party, "recipe": asdict(hand.recipe), "columns": list(hand.train.columns)})
    )
    _save(folder / "train", hand.train, hand.y_train)
    if hand.test is not None:
        _save(folder / "test", hand.test, hand.y_test)


def load_hand(folder: Path) -> Hand:
    plain = json.loads((folder / "hand.json").read_text())
    columns = tuple(plain["columns"])
    recipe = Recipe(**{**plain["recipe"], "categorical": tuple(plain["recipe"]["categorical"])})
    train, y_train = _load(folder / "train", plain["party"], columns)
    test, y_test = None, None
    if any(folder.glob("test.*")):
        test, y_test = _load(folder / "test", plain["party"], columns)
    return Hand(plain["party"], train, test, y_train, y_test, recipe)


def _save(path: Path, raw: RawTable, y: Any) -> None:
    if raw.sparse:
        save_npz(path.with_suffix(".npz"), raw.values, compressed=False)
    else:
        # columns are stored by position: names may repeat nothing but may be anything
        arrays = {str(j): pa.array(raw.column(name)) for j, name in enumerate(raw.columns)}
        pq.write_table(pa.table(arrays), path.with_suffix(".parquet"))
    if y is not None:
        np.save(path.with_suffix(".labels.npy"), y, allow_pickle=False)


def _load(path: Path, party: str, columns: tuple[str, ...]) -> tuple[RawTable, Any]:
    labels = path.with_suffix(".labels.npy")
    y = np.load(labels, allow_pickle=False) if labels.exists() else None
    if path.with_suffix(".npz").exists():
        values: Any = csr_array(load_npz(path.with_suffix(".npz")))
    else:
        table = pq.read_table(path.with_suffix(".parquet"))
        # a file without columns has no rows to count; who holds nothing else holds the labels
        rows = table.num_rows if columns or y is None else len(y)
        values = stack([_column(table.column(j)) for j in range(len(columns))], rows)
    return RawTable(party, columns, values), y


def _column(column: Any) -> Any:
    if pa.types.is_floating(column.type):
        return column.to_numpy()
    return np.array(column.to_pylist(), dtype=object)
