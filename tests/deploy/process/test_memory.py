"""Memory of a daemon: garbage is found within a minute, though hardly anything else happens."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
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


def test_tables_are_read_into_the_heap_that_free_memory_is_given_back_of() -> None:
    program = (
        "from colonnade.deploy.process.memory import start_tidy; start_tidy(); import os, pyarrow;"
        "print(pyarrow.default_memory_pool().backend_name, os.environ['MALLOC_ARENA_MAX'])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["system", "1"]
