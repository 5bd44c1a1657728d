"""The code of the transfer extension: its roots, its distance, and words by the book."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from colonnade.arrays import Words
from colonnade.secure.ot.code import DIMENSION, DISTANCE, LENGTH, basis, encoded, generator, message

MODULUS = 0b1000010001


def product(a: int, b: int) -> int:
    """Of two elements of the field of 512, by the school's method."""
    total = 0
    while b:
        total ^= a if b & 1 else 0
        a = a << 1 ^ (MODULUS if a & 256 else 0)
        b >>= 1
    return total


def rest(dividend: int, divisor: int) -> int:
    """Of polynomials over two elements, written as the bits of a number."""
    while dividend.bit_length() >= divisor.bit_length():
        dividend ^= divisor << (dividend.bit_length() - divisor.bit_length())
    return dividend


def words_of(numbers: list[int]) -> Words:
    return np.array([[n % 2**64, n >> 64] for n in numbers], dtype=np.uint64).reshape(-1, 2)


def weights(words: Words) -> list[int]:
    return [int(bits) for bits in np.unpackbits(words.view(np.uint8), axis=1).sum(axis=1)]


def test_the_generator_has_the_roots_that_give_the_distance() -> None:
    """Consecutive powers of an element of order 511 are roots: the BCH bound is one more than there are."""
    coefficients = generator().tolist()
    assert len(coefficients) - 1 == 511 - DIMENSION == 435
    as_number = sum(bit << place for place, bit in enumerate(coefficients))
    assert rest(1 << 511 | 1, as_number) == 0  # cyclic
    power, seen = 1, set()
    for exponent in range(1, DISTANCE):
        power = product(power, 2)
        seen.add(power)
        value = 0
        for bit in reversed(coefficients):
            value = product(value, power) ^ bit
        assert (value == 0) == (exponent < DISTANCE - 1)
    assert len(seen) == DISTANCE - 1


def test_the_field_element_has_order_511() -> None:
    power, order = 2, 1
    while power != 1:
        power, order = product(power, 2), order + 1
    assert order == 511


def test_sums_of_few_basis_words_and_of_many_keep_the_distance() -> None:
    places = (chosen for count in (1, 2, 3) for chosen in combinations(range(DIMENSION), count))
    few = [sum(1 << k for k in chosen) for chosen in places]
    rng = np.random.default_rng(0)
    many = message(rng.integers(0, 2**64, size=(50_000, 2), dtype=np.uint64))
    found = weights(encoded(words_of(few))) + weights(encoded(many))
    assert min(found) >= DISTANCE
    assert all(weight % 2 == 0 for weight in found)


@settings(max_examples=50)
@given(st.integers(0, 2**DIMENSION - 1), st.integers(0, 2**DIMENSION - 1))
def test_words_are_multiples_of_the_generator_and_add_up(one: int, other: int) -> None:
    first, second, both = encoded(words_of([one, other, one ^ other]))
    assert (first ^ second == both).all()
    as_number = int.from_bytes(first.tobytes(), "little")
    g = sum(int(bit) << place for place, bit in enumerate(generator()))
    naive = 0
    for place in range(DIMENSION):
        naive ^= g << place if one >> place & 1 else 0
    assert as_number % 2**511 == naive
    assert as_number.bit_count() % 2 == 0


def test_the_basis_has_full_rank() -> None:
    rows = [int.from_bytes(np.packbits(row).tobytes(), "big") for row in basis()]
    pivots: list[int] = []
    for row in rows:
        for pivot in pivots:
            row = min(row, row ^ pivot)
        assert row
        pivots.append(row)
    assert len(pivots) == DIMENSION
    assert basis().shape == (DIMENSION, LENGTH)


def test_a_message_is_cut_to_76_bits() -> None:
    cut = message(np.full((1, 2), 2**64 - 1, dtype=np.uint64))
    assert int.from_bytes(cut.tobytes(), "little") == 2**DIMENSION - 1
