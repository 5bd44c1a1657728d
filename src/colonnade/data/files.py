"""Reading one data file, whatever its format: the file's name says which it is."""

from __future__ import annotations

import lzma
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from colonnade.data import formats
from colonnade.data.idx import read_idx
from colonnade.data.libsvm import read_libsvm
from colonnade.data.table import RawTable
from colonnade.errors import DataError, suggest


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
        hint = suggest(path.name, sorted(siblings)) if siblings else "give the path of a data file"
        raise DataError(f"{path}: no such file; {hint}")
    try:
        raw = _read(path, label, id, n_features, categorical)
    except PermissionError:
        raise DataError(f"{path}: not allowed to read this file") from None
    except (OSError, EOFError, lzma.LZMAError) as problem:
        raise DataError(f"{path}: damaged or not a {path.suffix} file ({problem})") from None
    if not raw.columns and not bare:
        raise DataError(f"{path}: no columns besides the label and the id")
    _check_labels(raw)
    return raw


def _read(
    path: Path, label: str | None, id_column: str | None, n_features: int | None, categorical: Sequence[str]
) -> RawTable:
    """Read the file with the reader of its format."""
    name = formats.plain_name(path).lower()
    match Path(name).suffix:
        case ".csv" | ".tsv":
            return formats.read_csv(path, label, id_column, categorical)
        case ".parquet" | ".pq":
            return formats.read_parquet(path, label, id_column)
        case ".zip" | ".7z" | ".tar" | ".xls" | ".xlsx" | ".json" | ".npy" | ".npz" | ".pkl" as other:
            raise DataError(f"{path}: {other} files are not read; use CSV, TSV, Parquet, LIBSVM or IDX")
        case _ if "-images-idx3" in name:
            return read_idx(path)
        case _:  # LIBSVM files end in .libsvm, .svm, .txt, .t, .binary, .scale or nothing at all
            return read_libsvm(path, n_features)


def _check_labels(raw: RawTable) -> None:
    """Refuse labels of which one is missing or infinite."""
    if raw.y is None:
        return
    gaps = raw.y == "" if raw.y.dtype == object else ~np.isfinite(raw.y.astype(np.float64))
    if gaps.any():
        raise DataError(
            f"{raw.name}: the label of row {raw.row_number(int(gaps.argmax()))} is missing or infinite"
        )
