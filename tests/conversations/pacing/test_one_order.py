"""The window: no round begins too early, no theta is older than the bound, and a stop is a stop."""

from __future__ import annotations

import asyncio
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from colonnade.conversations.pacing.delays import Delays
from colonnade.conversations.pacing.one_order import OneOrder


def opened(window: OneOrder, number: int) -> bool:
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
    window, delays = OneOrder(ahead, rounds), Delays(2 * (ahead - 1))
    begun: set[int] = set()
    finished: set[int] = set()
    upcoming = 0

    async def play() -> None:
        nonlocal upcoming
        while len(finished) < rounds:
            may_begin = upcoming < rounds and upcoming < window.base + ahead
            if may_begin and (not begun or random.choice([True, False])):
                assert await asyncio.wait_for(window.opens(upcoming), 30)
                delays.read(upcoming, window.finished)
                begun.add(upcoming)
                upcoming += 1
            else:
                number = random.choice(sorted(begun))
                begun.remove(number)
                delays.apply([number], window.finished)
                window.finish([number])
                finished.add(number)
            unfinished = [number for number in range(rounds) if number not in finished]
            assert window.base == (unfinished[0] if unfinished else rounds)
            assert window.finished == len(finished)
            assert max(begun, default=0) < window.base + ahead
        await asyncio.wait_for(window.ends(), 30)

    asyncio.run(play())
    assert sum(delays.counts.values()) == rounds
    assert max(delays.counts) <= window.delay_bound == 2 * (ahead - 1)


@pytest.mark.parametrize("ahead", [1, 2, 3, 8])
def test_the_delay_bound_is_attained_so_no_smaller_one_would_do(ahead: int) -> None:
    """Round r is read first and applied last: ahead - 1 earlier and ahead - 1 later rounds overtake it."""
    r, rounds = ahead - 1, 3 * ahead
    window, delays = OneOrder(ahead, rounds), Delays(2 * (ahead - 1))
    delays.read(r, window.finished)
    for number in [*range(r), *range(r + 1, r + ahead)]:
        assert opened(window, number)
        window.finish([number])
    assert not opened(window, r + ahead)
    delays.apply([r], window.finished)
    assert delays.counts == {window.delay_bound: 1}


@given(st.integers(1, 5), st.integers(1, 20))
@settings(max_examples=30)
def test_a_round_waits_until_all_but_the_last_ahead_before_it_are_finished(ahead: int, number: int) -> None:
    async def play() -> None:
        window = OneOrder(ahead, 100)
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
        window = OneOrder(2, 10)
        beyond = asyncio.ensure_future(window.opens(5))
        mark = asyncio.ensure_future(window.reaches(6))
        end = asyncio.ensure_future(window.ends())
        await asyncio.sleep(0)
        window.stop_at(3)
        assert not await asyncio.wait_for(beyond, 30)
        window.finish([0, 2])
        await asyncio.sleep(0)
        assert not mark.done()
        assert not end.done()
        window.finish([1])
        assert not await asyncio.wait_for(mark, 30)
        await asyncio.wait_for(end, 30)
        assert window.base == 3

    asyncio.run(play())


def test_a_later_stop_does_not_undo_an_earlier_one() -> None:
    window = OneOrder(1, 10)
    window.stop_at(4)
    window.stop_at(7)
    assert window.state.stop == 4


def test_a_mark_is_reached_when_every_round_before_it_is_finished() -> None:
    async def play() -> None:
        window = OneOrder(4, 10)
        mark = asyncio.ensure_future(window.reaches(3))
        for number in (2, 0, 3):
            window.finish([number])
            await asyncio.sleep(0)
            assert not mark.done()
        window.finish([1])
        assert await asyncio.wait_for(mark, 30)

    asyncio.run(play())


def test_a_cancelled_wait_is_forgotten() -> None:
    async def play() -> None:
        window = OneOrder(1, 10)
        gone, stays = (asyncio.ensure_future(window.opens(1)) for _ in range(2))
        await asyncio.sleep(0)
        gone.cancel()
        await asyncio.sleep(0)
        window.finish([0])
        assert await asyncio.wait_for(stays, 30)

    asyncio.run(play())


# -- gates ------------------------------------------------------------------------------------------


@given(
    st.integers(1, 6),
    st.integers(1, 30),
    st.sets(st.integers(0, 35), max_size=6),
    st.integers(0, 4),
    st.randoms(use_true_random=False),
)
@settings(max_examples=150)
def test_no_round_opens_beyond_a_gate_before_it_is_lifted_and_none_is_lifted_before_its_rounds_are_finished(
    ahead: int, rounds: int, gates: set[int], extra: int, random: Random
) -> None:
    window = OneOrder(ahead, rounds, gates)
    lifted: list[int] = []

    def next_gate() -> int:
        return min((gate for gate in gates if gate not in lifted), default=rounds)

    async def pause() -> None:
        async for gate in window.gates():
            assert window.base == gate == next_gate()  # all before it are finished, none beyond it is
            assert all(number < gate for number in begun | finished)
            await asyncio.sleep(0)
            assert not window.open_to(gate, extra)
            lifted.append(gate)

    async def begin() -> None:
        for number in range(rounds):
            assert await window.opens(number, extra)
            assert number < min(next_gate(), window.base + ahead + extra)
            begun.add(number)

    begun: set[int] = set()
    finished: set[int] = set()

    async def play() -> None:
        tasks = [asyncio.ensure_future(work) for work in (pause(), begin(), window.ends())]
        while len(finished) < rounds:
            await asyncio.sleep(0)
            for task in tasks:
                if task.done():
                    task.result()
            if begun:
                number = random.choice(sorted(begun))
                begun.remove(number)
                finished.add(number)
                window.finish([number])
        await asyncio.wait_for(asyncio.gather(*tasks), 30)
        assert lifted == sorted(gate for gate in gates if gate < rounds)

    asyncio.run(asyncio.wait_for(play(), 30))


@given(st.integers(1, 4), st.integers(0, 12), st.sets(st.integers(1, 14), max_size=4))
@settings(max_examples=80)
def test_a_stop_before_a_gate_passes_it_by_and_one_after_it_does_not(
    ahead: int, stop: int, gates: set[int]
) -> None:
    async def play() -> None:
        window = OneOrder(ahead, 15, gates)
        passed: list[int] = []

        async def pause() -> None:
            passed.extend([gate async for gate in window.gates()])

        pausing = asyncio.ensure_future(pause())
        window.stop_at(stop)
        for number in range(15):
            if not await asyncio.wait_for(window.opens(number), 30):
                break
            window.finish([number])
            for _ in range(3):
                await asyncio.sleep(0)
        await asyncio.wait_for(window.ends(), 30)
        await asyncio.wait_for(pausing, 30)
        assert window.base == stop
        assert passed == sorted(gate for gate in gates if gate < stop)

    asyncio.run(play())
