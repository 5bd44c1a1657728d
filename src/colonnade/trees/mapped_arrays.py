"""Room for large arrays: from some size on they lie in a file that is mapped into memory.

The system keeps what is used of such a file in memory and lets go of the rest where memory runs short. The
file has no name and is gone with its array; it lies where temporary files do (`TMPDIR`).
"""

from __future__ import annotations

import tempfile
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

LARGE = 2**26
"""Bytes from which an array lies in a file."""

S = TypeVar("S", bound=np.generic)


def empty_array(shape: tuple[int, ...], kind: type[S]) -> NDArray[S]:
    """Return an array to be written, in memory or in a file."""
    if int(np.prod(shape)) * np.dtype(kind).itemsize < LARGE:
        return np.empty(shape, dtype=kind)
    with tempfile.TemporaryFile(prefix="colonnade-") as file:
        return np.asarray(np.memmap(file, dtype=kind, mode="w+", shape=shape))
