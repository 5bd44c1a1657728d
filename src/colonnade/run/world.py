"""What every world is given: a plan, every party's data, and who is told of progress.

A world is a function of such a `Launch` that starts all parties and returns their shares.

A new engine is a new world: one file with such a function, its name in `job.sections.World`, and its row
in `launch.WORLDS`.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from colonnade.arrays import Floats
from colonnade.conversations.context import GivenModels
from colonnade.data.prepare.labels import Labels
from colonnade.data.prepare.party_data import PartyData
from colonnade.data.prepare.prepare import refuse_nothing
from colonnade.job import HERE, MEMORY, EngineTerms
from colonnade.job.plan import Plan
from colonnade.net.network import Wire
from colonnade.run.party import Kept, Progress, Share
from colonnade.secure.protocol import SecureSum

WireTap = Callable[[str, Wire], Wire]
"""Puts something between a party and its wire, e.g. to write down what it says and hears."""


SumTap = Callable[[str, SecureSum], SecureSum]
"""Puts something around a party's secure sum, e.g. to write down the totals that it gets."""


def untapped(party: str, wire: Wire) -> Wire:
    """Return the wire as it is: nobody writes down what crosses it."""
    return wire


def unheard(party: str, secure: SecureSum) -> SecureSum:
    """Return the secure sum as it is: nobody writes down its totals."""
    return secure


@dataclass(frozen=True, eq=False)
class Launch:
    """A run that is ready to start: the plan, every party's data and what else a world needs.

    `tap` and `overhear` are for worlds in this process, `out` for those that leave files. `labels` says how
    labels became numbers, where they were read from a file.
    """

    plan: Plan[Any]
    data: Mapping[str, PartyData]
    models: Mapping[str, GivenModels] = field(default_factory=dict)
    target_loss: float | None = None
    progress: Progress = lambda moment: None
    tap: WireTap = untapped
    overhear: SumTap = unheard
    out: Path | None = None
    labels: Labels | None = None
    resume: bool = False  # go on from the checkpoints that lie in `out`
    timeline: bool = False  # whether every party's share says when it computed and sent
    memory: int = MEMORY  # bytes that a party may use
    engine: EngineTerms = HERE
    large: bool = False  # columns lie in files, and nobody could hold those of all parties
    start: Mapping[str, Floats] = field(
        default_factory=dict
    )  # weights to begin with, of parties that have some

    def start_of(self, party: str) -> Floats | None:
        """Return a party's weights to begin with; None where nobody has any."""
        return self.start.get(party, np.zeros(0)) if self.start else None

    def ready(self) -> Launch:
        """Return the same run on columns that are prepared here, once for all that is done with them."""
        data = {party: data.ready() for party, data in self.data.items()}
        refuse_nothing(each.preparation for each in data.values())
        return replace(self, data=data)


PARTIES, CHECKPOINTS = "parties", "checkpoints"


def kept_at(out: Path | None, party: str, *, resume: bool) -> Kept | None:
    """Return where a party of a run on one machine keeps its checkpoints; nowhere, if the run leaves no
    files."""
    return None if out is None else Kept(out / PARTIES / party / CHECKPOINTS, resume)


def forget(out: Path | None, parties: Iterable[str]) -> None:
    """Remove the checkpoints of a run that is over."""
    for party in parties if out is not None else ():
        folder = Path(out or "") / PARTIES / party
        shutil.rmtree(folder / CHECKPOINTS, ignore_errors=True)
        for left in (folder, folder.parent):
            with suppress(OSError):  # not empty, or not there
                left.rmdir()


World = Callable[[Launch], dict[str, Share]]
"""Starts all parties of a run and returns their shares; raises the first real cause if one fails."""


def run_id(plan: Plan[Any]) -> int:
    """Return the number that every frame of this run carries, so that frames of another run are refused."""
    return int.from_bytes(hashlib.sha256(plan.digest().encode()).digest()[:4], "little")
