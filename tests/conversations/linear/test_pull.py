"""The pull conversation: label holders train, each at its own pace; it stops and fails at all parties."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conversations.linear.test_variance_reduced import SLOW, gap
from tests.oracles.tables import pooled, random_tables, run, weights

from colonnade.baselines.pooled import fit_pooled
from colonnade.conversations.linear.algorithm.pull import PullConversation
from colonnade.conversations.pacing.schedule import Schedule
from colonnade.conversations.pacing.stints import Stints
from colonnade.errors import (
    Aborted,
    ColonnadeError,
    DeadlineExceeded,
    Diverged,
    FixedPointOverflow,
    JobError,
    PeerLost,
)
from colonnade.job import job_from
from colonnade.job.presets import PRESETS
from colonnade.losses import LOSSES
from colonnade.regularizers import REGULARIZERS, Penalty
from colonnade.run.federate import federate
from colonnade.run.resolve import compose

PULL = sorted(
    name for name, preset in PRESETS.items() if preset.conversation == "pull" and not preset.literal
)
ASYNC = [name for name in PULL if PRESETS[name].schedule == "async"]
LINEAR = sorted(
    name
    for name, preset in PRESETS.items()
    if preset.conversation in ("backward", "pull") and not preset.literal
)


# -- every algorithm of linear scores ---------------------------------------------------------------


@pytest.mark.parametrize("world", ["simulated", "local"])
@pytest.mark.parametrize("name", LINEAR)
def test_a_user_who_sets_nothing_gets_a_run_that_converges(name: str, world: str) -> None:
    setting = random_tables(test_rows=60)
    train = {"step": "auto", "epochs": 20, "loss": "logistic", "l2": 0.01, "evaluate_every": 5}
    done = run(setting, name, world=world, network=SLOW, train=train)
    result = done.result
    assert np.isfinite(weights(done)).all()
    assert result.metrics["suboptimality"] < 0.02
    losses = [moment.loss for moment in result.history]
    assert losses[-1] < losses[0] < np.log(2)
    assert abs(result.metrics["test_accuracy"] - result.pooled["test_accuracy"]) < 0.1
    assert result.cost.epochs == 20
    assert min(result.cost.updates_by_party.values()) > 0


@pytest.mark.parametrize("loss", ["softmax", "squared", "smooth_hinge"])
@pytest.mark.parametrize("name", ["asysqn-sgd", "asysqn-saga", "afsvrg-vp", "synsqn-svrg"])
def test_every_loss_can_be_pulled(name: str, loss: str) -> None:
    classes = 3 if loss == "softmax" else None
    setting = random_tables(regression=loss == "squared", classes=classes)
    train = {"step": "auto", "epochs": 30, "loss": loss, "l2": 0.05, "classes": classes}
    done = run(setting, name, network=SLOW, train=train)
    start = done.result.pooled["objective"]
    assert done.result.metrics["suboptimality"] < 0.02 * max(1.0, start)


@pytest.mark.parametrize("name", ["afsaga-vp", "afsvrg-vp", "asysqn-saga", "asysqn-svrg"])
def test_variance_reduced_parties_at_their_own_pace_reach_the_optimum(name: str) -> None:
    setting = random_tables(rows=200)
    train = {"step": "auto", "epochs": 60, "l2": 0.05, "batch": 40, "evaluate_every": 0}
    assert abs(gap(setting, run(setting, name, network=SLOW, train=train))) < 1e-6


@pytest.mark.parametrize("name", ["asysqn-saga", "afsvrg-vp"])
def test_the_same_seed_gives_the_same_run(name: str) -> None:
    setting = random_tables()
    sections: dict[str, Any] = {"network": SLOW, "train": {"step": "auto", "epochs": 5, "ahead": 2}}
    first, second, other = (run(setting, name, seed=seed, **sections) for seed in (3, 3, 4))
    np.testing.assert_array_equal(weights(first), weights(second))
    assert first.result.cost.bytes_by_pair == second.result.cost.bytes_by_pair
    assert first.result.cost.virtual_seconds == second.result.cost.virtual_seconds
    assert np.abs(weights(first) - weights(other)).max() > 1e-6


# -- who updates what -------------------------------------------------------------------------------


@pytest.mark.parametrize("holders", [1, 2, 3])
@pytest.mark.parametrize("name", ["afsgd-vp", "afsvrg-vp", "afsaga-vp", "asysqn-saga", "fd-svrg"])
def test_the_blocks_of_parties_without_the_label_stay_untouched(name: str, holders: int) -> None:
    setting = random_tables(active=1)
    train = {"step": "auto", "epochs": 4, "labels_at": holders}
    done = run(setting, name, network=SLOW, train=train)
    for place, share in enumerate(done.shares.values()):
        assert bool(np.abs(share.weights["w"]).max() > 0) is (place < holders)
        assert (share.updates > 0) is (place < holders)
    assert done.result.active == [f"party{i}" for i in range(holders)]


def test_half_the_labels_end_at_the_optimum_of_half_the_columns() -> None:
    setting = random_tables(rows=200)
    train = {"step": "auto", "epochs": 60, "l2": 0.05, "labels_at": 2}
    done = run(setting, "afsaga-vp", network=SLOW, train=train)
    X, y = pooled(setting)
    half = fit_pooled(X[:, :6], y, LOSSES["logistic"], Penalty(REGULARIZERS["l2"], 0.05))
    np.testing.assert_allclose(weights(done)[:6], half.w, atol=1e-3)
    assert done.result.metrics["suboptimality"] == pytest.approx(
        half.loss - done.result.pooled["objective"], abs=1e-6
    )


@pytest.mark.parametrize("name", ASYNC)
def test_a_fast_party_makes_more_updates_than_a_slow_one_and_all_together_those_of_the_passes(
    name: str,
) -> None:
    setting = random_tables(rows=400)
    network = {"us_per_call": 500.0, "speeds": [1, 1, 0.25, 1], "charge_forward": False}
    done = run(setting, name, network=network, train={"step": "auto", "epochs": 6})
    updates = done.result.cost.updates_by_party
    assert updates["party2"] < updates["party0"] / 2
    steps = 4 if "svrg" in name else 6  # the rest are snapshots
    assert steps * 25 * 4 <= sum(updates.values()) <= (steps * 25 + 2 * steps) * 4
    rounds = 6 * 25 * 4 + 10 + 2 * (1 + 4)  # tuning takes secure sums as well
    assert {share.rounds for share in done.shares.values()} == {done.result.cost.rounds} == {rounds}


@pytest.mark.parametrize("ahead", [1, 2, 6])
def test_nobody_waits_for_what_a_slow_party_has_asked_for_and_not_worked_off(ahead: int) -> None:
    setting = random_tables(rows=400)
    network = {"us_per_call": 1000.0, "speeds": [1, 1, 0.1, 1], "charge_forward": False}
    done = run(setting, "afsgd-vp", network=network, train={"epochs": 3, "ahead": ahead, "evaluate_every": 0})
    ideal = 3 * 25 * 4 / 3.1 / 1000  # all updates at all parties' speeds together
    assert done.result.cost.virtual_seconds is not None
    # at the end of a pass everybody finishes the update it is at, the slow party one of 10 ms
    assert ideal <= done.result.cost.virtual_seconds <= ideal + 3 * 0.011
    assert sum(done.result.cost.updates_by_party.values()) <= 3 * (25 + 1) * 4


@pytest.mark.parametrize("name", [name for name in PULL if name not in ASYNC])
def test_in_step_all_parties_make_as_many_updates(name: str) -> None:
    setting = random_tables()
    done = run(setting, name, network=SLOW, train={"step": "auto", "epochs": 6})
    assert len(set(done.result.cost.updates_by_party.values())) == 1


def test_a_party_without_the_label_waits_for_the_end_of_a_stint_however_long_it_takes() -> None:
    setting = random_tables(active=1)
    network = {"latency_ms": 200, "deadline_s": 1.0}
    done = run(setting, "afsgd-vp", network=network, train={"epochs": 2, "labels_at": 1, "ahead": 1})
    assert done.result.cost.virtual_seconds is not None
    assert done.result.cost.virtual_seconds > 5


def test_where_messages_take_time_a_party_pulls_ahead_of_its_updates() -> None:
    setting = random_tables(rows=400)
    network = {"us_per_call": 1000.0, "charge_forward": False, "latency_ms": 1.0}
    usual, one, two = (
        run(setting, "asysqn-sgd", network=network, train={"epochs": 2, "evaluate_every": 0, **choice})
        for choice in ({}, {"ahead": 1}, {"ahead": 2})
    )
    took = [each.result.cost.virtual_seconds or 0.0 for each in (usual, one, two)]
    assert took[0] == took[2] < took[1] / 1.4


@pytest.mark.parametrize(
    ("name", "label_holders", "batch", "ahead"),
    [
        ("asysqn-saga", 8, None, 2),
        ("asysqn-saga", 8, 512, 1),
        ("asysqn-sgd", 4, 4096, 2),
        ("asysqn-svrg", 16, 256, 1),
        ("asysqn-svrg", 16, 64, 2),
        ("afsvrg-vp", 16, 4096, 2),  # first order
    ],
)
def test_a_party_pulls_ahead_only_where_its_steps_are_not_more_than_halved(
    name: str, label_holders: int, batch: int | None, ahead: int
) -> None:
    data = {"train": "digits", "parties": 16}
    job = job_from({"algorithm": name, "data": data, "train": {"batch": batch}, "network": {"latency_ms": 1}})
    assert compose(job).ahead(label_holders) == ahead


# -- stopping -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("world", ["simulated", "local"])
@pytest.mark.parametrize("name", ["afsgd-vp", "asysqn-svrg", "synsqn-saga", "fd-svrg"])
def test_a_target_stops_a_pull_run_at_all_parties(name: str, world: str) -> None:
    setting = random_tables(rows=200, test_rows=20)
    train = {"step": "auto", "epochs": 100, "l2": 0.05, "target": 0.01}
    done = run(setting, name, world=world, network=SLOW, train=train)
    assert done.result.metrics["suboptimality"] <= 0.01
    assert done.result.cost.epochs < 100
    assert {share.rounds for share in done.shares.values()} == {done.result.cost.rounds}
    assert "test_accuracy" in done.result.metrics
    assert all(m.loss > done.result.pooled["objective"] + 0.01 for m in done.result.history[:-1])


@given(st.integers(0, 2**31), st.floats(0, 0.5), st.floats(0.001, 1.0), st.integers(1, 3))
@settings(max_examples=12)
def test_delays_between_any_two_parties_neither_hang_nor_lose_a_run(
    seed: int, delay: float, delay_s: float, ahead: int
) -> None:
    """A slow line may bring the word to stop before the party has even begun that stint."""
    setting = random_tables(rows=64)
    network = {"latency_ms": 1.0, "deadline_s": 600.0, "faults": {"delay": delay, "delay_s": delay_s}}
    done = run(setting, "afsaga-vp", seed=seed, network=network, train={"epochs": 4, "ahead": ahead})
    assert done.result.cost.epochs == 4
    assert sum(done.result.cost.updates_by_party.values()) >= 4 * 4 * 4


def test_a_word_to_stop_that_comes_before_its_stint_is_not_forgotten() -> None:
    class Line:
        async def stream(self, kind: object, *, patient: bool) -> Any:
            yield [("party0", type("Stop", (), {"at": 1})())]

    async def play() -> None:
        line: Any = Line()
        stints = Stints(line, "party0", Schedule(4, 2, 3, 0, ("party0",)), ahead=1, lead=0)
        stints.state.stopped = 1
        await stints.heed()
        assert not stints.stopping.is_set()
        stints.state.stint = 1
        assert stints.stopping.is_set()

    asyncio.run(play())


# -- failing ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("party", ["party0", "party2"])
@pytest.mark.parametrize("when", [0.0, 0.013, 0.05])
@pytest.mark.parametrize("name", ["afsgd-vp", "asysqn-svrg", "fd-svrg"])
def test_a_crash_ends_a_pull_run_with_a_name_and_not_in_silence(name: str, party: str, when: float) -> None:
    network = {"latency_ms": 2.0, "deadline_s": 5.0, "faults": {"crash": {party: when}}}
    with pytest.raises((PeerLost, Aborted, DeadlineExceeded), match="party"):
        run(random_tables(), name, network=network, train={"epochs": 20})


@pytest.mark.parametrize("world", ["simulated", "local"])
@pytest.mark.parametrize("name", ["afsgd-vp", "fd-svrg"])
def test_a_step_that_is_far_too_large_is_named(name: str, world: str) -> None:
    setting = random_tables(regression=True)
    with pytest.raises((FixedPointOverflow, Diverged, Aborted), match="smaller step"):
        run(setting, name, world=world, train={"loss": "squared", "step": 50.0, "epochs": 30})


@pytest.mark.parametrize("world", ["simulated", "local"])
@pytest.mark.parametrize("name", ["afsgd-vp", "asysqn-saga", "fd-svrg"])
def test_what_fails_at_one_party_ends_the_run_everywhere(
    name: str, world: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = PullConversation.step

    async def broken(self: PullConversation, *arguments: Any) -> None:
        if self.context.me == "party2" and self.stints.state.done == 5:
            raise Diverged("party2 has had enough")
        await step(self, *arguments)

    monkeypatch.setattr(PullConversation, "step", broken)
    with pytest.raises(ColonnadeError, match="party2 has had enough"):
        run(random_tables(), name, world=world)


# -- processes of their own ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["vfb2-svrg", "asysqn-saga"])
def test_parties_that_are_processes_of_their_own_learn_the_same(name: str, tmp_path: Path) -> None:
    plain = {
        "algorithm": name,
        "data": {"train": "breast-cancer", "parties": 3, "active": 2},
        "train": {"epochs": 40, "l2": 0.01, "batch": 64, "evaluate_every": 0},
    }
    network, local = (
        federate(job_from({**plain, "world": world}), out=tmp_path).result for world in ("network", "local")
    )
    for result in (network, local):
        assert 0 <= result.metrics["suboptimality"] + 1e-9 < 1e-3
    assert network.metrics["test_accuracy"] == pytest.approx(local.metrics["test_accuracy"], abs=0.01)
    assert network.active == local.active


# -- bounded delay --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["afsgd-vp", "asysqn-saga", "asysqn-svrg"])
@pytest.mark.parametrize(("ahead", "more"), [(1, 0), (1, 7), (2, 0), (3, 20)])
def test_no_batch_is_later_than_max_delay_whoever_is_slow(name: str, ahead: int, more: int) -> None:
    """A fast party waits for the slowest rather than let a batch under way there grow too old."""
    least = (ahead - 1) + 3 * (ahead + 1)
    bounded = {"ahead": ahead, "max_delay": least + more, "epochs": 3, "batch": 8}
    for speeds in ([1, 1, 1, 0.1], [0.2, 1, 1, 3], [1, 1, 1, 1]):
        network = {"latency_ms": 3.0, "bandwidth_mbps": 50.0, "speeds": speeds, "charge_forward": False}
        done = run(random_tables(active=1), name, network=network, train=bounded)
        assert 0 < done.result.staleness.max <= least + more


def test_without_a_bound_a_slow_party_s_batches_grow_old() -> None:
    network = {"latency_ms": 0.1, "speeds": [1, 1, 1, 0.02], "us_per_call": 500.0, "charge_forward": False}
    train = {"epochs": 4, "batch": 8}
    free = run(random_tables(active=1), "afsgd-vp", network=network, train=train)
    held = run(random_tables(active=1), "afsgd-vp", network=network, train={**train, "max_delay": 6})
    assert free.result.staleness.max > 10
    assert held.result.staleness.max <= 6
    assert (
        sum(held.result.cost.updates_by_party.values()) >= sum(free.result.cost.updates_by_party.values()) - 8
    )


@pytest.mark.parametrize("ahead", [1, 2, 5])
def test_a_bound_that_cannot_be_kept_is_refused_with_the_one_that_can(ahead: int) -> None:
    least = (ahead - 1) + 3 * (ahead + 1)
    with pytest.raises(JobError, match=rf"train.max_delay: 4 label holders .* set max_delay = {least}"):
        run(random_tables(active=1), "asysqn-sgd", train={"ahead": ahead, "max_delay": least - 1})


@pytest.mark.parametrize("name", ["synsqn-sgd", "fd-svrg"])
def test_who_pulls_in_step_is_never_late(name: str) -> None:
    done = run(random_tables(active=1), name, train={"max_delay": 0})
    assert done.result.staleness.max == 0
