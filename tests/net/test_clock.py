"""Clocks: measurement is not training, whether it stops everything or goes on beside it."""

from __future__ import annotations

import asyncio
import time

import pytest

from colonnade.net.clock import RealClock, VirtualClock, run_virtual


def busy(seconds: float) -> None:
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


def test_a_clock_stands_still_while_work_beside_it_runs_and_goes_on_while_that_waits() -> None:
    async def measured(gate: asyncio.Future[str]) -> str:
        busy(0.05)
        heard = await gate
        busy(0.05)
        return heard

    async def main() -> None:
        gate: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        began = time.perf_counter()
        clock = RealClock()

        async def training() -> None:
            busy(0.1)
            gate.set_result("done")

        task = asyncio.ensure_future(training())
        assert await clock.beside(measured(gate)) == "done"
        trained = clock.now()
        taken = time.perf_counter() - began
        await task
        # a busy machine makes either longer
        assert 0.1 <= trained <= taken - 0.1

    asyncio.run(main())


def test_errors_and_cancellations_go_through() -> None:
    async def main() -> None:
        clock = RealClock()

        async def fails() -> None:
            await asyncio.sleep(0)
            raise ValueError("no")

        with pytest.raises(ValueError, match="no"):
            await clock.beside(fails())
        cleaned = []

        async def waits() -> None:
            try:
                await asyncio.get_running_loop().create_future()
            finally:
                cleaned.append(True)

        async def around() -> None:
            await clock.beside(waits())

        task = asyncio.ensure_future(around())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert cleaned == [True]

    asyncio.run(main())


def test_messages_are_handled_after_the_piece_of_work_under_way_and_the_rest_of_the_work_after_them() -> None:
    async def main() -> None:
        clock = VirtualClock(speed=0.5, piece=1.0)
        ends: list[float] = []

        async def works(seconds: float) -> None:
            await clock.work(seconds)
            ends.append(clock.now())

        async with asyncio.TaskGroup() as group:
            group.create_task(works(1.25))  # 2.5 s at this speed, in pieces of 1, 1 and 0.5
            await asyncio.sleep(0.25)
            assert clock.handle(0.05) == pytest.approx(1.1)
            assert clock.handle(0.05) == pytest.approx(1.2)  # after the one before
            await asyncio.sleep(1.0)
            assert clock.handle(0.1) == pytest.approx(2.4)  # after the second piece
        assert ends == pytest.approx([2.9])
        assert clock.busy == pytest.approx(2.9)
        await asyncio.sleep(2.1)
        assert clock.handle(0.05) == pytest.approx(5.1)  # of a party with nothing else to do
        await works(0.25)
        assert ends[-1] == pytest.approx(5.6)

    run_virtual(main())


def test_work_that_is_not_cut_is_one_piece_however_long() -> None:
    async def main() -> list[float]:
        clock = VirtualClock()
        pieces: list[float] = []
        clock.heard = lambda begin, end: pieces.append(end - begin)
        await clock.work(7200.0)
        await clock.work(0.0)
        return pieces

    assert run_virtual(main()) == [7200.0]
