"""The shares that a daemon stores: those of `colonnade.shares`, with the terms that they were trained by.

    MODELS/NAME-RUN/manifest.json   what it is: job, columns, preparation, labels, versions, checksums
    MODELS/NAME-RUN/weights.npz     arrays, read with pickle switched off

docs/model-shares.md describes every field.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from msgspec import field

from colonnade import shares
from colonnade.arrays import Arrays
from colonnade.data.prepare.labels import Labels
from colonnade.data.prepare.prepare import Preparation
from colonnade.deploy.terms.contract import Contract
from colonnade.deploy.terms.terms import Terms
from colonnade.disk import replace_file
from colonnade.errors import ShareError
from colonnade.shares import ShareManifest, now, versions
from colonnade.test_scores import TestScores

log = logging.getLogger("colonnade.party")

__all__ = [
    "Manifest",
    "StoredShare",
    "cost_file",
    "draft",
    "find",
    "listing",
    "load",
    "now",
    "of_run",
    "save",
    "save_cost",
    "save_scores",
    "scores_file",
    "versions",
]


class Manifest(ShareManifest, frozen=True, kw_only=True):
    """All about a daemon's share but its arrays, as manifest.json has it."""

    run: str
    terms: Terms
    digest: str
    alignment: str
    means: dict[str, list[float]] = field(default_factory=dict)
    base_rate: float | None = None  # of the training rows, at label holders: the part that is positive
    converged: bool | None = None  # whether the loss had stopped falling, where that is known


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


def save(models: Path, manifest: Manifest, arrays: Arrays) -> Path:
    """Write a share and return its folder; ShareError if there is one already."""
    return shares.save(models / manifest.model, manifest, arrays)


def draft(models: Path, manifest: Manifest, arrays: Arrays) -> shares.Draft:
    """Write a share that does not count before everybody has written its own."""
    return shares.Draft.write(models / manifest.model, manifest, arrays)


def cost_file(state: Path, model: str) -> Path:
    """Return where it is written what the run of a model cost this party."""
    return state / "books" / f"{model}.json"


def save_cost(state: Path, model: str, content: bytes) -> None:
    """Write what the run of a model cost this party, beside its models."""
    replace_file(cost_file(state, model), content)


def scores_file(state: Path, model: str) -> Path:
    """Return where the scores of a model's test rows lie, at the label holder that measured them."""
    return state / "books" / f"{model}.scores.csv"


def save_scores(state: Path, model: str, scores: TestScores) -> None:
    """Write the scores of a model's test rows beside its cost; only their owner may read them."""
    path = scores_file(state, model)
    scores.write(path)
    path.chmod(0o600)


def delete(state: Path, model: str) -> None:
    """Remove a share and everything that was kept beside it: what its run cost, its sheet, test scores."""
    manifest = find(state / "models", model)
    if manifest.model != model:
        raise ShareError(f"{model} is a name; say which of its models, for example {manifest.model}")
    for path in (state / "books").glob(f"{model}.*"):
        path.unlink()
    shares.Draft(state / "models" / model).remove()


def load(models: Path, model: str) -> StoredShare:
    """Return the share of this model, or the newest of this name; ShareError if it is missing or damaged."""
    manifest = find(models, model)
    return StoredShare(manifest, shares.read_arrays(models / manifest.model, manifest))


def find(models: Path, model: str) -> Manifest:
    """Return the manifest of this model, or the newest of this name; ShareError if there is none.

    Only what may be it is read, one after the other: a daemon that is asked for scores has many models.
    """
    folders = _folders(models)
    newest, damage = None, None
    for folder in folders:
        if model not in (folder.name, folder.name.rpartition("-")[0]):
            continue
        try:
            manifest = shares.read_manifest(folder / "manifest.json", Manifest)
        except ShareError as error:
            damage = damage or error
            continue
        if newest is None or manifest.created >= newest.created:
            newest = manifest
    if newest is not None:
        return newest
    if damage is not None:
        raise damage
    names = ", ".join(folder.name for folder in folders) or "none yet"
    raise ShareError(f"there is no model {model} in {models}; there is {names}")


def of_run(models: Path, run: str) -> Manifest | None:
    """Return the manifest of the share that a run has stored, if it has."""
    return next((each for each in listing(models) if each.run == run), None)


def listing(models: Path) -> list[Manifest]:
    """Return the manifests of all shares that can be read, the oldest first; a damaged one hides only
    itself."""
    found = []
    for folder in _folders(models):
        try:
            found.append(shares.read_manifest(folder / "manifest.json", Manifest))
        except ShareError as error:
            log.warning("a model is left out: %s", error)
    return sorted(found, key=lambda manifest: manifest.created)


def _folders(models: Path) -> list[Path]:
    """Return the folders of all models, by their names; a draft does not count yet."""
    found = (path.parent for path in models.glob("*/manifest.json"))
    return sorted(folder for folder in found if not folder.name.startswith("."))
