"""Masks between neighbours on a random circle: who learns what, how likely, and nobody chooses it."""

from __future__ import annotations

import asyncio
from itertools import combinations
from math import comb

import numpy as np
import pytest
from tests.secure.parties import Parties, masked, with_parties

from colonnade.attacks.coalitions import leaks, masked_graph
from colonnade.errors import ProtocolError
from colonnade.messages import Coin, CoinShown
from colonnade.secure import neighbours as module
from colonnade.secure.neighbours import circle, draw, leak_chance, neighbours_for, sentence, shuffled


@pytest.mark.parametrize(("q", "k"), [(6, 2), (7, 4), (8, 4), (9, 6), (10, 4)])
def test_the_chance_bounds_what_linear_algebra_counts(q: int, k: int) -> None:
    """Every coalition with the root, by exact elimination: how many of each size learn more than the total?

    The root's place does not matter, since it is drawn like all others.
    """
    graph = masked_graph(q, root=0, neighbours=k)
    for size in range(1, q):
        leaking = sum(leaks(graph, (0, *others)) for others in combinations(range(1, q), size - 1))
        counted = leaking / comb(q - 1, size - 1)
        assert counted <= leak_chance(q, k, size)
        assert (leaking == 0) or size >= k


def test_as_many_colluding_as_neighbours_can_be_enough() -> None:
    """The two on either side of a pair cut it off from the others."""
    graph = masked_graph(8, root=0, neighbours=4)
    assert leaks(graph, {0, 1, 4, 5})
    assert not leaks(graph, {0, 1, 4})


def test_neighbours_enough_for_a_third() -> None:
    for q in range(4, 300):
        k = neighbours_for(q)
        if k is None:
            continue
        assert leak_chance(q, k, q // 3) <= 2.0**-40
        assert k == 2 or leak_chance(q, k - 2, q // 3) > 2.0**-40
    assert neighbours_for(3) is None


def test_words_for_the_user() -> None:
    assert "fewer than 32 parties" in sentence(256, 32)
    assert "a third of all (85) learn more with a chance of at most 2^-4" in sentence(256, 32)
    assert "a third of all (10) learn more never" in sentence(32, 12)


@pytest.mark.parametrize("q", [3, 6, 9])
def test_all_parties_draw_the_same_circle(q: int) -> None:
    async def program(parties: Parties) -> list[frozenset[str]]:
        return await asyncio.gather(*(draw(net, 2) for net in parties.nets))

    first, second = (with_parties(q, masked, program) for _ in range(2))
    names = [f"party{i:02}" for i in range(q)]
    for near in (first, second):
        assert [len(each) for each in near] == [2] * q
        for i, j in combinations(range(q), 2):
            assert (names[j] in near[i]) == (names[i] in near[j])
    if q == 9:  # 20,160 circles: the same one twice would be luck
        assert first != second


def test_every_order_is_as_likely() -> None:
    orders = [tuple(shuffled("abc", bytes([a, b]))) for a in range(60) for b in range(60)]
    counts = np.array([orders.count(order) for order in sorted(set(orders))])
    assert len(counts) == 6
    assert np.abs(counts - 600).max() < 5 * 600**0.5


def test_who_shows_another_number_than_it_committed_to_is_named() -> None:
    async def liar(parties: Parties) -> None:
        net = parties.nets[2]
        await net.broadcast(Coin(b"c" * 32))
        coins = {peer: coin.commitment for peer, coin in (await net.gather(Coin)).items()}
        seen = module._joined({**coins, net.me: b"c" * 32})
        await net.broadcast(CoinShown(b"v" * 32, seen))

    async def program(parties: Parties) -> None:
        await asyncio.gather(liar(parties), *(draw(net, 2) for net in parties.nets[:2]))

    with pytest.raises(ProtocolError, match="party02 shows another random number"):
        with_parties(3, masked, program)


def test_who_tells_two_stories_is_found_out() -> None:
    async def liar(parties: Parties) -> None:
        net = parties.nets[2]
        for peer, value in zip(net.peers, (b"1" * 32, b"2" * 32), strict=True):
            await net.send(peer, Coin(module._commitment(net.me, value)))
            await net.send(peer, CoinShown(value, b"what the peer may have seen"))

    async def program(parties: Parties) -> None:
        await asyncio.gather(liar(parties), *(draw(net, 2) for net in parties.nets[:2]))

    with pytest.raises(ProtocolError, match="somebody tells two stories"):
        with_parties(3, masked, program)


def test_a_circle_has_as_many_neighbours_as_were_asked_for() -> None:
    for q, k in [(5, 2), (9, 4), (30, 12)]:
        names = [str(i) for i in range(q)]
        assert {len(near) for near in circle(names, k).values()} == {k}
        assert all(name not in near for name, near in circle(names, k).items())
