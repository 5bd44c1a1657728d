"""A party's end of the net: it sends messages, and asks for messages by kind, sender and tag, over any wire.

`Delivery` turns messages into numbered frames and back, `Mailbox` keeps what has arrived until somebody asks
for it. Every wait has a deadline; when the run fails (a peer is lost, a peer aborts), every wait fails with
that reason.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import cast

from colonnade.errors import (
    Aborted,
    ColonnadeError,
    DeadlineExceeded,
    Interrupted,
    MalformedMessage,
    NetworkError,
    PeerLost,
    PeerUnreachable,
    ProtocolError,
    RefusedMessage,
    WorkerLost,
)
from colonnade.job import Broadcast
from colonnade.messages import Abort, Alive, Bye, Message, Relay, Topic
from colonnade.net import relay
from colonnade.net.delivery import Delivery
from colonnade.net.expect import Expected
from colonnade.net.frame import Routes
from colonnade.net.mailbox import WAITING_LIMIT, Handler, Mailbox
from colonnade.net.meter import Meter
from colonnade.net.network import Clock, M, T, Wire
from colonnade.net.waiting import Waits
from colonnade.openings.limits import OpeningLimits
from colonnade.openings.opening import PRODUCT

SIZE_LIMIT = 64 * 2**20
REASON_LIMIT = 2000
DEADLINE = 60.0
CUT_OFF = (PeerUnreachable, PeerLost, DeadlineExceeded, Interrupted, WorkerLost)
"""What ends a run that could go on: somebody is away, silent, or was killed."""
SIGNS = 4  # of life in a deadline, of a party that computes
AWAY = frozenset(kind.__name__ for kind in CUT_OFF)


class Endpoint:
    """A `Network` on top of a `Wire`."""

    def __init__(
        self,
        me: str,
        parties: tuple[str, ...],
        wire: Wire,
        clock: Clock,
        *,
        run: int,
        deadline: float = DEADLINE,
        size_limit: int = SIZE_LIMIT,
        waiting_limit: int = WAITING_LIMIT,
        broadcast: Broadcast = "star",
        strict: bool = True,
    ) -> None:
        """Make an endpoint. With `strict` a message that cannot be read fails the run; otherwise it would be
        waited for."""
        self.me = me
        self.parties = tuple(sorted(parties))
        self.peers = tuple(party for party in self.parties if party != me)
        self.clock = clock
        self.run = run
        self.deadline = deadline
        self._wire = wire
        self._tree = broadcast == "tree"
        self._waits = Waits(me, deadline)
        self._handlers: dict[type[Message], Handler] = {
            Abort: self._leaving,
            Bye: self._leaving,
            Alive: lambda sender, _: self._waits.extend(sender),
            Relay: self._relayed,
        }
        self._mailbox = Mailbox(me, self.peers, self._waits, self._handlers, waiting_limit)
        routes = Routes(me, self.parties, run)
        refuse = self._refuse if strict else _forget
        self._delivery = Delivery(me, routes, wire, self._mailbox.put, refuse, size_limit=size_limit)
        self._finished: set[str] = set()
        self.last_words: dict[str, str] = {}  # of peers that ended the run
        wire.attach(self._delivery.deliver, self._lost, self._delivery.restored)

    @property
    def meter(self) -> Meter:
        """What this party has sent and received."""
        return self._delivery.meter

    def declare(self, limits: OpeningLimits) -> None:
        """Open from now on what these limits allow, and nothing else."""
        self.meter.hold_to(limits)

    def let_open(self, to: str, topic: Topic, numbers: int) -> None:
        self.meter.limits.count(PRODUCT, topic, to, numbers)

    @property
    def waiting(self) -> int:
        """How many bytes are kept here because of the peers: unread, out of order, or not acknowledged."""
        return self._mailbox.waiting + self._delivery.waiting

    # -- out ----------------------------------------------------------------------------------------

    async def send(self, to: str, message: Message) -> None:
        if self._waits.failure is not None:
            raise self._waits.failure
        room = self._delivery.post(to, message)
        if room is not None:
            await self._room(to, room)

    async def broadcast(self, message: Message) -> None:
        if self._waits.failure is not None:
            raise self._waits.failure
        await self._rooms(self._delivery.post_all(self.peers, _for_all(message)))

    async def spread(self, message: Message, to: Collection[str] | None = None) -> None:
        if self._waits.failure is not None:
            raise self._waits.failure
        peers = self.peers if to is None else [peer for peer in self.peers if peer in to]
        if self._tree:
            copies = relay.written(message, self.me, self.parties, peers).copies(self.parties)
            rooms = [(peer, self._delivery.post(peer, message, payload)) for peer, payload in copies]
        else:
            rooms = self._delivery.post_all(peers, _for_all(message))
        await self._rooms(rooms)

    async def _rooms(self, rooms: list[tuple[str, Awaitable[None] | None]]) -> None:
        """Wait until all these lines have room."""
        for peer, room in rooms:
            if room is not None:
                await self._room(peer, room)

    async def _room(self, to: str, room: Awaitable[None]) -> None:
        """Wait until the line to a peer has room. A peer that takes nothing is as good as silent."""
        try:
            async with asyncio.timeout(self.deadline):
                await room
        except TimeoutError:
            raise DeadlineExceeded(
                f"{self.me} waited {self.deadline:g} s for {to} to take what was sent; is it still running?"
            ) from None
        if self._waits.failure is not None:
            raise self._waits.failure

    @asynccontextmanager
    async def computing(self) -> AsyncIterator[None]:
        telling = None if self.clock.virtual else asyncio.ensure_future(self._show_life())
        try:
            yield
        finally:
            if telling is not None:
                telling.cancel()

    async def aside(self, work: Callable[[], T]) -> T:
        if self.clock.virtual:
            return work()
        async with self.computing():
            return await asyncio.to_thread(work)

    async def _show_life(self) -> None:
        with suppress(ColonnadeError):  # that a run fails is told where something is waited for
            while True:
                await asyncio.sleep(self.deadline / SIGNS)
                await self.broadcast(Alive())

    async def finish(self) -> None:
        """Say goodbye and wait until every peer has: then nobody needs this party any more."""
        await self.broadcast(Bye())
        missing = set(self.peers) - self._finished
        if missing:
            # another may still be measuring the model; that it is gone would be told by the wire
            await self._waits.until("bye", missing, "goodbye", deadlines=10)
        await self._delivery.settle()

    async def abort(self, error: BaseException) -> None:
        """Tell every peer why this party stops; unreachable peers find out by themselves."""
        reason = str(error) or type(error).__name__
        message = Abort(error=type(error).__name__, reason=reason[:REASON_LIMIT])
        # no waiting for room: the last words go before anything else, or not at all
        self._delivery.post_all(self.peers, message)
        await self._delivery.settle()

    async def close(self) -> None:
        self._waits.close()
        await self._delivery.close()

    # -- in -----------------------------------------------------------------------------------------
    # these hand over the mailbox's own coroutines: one more around each would cost time for nothing

    def recv(self, kind: type[M], sender: str, tag: int = -1, /, **due: Expected) -> Coroutine[None, None, M]:
        return self._mailbox.recv(kind, sender, tag, due)

    def gather(self, kind: type[M], tag: int = -1, /, **due: Expected) -> Coroutine[None, None, dict[str, M]]:
        return self._mailbox.gather(kind, tag, due)

    def drain(self, kind: type[M], *, patient: bool = False) -> Coroutine[None, None, list[tuple[str, M]]]:
        return self._mailbox.drain(kind, patient=patient)

    async def stream(self, kind: type[M], *, patient: bool = False) -> AsyncIterator[list[tuple[str, M]]]:
        while True:
            yield await self._mailbox.drain(kind, patient=patient)

    async def catch_up(self) -> None:
        for _ in range(self._wire.catch_up()):
            await asyncio.sleep(0)

    def listen(self, kind: type[M], hear: Callable[[str, M], None]) -> None:
        self._mailbox.listen(kind, cast(Handler, hear))

    def arrival(self, kind: type[Message]) -> Coroutine[None, None, None]:
        return self._mailbox.arrival(kind)

    def nudge(self, kind: type[Message]) -> None:
        self._mailbox.nudge(kind)

    def waits(self, kind: type[Message]) -> bool:
        """Return whether a message of a queued kind waits to be read."""
        return self._mailbox.holds(kind)

    def _leaving(self, sender: str, message: Message) -> None:
        """Handle a peer's last word: it ends the run, or it has finished."""
        self._delivery.acknowledge(sender)
        if isinstance(message, Abort):
            text = f"{sender} ended the run: {message.error}: {message.reason}"
            if message.error == DeadlineExceeded.__name__ and (meanwhile := self._waits.words()):
                text += f"; meanwhile {meanwhile}"  # who keeps everybody waiting is seen by some only
            self.last_words[sender] = text
            self.fail((Interrupted if message.error in AWAY else Aborted)(text))
        else:
            self._finished.add(sender)
            self._waits.release("bye", sender)

    def _relayed(self, sender: str, message: Message) -> None:
        """Pass a message on to those behind this party, at once, in the middle of any work, then keep it."""
        if not self._tree:  # or anybody could speak in another's name
            raise MalformedMessage(f"{sender} passed a message on in a run where everybody speaks for itself")
        letter, inner = relay.opened(cast(Relay, message), self.me, self.parties)
        for peer, payload in letter.copies(self.parties):
            # no waiting for room: how much is on its way is bounded by the rounds that may be in flight
            self._delivery.post(peer, inner, payload)
        self._mailbox.put(self.parties[letter.origin], inner, len(letter.payload))

    # -- faults -------------------------------------------------------------------------------------

    def _refuse(self, sender: str, refusal: RefusedMessage) -> None:
        """End the run, since a peer sent something that is no message, or not to be sent now."""
        self.fail(ProtocolError(f"{sender} sent what {self.me} cannot read: {refusal}"))

    def fail(self, error: ColonnadeError) -> None:
        """End every wait, now and later, with this error: the run cannot go on."""
        self._waits.fail(error)

    def clear(self, error: ColonnadeError) -> None:
        """End the run with this error, and keep nothing more of what the peers sent or did not take."""
        self.fail(error)
        self._mailbox.clear()
        self._delivery.clear()

    def _lost(self, peer: str, error: Exception) -> None:
        self._delivery.lost(peer)
        if peer not in self._finished:
            self.fail(error if isinstance(error, ColonnadeError) else NetworkError(str(error)))


def _for_all(message: Message) -> Message:
    """Return a message that several parties may read."""
    if message.personal:
        raise TypeError(f"a {type(message).__name__} is for one party: with what another knows it is read")
    return message


def _forget(sender: str, refusal: RefusedMessage) -> None:
    """Go on without a message that could not be read; it is counted."""
