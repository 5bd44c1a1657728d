"""What a daemon and the process of a run say to each other: the last words arrive, whatever else is said."""

from __future__ import annotations

import asyncio
import socket

import msgspec

from colonnade.deploy.pipe import Fault, Frame, Pipe, ToDaemon, ToWorker
from colonnade.errors import DataError


async def pair() -> tuple[Pipe[ToDaemon], Pipe[ToWorker]]:
    """The daemon's end of a pipe, and the process's."""
    ours, theirs = socket.socketpair()
    return (
        Pipe(*await asyncio.open_connection(sock=ours), msgspec.msgpack.Decoder(ToDaemon)),
        Pipe(*await asyncio.open_connection(sock=theirs), msgspec.msgpack.Decoder(ToWorker)),
    )


def test_how_a_run_ended_is_heard_though_its_peers_go_on_talking() -> None:
    """A peer's frames arrive at the daemon until it hears of the end, and go to a process that ends."""

    async def program() -> list[str]:
        daemon, process = await pair()

        async def end() -> None:
            await process.bid_farewell(Fault.of(DataError("a column is missing")))

        ending = asyncio.ensure_future(end())
        for _ in range(50):
            daemon.write(Frame(0, "shop", bytes(10_000)))
            await asyncio.sleep(0)
        heard = []
        while isinstance(message := await daemon.read(), Fault):
            heard.append(str(message.raised()))
            break
        await daemon.close()
        await asyncio.wait_for(ending, 5)
        return heard

    assert asyncio.run(program()) == ["a column is missing"]
