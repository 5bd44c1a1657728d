"""Delivery of messages over any wire: each arrives once and in order, or is refused by name.

Outgoing: number, pack, count, hand to the wire. Incoming: check, put in order, decode, count, hand over. What
does not pass the checks is refused by name, counted, and forgotten; it never stops the party. A frame that
has arrived in its turn and holds no message is another matter: nobody but its sender can have made it, and
`refuse` is told. On a wire that can lose frames, what a peer has not acknowledged is kept and sent again, and
a party leaves only when its last words have arrived.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from colonnade.errors import MalformedMessage, OversizedMessage, RefusedMessage, UnknownParty
from colonnade.messages import Message, decode, encode
from colonnade.net.frame import ACK, DATA, HEADER_LIMIT, RESEND, Header, Routes, pack, unpack
from colonnade.net.handover import handed
from colonnade.net.line import CheckedLine, Line
from colonnade.net.local import LocalWire, Take
from colonnade.net.meter import Meter, Weighed, weighed
from colonnade.net.network import Wire

LINGER = 2.0
"""Seconds a leaving party waits for acknowledgements, if the wire does not say how long a retry takes."""


class Delivery:
    """The lines of one party with its peers in one run. Every message that arrives is given to `take`."""

    def __init__(
        self,
        me: str,
        routes: Routes,
        wire: Wire,
        take: Take,
        refuse: Callable[[str, RefusedMessage], None],
        *,
        size_limit: int,
    ) -> None:
        self.meter = Meter()
        self._me = me
        self._routes = routes
        self._wire = wire
        self._take = take
        self._refuse = refuse
        self._size_limit = size_limit
        self._framing = wire.framing
        self._checked = not wire.intact
        kind = Line if wire.intact else CheckedLine
        self._lines = {
            peer: kind(routes.to[peer], routes.of[peer], keeps=not wire.lossless) for peer in routes.to
        }
        self._near: dict[str, Take] = {}  # who takes a message as it is, without a frame
        if isinstance(wire, LocalWire):
            self._near = wire.hub.take
            self._near[me] = self.take
        self._full: dict[str, asyncio.Future[None]] = {}  # lines without room for what is said unasked
        self._again: dict[str, int] = {}  # from which frame on these are sent again once there is
        self._retries = wire.retry_after is not None and not wire.lossless
        self._retry: asyncio.TimerHandle | None = None
        self._settled: asyncio.Future[None] | None = None

    # -- out ----------------------------------------------------------------------------------------

    def post(self, to: str, message: Message, payload: bytes | None = None) -> Awaitable[None] | None:
        """Send a message, or these bytes for it. What comes back, if anything, is to be awaited."""
        if to not in self._lines:
            raise UnknownParty(f"{to!r} is not a peer of {self._me} in this run")
        if payload is None and to in self._near:
            self._hand_over((to,), message)
            return None
        return self._send(to, encode(message) if payload is None else payload, weighed(message))

    def post_all(self, peers: Sequence[str], message: Message) -> list[tuple[str, Awaitable[None] | None]]:
        """Send a message, which is encoded or copied once, to several peers."""
        if near := [peer for peer in peers if peer in self._near]:
            self._hand_over(near, message)
            peers = [peer for peer in peers if peer not in self._near]
        if not peers:
            return []
        payload, known = encode(message), weighed(message)
        return [(peer, self._send(peer, payload, known)) for peer in peers]

    def _send(self, to: str, payload: bytes, known: Weighed) -> Awaitable[None] | None:
        """Send the bytes of a message as the next frame to a peer."""
        if HEADER_LIMIT + len(payload) > self._size_limit:
            raise self._too_long(known, len(payload))
        frame = self._lines[to].pack(payload)
        size = len(frame)
        self.meter.sent(known, to, size, *self._framing(size))
        if self._retries:
            self._schedule_retry()
        return self._wire.send(to, frame)

    def _hand_over(self, peers: Sequence[str], message: Message) -> None:
        """Give other parties of this process their copy of a message; its bytes count as if it was sent."""
        meter, known = self.meter, weighed(message)
        copy, length = handed(message)
        if HEADER_LIMIT + length > self._size_limit:
            raise self._too_long(known, length)
        for peer in peers:
            size = self._lines[peer].pass_by(length)
            meter.sent(known, peer, size)
            self._near[peer](self._me, copy, size)

    def _too_long(self, known: Weighed, length: int) -> OversizedMessage:
        """Return the error for what is too long; raised before it gets a number, for which the peer would
        wait."""
        return OversizedMessage(
            f"a {known[0].__name__} of {HEADER_LIMIT + length} bytes is over the limit of "
            f"{self._size_limit}; use a smaller batch"
        )

    def _header(self, line: Line, to: str, kind: int, sequence: int) -> Header:
        line.report()
        return Header(kind, self._routes.to[to], sequence, line.taken)

    @property
    def waiting(self) -> int:
        """How many bytes of all lines are kept until the peers do their part."""
        return sum(line.waiting for line in self._lines.values())

    def clear(self) -> None:
        """Keep nothing of what was sent or came too early; what is said from now on is a last word."""
        for line in self._lines.values():
            line.clear()

    async def settle(self) -> None:
        """Wait until the peers have acknowledged all that was sent to them, but not for long."""
        if self._unsettled():
            retry = self._wire.retry_after
            self._settled = asyncio.get_running_loop().create_future()
            await asyncio.wait([self._settled], timeout=LINGER if retry is None else 8 * retry)

    def _check_settled(self) -> None:
        if self._settled is None or self._settled.done():
            return
        if not self._unsettled():
            self._settled.set_result(None)

    def _unsettled(self) -> bool:
        """Return whether a peer has not acknowledged all that was sent to it."""
        return any(line.kept_bytes for line in self._lines.values())

    async def close(self) -> None:
        if self._retry is not None:
            self._retry.cancel()
        for room in self._full.values():
            room.cancel()
        await self._wire.close()

    # -- in -----------------------------------------------------------------------------------------

    def deliver(self, sender: str, frame: bytes) -> None:
        """Take a frame from the wire. Never raises: a bad frame is refused, named and counted."""
        line, size = self._lines.get(sender), len(frame)
        payload = None if line is None or size > self._size_limit else line.open(frame)
        if line is None or payload is None:  # not simply the next message
            try:
                self._accept(sender, frame)
            except RefusedMessage as refusal:
                self.meter.refused[type(refusal).__name__] += 1
            return
        self._deliver(sender, size, payload)
        if self._settled is not None:
            self._check_settled()
        if line.owes_ack():
            self._acknowledge(sender, line)

    def take(self, sender: str, message: Message, size: int) -> None:
        """Take a message that is handed over without a frame, which would have this size."""
        try:
            line = self._lines.get(sender)
            if line is None:
                raise UnknownParty(f"{sender!r} is not part of this run")
            line.taken += 1
            meter = self.meter
            meter.received_messages += 1
            meter.received_bytes += size
            self._take(sender, message, size)
        except RefusedMessage as refusal:
            self.meter.refused[type(refusal).__name__] += 1
            self._refuse(sender, refusal)

    def _accept(self, sender: str, frame: bytes) -> None:
        line = self._lines.get(sender)
        if line is None:
            raise UnknownParty(f"{sender!r} is not part of this run")
        if len(frame) > self._size_limit:
            raise OversizedMessage(f"a frame of {len(frame)} bytes from {sender} is over {self._size_limit}")
        (kind, route, sequence, acknowledged), payload = unpack(frame, demand=self._checked)
        if route != self._routes.of[sender]:
            raise self._routes.refusal(sender, route)
        if kind > RESEND or acknowledged > line.sent:
            raise MalformedMessage(f"{sender} sent a frame of kind {kind} that makes no sense")
        if acknowledged > line.acknowledged:
            line.acknowledge(acknowledged)
            if self._settled is not None:
                self._check_settled()
        if kind != DATA:
            if kind == RESEND:
                self._resend(sender)
            return
        ready = line.take(sequence, frame)
        if ready is None:
            self._control(sender, ACK)  # our acknowledgement was lost
            return
        if line.early and line.gap_is_news():
            self._control(sender, RESEND)
        for taken in ready:
            self._deliver(sender, len(taken), payload if taken is frame else unpack(taken)[1])
        if line.owes_ack():
            self._acknowledge(sender, line)

    def _acknowledge(self, sender: str, line: Line) -> None:
        """Tell a peer how far this party has come: until then it keeps frames, unless none can be lost."""
        if self._wire.lossless:
            line.report()
        else:
            self._control(sender, ACK)

    def _deliver(self, sender: str, size: int, payload: bytes | memoryview) -> None:
        """Hand over the message of a frame of this size whose turn it is."""
        try:
            message = decode(payload)
            meter = self.meter
            meter.received_messages += 1
            length, sealed = self._framing(size)
            meter.received_bytes += size + length + sealed
            self._take(sender, message, size)
        except RefusedMessage as refusal:
            # the frames behind it were taken as well and must still be delivered
            self.meter.refused[type(refusal).__name__] += 1
            self._refuse(sender, refusal)

    # -- faults -------------------------------------------------------------------------------------

    def lost(self, peer: str) -> None:
        """Stop waiting for acknowledgements of a peer that is gone."""
        self._lines[peer].forget()
        self._check_settled()

    def restored(self, peer: str) -> None:
        """Ask the peer for what follows the last frame that arrived, since some may have been lost; it asks
        the same."""
        self._control(peer, RESEND)

    def acknowledge(self, peer: str) -> None:
        """Tell a peer that is about to leave that its last words arrived: it stays only for that."""
        if not self._wire.lossless:
            self._control(peer, ACK)

    def _control(self, to: str, kind: int) -> None:
        line = self._lines[to]
        if kind == RESEND:
            line.gap_reported = line.taken
        self._repeat(to, pack(self._header(line, to, kind, 0), checked=self._checked))

    def _resend(self, to: str, first: int = 0) -> None:
        """Send again what was not acknowledged, from this frame on; the rest once a full line has room."""
        if to in self._full:  # a peer may ask thousands of times a second: not a look at what is kept
            self._again[to] = first
            return
        for sequence, frame in self._lines[to].unacknowledged():
            if sequence >= first and not self._repeat(to, frame):
                self._again[to] = sequence
                return

    def _repeat(self, to: str, frame: bytes) -> bool:
        """Send a frame without waiting; False if the line is full: what a peer asks for fills no memory."""
        if to in self._full:
            return False
        self.meter.repeated(len(frame), *self._wire.framing(len(frame)))
        room = self._wire.send(to, frame)
        if room is not None:
            self._full[to] = asyncio.ensure_future(room)
            self._full[to].add_done_callback(lambda done: self._has_room(to, done))
        return True

    def _has_room(self, to: str, room: asyncio.Future[None]) -> None:
        """Go on with what a peer asked for, now that its line has room again or is gone."""
        del self._full[to]
        first, gone = self._again.pop(to, None), room.cancelled() or room.exception() is not None
        if first is not None and not gone:
            self._resend(to, first)

    def _schedule_retry(self) -> None:
        after = self._wire.retry_after
        if after is not None and self._retry is None:
            self._retry = asyncio.get_running_loop().call_later(after, self._retry_now)

    def _retry_now(self) -> None:
        self._retry = None
        for peer, line in self._lines.items():
            if kept := line.unacknowledged():
                # the oldest alone: its arrival brings an acknowledgement that says what else is missing
                self._repeat(peer, kept[0][1])
                self._schedule_retry()
