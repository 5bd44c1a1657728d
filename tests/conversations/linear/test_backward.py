"""The backward conversation: synchronous, it is mini-batch SGD on pooled data; asynchronous, every round is
applied once at every party, within the delay bound, and the same seed gives the same run."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace as replaced
from typing import Any, cast

import msgspec
import numpy as np
import pytest
from msgspec.structs import replace
from tests.oracles.sgd import SCALAR_LOSSES, objective, pooled_sgd
from tests.oracles.tables import pooled, random_tables, run, weights

from colonnade.conversations.pacing.delay_bound import bound, each_ahead
from colonnade.conversations.pacing.own_pace import OwnPace
from colonnade.errors import ProtocolError
from colonnade.losses import LOSSES
from colonnade.messages import Backward, Message
from colonnade.net.endpoint import Endpoint
from colonnade.openings.limits import Unlimited
from colonnade.regularizers import REGULARIZERS
from colonnade.run.federate import Finished, Tables
from colonnade.secure.masked import MaskedSum

STEP = 2.0**-32  # of the fixed-point sums


def synchronous(setting: Tables, **sections: Any) -> Finished:
    return run(setting, "vfb-sgd", **sections)


def oracle(setting: Tables, done: Finished, steps: list[float] | None = None) -> tuple[Any, float]:
    """Pooled mini-batch SGD for the same job: its weights and its objective."""
    X, y = pooled(setting)
    train = done.job.train
    loss, regularizer = LOSSES[train.loss or ""], REGULARIZERS[train.regularizer]
    w = pooled_sgd(
        X,
        y,
        loss,
        regularizer,
        l2=train.l2_for(len(y)),
        step=steps or done.result.step[setting.active[0]],
        batch=done.plan.pace.batch,
        epochs=train.epochs,
        seed=done.job.seed,
        reshuffle=train.reshuffle,
    )
    return w, objective(X, y, w, loss, regularizer, train.l2_for(len(y)))


def assert_equals_pooled(setting: Tables, done: Finished, steps: list[float] | None = None) -> None:
    w, value = oracle(setting, done, steps)
    np.testing.assert_allclose(weights(done), w, atol=1e-6)
    assert done.result.metrics["objective"] == pytest.approx(value, abs=1e-6)
    assert done.result.history[-1].loss == done.result.metrics["objective"]


# -- synchronous: federated == pooled -------------------------------------------------------------


@pytest.mark.parametrize("world", ["simulated", "local"])
@pytest.mark.parametrize("parties", [1, 2, 3, 5, 12])
def test_synchronous_training_equals_pooled_sgd_for_any_number_of_parties(parties: int, world: str) -> None:
    setting = random_tables(parties=parties, active=min(parties, 3))
    assert_equals_pooled(setting, synchronous(setting, world=world))


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("regularizer", sorted(REGULARIZERS))
@pytest.mark.parametrize("loss", sorted(SCALAR_LOSSES))
def test_synchronous_training_equals_pooled_sgd_for_any_objective(
    loss: str, regularizer: str, sparse: bool
) -> None:
    setting = random_tables(sparse=sparse, regression=LOSSES[loss].task == "regression")
    train = {"loss": loss, "regularizer": regularizer, "l2": 0.05, "epochs": 3}
    assert_equals_pooled(setting, synchronous(setting, train=train))


@pytest.mark.parametrize("batch", [1, 7, 50, 64])
def test_synchronous_training_equals_pooled_sgd_where_the_last_batch_is_smaller(batch: int) -> None:
    setting = random_tables(rows=50, columns=6)
    assert_equals_pooled(setting, synchronous(setting, train={"batch": batch}))


def test_rows_that_are_not_shuffled_anew_are_pooled_sgd_in_one_order() -> None:
    setting = random_tables()
    anew, kept = (synchronous(setting, train={"epochs": 3, "reshuffle": r}) for r in (True, False))
    assert_equals_pooled(setting, anew)
    w, _ = oracle(setting, kept)
    np.testing.assert_allclose(weights(kept), w, atol=1e-6)
    assert np.abs(weights(kept) - weights(anew)).max() > 1e-3


@pytest.mark.parametrize("epochs", [1, 2, 3])
def test_synchronous_training_equals_pooled_sgd_with_the_automatic_step(epochs: int) -> None:
    """The step is found from a bound first, and measured again after the first epoch and the third."""
    setting = random_tables()
    first, done = (synchronous(setting, train={"step": "auto", "epochs": k}) for k in (1, epochs))
    assert len(set(done.result.step.values())) == 1
    before, after = (each.result.step["party0"] for each in (first, done))
    assert_equals_pooled(setting, done, [before, after, after][:epochs])
    assert (before == after) is (epochs == 1)


@pytest.mark.parametrize("active", [1, 2, 4])
def test_who_holds_the_label_does_not_change_a_synchronous_result(active: int) -> None:
    reference, done = (synchronous(random_tables(active=m)) for m in (1, active))
    np.testing.assert_array_equal(weights(done), weights(reference))


@pytest.mark.parametrize("parties", [3, 4, 7])
def test_plain_masked_and_tree_sums_give_the_same_weights_to_the_fixed_point_step(parties: int) -> None:
    setting = random_tables(parties=parties)
    plain, masked, tree = (
        weights(synchronous(setting, secure={"sum": kind})) for kind in ("plain", "masked", "tree")
    )
    # a score is off by at most q/2 steps, an update by at most the rate times that, and errors add up
    bound = parties * STEP * 16 * 4
    assert np.abs(masked - plain).max() <= bound
    assert np.abs(tree - plain).max() <= bound


def test_the_worlds_give_the_very_same_synchronous_weights() -> None:
    setting = random_tables()
    simulated, local = (weights(synchronous(setting, world=world)) for world in ("simulated", "local"))
    np.testing.assert_array_equal(simulated, local)


def test_the_network_s_speed_does_not_change_synchronous_weights() -> None:
    setting = random_tables()
    slow = {"latency_ms": 30, "bandwidth_mbps": 0.5, "speeds": [1, 0.2, 3, 1]}
    np.testing.assert_array_equal(weights(synchronous(setting, network=slow)), weights(synchronous(setting)))


def test_the_history_of_a_synchronous_run_is_pooled_sgd_epoch_by_epoch() -> None:
    setting = random_tables()
    for world in ("simulated", "local"):
        done = synchronous(setting, world=world, train={"epochs": 4})
        for moment in done.result.history:
            shorter = synchronous(setting, train={"epochs": moment.epoch})
            assert moment.loss == pytest.approx(oracle(setting, shorter)[1], abs=1e-6)
        assert [moment.epoch for moment in done.result.history] == [1, 2, 3, 4]


def test_a_party_alone_has_the_same_history_as_pooled_sgd() -> None:
    setting = random_tables(parties=1, active=1)
    local, simulated = (
        synchronous(setting, world=world, train={"epochs": 3}) for world in ("local", "simulated")
    )
    losses = [moment.loss for moment in local.result.history]
    assert losses == [moment.loss for moment in simulated.result.history]
    assert losses == sorted(losses, reverse=True)
    assert len(set(losses)) == 3
    assert local.result.cost.bytes_sent == 0


# -- asynchronous ---------------------------------------------------------------------------------

STRAGGLING = {"latency_ms": 5, "bandwidth_mbps": 20, "speeds": [1, 1, 0.3, 1]}


@pytest.mark.parametrize("world", ["simulated", "local"])
@pytest.mark.parametrize("ahead", [1, 2, 5, 8])
@pytest.mark.parametrize("active", [1, 3])
def test_every_round_is_applied_once_at_every_party_within_the_delay_bound(
    ahead: int, active: int, world: str
) -> None:
    setting = random_tables(active=active)
    least = (bound(active, each_ahead(ahead, active), 0, 1) or 0) if ahead > 1 else 0
    train = {"ahead": ahead, "epochs": 3, "max_delay": least}
    done = run(setting, world=world, network=STRAGGLING, train=train)
    rounds = 3 * -(-120 // 16)
    for share in done.shares.values():
        assert share.rounds == share.updates == sum(share.delays.values()) == rounds
    assert done.result.cost.updates_by_party == dict.fromkeys(setting.train, rounds)
    assert sum(done.result.cost.launched_by_party.values()) == rounds
    assert set(done.result.cost.launched_by_party) == set(setting.active)
    late = done.result.staleness
    assert late.mean <= late.max <= least == late.bound
    assert max(late.tau_1 or 0, late.tau_2 or 0) <= least


@pytest.mark.parametrize(
    ("slow", "choice"), [(0, {}), (1, {}), (2, {}), (1, {"ahead": 48}), (1, {"max_delay": 500})]
)
def test_dominators_launch_rounds_in_proportion_to_their_speed(slow: int, choice: dict[str, int]) -> None:
    setting = random_tables(active=3, rows=960)
    speeds = [0.2 if i == slow else 1.0 for i in range(4)]
    network = {"speeds": speeds, "charge_forward": False}
    train = {"epochs": 20, "step": 0.01, "evaluate_every": 0}
    done, sync = (run(setting, name, network=network, train=t) for name, t in
                  (("vfb2-sgd", {**train, **choice}), ("vfb-sgd", train)))  # fmt: skip
    launched = done.result.cost.launched_by_party
    for i, party in enumerate(setting.active):
        assert launched[party] / 1200 == pytest.approx(speeds[i] / 2.2, rel=0.1)
    assert sync.result.cost.launched_by_party == dict.fromkeys(setting.active, 400)
    times = [each.result.cost.virtual_seconds or 0.0 for each in (sync, done)]
    assert times[0] > 2.8 * times[1]
    late = done.result.staleness
    assert late.max <= choice.get("max_delay", 200)


@pytest.mark.parametrize(("part", "alike"), [(0.0, False), (0.2, False), (0.3, True), (2.0, True)])
def test_shares_beyond_the_window_are_for_those_who_gain_by_joining(part: float, alike: bool) -> None:
    """Where the numbers of a batch of every dominator are a quarter of a call, one for many is not cheap."""
    setting = random_tables(active=3, rows=480)
    widest = max(table.width for table in setting.train.values())
    ns_per_value = part * 20e3 / (3 * 16 * widest)
    network = {"speeds": [1, 0.2, 1, 1], "charge_forward": False, "ns_per_value": ns_per_value}
    usual, none = (
        run(setting, network=network, train={"epochs": 5, "step": 0.01, "evaluate_every": 0, **choice})
        for choice in ({}, {"stale": 0})
    )
    assert (usual.result.staleness == none.result.staleness) is alike


@pytest.mark.parametrize(("part", "pays"), [(0.2, True), (0.3, False)])
def test_parties_whose_blocks_differ_decide_alike_on_shares_beyond_the_window(
    part: float, pays: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    setting = random_tables(active=3, rows=480)
    *_, last = setting.train
    table = setting.train[last]
    wide = replaced(table, columns=tuple(f"c{j}" for j in range(60)), X=np.tile(table.X, 20))
    setting = replaced(setting, train={**setting.train, last: wide})
    mean = sum(table.width for table in setting.train.values()) / 4
    network = {"charge_forward": False, "us_per_call": 20.0, "ns_per_value": part * 20e3 / (3 * 16 * mean)}
    decided = []

    def ends(self: OwnPace) -> Any:
        decided.append(self._pays())
        return whole(self)

    whole = OwnPace.ends
    monkeypatch.setattr(OwnPace, "ends", ends)
    run(setting, network=network, train={"epochs": 2, "step": "auto", "evaluate_every": 0})
    assert decided == [pays] * 4


def test_without_joining_the_slowest_party_s_throughput_is_the_limit() -> None:
    setting = random_tables(active=3, rows=480)
    network = {"speeds": [1, 0.2, 1, 1], "charge_forward": False, "join": False}
    train = {"epochs": 5, "step": 0.01, "evaluate_every": 0}
    sync = run(setting, "vfb-sgd", network=network, train=train).result.cost.virtual_seconds
    for ahead in (3, 24):
        done = run(setting, network=network, train={**train, "ahead": ahead})
        assert done.result.cost.virtual_seconds == pytest.approx(sync, rel=0.05)


@pytest.mark.parametrize("world", ["simulated", "local"])
@pytest.mark.parametrize(
    ("forge", "text"),
    [
        (lambda theta: replace(theta, tag=theta.tag + 1), "which it does not dominate"),
        (lambda theta: replace(theta, tag=theta.tag + 3 * 10**6), "over or has not begun"),
        (lambda theta: replace(theta, theta=theta.theta[:-1]), "were due"),
        (lambda theta: replace(theta, theta=theta.theta.astype(np.float32)), "float64 were due"),
        (lambda theta: replace(theta, theta=theta.theta * np.nan), "values from nan"),
        (lambda theta: replace(theta, seen=[0]), "with theta of round"),
    ],
)
def test_a_theta_that_its_sender_may_not_send_ends_the_run_and_names_the_sender(
    forge: Callable[[Backward], Backward], text: str, world: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = Endpoint.spread

    async def spread(net: Endpoint, message: Message) -> None:
        if isinstance(message, Backward) and net.me == "party1" and message.tag > 6:
            message = forge(message)
        await sent(net, message)

    monkeypatch.setattr(Endpoint, "spread", spread)
    with pytest.raises(ProtocolError, match=f"party1 sent .*{text}"):
        run(random_tables(active=3), world=world)


def test_a_party_without_the_label_can_send_no_theta(monkeypatch: pytest.MonkeyPatch) -> None:
    give = MaskedSum.give

    async def forged(secure: MaskedSum, piece: Any, *, root: str, tag: int) -> None:
        await give(secure, piece, root=root, tag=tag)
        if secure._net.me == "party3" and tag == 4:
            cast(Endpoint, secure._net).declare(Unlimited())  # a modified party is held to nothing
            await secure._net.broadcast(Backward(tag, np.zeros(15), (0, 0, 0)))

    monkeypatch.setattr(MaskedSum, "give", forged)
    with pytest.raises(ProtocolError, match="party3 sent theta of round 4, which it does not dominate"):
        run(random_tables(active=3))


def test_batches_in_flight_really_are_late_over_a_slow_line_and_not_without_them() -> None:
    setting = random_tables()
    delays = {
        ahead: run(setting, network={"latency_ms": 20}, train={"ahead": ahead}).result.staleness.mean
        for ahead in (1, 8)
    }
    assert delays[1] == 0.0
    assert delays[8] > 3.0


@pytest.mark.parametrize("batch", [16, 64])
def test_asynchronous_training_with_the_automatic_step_comes_close_to_the_optimum(batch: int) -> None:
    setting = random_tables(rows=400)
    for ahead in (2, 8):
        train = {"ahead": ahead, "step": "auto", "epochs": 30, "l2": 0.01, "loss": "logistic", "batch": batch}
        done = run(setting, network=STRAGGLING, train=train)
        assert 0 <= done.result.metrics["suboptimality"] < 1e-3


def test_labels_that_the_columns_do_not_explain_leave_automatic_steps_better_than_no_training() -> None:
    rng = np.random.default_rng(0)
    setting = random_tables(rows=300, regression=True)
    y = 100 + 20 * rng.standard_normal(300)
    setting = replaced(
        setting, train={p: replaced(t, y=None if t.y is None else y) for p, t in setting.train.items()}
    )
    done = run(setting, train={"step": "auto", "epochs": 30, "loss": "squared", "batch": 8})
    assert done.result.metrics["objective"] < float((y**2).mean()) / 2


def without_real_time(done: Finished) -> bytes:
    plain = json.loads(msgspec.json.encode(done.result))
    del plain["cost"]["seconds"]
    for moment in plain["history"]:
        del moment["seconds"]
    return json.dumps(plain).encode()


@pytest.mark.parametrize("secure", ["masked", "tree", "plain"])
def test_the_same_seed_gives_the_same_result_to_the_byte(secure: str) -> None:
    setting = random_tables(test_rows=30)
    sections: dict[str, Any] = {
        "secure": {"sum": secure},
        "network": {**STRAGGLING, "faults": {"drop": 0.05, "delay": 0.1, "delay_s": 0.02}},
        "train": {"ahead": 5, "step": "auto"},
    }
    first, second, other = (run(setting, seed=seed, **sections) for seed in (3, 3, 4))
    assert without_real_time(first) == without_real_time(second)
    np.testing.assert_array_equal(weights(first), weights(second))
    assert without_real_time(first) != without_real_time(other)
    assert np.abs(weights(first) - weights(other)).max() > 1e-6


# -- stopping and measuring -----------------------------------------------------------------------


@pytest.mark.parametrize("world", ["simulated", "local"])
@pytest.mark.parametrize(("parties", "ahead"), [(1, 1), (4, 1), (4, 8)])
def test_a_target_stops_early_and_all_parties_agree_where(parties: int, ahead: int, world: str) -> None:
    setting = random_tables(parties=parties, active=min(2, parties), rows=200)
    train = {"ahead": ahead, "step": 0.05, "epochs": 200, "l2": 0.1, "target": 0.02}
    done = run(setting, world=world, network=STRAGGLING if parties == 4 else {}, train=train)
    assert done.result.metrics["suboptimality"] <= 0.021
    assert done.result.cost.epochs < 200
    assert {share.rounds for share in done.shares.values()} == {done.result.cost.rounds}
    assert {share.updates for share in done.shares.values()} == {done.result.cost.rounds}
    # the epoch that reached the target, and at most the rounds then in flight
    reached = next(m for m in done.result.history if m.loss <= done.result.pooled["objective"] + 0.02)
    assert done.result.cost.rounds <= reached.rounds + 13 + 2 * ahead


def test_an_unreachable_target_runs_to_the_end() -> None:
    done = run(random_tables(), train={"target": 1e-12, "epochs": 3})
    assert done.result.cost.epochs == 3
    assert done.result.cost.rounds == 24


def test_a_target_reached_at_once_still_leaves_a_whole_result() -> None:
    done = run(random_tables(test_rows=20), train={"target": 100.0, "epochs": 5, "ahead": 4})
    assert done.result.cost.epochs <= 2
    assert done.result.history[-1].rounds == done.result.cost.rounds
    assert "test_accuracy" in done.result.metrics


@pytest.mark.parametrize(
    ("every", "epochs"), [(0, [5]), (1, [1, 2, 3, 4, 5]), (2, [2, 4, 5]), (5, [5]), (9, [5])]
)
def test_the_history_has_a_moment_every_so_many_epochs_and_one_at_the_end(
    every: int, epochs: list[int]
) -> None:
    done = run(random_tables(), train={"evaluate_every": every, "epochs": 5})
    assert [moment.epoch for moment in done.result.history] == epochs
    assert [moment.rounds for moment in done.result.history] == [8 * epoch for epoch in epochs]
    assert done.result.metrics["objective"] == done.result.history[-1].loss


@pytest.mark.parametrize("world", ["simulated", "local"])
def test_measuring_is_neither_in_the_bytes_nor_in_the_virtual_time_nor_in_the_weights(world: str) -> None:
    setting = random_tables()
    often, once = (
        synchronous(setting, world=world, network=STRAGGLING, train={"evaluate_every": every, "epochs": 5})
        for every in (1, 0)
    )
    np.testing.assert_array_equal(weights(often), weights(once))
    assert often.result.cost.bytes_sent == once.result.cost.bytes_sent
    assert often.result.cost.messages == once.result.cost.messages
    assert often.result.cost.virtual_seconds == once.result.cost.virtual_seconds
    assert often.result.cost.evaluation_bytes > 4 * once.result.cost.evaluation_bytes > 0


@pytest.mark.parametrize("world", ["simulated", "local"])
@pytest.mark.parametrize("secure", ["masked", "tree", "plain"])
def test_bytes_add_up_and_are_the_same_in_every_run(secure: str, world: str) -> None:
    setting = random_tables()
    first, second = (
        run(setting, world=world, secure={"sum": secure}, train={"ahead": 4}).result.cost for _ in range(2)
    )
    assert first.bytes_sent == sum(first.bytes_by_party.values()) == sum(first.bytes_by_kind.values()) > 0
    for party, sent in first.bytes_by_pair.items():
        assert sum(sent.values()) == first.bytes_by_party[party]
        assert party not in sent
    assert (first.bytes_by_kind, first.messages) == (second.bytes_by_kind, second.messages)
    if world == "simulated":
        assert first.bytes_by_pair == second.bytes_by_pair


def test_a_masked_round_is_one_message_from_every_other_party_and_one_back() -> None:
    setting = random_tables(parties=5, active=2)
    cost = {epochs: synchronous(setting, train={"epochs": epochs}).result.cost.messages for epochs in (1, 2)}
    assert cost[2] - cost[1] == 8 * (4 + 4)


def test_the_history_s_bytes_grow_to_the_total() -> None:
    done = run(random_tables(), train={"epochs": 4})
    sent = [moment.bytes for moment in done.result.history]
    assert sent == sorted(sent)
    assert 0.9 * done.result.cost.bytes_sent < sent[-1] <= done.result.cost.bytes_sent
