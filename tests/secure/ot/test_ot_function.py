"""F by transfers: one value at both sides for ids that were asked, and none for any other."""

from __future__ import annotations

import hashlib
import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from colonnade.arrays import Digests, Words
from colonnade.conversations.align import FEW, most_tested
from colonnade.secure.hashes import hashes
from colonnade.secure.hints import read_table, size_for
from colonnade.secure.ot import extension, function
from colonnade.secure.ot.bits import SUMS
from colonnade.secure.ot.code import DISTANCE, LENGTH, encoded

CONTEXT = bytes(range(32))


def ids_of(count: int, name: str = "id") -> Digests:
    packed = b"".join(hashlib.sha256(f"{name} {k}".encode()).digest() for k in range(count))
    return np.frombuffer(packed, dtype=np.uint8).reshape(-1, 32)


class Asked:
    """A lot that was asked and answered honestly."""

    def __init__(self, ids: Digests, room: int) -> None:
        both = np.frombuffer(os.urandom(2 * LENGTH * 32), dtype=np.uint8).reshape(2, LENGTH, 32)
        choices = np.unpackbits(np.frombuffer(os.urandom(LENGTH // 8), dtype=np.uint8)).astype(np.bool_)
        seeds = np.where(choices[:, None], both[1], both[0])
        self.key = function.TransferKey(extension.packed(choices), seeds, CONTEXT)
        self.room, self.table = room, function.write(ids, room)
        messages = self.table.rows()
        covered, self.own = extension.cover((both[0], both[1]), 0, messages)
        self.rows = extension.uncovered(seeds, self.key.choices, 0, covered)
        challenge = np.frombuffer(os.urandom(32), dtype=np.uint64)
        proof = extension.proof(self.own, messages, challenge)
        extension.check(self.rows, self.key.choices, challenge, proof)
        self.values = function.learn(ids, room, self.table.seed, self.own, CONTEXT)

    def computed(self, ids: Digests) -> Words:
        return function.compute(ids, self.room, self.table.seed, self.rows, self.key)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 400), st.integers(0, 100))
def test_both_sides_have_the_same_value(count: int, spare: int) -> None:
    ids = ids_of(count)
    asked = Asked(ids, count + spare)
    assert len(asked.rows) == function.rows_for(count + spare)
    assert (asked.computed(ids) == asked.values).all()


def test_the_value_is_the_hash_of_the_row_and_the_id() -> None:
    ids = ids_of(5)
    asked = Asked(ids, 20)
    keys = np.ascontiguousarray(ids[:, :16]).view(np.uint64)
    row = read_table(asked.own[: size_for(20)], asked.table.seed, keys)[2]
    due = hashlib.blake2b(ids[2].tobytes() + row.tobytes(), key=CONTEXT, digest_size=16).digest()
    assert asked.values[2].tobytes() == due


def test_at_ids_that_were_not_asked_the_asker_lacks_as_many_bits_as_the_code_is_apart() -> None:
    """Its row and the key holder's differ in the codeword of what its table gives wrongly, where s is one."""
    ids, others = ids_of(300), ids_of(300, "other")
    asked = Asked(ids, 310)
    keys = np.ascontiguousarray(others[:, :16]).view(np.uint64)
    size = size_for(310)
    told = read_table(asked.table.messages[:size], asked.table.seed, keys)
    wrong = encoded(told ^ function._messages(others))
    unknown = np.unpackbits(wrong.view(np.uint8), axis=1).sum(axis=1)
    assert unknown.min() >= DISTANCE
    own = read_table(asked.own[:size], asked.table.seed, keys)
    theirs = read_table(asked.rows[:size], asked.table.seed, keys)
    theirs ^= encoded(function._messages(others)) & asked.key.choices
    assert (own ^ theirs == wrong & asked.key.choices).all()
    guessed = hashes(CONTEXT, others, own)
    assert not (guessed == asked.computed(others)).all(axis=1).any()


def test_a_value_looks_like_noise() -> None:
    ids = ids_of(3000)
    values = Asked(ids[:10], 100).computed(ids)
    ones = np.unpackbits(values.view(np.uint8))
    assert abs(ones.mean() - 0.5) < 5 * 0.5 / ones.size**0.5
    assert len(np.unique(values, axis=0)) == 3000


def test_two_peers_that_compare_their_checks_learn_nothing_of_the_table() -> None:
    """Each has sums with random rows added, and the rows of one are not those of the other."""
    table = function.write(ids_of(50), 60)
    one, other = table.rows(), table.rows()
    assert (one[: len(table.messages)] == table.messages).all()
    assert (other[: len(table.messages)] == table.messages).all()
    assert not (one[-SUMS:] == other[-SUMS:]).all(axis=1).any()
    assert len(one) == function.rows_for(60)


def test_the_table_does_not_tell_how_many_ids_it_holds() -> None:
    assert len(function.write(ids_of(3), 200).messages) == len(function.write(ids_of(190), 200).messages)


@settings(max_examples=200)
@given(st.integers(FEW, 2**36))
def test_a_leader_can_test_hardly_more_ids_than_it_announces(size: int) -> None:
    assert size <= most_tested(size, "ot") <= 1.3 * size
    assert most_tested(size, "curve") == size


@pytest.mark.parametrize("size", [1, 100, FEW - 1])
def test_few_ids_are_compared_on_the_curve(size: int) -> None:
    assert most_tested(size, "ot") == size
