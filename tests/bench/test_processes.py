"""The bench of speed-up: real processes beside what the simulated world predicts of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from colonnade.result import Moment
from colonnade_bench.message_costs import MessageCosts, Trip, costs_of, message_costs
from colonnade_bench.micro.processes import SPLITS, Costs, Split, line, measured, predicted, when
from colonnade_bench.micro.woken import round_us


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
    # which of the three it is cannot be told apart on a busy machine
    assert min(found.us_per_message, found.ns_per_byte, found.latency_ms) >= 0
    assert found.us_per_message + found.ns_per_byte + found.latency_ms > 0
    assert "us" in found.words()


@pytest.mark.parametrize("name", ["figure", "pull"])
def test_a_split_is_run_with_real_processes_and_then_simulated_with_what_was_measured(name: str) -> None:
    split = Split(rows=128, columns=8, batch=32, epochs=4, algorithms=SPLITS[name].algorithms)
    found = list(measured(split, (1, 2), 1))
    assert [(row["kind"], row["parties"]) for row in found] == [
        (kind, parties) for kind in ("asynchronous", "synchronous") for parties in (1, 2)
    ]
    assert all(row["real ms"] > 0 and row["us_per_call"] > 0 for row in found)
    rows = list(predicted(split, found, MessageCosts(30.0, 0.5, 0.1)))
    for alone, two in (rows[:2], rows[2:]):
        assert alone["real"] == alone["simulated"] == alone["parts"] == alone["free"] == 1
        assert two["simulated ms"] > 0
        assert "synchronous" in line(two)
    assert two["simulated"] <= two["parts"] < two["free"]  # in step, whatever costs more takes longer


def test_what_waking_costs_is_taken_from_two_processes_in_step() -> None:
    split = Split(rows=128, columns=8, batch=32, epochs=4)
    known = {"ns_per_value": 1.0, "us_per_call": 50.0, "kind": "synchronous"}
    rows = list(
        predicted(
            split, [known | {"parties": q, "real ms": 1.0} for q in (1, 2)], MessageCosts(30.0, 0.5, 0.1)
        )
    )
    assert rows[1]["woken us"] > 0
    assert rows[1]["simulated ms"] == pytest.approx(rows[1]["real ms"], rel=1e-6)
    assert rows[0]["simulated ms"] < 0.2  # one party is never woken


def test_the_simulation_predicts_the_processes_that_were_measured_on_sixteen_cores() -> None:
    known = json.loads((Path(__file__).parents[2] / "bench/measured/processes_16_cores.json").read_text())
    few = [row for row in known["work"] if row["parties"] in (1, 2, 8)]
    rows = list(predicted(SPLITS["work"], few, MessageCosts(**known["messages"])))
    for row in rows:
        assert row["simulated"] == pytest.approx(row["real"], rel=0.1)
    assert rows[2]["free"] > 1.5 * rows[2]["real"]  # eight parties, asynchronous: messages wait for work


def test_a_program_that_is_woken_takes_time_as_one_that_runs_on() -> None:
    assert round_us(0.0, 1) > 0
    assert round_us(1e-5, 1) > 0


def test_with_work_an_update_costs_a_party_its_part_of_it() -> None:
    net = Costs(ns_per_value=0.2, us_per_call=30.0).network(SPLITS["work"], 4)
    assert net["work_ms"] == 4.0
    assert net["us_per_call"] == 4060.0


def test_simulated_runs_are_timed_by_their_own_clock() -> None:
    moment = Moment(seconds=9.0, virtual_seconds=0.5, epoch=1, rounds=3, bytes=0, loss=0.1)
    assert when(moment) == 0.5
