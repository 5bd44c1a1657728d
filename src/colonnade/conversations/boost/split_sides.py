"""On which side of their splits rows are: owners of splits tell it to those that grow the tree further."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from colonnade.conversations.boost.long_messages import complete, send_long
from colonnade.conversations.boost.wire import bits_of, flags_of
from colonnade.messages import Sides
from colonnade.net.expect import PACKED, expect, octets
from colonnade.net.network import Network
from colonnade.trees.bins import Flags
from colonnade.trees.frontier import Frontier
from colonnade.trees.grow import Level


async def tell_sides(net: Network, tag: int, own: Flags, to: Iterable[str]) -> None:
    """Tell others on which side of the own splits rows are."""
    said = Sides(tag, bits_of(own))
    for peer in to:
        await send_long(net, peer, said)


async def heard_sides(
    net: Network, tag: int, level: Level, frontier: Frontier, parties: Sequence[str], me: int
) -> list[tuple[int, Flags]]:
    """Return what each other owner of splits in a level says of its rows."""
    sides = []
    for party in level.others(me):
        rows = int(frontier.counts[level.party == party].sum())
        name, size = parties[party], -(-rows // 8)
        heard = await complete(net, name, await net.recv(Sides, name, tag, left=PACKED), size)
        expect(name, heard, {"left": octets(size)})
        sides.append((party, flags_of(heard.left, rows)))
    return sides
