"""Rounds with a slow party: what it holds up as a dominator, and as the same party without its label."""

from __future__ import annotations

from dataclasses import replace

import pytest

from colonnade.job.presets import PRESETS
from colonnade_bench.micro.stragglers import PAIRS, PLACES, Effort, algorithms, rounds


def test_a_slow_dominator_is_no_worse_than_the_same_party_without_its_label() -> None:
    found = {row["slow"]: row for row in rounds(Effort(4.0, 8, worlds=["simulated"], choices=1))}
    assert list(found) == list(PLACES)
    assert len({row["synchronous s"] for row in found.values()}) == 1, "one speed of the slowest, one twin"
    assert found["dominator"]["over"] > 2.8
    assert found["dominator"]["over"] >= found["the same, passive"]["over"]
    assert found["dominator"]["launched"] == pytest.approx([1 / 2.2, 0.2 / 2.2, 1 / 2.2], rel=0.1)
    assert found["the same, passive"]["launched"] == [0.5, 0.5]
    assert len(found["another, passive"]["launched"]) == 3


@pytest.mark.parametrize("paper", PAIRS)
def test_an_asynchronous_algorithm_is_compared_with_its_own_synchronous_twin(paper: str) -> None:
    asynchronous, synchronous = (PRESETS[name] for name in PAIRS[paper])
    assert asynchronous.schedule == "async"
    twin = replace(asynchronous, name=synchronous.name, summary=synchronous.summary, schedule="sync")
    assert synchronous == twin


def test_a_straggler_holds_up_synchronous_runs_and_hardly_asynchronous_ones() -> None:
    longer = {
        row["algorithm"]: row["times as long"] for row in algorithms(Effort(4.0, 4, worlds=["simulated"]))
    }
    for asynchronous, synchronous in PAIRS.values():
        assert longer[synchronous] == pytest.approx(2.5, rel=0.1)
        assert longer[asynchronous] < 1.5
