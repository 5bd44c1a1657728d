"""The papers' tree sum beyond the common contract: its messages, its masks, its background work."""

from __future__ import annotations

import asyncio
import gc
from collections import defaultdict
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests.attacks.test_coalitions import tree_pairs
from tests.secure.parties import Parties, random_pieces, with_parties

from colonnade.attacks.coalitions import tree_graph
from colonnade.errors import DeadlineExceeded, ProtocolError, SumError
from colonnade.messages import Branch, Topic, tag_of, topic_of
from colonnade.net.endpoint import Endpoint
from colonnade.secure.hosts import TreePair, choose_trees, unsafe_reason
from colonnade.secure.tree import STEP, TreeSum, branch_tag, error_bound, mask_size


@given(tree_pairs(at_most=6), st.integers(0, 99))
def test_any_trees_and_hosts_give_the_total(pair: TreePair, seed: int) -> None:
    """And what arrives is, to the bit, what the coalition analysis says each party receives."""
    q, root = pair.q, pair.root
    drawn: dict[str, NDArray[np.int64]] = {}

    def make(net: Endpoint) -> TreeSum:
        rng = np.random.default_rng([seed, net.parties.index(net.me)])

        def random_bytes(count: int) -> bytes:
            data = rng.bytes(count)
            bits = 64 - (q - 1).bit_length() - 1
            drawn[net.me] = np.frombuffer(data, "<i8") >> (64 - bits)
            return data

        return TreeSum(net, choose=lambda _q, _root: pair, random_bytes=random_bytes)

    async def program(parties: Parties) -> None:
        pieces = random_pieces(q, (3,), seed)
        total = (await parties.sum(pieces, root, tag=seed))[root]
        assert total is not None
        assert np.abs(total - np.sum(pieces, axis=0)).max() <= error_bound(q) + 1e-13
        assert not await parties.failures()
        unknowns = [np.rint(piece / STEP).astype(np.int64) for piece in pieces]
        unknowns += [drawn[name] for name in parties.names]
        graph = tree_graph(pair)
        for i in range(q):
            said = [np.sum([c * unknowns[k] for k, c in form.items()], axis=0) for form in graph.receives[i]]
            heard = [message.values for message in parties.heard_by(i) if isinstance(message, Branch)]
            assert sorted(x.tolist() for x in said) == sorted(x.tolist() for x in heard)

    with_parties(q, make, program)


@pytest.mark.parametrize("q", range(2, 65))
def test_masks_fit_and_the_error_is_far_below_the_fixed_point_step(q: int) -> None:
    B = mask_size(q)
    assert q * 2 * B <= 2.0**63 * STEP
    assert 2.0**25 / q / 2 < B <= 2.0**25 / q
    assert error_bound(q) <= q * 2.0**-38
    assert error_bound(16) <= 2.0**-34


