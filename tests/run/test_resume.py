"""A run that was cut off goes on from its checkpoints, and ends as if nothing had happened."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.oracles.tables import random_job, random_tables

from colonnade.errors import Aborted, CheckpointError
from colonnade.job.plan import Plan
from colonnade.net.simulated import SimulatedWire
from colonnade.result import Moment
from colonnade.run.federate import plan_for
from colonnade.run.launch import launch
from colonnade.run.party import Share
from colonnade.run.world import Launch

CLEAR, BLIND = {"labels": "clear"}, {"labels": "blind"}
SLOW = {"latency_ms": 3.0, "speeds": [1.0, 0.5, 0.8, 0.3], "ns_per_value": 300.0}
LATE: dict[str, Any] = {"train": {"ahead": 4}, "network": SLOW}
EVERY_CONVERSATION: list[tuple[str, dict[str, Any]]] = [
    ("vfb2-sgd", {"secure": CLEAR, "train": {"ahead": 1}, "world": "local"}),
    ("vfb2-saga", {"secure": CLEAR, **LATE}),
    ("asysqn-svrg", {"network": SLOW}),
    ("lbfgs", {"secure": CLEAR, "world": "local"}),
    ("vfb2-saga", {"secure": BLIND, "train": {"step": "auto", "ahead": 2}}),
    ("fdskl", LATE),
    ("asyrevel-gau", {}),
    ("tig", LATE),
    ("c-vfl", {"world": "local"}),
    ("secureboost", {"secure": BLIND, "trees": {"subsample": 0.8}}),
    # bins that are veiled once, and again with new keys
    ("secureboost", {"secure": BLIND, "trees": {"max_bin": 4, "node_rows": 10, "bin_rows": 3}}),
]
MORE: list[tuple[str, dict[str, Any]]] = [
    ("vfb2-svrg", {"secure": CLEAR, "train": {"step": "auto"}, "network": SLOW}),
    ("vfb2-saga", {"secure": CLEAR, "train": {"ahead": 4, "direction": "lbfgs", "step": "auto"}}),
    ("vfb2-saga", {"secure": CLEAR, "train": {"direction": "lbfgs"}, "direction": {"pairs": "hvp"}}),
    ("afsgd-vp", {"train": {"ahead": 3}}),
    ("fd-svrg", {"world": "local"}),
    ("vfb2-sgd", {"secure": BLIND}),
    ("vfb2-svrg", {"secure": BLIND, "train": {"step": "auto"}}),
    ("fdskl-capped", {"kernel": {"features": 32, "block": 8}, "world": "local", "train": {"ahead": 1}}),
    ("secureboost", {"secure": CLEAR, "world": "local"}),
    ("boosted-sum", {"secure": CLEAR}),
    ("split", {"cascade": {"optimizer": "adam"}, "world": "local"}),
    ("czofo-ef", {"network": SLOW}),
]
ROOM_S = 0.05  # until a full line has room again: longer than a message and its answer take
CASES = [*EVERY_CONVERSATION, *(pytest.param(*case, marks=pytest.mark.slow) for case in MORE)]


def order_of(algorithm: str, out: Path, *, holders: int = 2, **sections: Any) -> Launch:
    tables = random_tables(active=holders, rows=60, test_rows=10)
    train = {"epochs": 6, **sections.pop("train", {})}
    job = random_job(tables, algorithm, **{"checkpoint": {"every": "epoch"}, "train": train, **sections})
    plan, data = plan_for(job, tables)
    return Launch(plan, data, out=out)


def cut(order: Launch, epoch: int) -> None:
    """Run until an epoch is measured, and end there as a crash would: with what is on disk."""

    def stop(moment: Moment) -> None:
        if moment.epoch >= epoch:
            raise Aborted("cut off")

    with pytest.raises(Aborted):
        launch(Launch(order.plan, order.data, out=order.out, progress=stop, resume=order.resume))


def told(plan: Plan[Any], shares: dict[str, Share]) -> list[tuple[int, int, float]]:
    return [(moment.epoch, moment.rounds, moment.loss) for moment in shares[plan.evaluator].history]


@pytest.mark.parametrize(("algorithm", "sections"), CASES)
def test_a_run_that_goes_on_ends_with_the_same_weights(
    tmp_path: Path, algorithm: str, sections: dict[str, Any]
) -> None:
    whole = order_of(algorithm, tmp_path / "whole", **sections)
    expected = launch(whole)
    begun = order_of(algorithm, tmp_path / "cut", **sections)
    cut(begun, 2)
    again = Launch(begun.plan, begun.data, out=begun.out, resume=True)
    cut(again, 4)
    assert list((tmp_path / "cut").rglob("*.gate"))
    found = launch(again)
    assert told(whole.plan, found) == told(whole.plan, expected)
    for party, share in expected.items():
        assert share.weights.keys() == found[party].weights.keys()
        for name, array in share.weights.items():
            assert np.array_equal(array, found[party].weights[name]), (party, name)
        assert found[party].updates == share.updates
    assert not list((tmp_path / "cut").rglob("*.gate"))


def test_checkpoints_of_another_job_or_other_data_are_refused(tmp_path: Path) -> None:
    order = order_of("vfb2-sgd", tmp_path, secure=CLEAR)
    cut(order, 3)
    other = order_of("vfb2-sgd", tmp_path, secure=CLEAR, train={"l2": 0.5})
    with pytest.raises(CheckpointError, match="another job"):
        launch(Launch(other.plan, other.data, out=tmp_path, resume=True))
    tables = random_tables(rows=60, test_rows=10, seed=1)
    _, data = plan_for(random_job(tables, "vfb2-sgd", secure=CLEAR), tables)
    with pytest.raises(CheckpointError, match="other data"):
        launch(Launch(order.plan, data, out=tmp_path, resume=True))


@pytest.mark.parametrize("damage", ["torn", "empty", "flipped"])
def test_a_damaged_checkpoint_does_not_count_and_the_one_before_does(tmp_path: Path, damage: str) -> None:
    expected = launch(order_of("vfb2-saga", tmp_path / "whole", secure=CLEAR))
    order = order_of("vfb2-saga", tmp_path / "cut", secure=CLEAR)
    cut(order, 4)
    newest = sorted((tmp_path / "cut").rglob("party2/**/*.gate"))[-1]
    content = newest.read_bytes()
    newest.write_bytes(
        {"torn": content[: len(content) // 2], "empty": b"", "flipped": content[:-9] + b"x" + content[-8:]}[
            damage
        ]
    )
    found = launch(Launch(order.plan, order.data, out=order.out, resume=True))
    assert np.array_equal(found["party0"].weights["w"], expected["party0"].weights["w"])


def test_a_run_without_checkpoints_begins_anew(tmp_path: Path) -> None:
    order = order_of("vfb2-sgd", tmp_path, secure=CLEAR, checkpoint={"every": "never"})
    cut(order, 3)
    assert not list(tmp_path.rglob("*.gate"))
    found = launch(Launch(order.plan, order.data, out=tmp_path, resume=True))
    assert len(found["party0"].history) == 6


def test_a_party_that_goes_on_over_a_full_line_gives_the_shares_that_others_wait_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it gave before it was cut off waits for room, and thetas of it come before all of it has left."""
    expected = launch(order_of("vfb2-saga", tmp_path / "whole", secure=CLEAR, **LATE))
    begun = order_of("vfb2-saga", tmp_path / "cut", secure=CLEAR, **LATE)
    cut(begun, 2)
    sends = SimulatedWire.send

    def sends_and_fills(wire: SimulatedWire, to: str, frame: bytes) -> asyncio.Future[None] | None:
        sends(wire, to, frame)
        if wire._party != "party3":
            return None
        return asyncio.ensure_future(asyncio.sleep(ROOM_S))

    monkeypatch.setattr(SimulatedWire, "send", sends_and_fills)
    found = launch(Launch(begun.plan, begun.data, out=begun.out, resume=True))
    assert {name: share.updates for name, share in found.items()} == {
        name: share.updates for name, share in expected.items()
    }
