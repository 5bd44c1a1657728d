"""Stored shares: one party's part of a model on its disk, in files that carry no code.

    MODELS/NAME-RUN/manifest.json   what it is: job, columns, preparation, labels, versions, checksums
    MODELS/NAME-RUN/weights.npz     arrays, read with pickle switched off

A share is written whole or not at all, and checked when it is read: its checksum, its format, its version.
docs/model-shares.md describes every field.
"""

from __future__ import annotations

import hashlib
import io
import platform
import shutil
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from colonnade import __version__
from colonnade.arrays import Arrays
from colonnade.data.labels import Labels
from colonnade.data.prepare import Preparation
from colonnade.deploy.terms import Contract, Terms
from colonnade.errors import ShareError

FORMAT = 2


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """All about a share but its arrays, as manifest.json has it; docs/model-shares.md explains the fields."""

    format: int = FORMAT
    model: str
    run: str
    party: str
    kind: str
    terms: Terms
    digest: str
    columns: list[str]
    preparation: dict[str, Any]
    labels: dict[str, Any] | None = None
    rows: dict[str, int]
    alignment: str
    metrics: dict[str, float] = {}
    means: dict[str, list[float]] = {}
    created: str
    versions: dict[str, str]
    code: dict[str, str] = {}
    tensors: dict[str, list[tuple[str, tuple[int, ...]]]] = {}
    epsilon: float | None = None
    converged: bool | None = None  # whether the loss had stopped falling, where that is known
    weights: str  # sha256 of weights.npz


@dataclass(frozen=True, eq=False)
class StoredShare:
    """A share as it was stored: its manifest and its arrays."""

    manifest: Manifest
    arrays: Arrays

    @cached_property
    def contract(self) -> Contract:
        """The terms that the share was trained by, with their algorithm."""
        return Contract.of(self.manifest.terms)

    @property
    def preparation(self) -> Preparation:
        """How this party's columns become numbers."""
        return Preparation.from_dict(self.manifest.preparation)

    @property
    def labels(self) -> Labels | None:
        """How labels become numbers; None at a party without the label."""
        return Labels.from_dict(self.manifest.labels) if self.manifest.labels else None


def versions() -> dict[str, str]:
    """The versions of what writes a share."""
    return {"colonnade": __version__, "python": platform.python_version(), "numpy": np.__version__}


def now() -> str:
    """The time in UTC, as ISO text to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def save(models: Path, manifest: Manifest, arrays: Arrays) -> Path:
    """Write a share and return its folder; ShareError if there is one already.

    Only its owner may read it, because weights tell about the rows they were learnt from.
    """
    folder = models / manifest.model
    draft = models / f".{manifest.model}.part"
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True, mode=0o700)
    packed = io.BytesIO()
    np.savez(packed, allow_pickle=False, **arrays)
    content = packed.getvalue()
    manifest = msgspec.structs.replace(manifest, weights=hashlib.sha256(content).hexdigest())
    (draft / "weights.npz").write_bytes(content)
    (draft / "manifest.json").write_bytes(msgspec.json.format(msgspec.json.encode(manifest), indent=2))
    if folder.exists():
        raise ShareError(f"{folder} exists and is not overwritten")
    draft.replace(folder)
    return folder


def save_cost(state: Path, model: str, content: bytes) -> None:
    """Write what the run of a model cost this party, beside its models."""
    folder = state / "books"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{model}.json").write_bytes(content)


def load(models: Path, model: str) -> StoredShare:
    """The share of this model, or the newest of this name; ShareError if it is missing or damaged."""
    manifest = find(models, model)
    path = models / manifest.model / "weights.npz"
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ShareError(f"{path}: cannot be read: {error.strerror or error}") from error
    if hashlib.sha256(content).hexdigest() != manifest.weights:
        raise ShareError(f"{path}: is not the file its manifest describes; restore it from a backup")
    with np.load(io.BytesIO(content), allow_pickle=False) as stored:
        return StoredShare(manifest, {name: stored[name] for name in stored.files})


def find(models: Path, model: str) -> Manifest:
    """The manifest of this model, or the newest of this name; ShareError if there is none."""
    known = listing(models)
    for manifest in reversed(known):
        if model in (manifest.model, manifest.terms.name):
            return manifest
    names = ", ".join(sorted({each.model for each in known})) or "none yet"
    raise ShareError(f"there is no model {model} in {models}; there is {names}")


def listing(models: Path) -> list[Manifest]:
    """The manifests of all shares, the oldest first."""
    found = [read_manifest(path) for path in sorted(models.glob("*/manifest.json"))]
    return sorted(found, key=lambda manifest: manifest.created)


def read_manifest(path: Path) -> Manifest:
    """The manifest in a file; ShareError if it cannot be read or has another format."""
    try:
        plain = msgspec.json.decode(path.read_bytes())
        stored = plain.get("format") if isinstance(plain, dict) else None
        if stored != FORMAT:
            raise ShareError(
                f"{path}: format {stored}, this version of Colonnade reads {FORMAT}; train the model again"
            )
        return msgspec.convert(plain, Manifest)
    except (OSError, msgspec.MsgspecError) as error:
        raise ShareError(f"{path}: is not a readable manifest: {error}") from error
