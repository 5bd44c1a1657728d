"""Lines between daemons: who is connected, in which version, and what daemons say beside the runs.

The first message on a line is a version. Two versions that do not go together are told so at both ends and
take part in nothing together; the line stays, so that the reason can be seen. After that every kind of
message has its handler.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

from colonnade.deploy.models.stored_shares import now
from colonnade.errors import ColonnadeError, JobError, PeerUnreachable, Refused
from colonnade.messages import Echo, Message, Present
from colonnade.net.endpoint import Endpoint
from colonnade.net.stream.mux import Mux
from colonnade.run.party import first_cause
from colonnade.secure.keys import compatible, knows, release_of

ECHOES = 8  # that are kept; the quickest of them is the round trip
FIRST_S, EVERY_S = 0.2, 30.0  # between the first echoes of a line, and between the later ones
SINCE = "0.3"  # the release whose daemons say more beside the runs than those of 0.2

log = logging.getLogger("colonnade.party")

GATHER_S = 5.0

Handler = Callable[[str, Any], Awaitable[None]]
"""Called with the peer that sent a message, and the message; its kind is the one it is registered for."""


@dataclass
class Peers:
    """The peers of one daemon, over standing lines.

    `controls` has the endpoint of every connected peer for messages beside the runs; `left` is called with a
    peer and why its line ended, `came` with one that is connected. `since` says when a peer came, or left.
    """

    mux: Mux
    version: str
    handlers: Mapping[type[Message], Handler]
    left: Callable[[str, str], None]
    came: Callable[[str], None]
    versions: dict[str, str] = field(default_factory=dict)
    controls: dict[str, Endpoint] = field(default_factory=dict)
    since: dict[str, str] = field(default_factory=dict)
    echoes: dict[str, deque[float]] = field(default_factory=dict)
    _echoed: dict[tuple[str, int], float] = field(default_factory=dict)
    arrived: asyncio.Event = field(default_factory=asyncio.Event)

    async def open(self) -> None:
        """Listen, and begin to connect with every peer."""
        await self.mux.open(self._talk, lambda peer, reason: log.warning("no line with %s: %s", peer, reason))

    async def close(self) -> None:
        """Hang up on every peer."""
        await self.mux.close()

    async def send(self, peer: str, message: Message) -> None:
        """Send a message beside the runs; it is dropped if the peer is not connected."""
        control = self.controls.get(peer)
        if control is not None:
            with suppress(ColonnadeError):
                await control.send(peer, message)

    async def add(self, peer: str, message: Message) -> None:
        """Send a message that version 0.2 does not know; it is dropped for peers of that version."""
        if self.knows(peer):
            await self.send(peer, message)

    def knows(self, peer: str) -> bool:
        """Return whether a peer knows what version 0.2 does not."""
        return knows(self.versions.get(peer, "0"), SINCE)

    def round_trip(self, peer: str) -> float | None:
        """Return how many seconds a word to a peer and its answer take; None if nobody knows."""
        return min(self.echoes.get(peer, ()), default=None)

    def slowest(self, parties: Iterable[str]) -> float:
        """Return the longest round trip to any of these parties, in seconds; 0 if none is known."""
        return max((trip for party in parties if (trip := self.round_trip(party)) is not None), default=0.0)

    def require(self, parties: tuple[str, ...]) -> None:
        """Raise unless all these parties are peers, connected, and of a version that goes with this one."""
        others = [party for party in parties if party != self.mux.me]
        unknown = [party for party in others if party not in self.mux.lines]
        if unknown:
            text = f"{unknown[0]} is not a peer of {self.mux.me}; add it to [peers] and pin its certificate"
            raise JobError(text)
        away = [
            f"{party} is away ({self.mux.lines[party].reason})"
            for party in others
            if party not in self.controls
        ]
        if away:
            raise PeerUnreachable("; ".join(away))
        for party in others:
            self.check_version(party)

    async def gathered(self, parties: tuple[str, ...], seconds: float = GATHER_S) -> None:
        """Wait a little until all these parties are connected, and raise what `require` does.

        Daemons that were started at the same time meet one after the other.
        """
        until = asyncio.get_running_loop().time() + seconds
        while True:
            try:
                return self.require(parties)
            except PeerUnreachable:
                if asyncio.get_running_loop().time() >= until:
                    raise
            self.arrived.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout_at(until):
                    await self.arrived.wait()

    def check_version(self, peer: str) -> None:
        """Raise Refused if the peer's version does not go with this one."""
        if text := self.skew_with(peer):
            raise Refused(text)

    def skew_with(self, peer: str) -> str:
        """Return why this version and the peer's do not go together; empty if they do, or the peer's is
        unknown."""
        theirs = self.versions.get(peer)
        if theirs is None or compatible(theirs, self.version):
            return ""
        return (
            f"{peer} runs Colonnade {release_of(theirs) or 'of unknown version'}, {self.mux.me} runs "
            f"{release_of(self.version)}; install the same release at both"
        )

    def release(self, peer: str) -> str | None:
        """Return the release that a peer has, if it has ever said so."""
        theirs = self.versions.get(peer)
        return None if theirs is None else release_of(theirs)

    async def _measure(self, peer: str) -> None:
        """Measure the round trip to a peer, again and again."""
        number = 0
        while True:
            self._echoed[peer, number] = monotonic()
            await self.add(peer, Echo(number, back=False))
            await asyncio.sleep(FIRST_S if number < ECHOES else EVERY_S)
            number += 1

    async def _echo(self, peer: str, message: Echo) -> None:
        """Send an echo back, or take down how long one took that this party had sent."""
        if not message.back:
            await self.send(peer, Echo(message.number, back=True))
        elif (sent := self._echoed.pop((peer, message.number), None)) is not None:
            self.echoes.setdefault(peer, deque(maxlen=ECHOES)).append(monotonic() - sent)

    async def _talk(self, peer: str, control: Endpoint) -> None:
        """Exchange versions on a new line, then pass every message to its handler until the line ends."""
        await control.send(peer, Present(self.version))
        theirs = (await control.recv(Present, peer)).version
        self.versions[peer] = theirs
        self.controls[peer] = control
        self.since[peer] = now()
        if text := self.skew_with(peer):
            log.warning("%s", text)
        else:
            log.info("%s is connected (Colonnade %s)", peer, release_of(theirs))
        self.arrived.set()
        self.came(peer)

        async def serve(kind: type[Message], act: Handler) -> None:
            async for waiting in control.stream(kind, patient=True):
                for sender, message in waiting:
                    try:
                        await act(sender, message)
                    except Exception:  # one message that could not be handled is not the end of the line
                        log.exception("could not handle %s of %s", kind.__name__, sender)

        ended: BaseException | None = None
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(serve(Echo, self._echo))
                group.create_task(self._measure(peer))
                for kind, act in self.handlers.items():
                    group.create_task(serve(kind, act))
        except BaseExceptionGroup as errors:
            ended = first_cause(errors)
            raise ended from errors
        finally:
            self.controls.pop(peer, None)
            self.echoes.pop(peer, None)
            self._echoed = {key: sent for key, sent in self._echoed.items() if key[0] != peer}
            self.since[peer] = now()
            reason = self.mux.lines[peer].reason or str(ended or "the line ended")
            log.info("%s is away: %s", peer, reason)
            self.left(peer, reason)
