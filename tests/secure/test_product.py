"""Products of one party's columns and another's vectors: exact, used once, and uniform to everybody."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from colonnade.arrays import Words
from colonnade.errors import SumError, TagReused
from colonnade.secure.product import ADDED, COLUMNS, DEALT, SCORED, Asker, Columns, Dealer, Lot, Owner
from colonnade.secure.streams import PairStreams, Roles

ROLES = Roles("a", "p", "t")


def secret(one: str, other: str, run: int = 0) -> bytes:
    return bytes([*sorted(one.encode() + other.encode()), run]) + bytes(29)


def streams_of(me: str, run: int = 0) -> PairStreams:
    return PairStreams(me, {peer: secret(me, peer, run) for peer in "apt" if peer != me})


class Trio:
    """The three parties of one block."""

    def __init__(self, X: Words, streams: Any = streams_of) -> None:
        self.owner = Owner(streams("p"), ROLES, {"train": Columns.of(X)})
        self.dealer = Dealer(streams("t"), ROLES, X.shape[1])
        self.veiled = np.concatenate([part for _, part in self.owner.veiled("train", 7)])
        self.asker = Asker(streams("a"), {ROLES: X.shape[1]}, {"train": self.veiled})


def words(rng: np.random.Generator, *shape: int) -> Words:
    return rng.integers(0, 2**64, shape, dtype=np.uint64)


def lot_of(*batches: list[int], scored: int = 1, added: int = 1, tag: int = 0) -> Lot:
    return Lot(tag, "train", tuple(np.array(batch) for batch in batches), scored, added)


@settings(max_examples=30, deadline=None)
@given(
    rows=st.integers(1, 40),
    width=st.integers(1, 9),
    vectors=st.integers(1, 3),
    cuts=st.integers(1, 4),
    seed=st.integers(0, 2**32),
)
def test_products_are_exact_in_the_ring(rows: int, width: int, vectors: int, cuts: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = words(rng, rows, width)
    trio = Trio(X)
    batches = [part.tolist() for part in np.array_split(rng.permutation(rows), cuts) if len(part)]
    lot = lot_of(*batches, scored=vectors, added=vectors)
    asked, owned = trio.asker.take(lot), trio.owner.take(lot)
    dealt_scores, dealt = trio.dealer.deal(lot)
    p, s = words(rng, vectors, width), words(rng, vectors, width)
    for k, batch in enumerate(batches):
        total = asked.scores[k] + dealt_scores[k] + owned.scores(k, p + asked.veil(k, s))
        np.testing.assert_array_equal(total, (p + s) @ X[batch].T)
        t, whole = words(rng, vectors, len(batch)), p + s
        p = p + owned.add(k, asked.moved(k, t)[0])
        s = s + asked.sums[k] + dealt[k]
        np.testing.assert_array_equal(p + s, whole + t @ X[batch])


@settings(max_examples=20, deadline=None)
@given(
    rows=st.integers(1, 30),
    widths=st.lists(st.integers(1, 20), min_size=1, max_size=4),
    vectors=st.integers(1, 2),
    seed=st.integers(0, 2**32),
)
def test_one_asker_of_some_blocks_has_the_total_of_their_scores_and_everybodys_sums(
    rows: int, widths: list[int], vectors: int, seed: int
) -> None:
    """Owners of blocks serve each other as dealers."""
    rng, names = np.random.default_rng(seed), [f"p{k}" for k in range(len(widths) + 1)]
    blocks = [Roles("a", owner, dealer) for owner, dealer in pairwise(names)]
    made = {
        me: PairStreams(me, {peer: secret(me, peer) for peer in ["a", *names] if peer != me})
        for me in ["a", *names]
    }
    X = [words(rng, rows, width) for width in widths]
    owners = [
        Owner(made[roles.owner], roles, {"train": Columns.of(each)})
        for roles, each in zip(blocks, X, strict=True)
    ]
    dealers = [Dealer(made[roles.dealer], roles, width) for roles, width in zip(blocks, widths, strict=True)]
    veiled = np.hstack([owner.veiled_rows("train", np.arange(rows)) for owner in owners])
    asker = Asker(made["a"], dict(zip(blocks, widths, strict=True)), {"train": veiled})
    batches = [part.tolist() for part in np.array_split(rng.permutation(rows), 3) if len(part)]
    lot = lot_of(*batches, scored=vectors, added=vectors)
    asked, owned, dealt = (
        asker.take(lot),
        [each.take(lot) for each in owners],
        [each.deal(lot) for each in dealers],
    )
    p, s, whole = words(rng, vectors, sum(widths)), words(rng, vectors, sum(widths)), np.hstack(X)
    for k, batch in enumerate(batches):
        seen = p + asked.veil(k, s)
        total = asked.scores[k].copy()
        for one, (scores, _), cut in zip(owned, dealt, asker.cuts, strict=True):
            total += one.scores(k, seen[:, cut]) + scores[k]
        np.testing.assert_array_equal(total, (p + s) @ whole[batch].T)
        t = words(rng, vectors, len(batch))
        change = [one.add(k, moved) for one, moved in zip(owned, asked.moved(k, t), strict=True)]
        parts = np.hstack(change) + asked.sums[k] + np.hstack([values[k] for _, values in dealt])
        np.testing.assert_array_equal(parts, t @ whole[batch])


@pytest.mark.parametrize(
    ("kind", "width", "apart"),
    [(np.int32, 15, 64), (np.int32, 16, 64), (np.int16, 9, 18), (np.int64, 8, 64), (np.int32, 0, 0)],
)
def test_rows_that_nearly_fill_a_line_of_memory_begin_one(kind: Any, width: int, apart: int) -> None:
    rng = np.random.default_rng(width)
    parts = [rng.integers(-9, 9, (rows, width)).astype(kind) for rows in (4, 0, 3)]
    joined = Columns.joined([Columns(part) for part in parts])
    np.testing.assert_array_equal(joined.values, np.concatenate(parts))
    assert joined.values.dtype == kind
    if width:
        assert joined.values.strides == (apart, np.dtype(kind).itemsize)
        assert apart != 64 or joined.values.ctypes.data % 64 == 0


def test_words_of_a_lot_are_good_for_one_lot() -> None:
    trio, lot = Trio(words(np.random.default_rng(0), 5, 2)), lot_of([0, 1], [2])
    asked, owned = trio.asker.take(lot), trio.owner.take(lot)
    trio.dealer.deal(lot)
    again = lot_of([3, 4])
    for use in (trio.asker.take, trio.owner.take, trio.dealer.deal):
        with pytest.raises(TagReused):
            use(again)
    asked.veil(0, np.zeros((1, 2), dtype=np.uint64))
    asked.moved(1, np.zeros((1, 1), dtype=np.uint64))
    with pytest.raises(TagReused):
        asked.veil(0, np.ones((1, 2), dtype=np.uint64))
    with pytest.raises(TagReused):
        asked.moved(1, np.ones((1, 1), dtype=np.uint64))
    owned.scores(0, np.zeros((1, 2), dtype=np.uint64))


def test_what_has_another_shape_or_type_is_refused() -> None:
    trio, lot = Trio(words(np.random.default_rng(0), 5, 2)), lot_of([0, 1])
    owned = trio.owner.take(lot)
    with pytest.raises(SumError, match="were due"):
        owned.add(0, np.zeros((1, 3), dtype=np.uint64))
    with pytest.raises(SumError, match="were due"):
        owned.scores(0, np.zeros((1, 2)))  # type: ignore[arg-type]


# -- what each side sees: all of it, counted in the ring of integers modulo 4 ----------------------------


class Known:
    """Streams whose words are given, by purpose: what the parties compute with them is then a view."""

    def __init__(self, given: dict[str, int]) -> None:
        self.given = given

    def at(self, me: str) -> Known:
        return self

    def shared(self, peer: str, purpose: str, roles: Roles, table: str = "") -> Known:
        return Known({"word": self.given[purpose]})

    def table(self, tags: Words, count: int) -> Words:
        return np.full((len(tags), count), self.given["word"], dtype=np.uint64)

    def once(self, tag: int, count: int) -> Words:
        return np.full(count, self.given["word"], dtype=np.uint64)


def views(x: int, t: int, s: int, w: int) -> dict[str, Counter[tuple[int, ...]]]:
    """How often each side sees what, over all words there are; one row, one column, w = p + s."""
    seen: dict[str, Counter[tuple[int, ...]]] = {"owner": Counter(), "dealer": Counter(), "asker": Counter()}
    lot = lot_of([0])
    for M, v, a, r in product(range(4), repeat=4):
        known = Known({COLUMNS: M, SCORED: v, ADDED: a, DEALT: r})
        trio = Trio(np.array([[x]], dtype=np.uint64), known.at)
        asked, owned = trio.asker.take(lot), trio.owner.take(lot)
        dealt_scores, dealt = trio.dealer.deal(lot)
        one = np.array([[1]], dtype=np.uint64)
        veil, moved = asked.veil(0, s * one), asked.moved(0, t * one)[0]
        total = asked.scores[0] + dealt_scores[0] + owned.scores(0, (w - s) % 4 * one + veil)
        assert int(total[0, 0]) % 4 == x * w % 4
        sees = {
            "owner": (veil, moved, M, r),
            "dealer": (M, v, a, r),
            "asker": (trio.veiled, dealt, total, v, a),
        }
        for side, values in sees.items():
            seen[side][tuple(int(np.asarray(value).item()) % 4 for value in values)] += 1
    return seen


def test_an_owner_s_view_does_not_depend_on_what_is_added_or_asked() -> None:
    base = views(x=1, t=0, s=0, w=0)["owner"]
    others = [(0, 1, 0), (1, 3, 2), (2, 2, 3), (3, 0, 1)]
    assert all(views(x=1, t=t, s=s, w=w)["owner"] == base for t, s, w in others)


def test_a_dealer_s_view_depends_on_nothing() -> None:
    base = views(x=0, t=0, s=0, w=0)["dealer"]
    assert all(views(x=x, t=t, s=s, w=2)["dealer"] == base for x, t, s in [(1, 0, 3), (2, 1, 0), (3, 2, 1)])


def test_an_asker_s_view_depends_on_the_total_alone() -> None:
    """x = 1, w = 2 and x = 2, w = 1 and x = 3, w = 2 (modulo 4) have the same total, and the same view."""
    base = views(x=1, t=3, s=1, w=2)["asker"]
    assert views(x=2, t=3, s=1, w=1)["asker"] == base
    assert views(x=3, t=3, s=1, w=2)["asker"] == base
    assert views(x=1, t=3, s=1, w=1)["asker"] != base


# -- uniform -----------------------------------------------------------------------------------------


def spread(values: Words) -> float:
    """The p-value that the bytes of words are uniform."""
    return float(stats.chisquare(np.bincount(values.reshape(-1).view(np.uint8), minlength=256)).pvalue)


def test_everything_that_is_sent_is_uniform_and_a_mask_used_twice_is_not() -> None:
    rng = np.random.default_rng(1)
    X = rng.integers(-4096, 4096, (4000, 8)).view(np.uint64)  # small numbers, as columns are
    trio, again = Trio(X), Trio(X[::-1].copy())
    lot = lot_of(list(range(4000)), scored=2, added=2)
    asked, small = trio.asker.take(lot), np.zeros((2, 4000), dtype=np.uint64)
    assert min(spread(trio.veiled), spread(asked.moved(0, small)), spread(trio.dealer.deal(lot)[1])) > 1e-6
    assert spread(trio.veiled - again.veiled) < 1e-12  # the same words twice: the difference of the columns


def test_new_keys_veil_the_same_columns_anew() -> None:
    X = words(np.random.default_rng(2), 30, 3)
    first, second = Trio(X), Trio(X, lambda me: streams_of(me, run=1))
    assert not (first.veiled == second.veiled).any()
    other = Lot(0, "test", (np.arange(3),), 1, 0)
    assert not np.array_equal(first.dealer.deal(other)[0][0], Trio(X).dealer.deal(lot_of([0, 1, 2]))[0][0])
