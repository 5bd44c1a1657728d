"""Recording a run: it changes nothing, takes bounded memory, and tells who computed and sent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from colonnade.job import job_from
from colonnade.net import recorder
from colonnade.net.clock import RealClock
from colonnade.net.recorder import Recorder
from colonnade.result import Result
from colonnade.run.federate import Finished, federate
from colonnade.timeline import read_timeline


def run(world: str, timeline: bool, **network: Any) -> Finished:
    plain = {
        "algorithm": "vfb2-svrg",
        "world": world,
        "compare": False,
        "data": {"train": "breast-cancer", "parties": 3},
        "train": {"epochs": 2, "batch": 32},
        "network": network,
    }
    return federate(job_from(plain), timeline=timeline)


def without_real_time(result: Result) -> Result:
    history = [msgspec.structs.replace(moment, seconds=0.0) for moment in result.history]
    return msgspec.structs.replace(
        result, cost=msgspec.structs.replace(result.cost, seconds=0.0), history=history
    )


def test_a_recorded_simulation_is_the_same_bit_for_bit(tmp_path: Path) -> None:
    network = {"latency_ms": 2.0, "speeds": [1.0, 1.0, 0.25]}
    plain, told = run("simulated", False, **network), run("simulated", True, **network)
    assert plain.timeline is None
    assert without_real_time(plain.result) == without_real_time(told.result)
    for party, share in plain.shares.items():
        assert share.weights["w"].tobytes() == told.shares[party].weights["w"].tobytes()
    timeline = told.timeline
    assert timeline is not None
    assert timeline.virtual
    slow, fast = timeline.parties["party-2"], timeline.parties["party-1"]
    assert slow.busy_seconds > 3 * fast.busy_seconds
    for lane in timeline.parties.values():
        # no span of one lane overlaps another, and all of them together are what was charged
        assert all(a[1] <= b[0] + 1e-12 for a, b in zip(lane.busy, lane.busy[1:], strict=False))
        assert sum(b - a for a, b in lane.busy) == pytest.approx(lane.busy_seconds)
        assert lane.frames == len(lane.sent)
    timeline.write(tmp_path / "timeline.json")
    assert read_timeline(tmp_path / "timeline.json") == timeline


@pytest.mark.parametrize("world", ["local", "network"])
def test_real_time_is_told_too(world: str) -> None:
    timeline = run(world, True).timeline
    assert timeline is not None
    assert not timeline.virtual
    assert sorted(timeline.parties) == ["party-0", "party-1", "party-2"]
    for lane in timeline.parties.values():
        assert 0 < lane.busy_seconds <= lane.seconds * 1.01
        assert lane.frames > 0
        assert all(0 <= begin <= end <= lane.seconds + 0.5 for begin, end in lane.busy)


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder, "MOST", 5)
    kept = Recorder(RealClock())
    for k in range(50):
        kept.computed(k, k + 0.5)
        kept.sent("b", bytes(10))
    found = kept.finish(60.0)
    assert found.busy == [(k, k + 0.5) for k in range(5)]
    assert len(found.sent) == 5
    assert (found.busy_seconds, found.frames, found.seconds) == (25.0, 50, 60.0)
    assert found.until < 60.0
