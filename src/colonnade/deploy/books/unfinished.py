"""Trainings that have begun and are not over, on disk: what a daemon needs to go on with them after its end.

    RUNS/unfinished/NUMBER/run.json        which run: who proposed it, its terms, what this party demands
    RUNS/unfinished/NUMBER/aligned.npz     which of this party's rows are common, found among which ids
    RUNS/unfinished/NUMBER/checkpoints/    the state at the last gates (`records`)
    RUNS/unfinished/NUMBER/spent.json      what its sessions have cost so far

It is written before the run begins and removed when it is over, however it ended.
"""

from __future__ import annotations

import hashlib
import io
import logging
import shutil
import zipfile
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from colonnade.arrays import Digests
from colonnade.conversations.align import Alignment
from colonnade.deploy.books.spent import Spent
from colonnade.deploy.settings import Settings
from colonnade.deploy.terms.terms import Terms
from colonnade.disk import RealDisk, replace_file
from colonnade.errors import CheckpointError, ShareError

log = logging.getLogger("colonnade.party")

_RUN, _ALIGNED, CHECKPOINTS, _SPENT = "run.json", "aligned.npz", "checkpoints", "spent.json"


class AlignCost(NamedTuple):
    """What it cost a party to find the common rows: bytes that it sent, and seconds."""

    bytes: int
    seconds: float


NOTHING_SPENT = AlignCost(0, 0.0)


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


def keep_spent(settings: Settings, run: int, spent: Spent) -> None:
    """Store what the sessions of a run have cost so far; where the disk fails that is not known later."""
    try:
        replace_file(folder_of(settings, run) / _SPENT, msgspec.json.encode(spent))
    except ShareError as error:
        log.warning("what run %08x has cost is not stored: %s", run, error)


def kept_spent(settings: Settings, run: int) -> Spent:
    """Return what the sessions of a run have cost; nothing, if that is not known."""
    try:
        return msgspec.json.decode((folder_of(settings, run) / _SPENT).read_bytes(), type=Spent)
    except (OSError, msgspec.MsgspecError):
        return Spent()


def is_aligned(folder: Path) -> bool:
    """Return whether the common rows of a run are known here."""
    return (folder / _ALIGNED).exists()


def cost_of_alignment(folder: Path) -> AlignCost:
    """Return what it cost to find the common rows; nothing where version 0.2 stored them."""
    try:
        with np.load(io.BytesIO(RealDisk().read(folder / _ALIGNED)), allow_pickle=False) as stored:
            sent, seconds = stored["cost"].tolist()
    except (ValueError, KeyError, OSError, EOFError, zipfile.BadZipFile):
        return NOTHING_SPENT
    return AlignCost(int(sent), float(seconds))


def keep_alignment(folder: Path, found: Alignment, ids: Digests, cost: AlignCost = NOTHING_SPENT) -> None:
    """Store which rows are common, found among these ids, at what cost; where the disk fails they are found
    again."""
    packed = io.BytesIO()
    np.savez(
        packed,
        rows=found.rows,
        digest=np.array(found.digest),
        ids=np.array(_of(ids)),
        cost=np.array([cost.bytes, cost.seconds]),
    )
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
