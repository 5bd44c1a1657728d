"""Who shares masks with whom, where that is not everybody with everybody: a random circle of neighbours.

With a mask for every pair a sum of q parties costs each of them q - 1 masks. Bell, Bonawitz, Gascón,
Lepoint and Raykova (2020) mask along a sparse random graph instead: parties are put on a circle in random
order, and each shares masks with the k / 2 on either side of it (a Harary graph under a random
permutation).

What a coalition learns: pieces of parties outside it stay hidden behind the masks among these, as far as
masks connect them. So it learns more than the total only if it cuts the circle of the others in two places,
and a cut is k / 2 members in a row. Fewer than k parties can never do that. More can if they are lucky: a
union bound over all pairs of places gives `leak_chance`. That holds for coalitions that were made before
the circle was drawn, so nobody may choose it: every party commits itself to a random number, then all show
theirs, and the circle follows from all of them (`draw`). Parties that drop out, the paper's other concern,
are none here: a sum needs everybody.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from math import comb, log2

from colonnade.errors import ProtocolError
from colonnade.messages import Coin, CoinShown
from colonnade.net.network import Network

CHANCE_BITS = 40  # a leak less likely than 2^-40 is none
COLLUDING = 3  # one in this many parties colludes, where a job leaves the number of neighbours open

_BYTES = 32


def circle(order: Sequence[str], neighbours: int) -> dict[str, frozenset[str]]:
    """Return everybody's neighbours: the nearest on either side.

    >>> circle("abcdef", 2)["a"] == {"b", "f"}, circle("abcdef", 4)["c"] == set("abde")
    (True, True)
    """
    q, reach = len(order), neighbours // 2
    steps = [step for step in range(-reach, reach + 1) if step % q]
    return {name: frozenset(order[(i + step) % q] for step in steps) for i, name in enumerate(order)}


def leak_chance(parties: int, neighbours: int, colluding: int) -> float:
    """Return the chance, at most, that this many colluding parties learn more than the total.

    Two cuts are k members at given places; there are fewer than q^2 / 2 pairs of places for two cuts.

    >>> leak_chance(256, 32, 31), leak_chance(256, 32, 85) < 2**-40
    (0.0, True)
    """
    if colluding < neighbours:
        return 0.0
    places = parties * (parties - 1) / 2
    return min(1.0, places * comb(colluding, neighbours) / comb(parties, neighbours))


def neighbours_for(parties: int) -> int | None:
    """Return the fewest neighbours with which a third of all parties learns more than the total with a chance
    of at most 2^-40; None if that is everybody.

    >>> [neighbours_for(q) for q in (4, 8, 32, 128, 256)]
    [2, 4, 12, 28, 32]
    """
    for neighbours in range(2, parties - 1, 2):
        if leak_chance(parties, neighbours, parties // COLLUDING) <= 2.0**-CHANCE_BITS:
            return neighbours
    return None


def sentence(parties: int, neighbours: int) -> str:
    """Return what a sparse circle of masks means, in words for the user."""
    third = parties // COLLUDING
    chance = leak_chance(parties, neighbours, third)
    known = "never" if not chance else f"with a chance of at most 2^{log2(chance):.0f}"
    return (
        f"masks with {neighbours} neighbours: fewer than {neighbours} parties that collude "
        f"learn nothing but the total; a third of all ({third}) learn more {known}"
    )


async def draw(net: Network, neighbours: int) -> frozenset[str]:
    """Draw a circle together with all peers; this party's neighbours on it."""
    own = os.urandom(_BYTES)
    await net.broadcast(Coin(_commitment(net.me, own)))
    coins = {peer: coin.commitment for peer, coin in (await net.gather(Coin)).items()}
    coins[net.me] = _commitment(net.me, own)
    seen = _joined(coins)
    await net.broadcast(CoinShown(own, seen))
    shown = {net.me: own}
    for peer, coin in (await net.gather(CoinShown)).items():
        if coin.seen != seen:
            raise ProtocolError(
                f"{peer} was told other commitments than {net.me}: somebody tells two stories"
            )
        if _commitment(peer, coin.value) != coins[peer]:
            raise ProtocolError(f"{peer} shows another random number than it had committed itself to")
        shown[peer] = coin.value
    return circle(shuffled(sorted(net.parties), _joined(shown)), neighbours)[net.me]


def shuffled(names: Sequence[str], seed: bytes) -> list[str]:
    """Return names in an order that follows from the seed: that of a hash of each."""
    return sorted(names, key=lambda name: hashlib.sha256(seed + name.encode()).digest())


def _commitment(party: str, value: bytes) -> bytes:
    return hashlib.sha256(b"colonnade coin" + party.encode() + b"\0" + value).digest()


def _joined(values: dict[str, bytes]) -> bytes:
    """Return one digest of everybody's value."""
    joined = hashlib.sha256()
    for party, value in sorted(values.items()):
        joined.update(hashlib.sha256(party.encode()).digest() + hashlib.sha256(value).digest())
    return joined.digest()
