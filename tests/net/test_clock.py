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


def test_work_ends_later_by_the_messages_that_come_meanwhile_and_messages_do_not_wait_for_it() -> None:
    async def main() -> None:
        clock = VirtualClock(speed=0.5)
        ends: list[float] = []

        async def works(seconds: float) -> None:
            await clock.work(seconds)
            ends.append(clock.now())

        async with asyncio.TaskGroup() as group:
            group.create_task(works(1.0))  # 2 s at this speed
            group.create_task(works(0.5))
            await asyncio.sleep(1.0)
            assert clock.handle(0.05) == pytest.approx(1.1)
            assert clock.handle(0.05) == pytest.approx(1.2)  # after the one before
            await asyncio.sleep(1.1)
            assert clock.handle(0.1) == pytest.approx(2.3)  # in what the first piece of work has left
        assert ends == pytest.approx([2.4, 3.4])
        assert clock.busy == pytest.approx(3.4)
        await asyncio.sleep(1.6)
        assert clock.handle(0.05) == pytest.approx(5.1)  # of a party with nothing else to do
        await works(0.5)
        assert ends[-1] == pytest.approx(6.1)

    run_virtual(main())
