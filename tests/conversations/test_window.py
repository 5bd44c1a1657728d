"""The window: no round begins too early, no theta is older than the bound, and a stop is a stop."""

from __future__ import annotations

import asyncio
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from colonnade.conversations.block import Delays
from colonnade.conversations.window import Window


def opened(window: Window, number: int) -> bool:
    """Whether the round may begin at once; a wait is given up."""

    async def attempt() -> bool:
        task = asyncio.ensure_future(window.opens(number))
        await asyncio.sleep(0)
        if task.done():
            return task.result()
        task.cancel()
        return False

    return asyncio.run(attempt())


@given(st.integers(1, 9), st.integers(1, 40), st.randoms(use_true_random=False))
@settings(max_examples=150)
def test_whatever_the_order_of_finishing_no_round_begins_too_early_and_no_delay_exceeds_the_bound(
    ahead: int, rounds: int, random: Random
) -> None:
    window, delays = Window(ahead, rounds), Delays(2 * (ahead - 1))
    begun: set[int] = set()
    finished: set[int] = set()
    upcoming = 0

    async def play() -> None:
        nonlocal upcoming
        while len(finished) < rounds:
            may_begin = upcoming < rounds and upcoming < window.base + ahead
            if may_begin and (not begun or random.choice([True, False])):
                assert await asyncio.wait_for(window.opens(upcoming), 1)
                delays.read(upcoming, window.finished)
                begun.add(upcoming)
                upcoming += 1
            else:
                number = random.choice(sorted(begun))
                begun.remove(number)
                delays.apply(number, window.finished)
                window.finish([number])
                finished.add(number)
            unfinished = [number for number in range(rounds) if number not in finished]
            assert window.base == (unfinished[0] if unfinished else rounds)
            assert window.finished == len(finished)
            assert max(begun, default=0) < window.base + ahead
        await asyncio.wait_for(window.ends(), 1)

    asyncio.run(play())
    assert sum(delays.counts.values()) == rounds
    assert max(delays.counts) <= window.delay_bound == 2 * (ahead - 1)


@pytest.mark.parametrize("ahead", [1, 2, 3, 8])
def test_the_delay_bound_is_attained_so_no_smaller_one_would_do(ahead: int) -> None:
    """Round r is read first and applied last: ahead - 1 earlier and ahead - 1 later rounds overtake it."""
    r, rounds = ahead - 1, 3 * ahead
    window, delays = Window(ahead, rounds), Delays(2 * (ahead - 1))
    delays.read(r, window.finished)
    for number in [*range(r), *range(r + 1, r + ahead)]:
        assert opened(window, number)
        window.finish([number])
    assert not opened(window, r + ahead)
    delays.apply(r, window.finished)
    assert delays.counts == {window.delay_bound: 1}


@given(st.integers(1, 5), st.integers(1, 20))
@settings(max_examples=30)
def test_a_round_waits_until_all_but_the_last_ahead_before_it_are_finished(ahead: int, number: int) -> None:
    async def play() -> None:
        window = Window(ahead, 100)
        waiting = asyncio.ensure_future(window.opens(number))
        await asyncio.sleep(0)
        for done in range(max(0, number - ahead + 1)):
            assert not waiting.done()
            window.finish([done])
            for _ in range(2):
                await asyncio.sleep(0)
        assert waiting.done()
        assert await waiting

    asyncio.run(play())


def test_a_stop_lets_earlier_rounds_finish_and_computes_none_from_there_on() -> None:
    async def play() -> None:
        window = Window(2, 10)
        beyond = asyncio.ensure_future(window.opens(5))
        mark = asyncio.ensure_future(window.reaches(6))
        end = asyncio.ensure_future(window.ends())
        await asyncio.sleep(0)
        window.stop_at(3)
        assert not await asyncio.wait_for(beyond, 1)
        window.finish([0, 2])
        await asyncio.sleep(0)
        assert not mark.done()
        assert not end.done()
        window.finish([1])
        assert not await asyncio.wait_for(mark, 1)
        await asyncio.wait_for(end, 1)
        assert window.base == 3

    asyncio.run(play())


def test_a_later_stop_does_not_undo_an_earlier_one() -> None:
    window = Window(1, 10)
    window.stop_at(4)
    window.stop_at(7)
    assert window.stop == 4


def test_a_mark_is_reached_when_every_round_before_it_is_finished() -> None:
    async def play() -> None:
        window = Window(4, 10)
        mark = asyncio.ensure_future(window.reaches(3))
        for number in (2, 0, 3):
            window.finish([number])
            await asyncio.sleep(0)
            assert not mark.done()
        window.finish([1])
        assert await asyncio.wait_for(mark, 1)

    asyncio.run(play())


def test_a_cancelled_wait_is_forgotten() -> None:
    async def play() -> None:
        window = Window(1, 10)
        gone, stays = (asyncio.ensure_future(window.opens(1)) for _ in range(2))
        await asyncio.sleep(0)
        gone.cancel()
        await asyncio.sleep(0)
        window.finish([0])
        assert await asyncio.wait_for(stays, 1)

    asyncio.run(play())
