"""What an audit found: attacks that were tried on a run and how far they came, stored as audit.json.

An attack that was tried says what is given away at least. What no attack here finds may still be there.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec

from colonnade.errors import DataError

FILE = "audit.json"
Aim = Literal["labels", "columns", "epsilon", "ids", ""]

AT_LEAST = (
    "Attacks that were measured say what a run gives away at least. That they find nothing proves nothing: "
    "somebody may know a better one."
)


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """An attack that was tried on a run: who could do it, and how far it came beside mere guessing.

    `value` is what was measured (the part of labels, a correlation, an epsilon), between `low` and `high`
    with 95% confidence; `baseline` is what anybody reaches without the run.
    """

    attack: str
    by: str
    success: str  # in words and numbers, e.g. "62% of the labels"
    guessing: str = ""  # what anybody reaches without the run
    note: str = ""
    aim: Aim = ""
    value: float | None = None
    low: float | None = None
    high: float | None = None
    baseline: float | None = None
    closed_by: str = ""  # the setting that ends what was found
    found: bool | None = None  # whether it is surely more than guessing; None where nothing was measured


def write_findings(path: Path, findings: Sequence[Finding]) -> None:
    """Write an audit's file, whole or not at all."""
    draft = path.with_suffix(".part")
    draft.write_bytes(msgspec.json.format(msgspec.json.encode(findings), indent=2))
    draft.replace(path)


def read_findings(path: Path) -> list[Finding]:
    """Return the attacks in an audit's file; DataError if it is none."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=list[Finding])
    except msgspec.MsgspecError as error:
        raise DataError(f"{path}: no list of attacks; `colonnade audit` writes one ({error})") from error
