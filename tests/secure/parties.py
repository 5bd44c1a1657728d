"""Parties for the tests of sums: q endpoints on one simulated hub, and everything they hear."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from colonnade.arrays import Floats
from colonnade.errors import ColonnadeError, RefusedMessage
from colonnade.messages import Message, decode
from colonnade.net.clock import VirtualClock, run_virtual
from colonnade.net.endpoint import Endpoint
from colonnade.net.frame import DATA, unpack
from colonnade.net.network import Deliver
from colonnade.net.simulated import Faults, Link, SimulatedHub
from colonnade.secure.masked import MaskedSum
from colonnade.secure.neighbours import circle
from colonnade.secure.plain import PlainSum
from colonnade.secure.protocol import N, SecureSum
from colonnade.secure.tree import TreeSum

Make = Callable[[Endpoint], SecureSum]

T = TypeVar("T")

RUN = 7


def masked(net: Endpoint) -> MaskedSum:
    """With pair secrets that need no handshake."""
    return MaskedSum(net, pair_secrets(net))


def pair_secrets(net: Endpoint) -> dict[str, bytes]:
    """A secret for every peer, known to both."""
    return {peer: hashlib.sha256(repr(sorted((net.me, peer))).encode()).digest() for peer in net.peers}


def neighbourly(net: Endpoint) -> MaskedSum:
    """Masks with four neighbours on a circle in the order of names."""
    near = circle(net.parties, 4)[net.me]
    return MaskedSum(net, {peer: secret for peer, secret in pair_secrets(net).items() if peer in near})


SUMS: dict[str, Make] = {
    "plain": PlainSum,
    "masked": masked,
    "neighbours": neighbourly,
    "tree": TreeSum,
}


@dataclass
class Parties:
    """q parties that can sum, in the order of their names."""

    nets: list[Endpoint]
    sums: list[SecureSum]
    heard: list[tuple[str, str, Message]] = field(default_factory=list)
    """(sender, receiver, message) of everything that arrived."""

    @property
    def names(self) -> list[str]:
        return [net.me for net in self.nets]

    async def sum(self, pieces: Sequence[N], root: int, tag: int) -> list[N | None]:
        """The root collects and all others give; what came back at each party."""
        return list(await asyncio.gather(*self.each(pieces, root, tag)))

    def each(self, pieces: Sequence[N], root: int, tag: int) -> list[Awaitable[N | None]]:
        """What each party does in one sum, not yet begun."""
        return [self.one(i, piece, root, tag) for i, piece in enumerate(pieces)]

    def one(self, i: int, piece: N, root: int, tag: int) -> Awaitable[N | None]:
        if i == root:
            return self.sums[i].collect(piece, tag=tag)
        return self.sums[i].give(piece, root=self.names[root], tag=tag)

    async def failures(self) -> list[ColonnadeError]:
        """What went wrong in the background, at parties that add up for others."""
        failed = []
        for each in self.sums:
            try:
                await each.settle()
            except ColonnadeError as error:
                failed.append(error)
        return failed

    def heard_by(self, party: int) -> list[Message]:
        return [message for _, to, message in self.heard if to == self.names[party]]


def with_parties(
    q: int,
    make: Make,
    program: Callable[[Parties], Awaitable[T]],
    *,
    link: Link | None = None,
    faults: Faults | None = None,
    seed: int = 0,
) -> T:
    """Run a program of q parties on a virtual clock, and leave nothing behind."""

    async def main() -> T:
        hub = SimulatedHub(link, faults, seed)
        names = tuple(f"party{i:02}" for i in range(q))
        nets = [Endpoint(name, names, hub.wire(name), VirtualClock(), run=RUN) for name in names]
        parties = Parties(nets, [make(net) for net in nets])
        for name, deliver in list(hub.deliver.items()):

            def listen(sender: str, frame: bytes, name: str = name, deliver: Deliver = deliver) -> None:
                with suppress(RefusedMessage):  # what the network has harmed is for the party to refuse
                    header, payload = unpack(frame)
                    if header.kind == DATA:
                        parties.heard.append((sender, name, decode(payload)))
                deliver(sender, frame)

            hub.deliver[name] = listen
        try:
            return await program(parties)
        finally:
            for each in parties.sums:
                await each.close()
            for net in nets:
                await net.close()

    return run_virtual(main())


def random_pieces(q: int, shape: tuple[int, ...], seed: int = 0, size: float = 10.0) -> list[Floats]:
    return list(np.random.default_rng([seed, q]).normal(scale=size, size=(q, *shape)))
