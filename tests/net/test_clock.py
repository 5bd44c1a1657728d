"""Clocks: measurement is not training, whether it stops everything or goes on beside it."""

from __future__ import annotations

import asyncio
import time

import pytest

from colonnade.net.clock import RealClock


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
