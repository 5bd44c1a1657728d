"""One party that weighs its columns as a process of its own: `python -m colonnade.run.woe_process FOLDER`.

The folder is laid out like that of a party that trains (`run.party_process`); the process leaves its weighed
columns there.
"""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec

from colonnade.data.split import store
from colonnade.net.clock import RealClock
from colonnade.run.party_process import PartyInstructions, connected, leave, live
from colonnade.run.woe_party import WeighingTerms, weigh

OUTCOME = "weighed.json"


class WeighingInstructions(PartyInstructions, frozen=True, kw_only=True):
    """What the process is told."""

    terms: WeighingTerms


async def _serve(folder: Path) -> None:
    """Join the others, weigh the own columns, and leave them in the folder."""
    told = msgspec.json.decode((folder / "instructions.json").read_bytes(), type=WeighingInstructions)
    data = store.load(folder / "data")
    async with connected(folder, told, told.terms.network, RealClock()) as (party, net):
        done = await weigh(party, net, data.train, data.recipe.categorical, told.terms)
    leave(folder / OUTCOME, msgspec.json.encode(done))


def main(folder: Path) -> int:
    """Weigh the columns of the party whose folder this is, as this process; returns the exit code."""
    return live(folder, _serve)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
