"""IDX files: images in bytes, as MNIST is published, and their labels in a file beside them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from colonnade.data.read.unpacked import open_bytes
from colonnade.data.table import RawTable
from colonnade.errors import DataError


def read_idx(path: Path) -> RawTable:
    """Read images, one a row, and the labels beside them if that file is there. Pixel j is named pj."""
    images = _array(path)
    labels = path.with_name(path.name.replace("-images-idx3", "-labels-idx1"))
    y = _array(labels).astype(np.float64) if labels.is_file() else None
    if y is not None and len(y) != len(images):
        raise DataError(f"{labels}: {len(y)} labels for {len(images)} images")
    # stays uint8 until a party prepares its own columns: an eighth of the memory
    X = images.reshape(len(images), -1)
    return RawTable(path.name, tuple(f"p{j}" for j in range(X.shape[1])), X, y=y)


def _array(path: Path) -> NDArray[np.uint8]:
    """Return the array of unsigned bytes that a file holds."""
    with open_bytes(path) as stream:
        content = stream.read()
    # header: 0, 0, 8 (unsigned bytes), number of dimensions, then each dimension as big-endian int32
    rank = content[3] if content[:3] == b"\0\0\x08" else 0
    shape = np.frombuffer(content[4 : 4 + 4 * rank], dtype=">i4").astype(int)
    if rank == 0 or len(shape) != rank or len(content) != 4 + 4 * rank + shape.prod():
        raise DataError(f"{path}: not a complete IDX file of unsigned bytes")
    return np.frombuffer(content, dtype=np.uint8, offset=4 + 4 * rank).reshape(shape)
