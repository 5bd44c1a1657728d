"""Files of a daemon: replaced as a whole, or longer by a line; on disk before a call returns.

After a crash there is the old file or the new one. A disk that is full or broken is a ShareError, which ends
what asked for the file and nothing else.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from colonnade.errors import ShareError


def replace_file(path: Path, content: bytes) -> None:
    """Replace a file, and return when both the content and its name are on disk."""
    with _told(path):
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        draft = path.with_suffix(".part")
        with draft.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)  # the new name
        finally:
            os.close(folder)


def append_file(path: Path, content: bytes) -> None:
    """Add to the end of a file that only its owner may read, and return when it is on disk."""
    with _told(path):
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            while content:
                content = content[os.write(file, content) :]
            os.fsync(file)
        finally:
            os.close(file)


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """Turn an error of the disk into one that names the file."""
    try:
        yield
    except OSError as error:
        raise ShareError(f"{path}: cannot be written: {error.strerror or error}") from error
