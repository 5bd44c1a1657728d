"""Lines between daemons: who is connected, in which version, and what daemons say beside the runs.

The first message on a line is a version. Two versions that do not go together are told so at both ends and
take part in nothing together; the line stays, so that the reason can be seen. After that every kind of
message has its handler.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from colonnade.deploy.models.stored_shares import now
from colonnade.errors import ColonnadeError, JobError, PeerUnreachable, Refused
from colonnade.messages import Message, Present
from colonnade.net.endpoint import Endpoint
from colonnade.net.stream.mux import Mux
from colonnade.run.party import first_cause
from colonnade.secure.keys import compatible, release_of

log = logging.getLogger("colonnade.party")

Handler = Callable[[str, Any], Awaitable[None]]
"""Called with the peer that sent a message, and the message; its kind is the one it is registered for."""


@dataclass
class Peers:
    """The peers of one daemon, over standing lines.

    `controls` has the endpoint of every connected peer for messages beside the runs; `left` is called with a
    peer and why its line ended. `since` says when a peer came, or left.
    """

    mux: Mux
    version: str
    handlers: Mapping[type[Message], Handler]
    left: Callable[[str, str], None]
    versions: dict[str, str] = field(default_factory=dict)
    controls: dict[str, Endpoint] = field(default_factory=dict)
    since: dict[str, str] = field(default_factory=dict)

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

    def require(self, parties: tuple[str, ...]) -> None:
        """Raise unless all these parties are peers, connected, and of a version that goes with this one."""
        others = [party for party in parties if party != self.mux.me]
        unknown = [party for party in others if party not in self.mux.lines]
        if unknown:
            text = f"{unknown[0]} is no peer of {self.mux.me}; add it to [peers] and pin its certificate"
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
                for kind, act in self.handlers.items():
                    group.create_task(serve(kind, act))
        except BaseExceptionGroup as errors:
            ended = first_cause(errors)
            raise ended from errors
        finally:
            self.controls.pop(peer, None)
            self.since[peer] = now()
            reason = self.mux.lines[peer].reason or str(ended or "the line ended")
            log.info("%s is away: %s", peer, reason)
            self.left(peer, reason)
