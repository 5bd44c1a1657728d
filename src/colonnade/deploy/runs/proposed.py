"""What this party has proposed and operators of others are asked about: it is on disk, and proposed again.

RUNS/proposed/NUMBER.json    the job, and until when its approval is waited for
"""

from __future__ import annotations

import logging
from pathlib import Path

import msgspec

from colonnade.deploy.terms.terms import Terms
from colonnade.disk import replace_file

log = logging.getLogger("colonnade.party")


class Proposed(msgspec.Struct, frozen=True, kw_only=True):
    """A training that this party has proposed, and for how long it waits for approvals."""

    run: int
    terms: Terms
    timeline: bool
    until: str


class ProposedFiles:
    """What one party has proposed, on disk."""

    def __init__(self, state: Path) -> None:
        self._folder = state / "proposed"

    def write(self, proposed: Proposed) -> None:
        """Write it down; when this returns it is on disk."""
        replace_file(self._path(proposed.run), msgspec.json.encode(proposed))

    def remove(self, run: int) -> None:
        """Forget a proposal that is decided."""
        self._path(run).unlink(missing_ok=True)

    def read(self) -> list[Proposed]:
        """Return what was proposed when this daemon ended; what cannot be read is left out and logged."""
        found = []
        for path in sorted(self._folder.glob("*.json")):
            try:
                found.append(msgspec.json.decode(path.read_bytes(), type=Proposed))
            except (OSError, msgspec.MsgspecError) as error:
                log.warning("%s: is not proposed again: %s", path, error)
        return found

    def _path(self, run: int) -> Path:
        return self._folder / f"{run:08x}.json"
