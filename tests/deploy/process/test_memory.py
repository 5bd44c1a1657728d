"""Memory of a daemon: garbage is found within a minute, though hardly anything else happens."""

from __future__ import annotations

import asyncio
import gc
import weakref

from colonnade.deploy.process.memory import stay_tidy


class Circle:
    """Something that keeps itself alive, as an ended connection does."""

    def __init__(self) -> None:
        self.itself = self


def test_garbage_does_not_wait_for_more_garbage() -> None:
    async def main() -> bool:
        tidying = asyncio.ensure_future(stay_tidy(0.01))
        circle = weakref.ref(Circle())
        async with asyncio.timeout(60):
            while circle() is not None:  # noqa: ASYNC110  nobody tells of the end of garbage
                await asyncio.sleep(0.01)
        tidying.cancel()
        return circle() is None

    gc.disable()
    try:
        assert asyncio.run(main())
    finally:
        gc.enable()
