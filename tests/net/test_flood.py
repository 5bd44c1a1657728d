"""A peer that asks for everything again and again, and takes nothing: what it asks for fills no memory."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

import pytest

from colonnade.messages import Cancel, decode, encode
from colonnade.net.clock import RealClock
from colonnade.net.endpoint import Endpoint
from colonnade.net.frame import ACK, DATA, RESEND, Header, Routes, pack, unpack
from colonnade.net.line import Line
from colonnade.net.network import Deliver, Lost, Restored

COUNT = 50


class NarrowWire:
    """A wire to a peer that reads only when it is told to: every frame waits until there is room."""

    lossless = False
    intact = True
    retry_after: float | None = None

    def __init__(self) -> None:
        self.frames: list[bytes] = []
        self._rooms: list[asyncio.Future[None]] = []

    def framing(self, size: int) -> tuple[int, int]:
        return 2, 22

    def attach(self, deliver: Deliver, lost: Lost, restored: Restored) -> None:
        self.deliver, self.lost, self.restored = deliver, lost, restored

    def send(self, to: str, frame: bytes) -> Awaitable[None]:
        self.frames.append(frame)
        self._rooms.append(asyncio.get_running_loop().create_future())
        return self._rooms[-1]

    def catch_up(self) -> int:
        return 0

    async def read(self) -> None:
        """The peer reads all that waits, so that there is room."""
        rooms, self._rooms = self._rooms, []
        for room in rooms:
            room.set_result(None)
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    async def close(self) -> None:
        pass


def test_what_is_asked_for_again_waits_until_there_is_room() -> None:
    async def main() -> None:
        wire = NarrowWire()
        net = Endpoint("shop", ("bank", "shop"), wire, RealClock(), run=16, deadline=5)
        route = Routes("bank", ("bank", "shop"), 16).to["shop"]
        for number in range(COUNT):
            sending = asyncio.ensure_future(net.send("bank", Cancel(16, str(number))))
            await asyncio.sleep(0)
            await wire.read()
            await sending
        wire.frames.clear()
        again = pack(Header(RESEND, route, 0, 0), checked=False)
        repeated = pack(Header(DATA, route, 1, 0), encode(Cancel(16, "said before")), checked=False)
        for _ in range(2000):
            wire.deliver("bank", again)
            wire.deliver("bank", repeated)  # an acknowledgement is due for every one
        assert len(wire.frames) == 1
        for _ in range(3 * COUNT):
            await wire.read()
        said = [unpack(frame) for frame in wire.frames[1:]]  # the first was on its way when it asked again
        words = [decode(payload) for header, payload in said if header.kind == DATA]
        assert [each.reason for each in words if isinstance(each, Cancel)] == list(map(str, range(COUNT)))
        wire.deliver("bank", pack(Header(ACK, route, 0, COUNT), checked=False))
        assert net.waiting < 1000
        await net.close()

    asyncio.run(main())


def test_whoever_asks_for_much_again_and_again_does_not_keep_a_party_busy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All that is kept is looked through once for every time that the line has room."""
    looks = 0
    unacknowledged = Line.unacknowledged

    def counted(line: Line) -> list[tuple[int, bytes]]:
        nonlocal looks
        looks += 1
        return unacknowledged(line)

    monkeypatch.setattr(Line, "unacknowledged", counted)

    async def main() -> None:
        wire = NarrowWire()
        net = Endpoint("shop", ("bank", "shop"), wire, RealClock(), run=16, deadline=5)
        route = Routes("bank", ("bank", "shop"), 16).to["shop"]
        sending = asyncio.ensure_future(net.send("bank", Cancel(16, "kept")))
        await asyncio.sleep(0)
        await wire.read()
        await sending
        for _ in range(2000):
            wire.deliver("bank", pack(Header(RESEND, route, 0, 0), checked=False))
        await wire.read()
        await net.close()

    asyncio.run(main())
    assert looks <= 2
