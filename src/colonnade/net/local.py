"""The local world: all parties in one process, real clock, no network at all.

The receiver of a message gets a copy that nobody can change, so parties share no memory, and its bytes are
counted as if it was sent (`handover`). Between two parties of one process nothing more is needed, and the
message is handed over by a function call. Where somebody listens on the way
(`net.tapped`), or puts a wire of its own around this one, it is a frame that is handed over.
"""

from __future__ import annotations

from collections.abc import Callable

from colonnade.errors import UnknownParty
from colonnade.messages import Message
from colonnade.net.network import Deliver, Lost, Restored

Take = Callable[[str, Message, int], None]
"""Called with a sender, its next message and the bytes it took; it may refuse it (RefusedMessage)."""


class LocalHub:
    """Connects the wires of all parties in this process: who takes frames, and who takes messages."""

    def __init__(self) -> None:
        self.deliver: dict[str, Deliver] = {}
        self.take: dict[str, Take] = {}

    def wire(self, party: str) -> LocalWire:
        return LocalWire(self, party)


class LocalWire:
    """A `Wire` that hands a frame to the receiver by calling it."""

    lossless = True
    intact = True
    retry_after: float | None = None

    def __init__(self, hub: LocalHub, party: str) -> None:
        self.hub = hub
        self._party = party

    def framing(self, size: int) -> tuple[int, int]:
        return 0, 0

    def attach(self, deliver: Deliver, lost: Lost, restored: Restored) -> None:
        self.hub.deliver[self._party] = deliver

    def send(self, to: str, frame: bytes) -> None:
        deliver = self.hub.deliver.get(to)
        if deliver is None:
            raise UnknownParty(f"{to!r} is not on this hub")
        deliver(self._party, frame)

    def catch_up(self) -> int:
        return 0

    async def close(self) -> None:
        # what comes late to a closed party is dropped, as on a real network
        self.hub.deliver[self._party] = lambda sender, frame: None
        if self._party in self.hub.take:
            self.hub.take[self._party] = lambda sender, message, size: None
