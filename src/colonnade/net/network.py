"""The interfaces of the net: what a party may assume of its network and its clock.

A party program knows a `Network` and a `Clock` and nothing else, so the same program runs in the
simulated, the local and the real world. Below the `Network` lies a `Wire`, which moves frames of bytes
between named parties and does not know what is in them. A new engine is a new wire.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Coroutine
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Any, Protocol, TypeVar

from colonnade.errors import ColonnadeError
from colonnade.messages import Message, Topic
from colonnade.net.expect import Expected

M = TypeVar("M", bound=Message)
T = TypeVar("T")


class Clock(Protocol):
    """A party's time. `virtual`: it is the simulation's, and does not pass while the party computes."""

    virtual: bool

    def now(self) -> float:
        """Return the seconds since the run began."""
        ...

    def set(self, now: float) -> None:
        """Go on from this time, where a run goes on; a virtual clock stays as it is."""
        ...

    async def work(self, seconds: float) -> None:
        """Charge this much computing to the party (virtual time), or do any extra work (real time)."""
        ...

    def uncharged(self) -> AbstractContextManager[None]:
        """Stop a real clock while the block runs: what happens inside is measurement, not training."""
        ...

    def beside(self, work: Coroutine[Any, Any, T]) -> Awaitable[T]:
        """Await measurement beside training: a real clock stops while it runs, not while it waits."""
        ...


class Network(Protocol):
    """What a party sees of the others in a run: it sends messages, and asks for messages by kind and tag."""

    @property
    def me(self) -> str: ...

    @property
    def peers(self) -> tuple[str, ...]:
        """Every other party of the run, sorted."""
        ...

    @property
    def parties(self) -> tuple[str, ...]:
        """All parties of the run, sorted."""
        ...

    @property
    def run(self) -> int:
        """The number of the run, or of its stretch, that this is the network of."""
        ...

    @property
    def clock(self) -> Clock: ...

    async def send(self, to: str, message: Message) -> None: ...

    def let_open(self, to: str, topic: Topic, numbers: int) -> None:
        """Count numbers that a peer can open of a product by what it is sent next; refused beyond what is
        declared."""
        ...

    async def broadcast(self, message: Message) -> None:
        """Send to every peer."""
        ...

    async def spread(self, message: Message, to: Collection[str] | None = None) -> None:
        """Send a result to these peers, by default to all: to each or, where the run says so, down a tree on
        which peers pass it on (`net.relay`)."""
        ...

    async def recv(self, kind: type[M], sender: str, tag: int = -1, /, **due: Expected) -> M:
        """Return the message of this kind and tag from one peer; `due` says what its fields must be
        (`expect`)."""
        ...

    async def gather(self, kind: type[M], tag: int = -1, /, **due: Expected) -> dict[str, M]:
        """Return one message of this kind and tag from every peer; `due` says what its fields must be."""
        ...

    async def catch_up(self) -> None:
        """Let all be heard that has come while this party computed."""
        ...

    def computing(self) -> AbstractAsyncContextManager[None]:
        """Show signs of life while a block lasts that computes beside the event loop: a peer that waits for
        this party goes on waiting, up to some deadlines."""
        ...

    async def aside(self, work: Callable[[], T]) -> T:
        """Compute for long on a thread of its own, with signs of life; a virtual clock knows no threads."""
        ...

    def fail(self, error: ColonnadeError) -> None:
        """End every wait, now and later, with this error: the run cannot go on."""
        ...

    async def drain(self, kind: type[M], *, patient: bool = False) -> list[tuple[str, M]]:
        """Return all messages of a queued kind that wait, at least one, in the order of arrival.

        A patient wait has no deadline: for what may rightly never come.
        """
        ...

    def listen(self, kind: type[M], hear: Callable[[str, M], None]) -> None:
        """Hand over every message of a queued kind as soon as it comes; an error that this raises ends the
        run."""
        ...

    async def arrival(self, kind: type[Message]) -> None:
        """Wait until a message of a kind that is listened to comes, or `nudge` is called."""
        ...

    def nudge(self, kind: type[Message]) -> None:
        """End the wait for the arrival of a message of this kind, though none has come."""
        ...

    def stream(self, kind: type[M], *, patient: bool = False) -> AsyncIterator[list[tuple[str, M]]]:
        """Repeat `drain` for ever."""
        ...


Deliver = Callable[[str, bytes], None]
"""What a wire calls with the sender's (authenticated) name and a frame."""

Lost = Callable[[str, Exception], None]
"""What a wire calls when a peer is gone for good."""

Restored = Callable[[str], None]
"""What a wire calls when the line to a peer was broken and stands again: frames may be missing."""


class Wire(Protocol):
    """Moves frames of bytes to named parties, in order while a line stands.

    `lossless`: a frame that was sent arrives, so nothing needs to be kept for a resend.
    `intact`: a frame that arrives is as it was sent, so it needs no checksum.
    `retry_after`: seconds without an acknowledgement after which a frame is sent again; None where the
    wire itself says when frames may be missing (`Restored`).
    `framing`: bytes that the wire itself adds to a frame of the given size: ours, and its encryption's.
    """

    lossless: bool
    intact: bool
    retry_after: float | None

    def framing(self, size: int) -> tuple[int, int]: ...

    def attach(self, deliver: Deliver, lost: Lost, restored: Restored) -> None: ...

    def send(self, to: str, frame: bytes) -> Awaitable[None] | None:
        """Send a frame. What comes back, if anything, is to be awaited before sending more."""
        ...

    def catch_up(self) -> int:
        """Deliver what has come, where that can be done now; in this many turns of the event loop all is."""
        ...

    async def close(self) -> None: ...
