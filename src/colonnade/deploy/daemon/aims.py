"""What is wanted of a training beyond its end: by when it is over, and that a better model is put to use.

It is on disk until it is settled, so that it holds for what goes on after a restart of the daemon as well.

    RUNS/aims/NUMBER.json    by when, which gate, and who asked for it
"""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from colonnade.deploy.daemon import operators
from colonnade.deploy.models import stored_shares
from colonnade.deploy.models.gate import Gate
from colonnade.deploy.models.stored_shares import Manifest
from colonnade.deploy.people_settings import Person
from colonnade.disk import replace_file
from colonnade.errors import (
    EXITS,
    Aborted,
    ColonnadeError,
    DeadlineExceeded,
    JobError,
    PeerUnreachable,
    Refused,
)

if TYPE_CHECKING:
    from colonnade.deploy.daemon.daemon import Daemon

log = logging.getLogger("colonnade.party")

STOP_S = 5.0  # how long a run has to end


class Aim(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody wants of a training that this party proposes."""

    run: str
    name: str
    who: Person
    seconds: float | None = None  # that it may take in all
    until: float | None = None  # the time of the clock on the wall at which these are over
    gate: Gate | None = None

    @property
    def is_more(self) -> bool:
        """Whether anything is wanted but the training."""
        return self.until is not None or self.gate is not None

    def write(self, state: Path) -> None:
        """Write it down; when this returns it is on disk."""
        replace_file(_path(state, self.run), msgspec.json.encode(self))


def _path(state: Path, run: str) -> Path:
    return state / "aims" / f"{run}.json"


def take_up(daemon: Daemon) -> None:
    """Let hold what was wanted of trainings when this daemon ended; they go on, or ended with it."""
    for path in sorted((daemon.settings.state / "aims").glob("*.json")):
        try:
            aim = msgspec.json.decode(path.read_bytes(), type=Aim)
        except (OSError, msgspec.MsgspecError) as error:
            log.warning("%s: what was wanted of this run is not done: %s", path, error)
            continue
        goes_on = next((run.task for run in daemon.runs.values() if run.number == aim.run), None)
        work = asyncio.ensure_future(reach(daemon, aim, daemon.detached.get(aim.run, goes_on)))
        work.add_done_callback(lambda ended: ended.cancelled() or ended.exception())  # it is in the log
        daemon.detached[aim.run] = work


async def reach(daemon: Daemon, aim: Aim, work: asyncio.Future[Any] | None) -> Manifest:
    """Return the manifest of a training that was over in its time, its model put to use if it is better.

    `work` trains; None if it is over already.
    """
    try:
        if work is not None:
            await _in_time(daemon, aim, work)
        manifest = outcome(daemon, aim.run)
        if aim.gate is not None:
            await _promote(daemon, aim, aim.gate, manifest)
        return manifest
    finally:
        if not daemon.books.resuming.closing:
            _path(daemon.settings.state, aim.run).unlink(missing_ok=True)


async def _in_time(daemon: Daemon, aim: Aim, work: asyncio.Future[Any]) -> None:
    """Wait for a training and raise why it failed; end it if it is not over in its time."""
    left = None if aim.until is None else max(0.0, aim.until - time.time())
    try:
        await asyncio.wait([work], timeout=left)
        if not work.done():
            for run in list(daemon.runs.values()):
                if run.number == aim.run:
                    daemon.books.end(run, f"{daemon.me} gave it {aim.seconds:g} s")
                    await asyncio.wait([work], timeout=STOP_S)
            if stored_shares.of_run(daemon.serving.models, aim.run) is None:
                raise DeadlineExceeded(f"{aim.name} was not over within {aim.seconds:g} s, and was ended")
    finally:
        work.cancel()
        await asyncio.wait([work])
    if work.cancelled():
        raise Aborted(f"run {aim.run} of {aim.name} was withdrawn")
    work.result()


async def _promote(daemon: Daemon, aim: Aim, gate: Gate, manifest: Manifest) -> None:
    """Put a model to use if it is better, and say why if that cannot be done."""
    with suppress(PeerUnreachable):  # after a restart they come one after the other
        await daemon.peers.gathered(tuple(manifest.terms.parties))
    try:
        await operators.promote(daemon, manifest.model, aim.who, gate=gate)
    except ColonnadeError as error:
        log.warning("%s is not put to use: %s", manifest.model, error)
        daemon.journal.note(f"{manifest.model} is not put to use: {error}")
        raise


def outcome(daemon: Daemon, number: str) -> Manifest:
    """Return the manifest of a training that is over, or raise how it ended, with its exit code."""
    if (manifest := stored_shares.of_run(daemon.serving.models, number)) is not None:
        return manifest
    for ended in reversed(daemon.journal.runs):
        if ended.run == number:
            kind = Refused if ended.state == EXITS[Refused.exit_code] else Aborted
            error = kind(f"run {number}: {ended.reason}")
            error.exit_code = ended.code or kind.exit_code
            raise error
    raise JobError(f"no run {number} is known here; `colonnade runs list` has those that are")
