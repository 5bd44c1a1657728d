"""Rows of bits, transfers of seeds and their extension, against plain loops; what a cheating side gains."""

from __future__ import annotations

import os

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray
from tests.oracles import curve as book

from colonnade.arrays import Words
from colonnade.errors import AlignmentError
from colonnade.secure.curve import ORDER, POINT, added, base_times, hashed_points, negative
from colonnade.secure.ot import base, extension
from colonnade.secure.ot.bits import SUMS, combined, transposed
from colonnade.secure.ot.code import LENGTH, encoded, message

CONTEXT = bytes(32)


def words(*shape: int, seed: int = 0) -> Words:
    return np.random.default_rng(seed).integers(0, 2**64, size=shape, dtype=np.uint64)


def bits(array: NDArray[np.uint8] | Words) -> NDArray[np.uint8]:
    """Every row of an array as its bits."""
    return np.unpackbits(np.ascontiguousarray(array).view(np.uint8), axis=1, bitorder="little")


@settings(max_examples=30)
@given(hnp.arrays(np.uint8, st.tuples(st.sampled_from([64, 128, 512]), st.integers(1, 20))))
def test_transposing_is_what_numpy_does_with_single_bits(columns: NDArray[np.uint8]) -> None:
    assert (bits(transposed(columns)) == bits(columns).T).all()


@settings(max_examples=30)
@given(st.integers(1, 300), st.integers(1, 10), st.integers(0, 2**32))
def test_sums_are_products_of_matrices_of_bits(rows: int, width: int, seed: int) -> None:
    matrix, coefficients = words(rows, width, seed=seed), words(rows, seed=seed + 1)
    naive = bits(coefficients.reshape(-1, 1)).T.astype(np.int64) @ bits(matrix) % 2
    assert (bits(combined(matrix, coefficients)) == naive).all()


def test_noise_is_aes_in_counter_mode() -> None:
    """The published block of zeros under the key of zeros, then the blocks that follow it."""
    known = "dc95c078a2408989ad48a21492842087"
    assert extension._stream(bytes(32), 0, 16).tobytes().hex() == known
    key, number = os.urandom(32), 77
    counters = b"".join(number.to_bytes(8, "big") + k.to_bytes(8, "big") for k in range(5))
    by_block = Cipher(algorithms.AES(key), modes.ECB()).encryptor().update(counters)  # noqa: S305
    assert extension._stream(key, number, 75).tobytes() == by_block[:75]


def test_the_chooser_gets_the_seeds_that_it_chose() -> None:
    choices = np.arange(40) % 3 == 0
    zero, one = np.frombuffer(os.urandom(2 * 32 * 40), dtype=np.uint8).reshape(2, 40, 32)
    offers, secrets = base.choose(choices, CONTEXT)
    answer = base.give(offers, (zero, one), CONTEXT)
    got = base.opened(choices, secrets, offers, answer, CONTEXT)
    assert (got == np.where(choices[:, None], one, zero)).all()


def test_a_sum_of_the_offer_is_known_and_the_other_is_decided_by_a_hash() -> None:
    """By the book: r_c + H_c(r_(1-c)) = aG for the choice alone, and hidden seeds open with a(yG) alone."""
    choices = np.array([False, True])
    offers, secrets = base.choose(choices, CONTEXT)
    pairs = offers.reshape(2, 2, POINT)
    for k, choice in enumerate(choices.astype(int)):
        known = book.pack(book.multiply(book.G, int.from_bytes(secrets[k], "big")))
        for side in (0, 1):
            sides = np.full(2, side, dtype=np.bool_)
            hashed = base._hashes(pairs[:, 1 - side], sides, CONTEXT)[k]
            total = added(pairs[k : k + 1, side], hashed.reshape(1, -1)).tobytes()
            assert (total == known) == (side == choice)


def test_hidden_seeds_open_for_nothing_else() -> None:
    choices, count = np.zeros(20, dtype=np.bool_), 20
    zero, one = np.frombuffer(os.urandom(2 * 32 * count), dtype=np.uint8).reshape(2, count, 32)
    offers, secrets = base.choose(choices, CONTEXT)
    answer = base.give(offers, (zero, one), CONTEXT)
    wrong = base.opened(~choices, secrets, offers, answer, CONTEXT)
    assert not (wrong == one).all(axis=1).any()
    elsewhere = base.opened(choices, secrets, offers, answer, os.urandom(32))
    assert not (elsewhere == zero).all(axis=1).any()


@pytest.mark.parametrize("choice", [False, True])
def test_an_offer_does_not_tell_the_choice(choice: bool) -> None:
    """Both points of a pair are uniform whatever was chosen: their bits are, place by place."""
    offers, _ = base.choose(np.full(600, choice), CONTEXT)
    for side in (0, 1):
        ones = np.unpackbits(offers[side::2, 1:], axis=1)
        assert abs(ones.mean() - 0.5) < 5 * 0.5 / ones.size**0.5
        assert (abs(ones.mean(axis=0) - 0.5) < 6 * 0.5 / 600**0.5).all()


