"""Arrays that the processes of one machine share: files in memory, each mapped by the processes that use it.

They lie in /dev/shm as far as there is room, else where temporary files lie: a file that is mapped is memory
either way. Columns that lie in a file already are shared as they are.
"""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np

from colonnade.arrays import Numbers

MEMORY_FOLDER = Path("/dev/shm")  # noqa: S108  it is memory, and our folder there is ours alone


class Place(msgspec.Struct, frozen=True):
    """Where a shared array lies."""

    path: str
    shape: tuple[int, ...]
    dtype: str
    offset: int = 0
    writable: bool = True

    def open(self) -> Numbers:
        """Return the array; what one process writes the others see."""
        if not all(self.shape):
            return np.empty(self.shape, self.dtype)
        mode: Literal["r", "r+"] = "r+" if self.writable else "r"
        return np.memmap(self.path, dtype=self.dtype, mode=mode, offset=self.offset, shape=self.shape)


class SharedArrays:
    """The shared arrays of one engine."""

    def __init__(self) -> None:
        self._disk = Path(tempfile.mkdtemp(prefix="colonnade-engine-"))
        self._memory = None
        if MEMORY_FOLDER.is_dir() and os.access(MEMORY_FOLDER, os.W_OK):
            self._memory = Path(tempfile.mkdtemp(prefix="colonnade-engine-", dir=MEMORY_FOLDER))
        self._numbers = itertools.count()

    def make(self, shape: tuple[int, ...], dtype: Any = np.float64) -> tuple[Place, Numbers]:
        """Return a new array to be filled."""
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        folder = self._disk
        # half of what is free: the system ends a process that writes where no room is
        if self._memory is not None and 2 * size < shutil.disk_usage(self._memory).free:
            folder = self._memory
        place = Place(str(folder / str(next(self._numbers))), shape, np.dtype(dtype).str)
        with open(place.path, "wb") as file:  # noqa: PTH123  the place is a text, as workers are told it
            file.truncate(size)
        return place, place.open()

    def put(self, values: Numbers) -> Place:
        """Return an array that workers can read: where it lies already, or a copy."""
        if isinstance(values, np.memmap) and values.filename is not None and values.flags.c_contiguous:
            whole = Path(values.filename).stat().st_size == values.offset + values.nbytes
            if whole:  # and no part of it, which would lie elsewhere in the file
                name, kind = str(values.filename), values.dtype.str
                return Place(name, values.shape, kind, values.offset, writable=False)
        place, copy = self.make(values.shape, values.dtype)
        copy[...] = values
        return place

    def drop(self, place: Place) -> None:
        """Give back the memory of an array, once nobody has it mapped any more."""
        if Path(place.path).parent in (self._disk, self._memory):
            Path(place.path).unlink(missing_ok=True)

    def close(self) -> None:
        """Drop everything."""
        for folder in (self._disk, self._memory):
            if folder is not None:
                shutil.rmtree(folder, ignore_errors=True)
