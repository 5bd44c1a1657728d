"""Lines with a delay and a rate, in user space: what is dialled at one port arrives at another one later.

    python -m colonnade_bench.deploy.delay_line MS MBIT PORT:TO PORT:TO ...

MS is the delay one way. Each direction of each connection passes MBIT megabits a second (0: any number). No
right of an administrator is needed. Packets are never lost here; connections over a real lossy line also
wait for what is sent again.
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress

CHUNK = 2**16
WAITING = 512  # chunks that are under way in one direction


async def _carry(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, delay: float, rate: float
) -> None:
    """Carry one direction of a connection, each chunk after its time."""
    now = asyncio.get_running_loop().time
    under_way: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(WAITING)

    async def take_in() -> None:
        free = now()
        while data := await reader.read(CHUNK):
            free = max(free, now()) + (len(data) / rate if rate else 0.0)
            await under_way.put((free + delay, data))
        await under_way.put((0.0, b""))

    async with asyncio.TaskGroup() as group:
        group.create_task(take_in())
        while True:
            due, data = await under_way.get()
            if not data:
                break
            await asyncio.sleep(max(0.0, due - now()))
            writer.write(data)
            await writer.drain()
    writer.close()


async def _serve(port: int, to: int, delay: float, rate: float) -> None:
    """Carry every connection that is dialled at a port."""

    async def dialled(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, ExceptionGroup):
            await asyncio.sleep(2 * delay)  # shaking hands
            there, back = await asyncio.open_connection("127.0.0.1", to)
            async with asyncio.TaskGroup() as group:
                group.create_task(_carry(reader, back, delay, rate))
                group.create_task(_carry(there, writer, delay, rate))
        writer.close()

    await (await asyncio.start_server(dialled, "127.0.0.1", port)).serve_forever()


async def _main(words: list[str]) -> None:
    delay, rate = float(words[0]) / 1e3, float(words[1]) * 1e6 / 8
    pairs = [pair.split(":") for pair in words[2:]]
    await asyncio.gather(*(_serve(int(port), int(to), delay, rate) for port, to in pairs))


if __name__ == "__main__":
    asyncio.run(_main(sys.argv[1:]))
