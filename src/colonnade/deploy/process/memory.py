"""Keeps the memory of a process that lives for weeks from growing.

Three things would let it grow. The garbage collector looks at everything only once a quarter as much has been
added, and a hundred thousand objects of modules are a lot: ended connections and runs, with all their
buffers, would lie around for an hour. The C library gives every thread a heap of its own and keeps what was
freed in it, for as long as something else lies behind; ten heaps with holes are some megabytes that come
slowly and stay. And pyarrow's own allocator keeps 25 MB once it has read a table. So what was there from the
start is left out, all threads and pyarrow share one heap, and once a minute garbage is looked for and the
holes are given back. Worker processes inherit the settings of the heap.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import os
import sys
from contextlib import suppress

EVERY_S = 60.0
_ARENA_MAX = -8  # mallopt's name for how many heaps there may be
OF_WORKERS = {"MALLOC_ARENA_MAX": "1", "ARROW_DEFAULT_MEMORY_POOL": "system"}


def start_tidy() -> None:
    """Call before the first thread: the collector skips what is there, and all threads share one heap."""
    gc.collect()
    gc.freeze()
    gc.collect()  # from now on it compares with nothing
    with suppress(OSError, AttributeError):  # another C library may not know this
        ctypes.CDLL(None).mallopt(_ARENA_MAX, 1)
    for name, value in OF_WORKERS.items():
        os.environ.setdefault(name, value)
    if pyarrow := sys.modules.get("pyarrow"):  # else it reads the environment once it is imported
        pyarrow.set_memory_pool(pyarrow.system_memory_pool())


async def stay_tidy(every_s: float = EVERY_S) -> None:
    """Collect garbage and give free memory back to the system, again and again."""
    while True:
        await asyncio.sleep(every_s)
        gc.collect()
        await asyncio.to_thread(_give_back)


def _give_back() -> None:
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
