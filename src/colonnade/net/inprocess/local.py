"""The local world: all parties in one process, real clock, no network at all.

Messages are still encoded and decoded, so parties share no memory and the counted bytes are real; a
frame is handed over by a function call.
"""

from __future__ import annotations

from colonnade.errors import UnknownParty
from colonnade.net.network import Deliver, Lost, Restored


class LocalHub:
    """Connects the wires of all parties in this process."""

    def __init__(self) -> None:
        self.deliver: dict[str, Deliver] = {}

    def wire(self, party: str) -> LocalWire:
        return LocalWire(self, party)


class LocalWire:
    """A `Wire` that hands a frame to the receiver by calling it."""

    lossless = True
    intact = True
    retry_after: float | None = None

    def __init__(self, hub: LocalHub, party: str) -> None:
        self._hub = hub
        self._party = party

    def framing(self, size: int) -> tuple[int, int]:
        return 0, 0

    def attach(self, deliver: Deliver, lost: Lost, restored: Restored) -> None:
        self._hub.deliver[self._party] = deliver

    def send(self, to: str, frame: bytes) -> None:
        deliver = self._hub.deliver.get(to)
        if deliver is None:
            raise UnknownParty(f"{to!r} is not on this hub")
        deliver(self._party, frame)

    async def close(self) -> None:
        # a late frame to a closed party is dropped, as on a real network
        self._hub.deliver[self._party] = lambda sender, frame: None