@pytest.mark.parametrize("q", [2, 3, 8])
def test_the_largest_values_do_not_wrap_around(q: int) -> None:
    B = mask_size(q)

    async def program(parties: Parties) -> None:
        for tag, sign in enumerate((1.0, -1.0)):
            results = await parties.sum([np.full(2000, sign * B)] * q, 0, tag)
            assert results[0] is not None
            assert (results[0] == sign * q * B).all()

    largest, smallest = b"\xff" * 7 + b"\x7f", b"\x00" * 7 + b"\x80"
    with_parties(q, lambda net: TreeSum(net, random_bytes=lambda n: largest * (n // 8)), program)
    with_parties(q, lambda net: TreeSum(net, random_bytes=lambda n: smallest * (n // 8)), program)
    with_parties(q, TreeSum, program)


def test_masks_are_uniform_fresh_and_from_the_system() -> None:
    """What a host is sent says next to nothing about a value, and no mask comes twice."""
    q, B = 3, mask_size(3)

    async def program(parties: Parties) -> None:
        zero = [np.zeros(20_000)] * q
        for tag in range(2):
            await parties.sum(zero, 0, tag)
        seen = defaultdict(list)
        for sender, to, message in parties.heard:
            assert isinstance(message, Branch)
            if message.tree == 0 and message.node < q:
                seen[sender, to].append(message.values * STEP / B)
        (first, second), *_ = seen.values()
        for masks in (first, second):
            assert -1 <= masks.min() < -0.999
            assert 0.999 < masks.max() < 1
            assert abs(masks.mean()) < 0.02
            assert abs(masks.var() - 1 / 3) < 0.01
        assert not np.intersect1d(first, second).size
        assert abs(np.corrcoef(first, second)[0, 1]) < 0.04

    with_parties(q, TreeSum, program)


def test_small_masks_average_out_as_the_text_says() -> None:
    """t masked copies of one value give it away to B/sqrt(3t); the default B is out of reach."""
    t, B, v = 10_000, 128.0, 1.5

    async def program(parties: Parties) -> None:
        await parties.sum([np.full(t, v)] * 3, 0, tag=0)
        masked = [m for m in parties.heard_by(1) if isinstance(m, Branch) and m.tree == 0 and m.node < 3]
        guess = masked[0].values.mean() * STEP
        assert abs(guess - v) < 5 * B / np.sqrt(3 * t)

    with_parties(3, lambda net: TreeSum(net, B=B), program)
    assert mask_size(3) / np.sqrt(3 * t) > 40_000


@pytest.mark.parametrize("B", [0.0, -2.0, 3.0, 2.0**40, float("nan"), float("inf")])
def test_a_mask_size_that_cannot_work_is_refused(B: float) -> None:
    async def program(parties: Parties) -> None:
        with pytest.raises(SumError, match="power of two"):
            TreeSum(parties.nets[0], B=B)

    with_parties(3, TreeSum, program)


def test_every_node_has_a_tag_of_its_own_within_the_topic() -> None:
    q = 5
    tags = [tag_of(topic, number) for topic in Topic for number in (0, 1, 2, 1000)]
    branches = [branch_tag(tag, q, t, node) for tag in tags for t in (0, 1) for node in range(2 * q - 1)]
    assert len(set(branches)) == len(branches)
    assert {topic_of(branch) for branch in branches} == set(Topic)
    with pytest.raises(SumError, match="too large"):
        branch_tag(tag_of(Topic.TRAIN, 2**47), q, 0, 0)


def test_a_failed_host_says_so_at_its_next_sum_and_never_hangs(caplog: pytest.LogCaptureFixture) -> None:
    """party01 adds up for the root; party02 is silent."""
    q = 3
    assert any(hop.sender == 1 and hop.node >= q for hop in choose_trees(q, 0).hops)

    async def program(parties: Parties) -> None:
        host = parties.sums[1]
        assert isinstance(host, TreeSum)
        await host.give(np.ones(2), root="party00", tag=0)
        await host.give(np.ones(2), root="party00", tag=1)
        await asyncio.sleep(100.0)
        with pytest.raises(DeadlineExceeded, match="from party02"):
            await host.give(np.ones(2), root="party00", tag=2)
        with pytest.raises(DeadlineExceeded):
            await host.settle()

    with_parties(q, TreeSum, program)
    gc.collect()
    assert not caplog.records  # two sums failed, and both failures were looked at


def test_close_raises_what_nobody_was_told() -> None:
    async def program(parties: Parties) -> None:
        host = parties.sums[1]
        assert isinstance(host, TreeSum)
        await host.give(np.ones(2), root="party00", tag=0)
        await asyncio.sleep(100.0)
        with pytest.raises(DeadlineExceeded):
            await host.close()
        await host.close()

    with_parties(3, TreeSum, program)


def test_close_drops_what_still_waits() -> None:
    async def program(parties: Parties) -> None:
        host = parties.sums[1]
        assert isinstance(host, TreeSum)
        for tag in range(10):
            await host.give(np.ones(2), root="party00", tag=tag)
        await host.close()
        assert parties.nets[1].clock.now() == 0.0
        await host.settle()

    with_parties(3, TreeSum, program)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda m: Branch(m.tag, m.tree, m.node, m.values.astype(np.float64)),
        lambda m: Branch(m.tag, m.tree, m.node, m.values[:1]),
        lambda m: Branch(m.tag, m.tree, m.node, m.values.reshape(1, -1)),
        lambda m: Branch(m.tag, 1 - m.tree, m.node, m.values),
        lambda m: Branch(m.tag, m.tree, m.node + 1, m.values),
    ],
)
def test_a_wrong_branch_is_a_named_error(wrong: Callable[[Branch], Branch]) -> None:
    async def program(parties: Parties) -> None:
        net = parties.nets[1]
        send = net.send

        async def spoilt(to: str, message: Branch) -> None:
            await send(to, wrong(message))

        net.send = spoilt  # type: ignore[method-assign,assignment]
        with pytest.raises(ProtocolError, match="party01 sent"):
            await parties.sum(random_pieces(3, (2,)), 0, tag=0)
        await parties.failures()

    with_parties(3, TreeSum, program)


def test_trees_are_shallow() -> None:
    """The longest chain of messages grows with the logarithm of q."""

    def depth(pair: TreePair, t: int) -> int:
        tree = pair.trees[t]
        waits = [0] * pair.q
        for host, left, right in tree.joins:
            waits.append(max(waits[part] + (tree.host(part) != host) for part in (left, right)))
        return waits[-1] + (tree.host(tree.top) != pair.root)

    for q in range(3, 65):
        for t in (0, 1):
            assert depth(choose_trees(q, 0), t) <= 2 + (q - 1).bit_length()


def test_only_two_parties_are_refused() -> None:
    assert [q for q in range(2, 65) if unsafe_reason(q)] == [2]


def test_one_party_is_no_sum() -> None:
    with pytest.raises(SumError, match="two parties or more"):
        choose_trees(1, 0)
