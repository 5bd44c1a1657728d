"""Files with numbered columns: LIBSVM (sparse, text) and IDX (images, bytes)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from colonnade.data.formats import Parsed, open_bytes
from colonnade.errors import DataError


def read_libsvm(path: Path, n_features: int | None) -> Parsed:
    """A LIBSVM file: label index:value index:value ... on each line. Column j is named fj."""
    from sklearn.datasets import load_svmlight_file

    try:
        with open_bytes(path) as stream:
            # counting from 1 is the format; guessing per file would shift a test file that lacks index 0
            X, y = load_svmlight_file(stream, n_features=n_features, zero_based=False)
    except (ValueError, OverflowError) as problem:
        raise DataError(f"{path}: {_libsvm_fault(path, n_features) or problem}") from None
    if X.shape[0] == 0:
        raise DataError(f"{path}: the file is empty")
    if X.shape[1] == 0:
        raise DataError(f"{path}: no row has a feature")
    bad = np.isinf(X.data)
    if bad.any():
        k = int(bad.argmax())
        row = int(np.searchsorted(X.indptr, k, side="right"))
        raise DataError(f"{path}: column 'f{X.indices[k] + 1}', row {row} is infinite; correct it")
    sparse = int32(csr_array((X.data, X.indices, X.indptr), shape=X.shape))
    columns = tuple(f"f{j}" for j in range(1, X.shape[1] + 1))
    # 12 bytes a stored value against 8 a cell: a file more than 2/3 full is smaller as an array
    full = 3 * X.nnz > 2 * X.shape[0] * X.shape[1]
    return Parsed(columns, sparse.toarray() if full else sparse, None, y)


def int32(X: csr_array) -> csr_array:
    """The same matrix with 32-bit indices, unless it holds too much for them."""
    if max(X.nnz, *X.shape) > np.iinfo(np.int32).max:
        return X
    return csr_array((X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)), shape=X.shape)


def _libsvm_fault(path: Path, n_features: int | None) -> str | None:
    with open_bytes(path) as stream:
        for number, line in enumerate(stream, start=1):
            fields = line.split(b"#")[0].split()
            fault = _libsvm_line_fault([f.decode("utf-8", "replace") for f in fields], n_features)
            if fault:
                return f"line {number}: {fault}"
    return None


def _libsvm_line_fault(fields: list[str], n_features: int | None) -> str | None:
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


def read_idx(path: Path) -> Parsed:
    """IDX images (as MNIST is published) and, if the file is there, the labels beside them."""
    images = _idx_array(path)
    labels = path.with_name(path.name.replace("-images-idx3", "-labels-idx1"))
    y = _idx_array(labels).astype(np.float64) if labels.is_file() else None
    if y is not None and len(y) != len(images):
        raise DataError(f"{labels}: {len(y)} labels for {len(images)} images")
    X = images.reshape(
        len(images), -1
    )  # stays uint8 until a party prepares its own columns: an eighth of the memory
    return Parsed(tuple(f"p{j}" for j in range(X.shape[1])), X, None, y)


def _idx_array(path: Path) -> NDArray[np.uint8]:
    with open_bytes(path) as stream:
        content = stream.read()
    # header: 0, 0, 8 (unsigned bytes), number of dimensions, then each dimension as big-endian int32
    rank = content[3] if content[:3] == b"\0\0\x08" else 0
    shape = np.frombuffer(content[4 : 4 + 4 * rank], dtype=">i4").astype(int)
    if rank == 0 or len(shape) != rank or len(content) != 4 + 4 * rank + shape.prod():
        raise DataError(f"{path}: not a complete IDX file of unsigned bytes")
    return np.frombuffer(content, dtype=np.uint8, offset=4 + 4 * rank).reshape(shape)
