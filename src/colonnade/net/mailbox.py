"""A party's end of the net: messages in, messages out, over any wire.

Outgoing: encode, number, count, hand to the wire. Incoming: check, put in order, decode, and give to
whoever waits for that kind and tag. What does not pass the checks is refused by name, counted, and
forgotten; it never stops the party. Every wait has a deadline, watched by one timer, so that a wait
costs nothing; when the run fails (a peer is lost, a peer aborts), every wait fails with that reason.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, cast

from colonnade.errors import (
    Aborted,
    ColonnadeError,
    DeadlineExceeded,
    MalformedMessage,
    OversizedMessage,
    RefusedMessage,
    UnknownParty,
    WrongRun,
)
from colonnade.messages import Abort, Bye, Message, decode, encode
from colonnade.net.frame import ACK, DATA, RESEND, Header, pack, unpack
from colonnade.net.line import Line
from colonnade.net.meter import Meter
from colonnade.net.transport import Clock, M, Wire

SIZE_LIMIT = 64 * 2**20
WAITING_LIMIT = 1_000_000
DEADLINE = 60.0

Key = tuple[type[Message], int]


class _Wait:
    """Somebody waits until every sender in `missing` has delivered."""

    __slots__ = ("due", "future", "missing", "what")

    def __init__(self, missing: set[str], what: str, due: float, future: asyncio.Future[None]) -> None:
        self.missing = missing
        self.what = what
        self.due = due
        self.future = future


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
        self._run = run
        self._size_limit = size_limit
        self._index = {party: i for i, party in enumerate(self.parties)}
        self._lines = {peer: Line() for peer in self.peers}
        self._slots: dict[Key, dict[str, Message]] = {}
        self._queues: dict[type[Message], list[tuple[str, Message]]] = {}
        self._waits: dict[object, _Wait] = {}
        self._waiting = 0
        self._finished: set[str] = set()
        self._failure: ColonnadeError | None = None
        self._watch: asyncio.TimerHandle | None = None
        self._retry: asyncio.TimerHandle | None = None
        self._chores: set[asyncio.Task[None]] = set()
        wire.attach(self.deliver, self._lost, self._restored)

    # -- out ----------------------------------------------------------------------------------------

    async def send(self, to: str, message: Message) -> None:
        if self._failure is not None:
            raise self._failure
        await self._post(to, message, encode(message))

    async def broadcast(self, message: Message) -> None:
        if self._failure is not None:
            raise self._failure
        payload = encode(message)
        for peer in self.peers:
            await self._post(peer, message, payload)

    async def _post(self, to: str, message: Message, payload: bytes) -> None:
        line = self._lines[to]
        sequence = line.number()
        frame = pack(self._header(to, DATA, sequence), payload)
        if len(frame) > self._size_limit:
            raise OversizedMessage(
                f"a {type(message).__name__} of {len(frame)} bytes is over the limit of {self._size_limit}; "
                "use a smaller batch"
            )
        self.meter.sent(message, to, len(frame) + self._wire.framing(len(frame)))
        if not self._wire.lossless:
            line.keep(sequence, frame)
            self._schedule_retry()
        await self._wire.send(to, frame)

    def _header(self, to: str, kind: int, sequence: int) -> Header:
        line = self._lines[to]
        line.reported = line.taken
        return Header(self._run, self._index[self.me], self._index[to], kind, sequence, line.taken)

    async def finish(self) -> None:
        """Say goodbye and wait until every peer has: then nobody needs this party any more."""
        await self.broadcast(Bye())
        missing = set(self.peers) - self._finished
        if missing:
            await self._wait("bye", missing, "goodbye")

    async def abort(self, error: BaseException) -> None:
        """Tell every peer why this party stops; unreachable peers find out by themselves."""
        reason = str(error) or type(error).__name__
        message = Abort(error=type(error).__name__, reason=reason)
        payload = encode(message)
        for peer in self.peers:
            try:
                async with asyncio.timeout(1.0):
                    await self._post(peer, message, payload)
            except (ColonnadeError, OSError, TimeoutError):
                continue

    async def close(self) -> None:
        for handle in (self._watch, self._retry):
            if handle is not None:
                handle.cancel()
        self._watch = self._retry = None
        for chore in self._chores:
            chore.cancel()
        await self._wire.close()

    # -- in -----------------------------------------------------------------------------------------

    async def recv(self, kind: type[M], sender: str, tag: int = -1) -> M:
        key = (kind, tag)
        slot = self._slots.get(key)
        if slot is None or sender not in slot:
            await self._wait(key, {sender}, f"{kind.__name__}{f' {tag}' if tag >= 0 else ''}")
            slot = self._slots[key]
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
                await self._wait(key, missing, f"{kind.__name__}{f' {tag}' if tag >= 0 else ''}")
        self._waiting -= len(self.peers)
        return cast(dict[str, M], self._slots.pop(key, {}))

    async def drain(self, kind: type[M]) -> list[tuple[str, M]]:
        queue = self._queues.get(kind)
        if not queue:
            await self._wait(kind, {""}, kind.__name__)
            queue = self._queues[kind]
        self._queues[kind] = []
        self._waiting -= len(queue)
        return cast(list[tuple[str, M]], queue)

    async def stream(self, kind: type[M]) -> AsyncIterator[list[tuple[str, M]]]:
        while True:
            yield await self.drain(kind)

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
        header, payload = unpack(frame)
        if header.run != self._run:
            raise WrongRun(f"{sender} sent a frame of run {header.run:08x}, this is {self._run:08x}")
        if header.sender != self._index[sender] or header.receiver != self._index[self.me]:
            raise UnknownParty(f"a frame from {sender} names another sender or receiver")
        line.acknowledge(header.acknowledged)
        if header.kind == RESEND:
            self._resend(sender)
        if header.kind != DATA:
            return
        ready = line.take(header.sequence, frame)
        if ready is None:
            self._control(sender, ACK)  # our acknowledgement was lost
            return
        if line.gap_is_news():
            self._control(sender, RESEND)
        for taken in ready:
            self._dispatch(sender, taken, payload if taken is frame else unpack(taken)[1])
        if not self._wire.lossless and line.owes_ack():
            self._control(sender, ACK)

    def _dispatch(self, sender: str, frame: bytes, payload: memoryview) -> None:
        message = decode(payload)
        self.meter.received(len(frame) + self._wire.framing(len(frame)))
        kind = type(message)
        if kind is Abort:
            self.fail(Aborted(f"{sender} ended the run: {message.error}: {message.reason}"))  # type: ignore[union-attr]
            return
        if kind is Bye:
            self._finished.add(sender)
            self._release("bye", sender)
            return
        if self._waiting >= WAITING_LIMIT:
            raise OversizedMessage(f"{WAITING_LIMIT} messages wait unread; {sender} sends more than was asked")
        if kind.queued:
            self._queues.setdefault(kind, []).append((sender, message))
            self._release(kind, "")
        else:
            key = (kind, getattr(message, "tag", -1))
            slot = self._slots.setdefault(key, {})
            if sender in slot:
                raise MalformedMessage(f"{sender} sent {kind.__name__} {key[1]} twice")
            slot[sender] = message
            self._release(key, sender)
        self._waiting += 1

    # -- waiting ------------------------------------------------------------------------------------

    async def _wait(self, key: object, missing: set[str], what: str) -> None:
        if self._failure is not None:
            raise self._failure
        loop = asyncio.get_running_loop()
        wait = _Wait(missing, what, loop.time() + self.deadline, loop.create_future())
        self._waits[key] = wait
        if self._watch is None:
            self._watch = loop.call_later(self.deadline / 4, self._check_deadlines)
        try:
            await wait.future
        finally:
            if self._waits.get(key) is wait:
                del self._waits[key]

    def _release(self, key: object, sender: str) -> None:
        wait = self._waits.get(key)
        if wait is not None:
            wait.missing.discard(sender)
            if not wait.missing and not wait.future.done():
                wait.future.set_result(None)

    def _check_deadlines(self) -> None:
        self._watch = None
        if not self._waits:
            return
        loop = asyncio.get_running_loop()
        for wait in list(self._waits.values()):
            if loop.time() >= wait.due and not wait.future.done():
                silent = ", ".join(sorted(wait.missing - {""})) or "any peer"
                wait.future.set_exception(
                    DeadlineExceeded(
                        f"{self.me} waited {self.deadline:g} s for {wait.what} from {silent}; "
                        "is it running and reachable?"
                    )
                )
        self._watch = loop.call_later(self.deadline / 4, self._check_deadlines)

    def fail(self, error: ColonnadeError) -> None:
        """The run cannot go on: every wait, now and later, ends with this error."""
        if self._failure is None:
            self._failure = error
            for wait in self._waits.values():
                if not wait.future.done():
                    wait.future.set_exception(error)

    # -- faults -------------------------------------------------------------------------------------

    def _lost(self, peer: str, error: Exception) -> None:
        if peer not in self._finished:
            self.fail(error if isinstance(error, ColonnadeError) else ColonnadeError(str(error)))

    def _restored(self, peer: str) -> None:
        """Frames may have been lost on either side: say what is here, send again what is not there."""
        self._control(peer, ACK)
        self._resend(peer)

    def _control(self, to: str, kind: int) -> None:
        frame = pack(self._header(to, kind, 0))
        self._later(to, frame)

    def _resend(self, to: str) -> None:
        for _, frame in self._lines[to].unacknowledged:
            self._later(to, frame)

    def _later(self, to: str, frame: bytes) -> None:
        self.meter.repeated(len(frame) + self._wire.framing(len(frame)))
        task: asyncio.Task[None] = asyncio.ensure_future(self._wire.send(to, frame))  # type: ignore[arg-type]
        self._chores.add(task)
        task.add_done_callback(self._chore_done)

    def _chore_done(self, task: asyncio.Task[Any]) -> None:
        self._chores.discard(task)
        if not task.cancelled() and isinstance(task.exception(), ColonnadeError):
            self.fail(cast(ColonnadeError, task.exception()))

    def _schedule_retry(self) -> None:
        if self._wire.retry_after is not None and self._retry is None:
            loop = asyncio.get_running_loop()
            self._retry = loop.call_later(self._wire.retry_after, self._retry_now)

    def _retry_now(self) -> None:
        self._retry = None
        for peer, line in self._lines.items():
            if line.unacknowledged:
                # the oldest alone: its arrival brings an acknowledgement that says what else is missing
                self._later(peer, line.unacknowledged[0][1])
                self._schedule_retry()
