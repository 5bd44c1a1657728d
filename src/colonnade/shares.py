"""Stored shares: one party's part of a trained model on disk, in files that carry no code.

    FOLDER/manifest.json   what it is: columns, preparation, labels, versions, checksums
    FOLDER/weights.npz     arrays, read with pickle switched off

A share is written whole or not at all, and checked when it is read: its checksum, its format, its version.
What a share is part of is added where it is stored: the terms of a job between daemons (`deploy.shares`),
or the plan of a run on one machine (`run.run_shares`). docs/model-shares.md describes every field.
"""

from __future__ import annotations

import hashlib
import io
import os
import platform
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np

from colonnade import __version__
from colonnade.arrays import Arrays
from colonnade.disk import sync_names
from colonnade.errors import ShareError

FORMAT = 2
MANIFEST, WEIGHTS = "manifest.json", "weights.npz"
Layout = list[tuple[str, tuple[int, ...]]]
"""The names and shapes of the tensors in a parameter vector, in its order."""


class ShareManifest(msgspec.Struct, frozen=True, kw_only=True):
    """What every share says of itself beside its arrays."""

    format: int = FORMAT
    model: str
    party: str
    kind: str
    columns: list[str]
    preparation: dict[str, Any]
    labels: dict[str, Any] | None = None
    rows: dict[str, int]
    metrics: dict[str, float] = {}
    created: str
    versions: dict[str, str]
    code: dict[str, str] = {}
    tensors: dict[str, Layout] = {}
    epsilon: float | None = None
    weights: str = ""  # sha256 of weights.npz


M = TypeVar("M", bound=ShareManifest)


def versions() -> dict[str, str]:
    """Return the versions of what writes a share."""
    return {"colonnade": __version__, "python": platform.python_version(), "numpy": np.__version__}


def now(later_s: float = 0.0, precision: str = "seconds") -> str:
    """Return the time in UTC, now or in some seconds, as ISO text to the second or as finely as asked."""
    return (datetime.now(UTC) + timedelta(seconds=later_s)).isoformat(timespec=precision)


def seconds_until(when: str) -> float:
    """Return how many seconds are left until a time as `now` writes it; below 0 if it is over."""
    return (datetime.fromisoformat(when) - datetime.now(UTC)).total_seconds()


def save(folder: Path, manifest: ShareManifest, arrays: Arrays) -> Path:
    """Write a share into a folder of its own, which it returns; ShareError if there is one already."""
    return Draft.write(folder, manifest, arrays).keep()


@dataclass(frozen=True)
class Draft:
    """A share that is on disk as a whole and does not count yet: it is kept, or dropped."""

    folder: Path

    @staticmethod
    def write(folder: Path, manifest: ShareManifest, arrays: Arrays) -> Draft:
        """Write a share that is to lie in this folder; ShareError if there is one or the disk fails.

        Only its owner may read it, because weights tell about the rows they were learnt from.
        """
        if folder.exists():
            raise ShareError(f"{folder} exists and is not overwritten")
        draft = Draft(folder)
        packed = io.BytesIO()
        np.savez(packed, allow_pickle=False, **arrays)
        content = packed.getvalue()
        manifest = msgspec.structs.replace(manifest, weights=hashlib.sha256(content).hexdigest())
        draft.drop()
        try:
            draft._part.mkdir(parents=True, mode=0o700)
            _write(draft._part / WEIGHTS, content)
            _write(draft._part / MANIFEST, msgspec.json.format(msgspec.json.encode(manifest), indent=2))
        except OSError as error:
            draft.drop()
            raise ShareError(f"{folder}: cannot be stored: {error.strerror or error}") from error
        return draft

    @property
    def _part(self) -> Path:
        return self.folder.with_name(f".{self.folder.name}.part")

    def keep(self) -> Path:
        """Let the share count from now on, also if the machine loses its power; returns its folder."""
        sync_names(self._part)
        self._part.replace(self.folder)
        sync_names(self.folder.parent)
        return self.folder

    def remove(self) -> None:
        """Delete a share that was kept; it counts no more from the first moment on."""
        self.drop()
        self.folder.rename(self._part)
        self.drop()

    def drop(self) -> None:
        """Delete the draft."""
        shutil.rmtree(self._part, ignore_errors=True)


def read_manifest(path: Path, kind: type[M]) -> M:
    """Return the manifest in a file; ShareError if it cannot be read or has another format."""
    try:
        plain = msgspec.json.decode(path.read_bytes())
        stored = plain.get("format") if isinstance(plain, dict) else None
        if stored != FORMAT:
            raise ShareError(
                f"{path}: format {stored}, this version of Colonnade reads {FORMAT}; train the model again"
            )
        return msgspec.convert(plain, kind)
    except (OSError, msgspec.MsgspecError) as error:
        raise ShareError(f"{path}: is not a readable manifest: {error}") from error


def read_arrays(folder: Path, manifest: ShareManifest) -> Arrays:
    """Return the arrays of a share; ShareError if the file is not the one that its manifest describes."""
    path = folder / WEIGHTS
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ShareError(f"{path}: cannot be read: {error.strerror or error}") from error
    if hashlib.sha256(content).hexdigest() != manifest.weights:
        raise ShareError(f"{path}: is not the file its manifest describes; restore it from a backup")
    with np.load(io.BytesIO(content), allow_pickle=False) as stored:
        return {name: stored[name] for name in stored.files}


def fingerprint(files: Iterable[Path]) -> str:
    """Return a SHA-256 over the files of a model that is code: a share's parameters mean nothing to other
    code."""
    digest = hashlib.sha256()
    for file in files:
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


def _write(path: Path, content: bytes) -> None:
    """Write a file that only its owner may read."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
