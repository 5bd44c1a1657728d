"""A small TCP proxy that can cut, hold and count: what a network does to a connection."""

from __future__ import annotations

import asyncio
import contextlib


class Proxy:
    """Listens on `port`, passes bytes on to `target`, until told otherwise."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._writers: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None
        self._pumps: set[asyncio.Task[None]] = set()
        self.connections = 0
        self._left = 0
        self._flip = False
        self._carried = asyncio.Event()
        self._accepted = asyncio.Event()

    async def open(self, port: int) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", port)

    async def carry(self, size: int) -> None:
        """Wait until so many more bytes have passed."""
        self._left = size
        self._carried.clear()
        await self._carried.wait()

    async def reconnect(self) -> None:
        """Wait until there is another connection."""
        self._accepted.clear()
        await self._accepted.wait()

    def corrupt(self) -> None:
        """One bit of what passes next is flipped."""
        self._flip = True

    def cut(self) -> None:
        """Every connection through here ends now, whatever is on its way."""
        for writer in self._writers:
            writer.transport.abort()

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        self.cut()
        for pump in self._pumps:
            pump.cancel()
        await asyncio.gather(*self._pumps, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._accepted.set()
        try:
            onward_reader, onward = await asyncio.open_connection("127.0.0.1", self._target)
        except OSError:
            writer.transport.abort()
            return
        for source, sink in ((reader, onward), (onward_reader, writer)):
            pump = asyncio.ensure_future(self._pump(source, sink))
            self._pumps.add(pump)
            pump.add_done_callback(self._pumps.discard)

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        self._writers.add(sink)
        with contextlib.suppress(OSError):
            while data := await source.read(65536):
                self._left -= len(data)
                if self._left <= 0:
                    self._carried.set()
                if self._flip:
                    self._flip = False
                    data = data[:-1] + bytes([data[-1] ^ 1])
                sink.write(data)
                await sink.drain()
        with contextlib.suppress(OSError):
            sink.close()
            await sink.wait_closed()
        self._writers.discard(sink)
