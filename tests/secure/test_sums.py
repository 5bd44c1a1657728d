"""One contract for every kind of sum: the root, and only the root, gets the right total, or a named error."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from math import fsum

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from tests.secure.parties import SUMS, Parties, random_pieces, with_parties

from colonnade.arrays import Floats
from colonnade.errors import DeadlineExceeded, FixedPointOverflow, ProtocolError, TagReused
from colonnade.messages import Branch, Message, Piece, Topic, tag_of
from colonnade.net.simulated import Faults, Link
from colonnade.secure import ring, tree

KINDS = sorted(SUMS)
PROTECTED = [kind for kind in KINDS if kind != "plain"]
"""The sums that hide a piece, and therefore must look at it first."""


ERRORS: dict[str, Callable[[int], float]] = {
    "plain": lambda q: 0.0,
    "masked": lambda q: q * ring.STEP / 2,
    "neighbours": lambda q: q * ring.STEP / 2,
    "tree": tree.error_bound,
}


def bound(kind: str, pieces: list[Floats]) -> float:
    """How far a total may be off."""
    q = len(pieces)
    rounding = q * 2.0**-52 * sum(float(np.abs(piece).max(initial=0.0)) for piece in pieces)
    return rounding + ERRORS[kind](q)


def assert_total(kind: str, result: Floats | None, pieces: list[Floats]) -> None:
    exact = np.array([fsum(column) for column in zip(*(p.ravel() for p in pieces), strict=True)])
    assert result is not None
    assert result.dtype == np.float64
    assert result.shape == pieces[0].shape
    assert np.abs(result.ravel() - exact).max(initial=0.0) <= bound(kind, pieces)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("q", range(2, 17))
def test_the_root_alone_learns_the_total(kind: str, q: int) -> None:
    pieces = random_pieces(q, (5,))

    async def program(parties: Parties) -> None:
        for root in range(q):
            results = await parties.sum(pieces, root, tag=root)
            assert_total(kind, results[root], pieces)
            assert [result for i, result in enumerate(results) if i != root] == [None] * (q - 1)

    with_parties(q, SUMS[kind], program)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("q", [2, 3, 8])
def test_words_are_added_modulo_two_to_the_64(kind: str, q: int) -> None:
    rng = np.random.default_rng(q)
    pieces = [rng.integers(0, 2**64, (3, 2), dtype=np.uint64) for _ in range(q)]
    before = [piece.copy() for piece in pieces]

    async def program(parties: Parties) -> None:
        results = await parties.sum(pieces, 1, tag=0)
        found = results[1]
        assert found is not None
        assert found.dtype == np.uint64
        assert found.tolist() == np.sum(before, axis=0, dtype=np.uint64).tolist()

    with_parties(q, SUMS[kind], program)
    assert all(np.array_equal(piece, was) for piece, was in zip(pieces, before, strict=True))


@given(kind=st.sampled_from(KINDS), q=st.integers(2, 7), data=st.data())
def test_any_values_of_any_shape(kind: str, q: int, data: st.DataObject) -> None:
    shape = data.draw(hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=4))
    values = st.floats(-1e5, 1e5, allow_subnormal=False)
    pieces = [data.draw(hnp.arrays(np.float64, shape, elements=values)) for _ in range(q)]
    root = data.draw(st.integers(0, q - 1))
    results = with_parties(q, SUMS[kind], lambda parties: parties.sum(pieces, root, tag=3))
    assert_total(kind, results[root], pieces)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(0,), (0, 3), (1,), (6, 3), (4096,)])
def test_rows_by_classes_and_nothing_at_all(kind: str, shape: tuple[int, ...]) -> None:
    pieces = random_pieces(4, shape)
    results = with_parties(4, SUMS[kind], lambda parties: parties.sum(pieces, 2, tag=0))
    assert_total(kind, results[2], pieces)


@pytest.mark.parametrize("kind", KINDS)
def test_the_total_is_a_new_array(kind: str) -> None:
    pieces = random_pieces(3, (4,))
    before = [piece.copy() for piece in pieces]
    results = with_parties(3, SUMS[kind], lambda parties: parties.sum(pieces, 0, tag=0))
    assert results[0] is not None
    results[0][:] = 0.0
    assert all(np.array_equal(piece, was) for piece, was in zip(pieces, before, strict=True))


@given(
    kind=st.sampled_from(KINDS),
    q=st.integers(2, 6),
    seed=st.integers(0, 999),
)
def test_tags_in_any_order_and_all_at_once(kind: str, q: int, seed: int) -> None:
    """Each party starts the same sums, for several roots and topics, in an order of its own."""
    tags = [tag_of(topic, number) for topic in (Topic.TRAIN, Topic.EVALUATE) for number in range(4)]
    pieces = {tag: random_pieces(q, (3,), seed=k + 100 * seed) for k, tag in enumerate(tags)}
    roots = {tag: k % q for k, tag in enumerate(tags)}

    async def program(parties: Parties) -> None:
        async def one(i: int, tag: int) -> None:
            result = await parties.one(i, pieces[tag][i], roots[tag], tag)
            if roots[tag] == i:
                assert_total(kind, result, pieces[tag])
            else:
                assert result is None

        orders = np.random.default_rng(seed).permuted([range(len(tags))] * q, axis=1)
        await asyncio.gather(*(one(i, tags[k]) for i in range(q) for k in orders[i]))

    with_parties(q, SUMS[kind], program, link=Link(latency_s=0.01, bandwidth_bps=1e5))


@pytest.mark.parametrize("kind", KINDS)
def test_a_share_may_come_long_before_the_root_asks(kind: str) -> None:
    """Others push ahead and are not held up; the root takes the rounds one by one, last one first."""
    q, rounds = 5, 6
    pieces = [random_pieces(q, (3,), seed=tag) for tag in range(rounds)]

    async def program(parties: Parties) -> None:
        for tag in range(rounds):
            for i in range(1, q):
                async with asyncio.timeout(0.001):
                    await parties.sums[i].give(pieces[tag][i], root="party00", tag=tag)
        await asyncio.sleep(30.0)
        for tag in reversed(range(rounds)):
            total = await parties.sums[0].collect(pieces[tag][0], tag=tag)
            assert_total(kind, total, pieces[tag])

    with_parties(q, SUMS[kind], program, link=Link(latency_s=0.2))


@pytest.mark.parametrize("kind", KINDS)
def test_a_bad_network_changes_nothing(kind: str) -> None:
    faults = Faults(drop=0.1, duplicate=0.1, corrupt=0.05, delay=0.2, delay_s=0.7)
    pieces = random_pieces(4, (3,))

    async def program(parties: Parties) -> None:
        for tag in range(20):
            results = await parties.sum(pieces, tag % 4, tag)
            assert_total(kind, results[tag % 4], pieces)

    with_parties(4, SUMS[kind], program, faults=faults)


@pytest.mark.parametrize("kind", KINDS)
def test_same_pieces_same_bits(kind: str) -> None:
    """Masks are new every time; the total does not depend on them."""
    pieces = random_pieces(6, (50,))
    first, second = (
        with_parties(6, SUMS[kind], lambda parties: parties.sum(pieces, 1, tag=0))[1] for _ in range(2)
    )
    assert first is not None
    assert second is not None
    assert first.tobytes() == second.tobytes()


def _numbers(messages: list[Message]) -> list[Floats]:
    """What a curious party would try: each message as a fixed-point number, and as a plain one."""
    found = []
    for message in messages:
        assert isinstance(message, Piece | Branch)
        step = {np.dtype("u8"): ring.STEP, np.dtype("i8"): tree.STEP}.get(message.values.dtype, 1.0)
        found.append(message.values.view("i8" if step < 1 else "f8") * step)
    return found


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("q", range(3, 17))
def test_nobody_else_hears_the_total(kind: str, q: int) -> None:
    pieces = random_pieces(q, (4,))
    total = sum(pieces)

    async def program(parties: Parties) -> None:
        await parties.sum(pieces, 0, tag=0)
        for i in range(1, q):
            numbers = _numbers(parties.heard_by(i))
            combined = [a - b for a in numbers for b in numbers if a is not b]
            for number in numbers + combined:
                for secret in [total, total - pieces[i], *(pieces[j] for j in range(q) if j != i)]:
                    assert np.abs(number - secret).min() > 1e-6

    with_parties(q, SUMS[kind], program)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("q", range(3, 9))
def test_what_the_root_hears(kind: str, q: int) -> None:
    """In a plain sum every piece, which is why it is called plain; else no piece of anybody."""
    pieces = random_pieces(q, (4,))

    async def program(parties: Parties) -> None:
        await parties.sum(pieces, 0, tag=0)
        numbers = _numbers(parties.heard_by(0))
        numbers += [a - b for a in numbers for b in numbers if a is not b]
        nearest = [min(np.abs(number - piece).min() for number in numbers) for piece in pieces[1:]]
        assert max(nearest) == 0.0 if kind == "plain" else min(nearest) > 1e-6

    with_parties(q, SUMS[kind], program)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("q", [2, 3, 8, 16])
def test_messages_of_one_sum(kind: str, q: int) -> None:
    async def program(parties: Parties) -> int:
        await parties.sum(random_pieces(q, (4,)), 0, tag=0)
        return len(parties.heard)

    assert with_parties(q, SUMS[kind], program) == (2 * q - 1 if kind == "tree" else q - 1)


@pytest.mark.parametrize("kind", KINDS)
def test_a_tag_is_never_used_twice(kind: str) -> None:
    pieces = random_pieces(3, (2,))

    async def program(parties: Parties) -> None:
        for tag in (5, tag_of(Topic.EVALUATE, 5)):
            await parties.sum(pieces, 0, tag)
            heard = len(parties.heard)
            for i in range(3):
                for root in range(3):
                    with pytest.raises(TagReused, match=str(tag)):
                        await parties.one(i, pieces[i], root, tag)
            assert len(parties.heard) == heard

    with_parties(3, SUMS[kind], program)


@pytest.mark.parametrize("kind", PROTECTED)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e12, -1e300])
def test_a_value_out_of_range_is_an_error_and_nothing_is_sent(kind: str, bad: float) -> None:
    async def program(parties: Parties) -> None:
        for one in parties.each([np.array([1.0, bad])] * 3, root=0, tag=0):
            with pytest.raises(FixedPointOverflow, match="a value of size"):
                await one
        await asyncio.sleep(1.0)
        assert parties.heard == []

    with_parties(3, SUMS[kind], program)


@pytest.mark.parametrize("kind", PROTECTED)
@pytest.mark.parametrize("odd", range(4))
def test_pieces_of_different_length_are_an_error(kind: str, odd: int) -> None:
    """Somebody notices, and names it, before a wrong total comes out."""

    async def program(parties: Parties) -> None:
        pieces = [np.ones(3 if i == odd else 4) for i in range(4)]
        outcomes = await asyncio.gather(*parties.each(pieces, root=0, tag=0), return_exceptions=True)
        assert not any(isinstance(outcome, np.ndarray) for outcome in outcomes)
        errors = [*outcomes, *await parties.failures()]
        assert any(isinstance(error, ProtocolError) for error in errors)

    with_parties(4, SUMS[kind], program)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("q", [2, 3, 5, 8])
def test_a_silent_party_is_a_named_error_within_the_deadline(kind: str, q: int) -> None:
    pieces = random_pieces(q, (2,))
    for silent in range(1, q):

        async def program(parties: Parties, silent: int = silent) -> None:
            for i in range(1, q):
                if i != silent:
                    await parties.sums[i].give(pieces[i], root="party00", tag=0)
            with pytest.raises(DeadlineExceeded, match="is it running and reachable"):
                await parties.sums[0].collect(pieces[0], tag=0)
            assert all(isinstance(error, DeadlineExceeded) for error in await parties.failures())
            # the mailbox looks at the deadlines every quarter of one
            assert parties.nets[0].clock.now() <= 1.25 * parties.nets[0].deadline

        with_parties(q, SUMS[kind], program)


@pytest.mark.parametrize("kind", PROTECTED)
def test_a_piece_that_is_none_of_the_sum_ends_it_by_name(kind: str) -> None:
    """A party sends random words: no pieces within their range have such a total."""
    pieces, rng = random_pieces(4, (20,)), np.random.default_rng(3)

    async def program(parties: Parties) -> None:
        hostile, send = parties.nets[2], parties.nets[2].send

        def noise(to: str, message: Message) -> Awaitable[None]:
            if isinstance(message, Piece | Branch):
                values = rng.integers(0, 2**64, message.values.shape, dtype=np.uint64)
                message = msgspec.structs.replace(message, values=values.view(message.values.dtype))
            return send(to, message)

        hostile.send = noise  # type: ignore[method-assign, assignment]
        with pytest.raises(ProtocolError, match="adds up to no total: one of them gave no piece of it"):
            await parties.sum(pieces, 0, tag=0)

    with_parties(4, SUMS[kind], program)
