"""A party's end of the net: messages in, messages out, over any wire.

Outgoing: encode, number, count, hand to the wire. Incoming: check, put in order, decode, and give to
whoever waits for that kind and tag. What does not pass the checks is refused by name, counted, and
forgotten; it never stops the party. Every wait has a deadline; when the run fails (a peer is lost, a peer
aborts), every wait fails with that reason. On a wire that can lose frames, what a peer has not
acknowledged is kept and sent again, and a party leaves only when its last words have arrived.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from typing import cast

from colonnade.errors import (
    Aborted,
    ColonnadeError,
    DeadlineExceeded,
    MalformedMessage,
    NetworkError,
    OversizedMessage,
    RefusedMessage,
    UnknownParty,
)
from colonnade.messages import Abort, Bye, Message, decode, encode
from colonnade.net.frame import ACK, DATA, HEADER_LIMIT, RESEND, Header, pack, unpack
from colonnade.net.line import Line
from colonnade.net.meter import Meter
from colonnade.net.network import Clock, M, Wire
from colonnade.net.places import Places
from colonnade.net.waiting import Waits

SIZE_LIMIT = 64 * 2**20
WAITING_LIMIT = 1_000_000
REASON_LIMIT = 2000
DEADLINE = 60.0
LINGER = 2.0
"""Seconds a leaving party waits for acknowledgements, if the wire does not say how long a retry takes."""

Key = tuple[type[Message], int]


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
    ) -> None:
        self.me = me
        self.parties = tuple(sorted(parties))
        self.peers = tuple(party for party in self.parties if party != me)
        self.clock = clock
        self.meter = Meter()
        self.deadline = deadline
        self._wire = wire
        self._checked = not wire.intact
        self._size_limit = size_limit
        self._places = Places(me, self.parties, run)
        self._lines = {peer: Line() for peer in self.peers}
        self._slots: dict[Key, dict[str, Message]] = {}
        self._queues: dict[type[Message], list[tuple[str, Message]]] = {}
        self._waits = Waits(me, deadline)
        self._waiting = 0
        self._finished: set[str] = set()
        self._retry: asyncio.TimerHandle | None = None
        self._settled: asyncio.Future[None] | None = None
        wire.attach(self.deliver, self._lost, self._restored)

    # -- out ----------------------------------------------------------------------------------------

    async def send(self, to: str, message: Message) -> None:
        if self._waits.failure is not None:
            raise self._waits.failure
        room = self._post(to, message, encode(message))
        if room is not None:
            await self._room(to, room)

    async def broadcast(self, message: Message) -> None:
        if self._waits.failure is not None:
            raise self._waits.failure
        payload = encode(message)
        rooms = [(peer, self._post(peer, message, payload)) for peer in self.peers]
        for peer, room in rooms:
            if room is not None:
                await self._room(peer, room)

    def _post(self, to: str, message: Message, payload: bytes) -> Awaitable[None] | None:
        line = self._lines.get(to)
        if line is None:
            raise UnknownParty(f"{to!r} is not a peer of {self.me} in this run")
        size = HEADER_LIMIT + len(payload)
        if size > self._size_limit:
            # before it gets a number: the peer would wait for a number that never comes
            raise OversizedMessage(
                f"a {type(message).__name__} of {size} bytes is over the limit of {self._size_limit}; "
                "use a smaller batch"
            )
        sequence = line.number()
        frame = pack(self._header(to, DATA, sequence), payload, checked=self._checked)
        self.meter.sent(message, to, len(frame), *self._wire.framing(len(frame)))
        if not self._wire.lossless:
            line.keep(sequence, frame)
            self._schedule_retry()
        return self._wire.send(to, frame)

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

    def _header(self, to: str, kind: int, sequence: int) -> Header:
        line = self._lines[to]
        line.report()
        return Header(kind, self._places.to[to], sequence, line.taken)

    async def finish(self) -> None:
        """Say goodbye and wait until every peer has: then nobody needs this party any more."""
        await self.broadcast(Bye())
        missing = set(self.peers) - self._finished
        if missing:
            # another may still be measuring the model; that it is gone would be told by the wire
            await self._waits.until("bye", missing, "goodbye", deadlines=10)
        await self._settle()

    async def abort(self, error: BaseException) -> None:
        """Tell every peer why this party stops; unreachable peers find out by themselves."""
        reason = str(error) or type(error).__name__
        message = Abort(error=type(error).__name__, reason=reason[:REASON_LIMIT])
        payload = encode(message)
        for peer in self.peers:
            # no waiting for room: the last words go before anything else, or not at all
            self._post(peer, message, payload)
        await self._settle()

    async def _settle(self) -> None:
        """Stay until the peers have all that was sent to them, but not for long."""
        if any(line.unacknowledged for line in self._lines.values()):
            retry = self._wire.retry_after
            self._settled = asyncio.get_running_loop().create_future()
            await asyncio.wait([self._settled], timeout=LINGER if retry is None else 8 * retry)

    def _check_settled(self) -> None:
        if self._settled is None or self._settled.done():
            return
        if not any(line.unacknowledged for line in self._lines.values()):
            self._settled.set_result(None)

    async def close(self) -> None:
        self._waits.close()
        if self._retry is not None:
            self._retry.cancel()
        await self._wire.close()

    # -- in -----------------------------------------------------------------------------------------

    async def recv(self, kind: type[M], sender: str, tag: int = -1) -> M:
        key = (kind, tag)
        if sender not in self._lines:
            raise UnknownParty(f"{sender!r} is not a peer of {self.me} in this run")
        slot = self._slots.get(key)
        while slot is None or sender not in slot:
            await self._waits.until(key, {sender}, f"{kind.__name__}{f' {tag}' if tag >= 0 else ''}")
            slot = self._slots.get(key)
        message = slot.pop(sender)
        self._waiting -= 1
        if not slot:
            del self._slots[key]
        return cast(M, message)

    async def gather(self, kind: type[M], tag: int = -1) -> dict[str, M]:
        key = (kind, tag)
        slot = self._slots.get(key)
        if slot is None or len(slot) < len(self.peers):
            missing = set(self.peers).difference(slot or ())
            if missing:
                await self._waits.until(key, missing, f"{kind.__name__}{f' {tag}' if tag >= 0 else ''}")
        self._waiting -= len(self.peers)
        return cast(dict[str, M], self._slots.pop(key, {}))

    def waits(self, kind: type[M]) -> bool:
        """Whether a message of a queued kind is there."""
        return bool(self._queues.get(kind))

    async def drain(self, kind: type[M], *, patient: bool = False) -> list[tuple[str, M]]:
        queue = self._queues.get(kind)
        while not queue:
            await self._waits.until(kind, {""}, kind.__name__, patient=patient)
            queue = self._queues.get(kind)
        self._queues[kind] = []
        self._waiting -= len(queue)
        return cast(list[tuple[str, M]], queue)

    async def stream(self, kind: type[M], *, patient: bool = False) -> AsyncIterator[list[tuple[str, M]]]:
        while True:
            yield await self.drain(kind, patient=patient)

    def deliver(self, sender: str, frame: bytes) -> None:
        """Called by the wire. Never raises: a bad frame is refused, named and counted."""
        try:
            self._accept(sender, frame)
        except RefusedMessage as refusal:
            self.meter.refused[type(refusal).__name__] += 1

    def _accept(self, sender: str, frame: bytes) -> None:
        line = self._lines.get(sender)
        if line is None:
            raise UnknownParty(f"{sender!r} is not part of this run")
        if len(frame) > self._size_limit:
            raise OversizedMessage(f"a frame of {len(frame)} bytes from {sender} is over {self._size_limit}")
        header, payload = unpack(frame, demand=self._checked)
        if header.place != self._places.of[sender]:
            raise self._places.refusal(sender, header.place)
        if header.kind > RESEND or header.acknowledged > line.sent:
            raise MalformedMessage(f"{sender} sent a frame of kind {header.kind} that makes no sense")
        if line.acknowledge(header.acknowledged):
            self._check_settled()
        if header.kind != DATA:
            if header.kind == RESEND:
                self._resend(sender)
            return
        ready = line.take(header.sequence, frame)
        if ready is None:
            self._control(sender, ACK)  # our acknowledgement was lost
            return
        if line.gap_is_news():
            self._control(sender, RESEND)
        for taken in ready:
            try:
                self._dispatch(sender, taken, payload if taken is frame else unpack(taken)[1])
            except RefusedMessage as refusal:
                # the frames behind it were taken as well and must still be delivered
                self.meter.refused[type(refusal).__name__] += 1
        if line.owes_ack() and not self._wire.lossless:
            self._control(sender, ACK)

    def _dispatch(self, sender: str, frame: bytes, payload: memoryview) -> None:
        try:
            message = decode(payload)
        except RecursionError as error:
            raise MalformedMessage(f"{sender} sent a message that is nested too deep") from error
        self.meter.received(len(frame) + sum(self._wire.framing(len(frame))))
        kind = type(message)
        if kind is Abort:
            self._acknowledge_last(sender)
            self.fail(Aborted(f"{sender} ended the run: {message.error}: {message.reason}"))  # type: ignore[union-attr]
            return
        if kind is Bye:
            self._finished.add(sender)
            self._acknowledge_last(sender)
            self._waits.release("bye", sender)
            return
        if self._waiting >= WAITING_LIMIT:
            raise OversizedMessage(
                f"{WAITING_LIMIT} messages wait unread; {sender} sends more than was asked"
            )
        if kind.queued:
            self._queues.setdefault(kind, []).append((sender, message))
            self._waits.release(kind, "")
        else:
            key = (kind, getattr(message, "tag", -1))
            slot = self._slots.setdefault(key, {})
            if sender in slot:
                raise MalformedMessage(f"{sender} sent {kind.__name__} {key[1]} twice")
            slot[sender] = message
            self._waits.release(key, sender)
        self._waiting += 1

    # -- faults -------------------------------------------------------------------------------------

    def fail(self, error: ColonnadeError) -> None:
        """The run cannot go on: every wait, now and later, ends with this error."""
        self._waits.fail(error)

    def _lost(self, peer: str, error: Exception) -> None:
        self._lines[peer].unacknowledged.clear()
        self._check_settled()
        if peer not in self._finished:
            self.fail(error if isinstance(error, ColonnadeError) else NetworkError(str(error)))

    def _restored(self, peer: str) -> None:
        """Frames may have been lost on either side: each asks the other for what follows the last it has."""
        self._control(peer, RESEND)

    def _acknowledge_last(self, peer: str) -> None:
        """The peer is about to leave, and stays only until it knows that its last words arrived."""
        if not self._wire.lossless:
            self._control(peer, ACK)

    def _control(self, to: str, kind: int) -> None:
        if kind == RESEND:
            self._lines[to].gap_reported = self._lines[to].taken
        self._repeat(to, pack(self._header(to, kind, 0), checked=self._checked))

    def _resend(self, to: str) -> None:
        for _, frame in self._lines[to].unacknowledged:
            self._repeat(to, frame)

    def _repeat(self, to: str, frame: bytes) -> None:
        self.meter.repeated(len(frame), *self._wire.framing(len(frame)))
        self._wire.send(to, frame)

    def _schedule_retry(self) -> None:
        if self._wire.retry_after is not None and self._retry is None:
            loop = asyncio.get_running_loop()
            self._retry = loop.call_later(self._wire.retry_after, self._retry_now)

    def _retry_now(self) -> None:
        self._retry = None
        for peer, line in self._lines.items():
            if line.unacknowledged:
                # the oldest alone: its arrival brings an acknowledgement that says what else is missing
                self._repeat(peer, line.unacknowledged[0][1])
                self._schedule_retry()
