"""Weights are moved by chance before they are told, and by the same chance whenever a run ends."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from colonnade.arrays import Words
from colonnade.conversations.blind.low_bits import MOST_AGAIN, blurred
from colonnade.conversations.context import Context
from colonnade.errors import CheckpointError

REACH = 1000
PARTS = [np.arange(40, dtype=np.uint64).reshape(1, 40) * np.uint64(10**6), np.zeros((1, 7), dtype=np.uint64)]


class Disk:
    """The notes that a party's checkpoints keep, with the order in which they were written."""

    def __init__(self) -> None:
        self.notes: dict[str, bytes] = {}

    def noted(self, name: str) -> bytes | None:
        return self.notes.get(name)

    def note(self, name: str, content: bytes) -> None:
        self.notes[name] = content


def told(disk: Disk) -> list[Words]:
    clock = SimpleNamespace(virtual=False)
    context = SimpleNamespace(gates=disk, net=SimpleNamespace(clock=clock))
    return blurred(cast(Context[Any], context), PARTS, REACH)


def moved(found: list[Words]) -> Any:
    pairs = zip(found, PARTS, strict=True)
    return np.concatenate([(part - exact).view(np.int64).ravel() for part, exact in pairs])


def test_a_run_that_ends_again_draws_no_other_low_bits() -> None:
    """What is told a second time is the first, moved once more; a third time it would be twice as far."""
    disk = Disk()
    first = moved(told(disk))
    key = disk.notes["blur"]
    assert 0 < np.abs(first).max() <= REACH
    again = Disk()
    again.notes["blur"] = key  # cut off before it was on disk that they were told
    np.testing.assert_array_equal(moved(told(again)), first)
    second, third = moved(told(disk)), moved(told(disk))
    assert disk.notes["blur"] == key
    for known, reach in ((second, 2 * REACH), (third, 4 * REACH)):
        more = known - first
        assert more.any()
        assert np.abs(more).max() <= reach
    assert np.abs(third - first).max() > 2 * REACH
    other = moved(told(Disk()))  # another run
    assert not np.array_equal(other, first)


def test_weights_are_told_so_often_and_not_once_more() -> None:
    disk = Disk()
    for _ in range(MOST_AGAIN + 1):
        told(disk)
    with pytest.raises(CheckpointError, match=f"told {MOST_AGAIN + 1} times"):
        told(disk)