def test_offers_that_are_no_points_or_cancel_are_refused() -> None:
    seeds = np.zeros((1, 32), dtype=np.uint8)
    with pytest.raises(AlignmentError, match="no point of the curve"):
        base.give(np.zeros((2, POINT), dtype=np.uint8), (seeds, seeds), CONTEXT)
    r1 = hashed_points(seeds)
    hashed = base._hashes(r1, np.zeros(1, dtype=np.bool_), CONTEXT)
    r0 = np.frombuffer(negative(hashed[0].tobytes()), dtype=np.uint8).reshape(1, POINT)
    with pytest.raises(AlignmentError, match="cancel"):
        base.give(np.concatenate([r0, r1]), (seeds, seeds), CONTEXT)
    with pytest.raises(AlignmentError, match="no point of the curve"):
        base.opened(
            np.zeros(1, dtype=np.bool_),
            [(ORDER - 1).to_bytes(32, "big")],
            np.concatenate([r0, r1]),
            (np.ones((1, POINT), dtype=np.uint8), np.zeros((1, 2, 32), dtype=np.uint8)),
            CONTEXT,
        )
    assert base_times((ORDER - 1).to_bytes(32, "big"))[1:33] == base_times((1).to_bytes(32, "big"))[1:33]


class Sides:
    """Both sides of an extension, with seeds as they are after honest transfers."""

    def __init__(self, rows: int, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        self.both = (words(LENGTH, 4, seed=1).view(np.uint8), words(LENGTH, 4, seed=2).view(np.uint8))
        self.choices = rng.random(LENGTH) < 0.5
        self.seeds = np.where(self.choices[:, None], self.both[1], self.both[0])
        self.packed = extension.packed(self.choices)
        self.messages = message(words(extension.rows_for(rows), 2, seed=seed + 3))
        self.covered, self.own = extension.cover(self.both, 5, self.messages)

    def checked(self, covered: Words, seed: int = 9) -> None:
        rows = extension.uncovered(self.seeds, self.packed, 5, covered)
        challenge = words(extension.CHALLENGE, seed=seed)
        proof = extension.proof(self.own, self.messages, challenge)
        extension.check(rows, self.packed, challenge, proof)


@pytest.mark.parametrize("rows", [1, 8, 100, 1000])
def test_rows_differ_by_the_codeword_where_the_choice_is_one(rows: int) -> None:
    sides = Sides(rows)
    assert len(sides.covered) == -(-rows // 8) * 8 + SUMS
    found = extension.uncovered(sides.seeds, sides.packed, 5, sides.covered)
    assert (found == sides.own ^ encoded(sides.messages) & sides.packed).all()
    elsewhere = extension.uncovered(sides.seeds, sides.packed, 6, sides.covered)
    assert not (elsewhere == found).all(axis=1).any()
    sides.checked(sides.covered)


def test_one_bit_beside_the_code_is_caught_by_every_other_choice() -> None:
    """A cheating asker finds out a bit of s by one try, and is caught if that bit is one: it must guess."""
    sides = Sides(64)
    for column in range(0, LENGTH, 17):
        covered = sides.covered.copy()
        covered[3, column // 64] ^= np.uint64(1) << np.uint64(column % 64)
        if sides.choices[column]:
            with pytest.raises(AlignmentError, match="no words of the code"):
                sides.checked(covered)
        else:
            sides.checked(covered)


def test_rows_that_are_no_codewords_are_caught() -> None:
    for seed in range(8):
        sides = Sides(200, seed)
        covered = sides.covered.copy()
        covered[seed] ^= words(8, seed=seed)
        with pytest.raises(AlignmentError, match="no words of the code"):
            sides.checked(covered, seed)


def test_a_proof_that_was_altered_is_refused() -> None:
    sides, rng = Sides(50), np.random.default_rng(1)
    rows = extension.uncovered(sides.seeds, sides.packed, 5, sides.covered)
    challenge = words(extension.CHALLENGE, seed=1)
    proof = extension.proof(sides.own, sides.messages, challenge)
    for _ in range(20):
        other = proof.copy()
        other[rng.integers(SUMS), rng.integers(8)] ^= np.uint64(1) << np.uint64(rng.integers(64))
        with pytest.raises(AlignmentError, match="no words"):
            extension.check(rows, sides.packed, challenge, other)
    with pytest.raises(AlignmentError, match="no words"):
        extension.check(rows, sides.packed, words(extension.CHALLENGE, seed=2), proof)


def test_a_proof_tells_nothing_of_the_rows() -> None:
    """Sums of rows that are all alike look like noise: each has a random row of its own added."""
    sides = Sides(1000)
    messages = sides.messages.copy()
    messages[:-SUMS] = 0
    proof = extension.proof(np.zeros_like(sides.own), messages, words(extension.CHALLENGE))
    assert (proof[:, 8:] == messages[-SUMS:]).all()


def test_what_is_covered_looks_like_noise() -> None:
    sides = Sides(20_000)
    messages = np.zeros_like(sides.messages)
    covered, _ = extension.cover(sides.both, 1, messages)
    ones = bits(covered)
    assert abs(ones.mean() - 0.5) < 5 * 0.5 / ones.size**0.5
    assert (abs(ones.mean(axis=0) - 0.5) < 6 * 0.5 / len(ones) ** 0.5).all()
    assert (abs(ones.mean(axis=1) - 0.5) < 7 * 0.5 / LENGTH**0.5).all()
