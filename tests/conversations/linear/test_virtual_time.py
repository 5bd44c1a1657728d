"""Virtual time is arithmetic: what latency, bandwidth, a straggler and batches in flight cost or save."""

from __future__ import annotations

from typing import Any

import pytest
from tests.oracles.tables import random_tables, run

from colonnade.errors import JobError
from colonnade.run.federate import Finished, Tables

ROWS, BATCH, COLUMNS, PARTIES = 128, 16, 12, 4
ROUNDS = ROWS // BATCH
PER_CALL, PER_VALUE = 200e-6, 10e-9
CALL = PER_CALL + PER_VALUE * BATCH * COLUMNS / PARTIES
"""Virtual seconds to score one batch, or to step on it, at speed 1."""

TICK = 1e-6
"""The virtual clock's resolution: every event may be rounded to it."""


def setting(active: int = 2) -> Tables:
    return random_tables(parties=PARTIES, active=active, rows=ROWS, columns=COLUMNS)


def timed(
    algorithm: str, *, ahead: int | None = None, active: int = 2, epochs: int = 1, **net: Any
) -> Finished:
    network = {"us_per_call": PER_CALL * 1e6, "ns_per_value": PER_VALUE * 1e9, **net}
    train = {"ahead": ahead, "batch": BATCH, "epochs": epochs, "step": 0.01}
    return run(setting(active), algorithm, network=network, train=train)


def virtual_seconds(done: Finished) -> float:
    assert done.result.cost.virtual_seconds is not None
    return done.result.cost.virtual_seconds


@pytest.mark.parametrize("latency", [0.0, 0.005, 0.05])
@pytest.mark.parametrize("slowest", [1.0, 0.5, 0.3])
def test_a_synchronous_round_is_two_messages_and_two_calls_of_the_slowest_party(
    latency: float, slowest: float
) -> None:
    done = timed("vfb-sgd", latency_ms=latency * 1e3, speeds=[1, 1, 1, slowest])
    setup = latency  # the first word to every peer
    expected = setup + ROUNDS * (2 * CALL / slowest + 2 * latency)
    assert virtual_seconds(done) == pytest.approx(expected, abs=6 * ROUNDS * TICK)


def test_without_a_straggler_and_a_network_training_takes_its_arithmetic() -> None:
    assert virtual_seconds(timed("vfb-sgd")) == pytest.approx(ROUNDS * 2 * CALL, abs=6 * ROUNDS * TICK)


def test_a_slow_label_holder_slows_the_synchronous_run_like_any_other_party() -> None:
    by_place = [
        virtual_seconds(timed("vfb-sgd", speeds=[0.3 if i == slow else 1 for i in range(PARTIES)]))
        for slow in range(PARTIES)
    ]
    assert by_place == pytest.approx([ROUNDS * 2 * CALL / 0.3] * PARTIES, abs=6 * ROUNDS * TICK)


def test_eight_batches_in_flight_hide_at_least_three_quarters_of_the_latency() -> None:
    one, eight = (
        virtual_seconds(timed("vfb2-sgd", ahead=ahead, latency_ms=50, epochs=4)) for ahead in (1, 8)
    )
    assert eight <= one / 4


def test_more_batches_in_flight_never_take_longer() -> None:
    times = [virtual_seconds(timed("vfb2-sgd", ahead=k, latency_ms=20, epochs=2)) for k in (1, 2, 4, 8, 16)]
    assert times == sorted(times, reverse=True)


def test_a_straggler_that_takes_its_work_together_pays_for_fewer_calls() -> None:
    slow: dict[str, Any] = {"speeds": [1, 1, 1, 0.1], "epochs": 2}
    sync = virtual_seconds(timed("vfb-sgd", **slow))
    ahead = [virtual_seconds(timed("vfb2-sgd", ahead=k, **slow)) for k in (1, 4, 8)]
    assert ahead[0] == pytest.approx(sync, rel=1e-3)  # one round at a time is the synchronous algorithm
    # k open rounds are one forward and, when their thetas have come, one backward
    assert ahead[1] < sync / 2
    assert ahead[2] < ahead[1]
    assert ahead[2] >= 2 * ROUNDS * CALL / 0.1 / 8


def test_one_batch_in_flight_is_the_synchronous_algorithm_on_the_clock_too() -> None:
    net: dict[str, Any] = {"latency_ms": 7, "bandwidth_mbps": 3, "speeds": [1, 0.5, 1, 2]}
    one, sync = (timed(name, ahead=1, **net) for name in ("vfb2-sgd", "vfb-sgd"))
    assert virtual_seconds(one) == virtual_seconds(sync)
    assert one.result.metrics == sync.result.metrics
    assert one.result.cost.bytes_by_kind == sync.result.cost.bytes_by_kind


