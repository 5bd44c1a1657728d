"""A slow party is slow by work: everything that it does takes 1 / speed times the processor's time."""

from __future__ import annotations

import asyncio
import time

import pytest
from tests.oracles.tables import random_tables, run

from colonnade.net.clock import RealClock, burn, loop_at


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
