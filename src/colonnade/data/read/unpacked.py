"""Files that are compressed, unpacked on the way: as far as a table would be, and no further.

A megabyte of gzip can unpack to a gigabyte of nothing. A table does not: numbers as text shrink to a third or
a tenth, a table of almost nothing but zeros to a hundredth.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, cast

from colonnade.errors import DataError

COMPRESSED: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
MOST_TIMES = 400  # the size of the packed file
ANYWAY = 2**28  # bytes that any file may unpack to
CHUNK = 2**20


def open_bytes(path: Path) -> IO[bytes]:
    """Return the file's content as a stream; DataError where it unpacks to more than a table would."""
    if path.suffix not in COMPRESSED:
        return path.open("rb")
    return cast(IO[bytes], io.BufferedReader(_Unpacked(path), CHUNK))


class _Unpacked(io.RawIOBase):
    """What a packed file has in it, counted while it is read."""

    def __init__(self, path: Path) -> None:
        self._path, self._stream = path, COMPRESSED[path.suffix](path, "rb")
        self._left = self._most = max(ANYWAY, MOST_TIMES * path.stat().st_size)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Unpack as much as fits."""
        count: int = self._stream.readinto(buffer)
        self._left -= count
        if self._left < 0:
            raise DataError(
                f"{self._path}: unpacks to more than {self._most:,} bytes, {MOST_TIMES} times its size, "
                f"as no table does; if it is one, unpack the {self._path.suffix} first"
            )
        return count

    def close(self) -> None:
        self._stream.close()
        super().close()
