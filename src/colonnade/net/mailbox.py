"""Messages that have arrived and that nobody has asked for yet.

A message waits under its kind and tag, one from each sender, or in the queue of its kind where the kind is
read as a stream; a few kinds are not kept but handled at once. A task that asks for a message that is not
there waits for it (`waiting.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import cast

from colonnade.errors import ColonnadeError, MalformedMessage, OversizedMessage, UnknownParty
from colonnade.messages import Message
from colonnade.net.expect import Expected, expect
from colonnade.net.network import M
from colonnade.net.waiting import Waits

WAITING_LIMIT = 4 * 2**30
"""The most bytes that may lie unread; a peer that sends more than was asked must not fill the memory."""

OVERHEAD = 512
"""What an unread message takes beside its content, roughly; so that many small ones count as well."""

Handler = Callable[[str, Message], None]

NO_DUE: Mapping[str, Expected] = MappingProxyType({})


class Mailbox:
    """The unread messages of one party. A kind that has a handler is given to it, with the sender.

    A sender that lets more than `limit` bytes lie here unread fails the run.
    """

    def __init__(
        self,
        me: str,
        peers: tuple[str, ...],
        waits: Waits,
        handlers: Mapping[type[Message], Handler],
        limit: int = WAITING_LIMIT,
    ) -> None:
        self._me = me
        self._peers = frozenset(peers)
        self._waits = waits
        self._handlers = handlers
        self._listeners: dict[type[Message], Handler] = {}
        self._tagged: dict[tuple[type[Message], int], dict[str, Message]] = {}
        self._queues: dict[type[Message], list[tuple[str, Message]]] = {}
        self._limit = limit
        self._sizes: dict[object, int] = {}  # bytes that wait, by kind and tag or by queue
        self._waiting = 0  # their sum

    def put(self, sender: str, message: Message, size: int = 0) -> None:
        """Store a message that came as `size` bytes and wake the task that waits for it, or handle it."""
        waits = self._waits
        waits.heard[sender] = waits.now()
        kind = type(message)
        if (handler := self._handlers.get(kind)) is not None:
            handler(sender, message)
            return
        if (hear := self._listeners.get(kind)) is not None:
            try:
                hear(sender, message)
            except ColonnadeError as error:
                waits.fail(error)
            waits.release(kind, "")
            return
        taken = size + OVERHEAD
        if self._waiting + taken > self._limit:
            refusal = OversizedMessage(
                f"{sender} sends more than {self._me} asked for: {self._waiting} bytes wait unread, "
                f"at most {self._limit} may"
            )
            waits.fail(refusal)  # what was asked for would be missing: better said now than waited for
            raise refusal
        if kind.queued:
            self._queues.setdefault(kind, []).append((sender, message))
            self._sizes[kind] = self._sizes.get(kind, 0) + taken
            waits.release(kind, "")
        else:
            key = (kind, getattr(message, "tag", -1))
            found = self._tagged.get(key)
            if found is None:
                found = self._tagged[key] = {}
            elif sender in found:
                raise MalformedMessage(f"{sender} sent {kind.__name__} {key[1]} twice")
            found[sender] = message
            self._sizes[key] = self._sizes.get(key, 0) + taken
            waits.release(key, sender)
        self._waiting += taken

    def listen(self, kind: type[Message], hear: Handler) -> None:
        """Give messages of a queued kind to `hear` at once, also those that wait; its errors fail the run."""
        self._listeners[kind] = hear
        for sender, message in self.taken(kind):
            self.put(sender, message)

    @property
    def waiting(self) -> int:
        """How many bytes lie here unread."""
        return self._waiting

    def clear(self) -> None:
        """Forget all that lies here unread."""
        for kept in (self._tagged, self._queues, self._sizes):
            kept.clear()
        self._waiting = 0

    def _forget(self, key: object) -> None:
        """Count no more what waited under a key, now that all of it is read."""
        self._waiting -= self._sizes.pop(key, 0)

    async def recv(self, kind: type[M], sender: str, tag: int, due: Mapping[str, Expected] = NO_DUE) -> M:
        """Return the message of this kind and tag from one peer, with fields as they are `due`."""
        if sender not in self._peers:
            raise UnknownParty(f"{sender!r} is not a peer of {self._me} in this run")
        key = (kind, tag)
        found = self._tagged.get(key)
        while found is None or sender not in found:
            await self._waits.until(key, {sender}, _words(kind, tag))
            found = self._tagged.get(key)
        message = found.pop(sender)
        if not found:
            del self._tagged[key]
            self._forget(key)
        expect(sender, message, due)
        return cast(M, message)

    async def gather(self, kind: type[M], tag: int, due: Mapping[str, Expected] = NO_DUE) -> dict[str, M]:
        """Return one message of this kind and tag from every peer, with fields as they are `due`."""
        key = (kind, tag)
        found = self._tagged.get(key)
        if found is None or len(found) < len(self._peers):
            missing = set(self._peers).difference(found or ())
            if missing:
                await self._waits.until(key, missing, _words(kind, tag))
        self._forget(key)
        gathered = self._tagged.pop(key, {})
        for field, each in due.items():
            for sender, message in gathered.items():
                if each.wrong(getattr(message, field)):
                    expect(sender, message, due)
        return cast(dict[str, M], gathered)

    async def drain(self, kind: type[M], *, patient: bool) -> list[tuple[str, M]]:
        """Return all messages of a queued kind, at least one, in the order of arrival."""
        while not (queue := self.taken(kind)):
            await self.arrival(kind, patient=patient)
        return queue

    async def arrival(self, kind: type[Message], *, patient: bool = False) -> None:
        """Wait until a message of a queued kind is here or, where it is handled at once, until a nudge."""
        if not self.holds(kind):
            await self._waits.until(kind, {""}, kind.__name__, patient=patient)

    def nudge(self, kind: type[Message]) -> None:
        """End the wait for a message of a queued kind, though none is here."""
        self._waits.release(kind, "")

    def taken(self, kind: type[M]) -> list[tuple[str, M]]:
        """Return all messages of a queued kind that are here, perhaps none."""
        queue = self._queues.get(kind)
        if not queue:
            return []
        self._queues[kind] = []
        self._forget(kind)
        return cast(list[tuple[str, M]], queue)

    def holds(self, kind: type[Message]) -> bool:
        """Return whether a message of a queued kind is there."""
        return bool(self._queues.get(kind))


def _words(kind: type[Message], tag: int) -> str:
    return f"{kind.__name__} {tag}" if tag >= 0 else kind.__name__
