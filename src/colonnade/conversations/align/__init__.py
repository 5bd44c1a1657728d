"""The align conversation: which ids do all parties hold? Nobody shows the others.

Multi-party private set intersection on elliptic-curve Diffie-Hellman (Kolesnikov, Matania, Pinkas,
Rosulek, Trieu 2017, with a Diffie-Hellman OPRF). The party with the fewest ids leads.

1. Every pair shares a secret, so party i can give every id x a share s_i(x) such that all shares of one
   id cancel: s_i(x) = xor over j of PRF(k_ij, x).
2. The leader learns F_i(x) of each of its ids with party i's help, which without i's key nobody can compute
   for other ids: by blinded points of a curve (`secure.oprf`), or by oblivious transfers (`secure.ot`).
3. Party i writes a table (`secure.hints`) that holds s_i(y) xor F_i(y) for each of its own ids y.
4. The leader reads all tables at its own ids: where every party holds x the shares cancel to zero, anywhere
   else noise remains, however many lack it. It tells party i the F_i(x) of the common ids.

What each side learns: how many ids every party brings, and the ids common to all; not which other ids a
party holds, nor which ids some of them share. That is for parties that follow the protocol and do not put
their keys together; a coalition with the leader learns what all parties outside it have in common with the
leader. A party may always lie about its own ids: sizes are shown, and a set that changes between two runs
is refused, since one id more or less would tell whether the others hold it.

Ids travel in chunks or lots, which several processors work at (`compute_pool`) while others travel.
All that is as long as the ids is an array of words or bytes, never a list.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial

from colonnade.arrays import Digests, Rows
from colonnade.conversations.align.compute_pool import ComputePool
from colonnade.conversations.align.follower import follow
from colonnade.conversations.align.layout import capacity, lots_for, tables_for
from colonnade.conversations.align.leader import lead
from colonnade.conversations.align.order import ordered, twice
from colonnade.conversations.align.side import AlignSide, Method, Progress
from colonnade.errors import AlignmentError, DuplicateIds, EmptyIntersection
from colonnade.messages import Found, Roster, Seal, Topic
from colonnade.net.expect import Number
from colonnade.net.network import Network
from colonnade.openings.opening import Declare, Opening, sent, undisputed
from colonnade.secure.hints import size_for

IDS_A_POINT = 12  # that transfers compare in the time of one point of the curve
IDS = 2**40  # of one party, at most
PARTIES = 64  # the most that can align
NAME_BYTES = 16  # of a common id, as the leader tells it
FEW = 8192  # ids of the leader below which the curve is quick enough, and transfers would not bind it


__all__ = ["FEW", "AlignTerms", "Alignment", "Method", "align", "leader_of", "most_tested", "most_written"]


@dataclass(frozen=True, eq=False)
class Alignment:
    """The common rows: `rows[k]` is the place of the k-th of them in this party's own data."""

    rows: Rows
    digest: str
    sizes: dict[str, int]


async def _admit_all(rosters: Mapping[str, Roster]) -> None:
    """Let everybody compare ids with this party."""


@dataclass(frozen=True)
class AlignTerms:
    """What all parties must agree on, and what this party demands of the others.

    `order` decides the common order, `rules` names the normalisation, `commitment` stands for this party's
    set without showing it, and `admit` is shown what the peers announce before any id is compared: it raises
    to go no further. `declare` hears what the comparison opens, before it does.
    """

    order: bytes = b""
    rules: str = ""
    minimum: int = 1
    commitment: bytes = b""
    method: Method = "curve"
    admit: Callable[[Mapping[str, Roster]], Awaitable[None]] = _admit_all
    declare: Declare = undisputed


