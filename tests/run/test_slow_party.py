"""A slow party is slow by work: everything that it does takes 1 / speed times the processor's time."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from tests.oracles.tables import random_tables, run

from colonnade.net.clock import RealClock, VirtualClock, burn, loop_at


def processor_time(speed: float, pieces: int) -> float:
    """What a loop at a speed spends on pieces of 10 ms of work between which it waits."""

    async def work() -> None:
        for _ in range(pieces):
            burn(0.01)
            await asyncio.sleep(0.001)

    begin = time.thread_time()
    with asyncio.Runner(loop_factory=lambda: loop_at(speed)) as runner:
        runner.run(work())
    return time.thread_time() - begin


@pytest.mark.parametrize("speed", [0.5, 0.2])
def test_a_slow_loop_computes_so_much_longer(speed: float) -> None:
    usual, slow = (processor_time(each, 5) for each in (1.0, speed))
    assert slow == pytest.approx(usual / speed, rel=0.25)


def test_extra_work_is_computed_and_not_slept() -> None:
    begin = time.thread_time()
    asyncio.run(RealClock(extra=0.02).work(0.0))
    assert time.thread_time() - begin >= 0.02


def test_others_are_answered_between_two_pieces_of_extra_work() -> None:
    async def turns_while_working() -> int:
        working = asyncio.ensure_future(RealClock(extra=0.02).work(0.0))
        turns = 0
        while not working.done():
            await asyncio.sleep(0)
            turns += 1
        return turns

    assert asyncio.run(turns_while_working()) >= 19


def test_a_slow_process_spends_more_of_its_processor_and_trains_the_same_model() -> None:
    setting = random_tables(parties=3, active=1, rows=64)
    network = {"speeds": [1, 1, 0.2], "work_ms": 10.0}
    train = {"epochs": 2, "evaluate_every": 0}
    slow = run(setting, "vfb-sgd", world="network", network=network, train=train)
    spent = {party: share.cpu_seconds or 0.0 for party, share in slow.shares.items()}
    assert spent["party2"] > 2.5 * spent["party1"]
    assert slow.result.metrics == run(setting, "vfb-sgd", train=train).result.metrics


@pytest.mark.parametrize("algorithm", ["synrevel-gau", "czofo", "c-vfl"])
def test_every_update_of_a_client_takes_the_extra_work(algorithm: str) -> None:
    setting = random_tables(parties=3, active=1, rows=64)
    train = {"epochs": 3, "evaluate_every": 0}
    done = run(setting, algorithm, world="network", network={"work_ms": 20.0}, train=train, compare=False)
    for party, updates in done.result.cost.updates_by_party.items():
        assert updates > 0
        assert (done.shares[party].cpu_seconds or 0.0) >= 0.02 * updates


class Calls:
    """Counts the calls that parties pay for, on clocks of any kind."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.count = 0
        for kind in (RealClock, VirtualClock):
            patch.setattr(kind, "work", self.counting(kind.work))

    def counting(self, work: Any) -> Any:
        async def counted(clock: RealClock | VirtualClock, seconds: float) -> None:
            self.count += 1
            await work(clock, seconds)

        return counted

    def of(self, algorithm: str, world: str, **sections: Any) -> int:
        """The calls of one run."""
        self.count = 0
        run(random_tables(parties=3, active=1, rows=64), algorithm, world=world, compare=False, **sections)
        return self.count


@pytest.mark.parametrize(
    ("algorithm", "labels"),
    [("lbfgs", None), ("secureboost", "clear"), ("fdskl", None), ("vfb-sgd", "clear"), ("vfb-sgd", "blind")],
)
def test_real_clocks_hear_of_every_call_that_virtual_ones_are_charged(
    algorithm: str, labels: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls, secure = Calls(monkeypatch), {} if labels is None else {"secure": {"labels": labels}}
    network = {"work_ms": 0.001} if algorithm == "vfb-sgd" else {}  # its hot loop asks the job, not the clock
    virtual = calls.of(algorithm, "simulated", **secure)
    assert 0 < virtual == calls.of(algorithm, "local", network=network, **secure)


def test_the_server_of_a_cascade_answers_without_extra_work(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = Calls(monkeypatch)
    updates = 3 * 4 * 2  # clients, batches of 16 rows, epochs
    questions = updates + 3  # every client has asked once more when it hears that the run is over
    assert calls.of("synrevel-gau", "local") == questions
    assert calls.of("synrevel-gau", "simulated") == questions + updates
    assert calls.of("c-vfl", "local") == questions + updates, "its outputs, and its steps"
