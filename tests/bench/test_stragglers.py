"""Rounds with a slow party: what it holds up as a dominator, and as the same party without its label."""

from __future__ import annotations

import pytest

from colonnade_bench.micro.stragglers import PLACES, Effort, rounds


def test_a_slow_dominator_is_no_worse_than_the_same_party_without_its_label() -> None:
    found = {row["slow"]: row for row in rounds(Effort(4.0, 8, worlds=["simulated"], choices=1))}
    assert list(found) == list(PLACES)
    assert len({row["synchronous s"] for row in found.values()}) == 1, "one speed of the slowest, one twin"
    assert found["dominator"]["over"] > 2.8
    assert found["dominator"]["over"] >= found["the same, passive"]["over"]
    assert found["dominator"]["launched"] == pytest.approx([1 / 2.2, 0.2 / 2.2, 1 / 2.2], rel=0.1)
    assert found["the same, passive"]["launched"] == [0.5, 0.5]
    assert len(found["another, passive"]["launched"]) == 3
