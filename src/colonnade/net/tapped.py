"""A wire around another: a listener hears every frame that passes, and nothing else changes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from colonnade.net.network import Deliver, Lost, Restored, Wire

Frame = Callable[[str, bytes], None]
"""Hears of a frame and the party at its other end."""


class TappedWire:
    """Does what the wire inside it does; `said` hears of every frame sent, `heard` of every one taken."""

    def __init__(self, wire: Wire, said: Frame, heard: Frame | None = None) -> None:
        self._wire, self._said, self._heard = wire, said, heard
        self.lossless, self.intact = wire.lossless, wire.intact
        self.retry_after = wire.retry_after

    def framing(self, size: int) -> tuple[int, int]:
        return self._wire.framing(size)

    def attach(self, deliver: Deliver, lost: Lost, restored: Restored) -> None:
        tell = self._heard
        if tell is None:
            self._wire.attach(deliver, lost, restored)
            return

        def heard(sender: str, frame: bytes) -> None:
            tell(sender, frame)
            deliver(sender, frame)

        self._wire.attach(heard, lost, restored)

    def send(self, to: str, frame: bytes) -> Awaitable[None] | None:
        self._said(to, frame)
        return self._wire.send(to, frame)

    def catch_up(self) -> int:
        return self._wire.catch_up()

    async def close(self) -> None:
        await self._wire.close()
