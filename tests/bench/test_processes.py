"""The bench of speed-up: real processes beside what the simulated world predicts of them."""

from __future__ import annotations

import pytest

from colonnade.result import Moment
from colonnade_bench.message_costs import MessageCosts, Trip, costs_of, message_costs
from colonnade_bench.micro.processes import SPLITS, Costs, Split, line, measured, when


def test_the_costs_of_messages_explain_the_trips_they_come_from() -> None:
    each, byte, latency, wait = 25e-6, 0.5e-9, 70e-6, 40e-6

    def trip(peers: int, size: int) -> Trip:
        handled = each + size * byte
        return Trip(peers, size, wait + 2 * peers * handled, 2 * (2 * handled + latency) * peers)

    found = costs_of([trip(peers, size) for peers in (1, 7) for size in (512, 8192)])
    assert found.us_per_message == pytest.approx(25.0, abs=0.01)
    assert found.ns_per_byte == pytest.approx(0.5, abs=0.01)
    assert found.latency_ms == pytest.approx(0.07, abs=0.001)


def test_messages_between_processes_cost_something() -> None:
    found = message_costs(times=20, repeats=2, peers=(1, 2))
    assert found.latency_ms > 0
    assert "us" in found.words()


@pytest.mark.parametrize("name", ["figure", "pull"])
def test_a_split_is_run_with_real_processes_and_simulated_with_the_same_number_of_rounds(name: str) -> None:
    split = Split(rows=128, columns=8, batch=32, epochs=4, algorithms=SPLITS[name].algorithms)
    rows = list(measured(split, (1, 2), MessageCosts(30.0, 0.5, 0.1), 1))
    assert [(row["kind"], row["parties"]) for row in rows] == [
        (kind, parties) for kind in ("asynchronous", "synchronous") for parties in (1, 2)
    ]
    for row in rows:
        alone = row["parties"] == 1
        assert row["real ms"] > 0
        assert row["simulated"] == row["free"] == 1 if alone else row["simulated"] < row["free"]
        assert str(row["parties"]) in line(row)


def test_with_work_an_update_costs_a_party_its_part_of_it() -> None:
    net = Costs(ns_per_value=0.2, us_per_call=30.0).network(SPLITS["work"], 4)
    assert net["work_ms"] == 4.0
    assert net["us_per_call"] == 4060.0


def test_simulated_runs_are_timed_by_their_own_clock() -> None:
    moment = Moment(seconds=9.0, virtual_seconds=0.5, epoch=1, rounds=3, bytes=0, loss=0.1)
    assert when(moment) == 0.5
