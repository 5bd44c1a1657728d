"""Checkpoints of 0.2 lack what is kept since: it has a value that is said, or the run is refused by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import pytest

from colonnade.conversations.gates import Gates
from colonnade.errors import CheckpointError
from colonnade.state import Declared


@dataclass
class Thing:
    STATE = Declared(kept=("known", "later"))

    known: int = 0
    later: bool = True


def gates() -> Gates:
    """Gates of a run that goes on from a picture with `known` alone."""
    nothing = cast(Any, None)
    made = Gates(nothing, "bank", records=cast(Any, object()), position=3)
    made._put_back = {"Thing.known": 7}
    return made


def test_what_it_lacks_has_the_value_that_is_said_and_is_kept_from_then_on() -> None:
    thing, going_on = Thing(), gates()
    going_on.keep(thing, older={"later": False})
    assert (thing.known, thing.later) == (7, False)
    assert "Thing.later" in going_on._kept


def test_what_it_lacks_is_refused_by_name_otherwise() -> None:
    with pytest.raises(CheckpointError, match=r"gate 3 has no Thing\.later"):
        gates().keep(Thing())
