"""Files that outlive a crash: replaced as a whole, or longer by a line; on disk before a call returns.

After a crash there is the old file or the new one. A disk that is full or broken is a ShareError, which ends
what asked for the file and nothing else. What is stored while a run goes on is stored through a `Disk`, so
that a simulation can have one that tears, fills up and forgets.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from colonnade.errors import ColonnadeError, DataError, ShareError


class Disk(Protocol):
    """Where a party keeps what must survive it."""

    def replace(self, path: Path, content: bytes) -> None:
        """Replace a file; ShareError if that fails, and then the old one is still there."""
        ...

    def read(self, path: Path) -> bytes:
        """Return the content of a file; ShareError if it cannot be read."""
        ...

    def names(self, folder: Path) -> list[str]:
        """Return the names of a folder's files, sorted; none where there is no folder."""
        ...

    def remove(self, path: Path) -> None:
        """Remove a file, if it is there."""
        ...


class RealDisk:
    """The machine's own."""

    def replace(self, path: Path, content: bytes) -> None:
        replace_file(path, content)

    def read(self, path: Path) -> bytes:
        try:
            return path.read_bytes()
        except OSError as error:
            raise ShareError(f"{path}: cannot be read: {error.strerror or error}") from error

    def names(self, folder: Path) -> list[str]:
        return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []

    def remove(self, path: Path) -> None:
        with on_disk(path, ShareError):
            path.unlink(missing_ok=True)


def replace_file(path: Path, content: bytes) -> None:
    """Replace a file, and return when both the content and its name are on disk."""
    with on_disk(path, ShareError):
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        draft = path.with_suffix(".part")
        with draft.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
        sync_names(path.parent)


@contextmanager
def drafted(path: Path) -> Iterator[Path]:
    """A file to write, with the ending of `path`, whose place it takes once it is whole.

    DataError if the disk does not take it; then nothing is left of it, and what was there before is there.
    """
    draft = path.with_name(f".{path.stem}.part{path.suffix}")
    try:
        with on_disk(path):
            yield draft
            draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


@contextmanager
def on_disk(path: Path, kind: type[ColonnadeError] = DataError) -> Iterator[None]:
    """Change a file or a folder; what the disk does not take is an error of this kind that names it."""
    try:
        yield
    except OSError as error:
        why = error.strerror or "only a part was taken; is the disk full?"  # NumPy gives no reason
        raise kind(f"{path}: cannot be written: {why}") from error


def sync_names(folder: Path) -> None:
    """Wait until the names of a folder's files are on disk as they are now."""
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def append_file(path: Path, content: bytes) -> None:
    """Add to the end of a file that only its owner may read, and return when it is on disk."""
    with on_disk(path, ShareError):
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            while content:
                content = content[os.write(file, content) :]
            os.fsync(file)
        finally:
            os.close(file)
