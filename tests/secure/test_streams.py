"""Words that two parties share: the same at both, other words for every purpose, role and tag, used once."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from colonnade.errors import SumError, TagReused
from colonnade.messages import Topic, tag_of
from colonnade.secure.streams import Masks, PairStreams, Roles, Stream, subkey

SECRETS = {frozenset(pair): bytes([k]) * 32 for k, pair in enumerate([("a", "p"), ("a", "t"), ("p", "t")])}
ROLES = Roles("a", "p", "t")


def streams_of(me: str) -> PairStreams:
    return PairStreams(me, {peer: SECRETS[frozenset((me, peer))] for peer in "apt" if peer != me})


def test_both_ends_make_the_same_words() -> None:
    mine = streams_of("p").shared("t", "mask", ROLES, "train")
    theirs = streams_of("t").shared("p", "mask", ROLES, "train")
    np.testing.assert_array_equal(mine.words(3, 101), theirs.words(3, 101))


def test_every_purpose_role_table_and_tag_has_words_of_its_own() -> None:
    """Also where two owners help each other: one stream a pair would show the difference of their columns."""
    seen: list[int] = []
    for roles in permutations("apt"):
        for me, peer in (("a", "t"), ("p", "t"), ("a", "p")):
            for purpose in ("mask", "deal", "sum"):
                for table in ("train", "test"):
                    stream = streams_of(me).shared(peer, purpose, Roles(*roles), table)
                    for tag in (0, 1, tag_of(Topic.EVALUATE, 0)):
                        seen += stream.words(tag, 5).tolist()
    seen += Stream(subkey(SECRETS[frozenset("pt")], "sum")).words(0, 5).tolist()
    assert len(set(seen)) == len(seen)


def test_rows_of_a_table_may_be_made_in_any_order() -> None:
    stream = streams_of("p").shared("t", "mask", ROLES)
    whole = stream.table(np.arange(50), 7)
    some = np.array([49, 3, 3, 17])
    np.testing.assert_array_equal(stream.table(some, 7), whole[some])
    np.testing.assert_array_equal(stream.table(np.arange(50), 4), whole[:, :4])
    np.testing.assert_array_equal(stream.words(17, 7), whole[17])


def test_what_hides_a_value_is_used_once() -> None:
    streams = streams_of("a")
    streams.shared("t", "deal", ROLES).once(4, 10)
    with pytest.raises(TagReused):
        streams.shared("t", "deal", ROLES).once(4, 10)  # the same stream, however often it is asked for
    streams.shared("t", "score", ROLES).once(4, 10)


@pytest.mark.parametrize("roles", [("a", "p", "a"), ("a", "a", "t"), ("p", "p", "p")])
def test_two_roles_at_one_party_are_refused(roles: tuple[str, str, str]) -> None:
    with pytest.raises(SumError, match="three different parties"):
        streams_of("a").shared("t", "mask", Roles(*roles))


def test_whoever_has_no_role_has_no_stream() -> None:
    with pytest.raises(SumError, match="share no stream"):
        PairStreams("x", {"t": bytes(32)}).shared("t", "mask", ROLES)


def test_words_are_uniform() -> None:
    octets = streams_of("a").shared("t", "mask", ROLES).words(0, 100_000).view(np.uint8)
    assert stats.chisquare(np.bincount(octets, minlength=256)).pvalue > 1e-6


@given(st.lists(st.tuples(st.integers(0, 300), st.sampled_from([3, 40, 41, 49, 9000, 20_001])), max_size=40))
def test_masks_are_the_words_of_all_streams_in_whatever_order_they_are_asked_for(
    asked: list[tuple[int, int]],
) -> None:
    streams = [Stream(bytes([number]) * 32) for number in range(3)]
    masks = Masks(streams[:2], streams[2:])
    for number, size in asked:
        tag = tag_of(Topic.TUNE, number)
        first, second, third = (stream.words(tag, size) for stream in streams)
        assert np.array_equal(masks.of(tag, size)[:size], first + second - third)