async def align(
    net: Network,
    ids: Digests,
    secrets: Mapping[str, bytes],
    terms: AlignTerms | None = None,
    progress: Progress = lambda done, total: None,
) -> Alignment:
    """Find the rows that all parties hold. Every party calls this; `secrets` has 32 bytes for every peer."""
    terms = terms or AlignTerms()
    await _check_own(net, ids)
    await net.broadcast(Roster(len(ids), terms.minimum, terms.commitment, terms.rules, terms.method))
    rosters = await net.gather(Roster, size=Number(1, IDS), minimum=Number(0, IDS))
    minimum = max(1, terms.minimum, *(roster.minimum for roster in rosters.values()))
    sizes = {net.me: len(ids), **{peer: roster.size for peer, roster in rosters.items()}}
    _check_rosters(net.me, rosters, terms)
    _check_sizes(sizes, minimum)
    await terms.admit(rosters)
    leader = leader_of(sizes)
    method: Method = "curve" if sizes[leader] < FEW else terms.method
    await terms.declare(openings_of(sizes))
    points = len(ids) + sizes[leader]
    async with ComputePool(points if method == "curve" else points // IDS_A_POINT) as pool:
        side = AlignSide(net, ids, secrets, sizes, leader, pool, progress, method)
        found = await (lead(side, minimum) if leader == net.me else follow(side, minimum))
        rows, digest = await net.aside(partial(ordered, ids, found, terms.order))
    await net.broadcast(Seal(digest))
    for peer, seal in (await net.gather(Seal)).items():
        if seal.digest != digest:
            raise AlignmentError(f"{net.me} and {peer} ended up with different common rows; do not train")
    return Alignment(rows, digest.hex(), sizes)


def leader_of(sizes: Mapping[str, int]) -> str:
    """Return the party that leads: the one that brings the fewest ids."""
    return min(sizes, key=lambda party: (sizes[party], party))


def openings_of(sizes: Mapping[str, int]) -> list[Opening]:
    """Return what a comparison opens: to every party, which of its own ids are common to all.

    The leader finds out, and tells the others; of each of their ids that is a bit.
    """
    leader, found = leader_of(sizes), []
    for party, size in sizes.items():
        told, rows = party != leader, sizes[leader]
        found.append(
            Opening(
                kind="common ids",
                about="membership",
                of=tuple(other for other in sizes if other != party),
                to=(party,),
                numbers=size,
                bits=1,
                carried=8 * NAME_BYTES * rows / size if told else 0.0,  # a name of every one that is common
                rows=size,
                when="when ids are compared",
                by=leader if told else "",
                channel=sent(Found, Topic.ALIGN) if told else None,
            )
        )
    return found


def most_tested(size: int, method: str) -> int:
    """Return at how many ids, at most, a leader that announces this number of ids can learn F."""
    if method == "curve" or size < FEW:
        return size
    lots = lots_for(size)
    return lots * size_for(capacity(size, lots))


def most_written(size: int, leader: int, method: str) -> int:
    """Return how many ids, at most, a follower that announces this number can write into its tables.

    An honest one peels its tables, which takes 1.23 places an id; who solves equations needs one. The leader
    brings `leader` ids.
    """
    tables = tables_for(size, 1 if method == "curve" or leader < FEW else lots_for(leader))
    return tables * size_for(capacity(size, tables))


async def _check_own(net: Network, ids: Digests) -> None:
    if not 2 <= len(net.parties) <= PARTIES:
        raise AlignmentError(f"{len(net.parties)} parties cannot align; 2 to {PARTIES} can")
    if not len(ids):
        raise EmptyIntersection(f"{net.me} brings no ids")
    same = await net.aside(partial(twice, ids))
    if same:
        first, second = sorted(same[0])
        raise DuplicateIds(
            f"{net.me}: rows {first + 1} and {second + 1} have the same id after normalisation, and "
            f"{len(same) - 1} more pairs do; keep one row per id"
        )


def _check_rosters(me: str, rosters: Mapping[str, Roster], terms: AlignTerms) -> None:
    for peer, roster in rosters.items():
        if roster.rules != terms.rules:
            raise AlignmentError(f"{peer} normalises ids in another way than {me}; agree on one job")
        if roster.method != terms.method:
            raise AlignmentError(f"{peer} compares ids in another way than {me}; agree on one job")


def _check_sizes(sizes: Mapping[str, int], minimum: int) -> None:
    """Refuse sets that are too small to have so much in common: comparing them could only tell who is in."""
    fewest = min(sizes, key=lambda party: (sizes[party], party))
    if sizes[fewest] < minimum:
        raise EmptyIntersection(
            f"{fewest} brings {sizes[fewest]} ids, {minimum} common ones are demanded; nothing was compared"
        )
