"""LIBSVM files: sparse numbers as text, columns without names.

The parser is scikit-learn's, imported on use. When it gives up, the file is read a second time, slowly, to
find the line.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from scipy.sparse import csr_array

from colonnade.data.read.unpacked import open_bytes
from colonnade.data.table import RawTable, dense_if_full, first_place, int32_indices
from colonnade.errors import DataError


def read_libsvm(path: Path, n_features: int | None) -> RawTable:
    """Read a LIBSVM file: label index:value index:value ... on each line. Column j is named fj."""
    from sklearn.datasets import load_svmlight_file

    try:
        with open_bytes(path) as stream:
            # counting from 1 is the format; guessing per file would shift a test file that lacks index 0
            X, y = load_svmlight_file(stream, n_features=n_features, zero_based=False)
    except (ValueError, OverflowError) as problem:
        raise DataError(f"{path}: {_fault(path, n_features) or problem}") from None
    if X.shape[0] == 0:
        raise DataError(f"{path}: the file is empty")
    if X.shape[1] == 0:
        raise DataError(f"{path}: no row has a feature")
    sparse = int32_indices(csr_array((X.data, X.indices, X.indptr), shape=X.shape))
    columns = tuple(f"f{j}" for j in range(1, X.shape[1] + 1))
    infinite = first_place(sparse, np.isinf(sparse.data))
    if infinite is not None:
        row, column = infinite
        raise DataError(f"{path}: column '{columns[column]}', row {row + 1} is infinite; correct it")
    return RawTable(path.name, columns, dense_if_full(sparse), y=y)


def _fault(path: Path, n_features: int | None) -> str | None:
    """Return what is wrong with the file and on which line, or None if nothing is found."""
    with open_bytes(path) as stream:
        for number, line in enumerate(stream, start=1):
            fields = line.split(b"#")[0].split()
            fault = _line_fault([f.decode("utf-8", "replace") for f in fields], n_features)
            if fault:
                table = number == 1 and ":" not in line.decode("utf-8", "replace")
                return f"line {number}: {fault}" + ("; a table is read if its name ends in .csv" * table)
    return None


def _line_fault(fields: list[str], n_features: int | None) -> str | None:
    """Return what is wrong with the fields of a line, the label first, or None if nothing is."""
    previous = 0
    for k, field in enumerate(fields):
        index, colon, value = field.rpartition(":")
        try:
            float(value)
            j = int(index) if k else 0
        except ValueError:
            j = -1
        if j < 0 or (k > 0) != bool(colon):
            return (
                f"'{field[:40]}' is not {'index:value' if k else 'a label'} (LIBSVM: label index:value ...)"
            )
        if k and j == 0:
            return "index 0; LIBSVM counts columns from 1 (in scikit-learn: zero_based=False)"
        if k and j <= previous:
            return f"index {j} comes after {previous}; indices must grow along a line"
        if n_features is not None and j > n_features:
            return f"index {j}, but there are {n_features} columns"
        previous = j
    return None