def test_half_the_bandwidth_takes_twice_the_time_where_nothing_else_costs_any() -> None:
    free: dict[str, Any] = {"us_per_call": 0.0, "ns_per_value": 0.0}
    whole, half = (virtual_seconds(timed("vfb-sgd", bandwidth_mbps=mbps, **free)) for mbps in (1.0, 0.5))
    assert half == pytest.approx(2 * whole, rel=1e-2)
    assert whole > 0


@pytest.mark.parametrize("latency", [0.0, 0.01])
def test_a_synchronous_round_waits_for_every_message_that_the_dominator_sends_and_one_each_besides(
    latency: float,
) -> None:
    each = 0.0004
    one, three = (
        virtual_seconds(
            timed("vfb-sgd", active=1, epochs=n, latency_ms=latency * 1e3, us_per_message=each * 1e6)
        )
        for n in (1, 3)
    )
    # theta goes out to one party after another; the last takes it in, sends its share, and that is taken in
    messages = (PARTIES - 1 + 3) * each
    assert (three - one) / (2 * ROUNDS) == pytest.approx(2 * CALL + 2 * latency + messages, rel=1e-3)


def test_messages_cost_a_slow_party_more_and_long_ones_more_than_short_ones() -> None:
    free: dict[str, Any] = {"us_per_call": 0.0, "ns_per_value": 0.0}
    times = [
        virtual_seconds(timed("vfb-sgd", **free, **net))
        for net in (
            {"us_per_message": 50.0},
            {"us_per_message": 50.0, "speeds": [0.5] * PARTIES},
            {"us_per_message": 50.0, "ns_per_byte": 10.0},
        )
    ]
    assert times[1] == pytest.approx(2 * times[0], rel=1e-6)
    assert times[2] > times[0] > 0


def test_runs_whose_messages_cost_something_are_the_same_every_time() -> None:
    net: dict[str, Any] = {"us_per_message": 30.0, "ns_per_byte": 2.0, "latency_ms": 0.1, "ahead": 4}
    one, other = (timed("vfb2-sgd", epochs=2, **net) for _ in range(2))
    assert one.result.history[-1].virtual_seconds == other.result.history[-1].virtual_seconds
    assert one.result.metrics == other.result.metrics
    assert one.result.staleness == other.result.staleness


def test_a_machine_twice_as_fast_takes_half_the_time() -> None:
    slow, fast = (virtual_seconds(timed("vfb2-sgd", ahead=4, speeds=[s] * PARTIES)) for s in (1.0, 2.0))
    assert slow == pytest.approx(2 * fast, rel=1e-2)


def test_the_history_s_virtual_time_never_runs_backwards() -> None:
    done = timed("vfb2-sgd", ahead=4, epochs=5, latency_ms=3)
    times = [moment.virtual_seconds for moment in done.result.history if moment.virtual_seconds is not None]
    assert len(times) == 5
    assert times == sorted(times)


def test_real_seconds_have_no_virtual_ones() -> None:
    cost = run(setting(), world="local").result.cost
    assert cost.virtual_seconds is None
    assert cost.seconds > 0


@pytest.mark.parametrize(("processors", "times"), [(2, 2), (3, 3), (8, 3)])
def test_processors_of_a_party_are_worth_their_number_up_to_the_rounds_in_flight(
    processors: int, times: int
) -> None:
    """VFB2's threads: where every theta is an update of its own, the slow party makes so many at a time.

    Three label holders have a round in flight each, so that more than three find nothing to do.
    """
    slow: dict[str, Any] = {"speeds": [1, 0.1, 1, 1], "epochs": 6, "active": 3, "charge_forward": False}
    sync = virtual_seconds(timed("vfb-sgd", **slow))
    alone = virtual_seconds(timed("vfb2-sgd", join=False, **slow))
    several = virtual_seconds(timed("vfb2-sgd", join=False, processors=processors, **slow))
    assert sync / alone == pytest.approx(1, rel=0.05)
    assert sync / several == pytest.approx(times, rel=0.05)


@pytest.mark.parametrize(
    ("algorithm", "more", "words"),
    [
        ("vfb-sgd", {}, "vfb-sgd is synchronous"),
        ("vfb2-sgd", {"secure": {"labels": "blind"}}, "set secure.labels = 'clear'"),
        ("vfb2-sgd", {"train": {"direction": "lbfgs"}}, "set direction.pairs = 'hvp'"),
        ("asysqn-sgd", {}, "a party of asysqn-sgd does one thing after another"),
        ("vfb2-sgd", {"network": {"processors": 0}}, "network.processors: 0 is not a number from 1 to"),
    ],
)
def test_processors_are_refused_where_everything_has_one_order(
    algorithm: str, more: dict[str, Any], words: str
) -> None:
    sections = {"network": {"processors": 2}, "secure": {"labels": "clear"}, **more}
    with pytest.raises(JobError, match=words):
        run(setting(), algorithm, **sections)
