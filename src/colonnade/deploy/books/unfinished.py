"""Trainings that have begun and are not over, on disk: what a daemon needs to go on with them after its end.

    RUNS/unfinished/NUMBER/run.json        which run: who proposed it, its terms, what this party demands
    RUNS/unfinished/NUMBER/aligned.npz     which of this party's rows are common, found among which ids
    RUNS/unfinished/NUMBER/checkpoints/    the state at the last gates (`records`)

It is written before the run begins and removed when it is over, however it ended.
"""

from __future__ import annotations

import hashlib
import io
import logging
import shutil
import zipfile
from pathlib import Path

import msgspec
import numpy as np

from colonnade.arrays import Digests
from colonnade.conversations.align import Alignment
from colonnade.deploy.settings import Settings
from colonnade.deploy.terms.terms import Terms
from colonnade.disk import RealDisk, replace_file
from colonnade.errors import CheckpointError, ShareError

log = logging.getLogger("colonnade.party")

_RUN, _ALIGNED, CHECKPOINTS = "run.json", "aligned.npz", "checkpoints"


class Unfinished(msgspec.Struct, frozen=True, kw_only=True):
    """A training that has begun here: `began` is the time of the clock on the wall."""

    run: int
    proposer: str
    terms: Terms
    minimum: int
    timeline: bool
    began: float

    def write(self, settings: Settings) -> None:
        """Write it down; when this returns it is on disk."""
        replace_file(folder_of(settings, self.run) / _RUN, msgspec.json.encode(self))


def folder_of(settings: Settings, run: int) -> Path:
    """Return where a party keeps what it needs to go on with a run."""
    return settings.state / "unfinished" / f"{run:08x}"


def read_all(settings: Settings) -> list[Unfinished]:
    """Return the trainings that were not over when this daemon ended; what cannot be read is left out and
    logged."""
    found = []
    for path in sorted((settings.state / "unfinished").glob(f"*/{_RUN}")):
        try:
            found.append(msgspec.json.decode(path.read_bytes(), type=Unfinished))
        except (OSError, msgspec.MsgspecError) as error:
            log.warning("%s: this run does not go on: %s", path, error)
    return found


def remove(settings: Settings, run: int) -> None:
    """Forget a run that is over."""
    shutil.rmtree(folder_of(settings, run), ignore_errors=True)


def is_aligned(folder: Path) -> bool:
    """Return whether the common rows of a run are known here."""
    return (folder / _ALIGNED).exists()


def keep_alignment(folder: Path, found: Alignment, ids: Digests) -> None:
    """Store which rows are common, found among these ids; where the disk fails they are found again."""
    packed = io.BytesIO()
    np.savez(packed, rows=found.rows, digest=np.array(found.digest), ids=np.array(_of(ids)))
    try:
        replace_file(folder / _ALIGNED, packed.getvalue())
    except ShareError as error:
        log.warning("the common rows are not stored: %s", error)


def kept_alignment(folder: Path, ids: Digests) -> Alignment:
    """Return the common rows as they were found among these ids; CheckpointError if they were found among
    others."""
    path = folder / _ALIGNED
    try:
        with np.load(io.BytesIO(RealDisk().read(path)), allow_pickle=False) as stored:
            rows, digest, among = stored["rows"], str(stored["digest"]), str(stored["ids"])
    except (ValueError, KeyError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise CheckpointError(f"{path}: is damaged: {error}; propose the job again") from error
    if among != _of(ids):
        raise CheckpointError(f"{path}: is of other data than there is now; bring it back, or propose again")
    return Alignment(rows, digest, {})


def _of(ids: Digests) -> str:
    return hashlib.sha256(np.ascontiguousarray(ids).data).hexdigest()
