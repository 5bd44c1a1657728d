"""Random words become numbers of the distributions that the argument needs."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.oracles import lattice as oracle

from colonnade.errors import SumError
from colonnade.secure.lattice.arithmetic import code, primes_below
from colonnade.secure.lattice.ciphertexts import centred
from colonnade.secure.lattice.source import Source

P = primes_below(2**50, 2048, 1)[0]
COUNT = 2**18


def seeded(purpose: str = "a test") -> Source:
    return Source(bytes(32), purpose)


def chi_square(found: list[int], due: list[float]) -> float:
    """How far counts are from what is due, in deviations of that distance."""
    distance = sum((a - b) ** 2 / b for a, b in zip(found, due, strict=True))
    free = len(found) - 1
    return (distance - free) / math.sqrt(2 * free)


def test_errors_are_centred_binomial(way: str) -> None:
    out = np.zeros(COUNT, dtype=np.uint64)
    code().errors(seeded().words(COUNT), out, P)
    errors = centred(out, P)
    values = range(-9, 10)
    due = [COUNT * math.comb(42, 21 + k) / 2**42 for k in values]
    assert chi_square([int((errors == k).sum()) for k in values], due) < 4
    assert np.abs(errors).max() <= 21


def test_keys_are_uniform_among_three(way: str) -> None:
    out = np.zeros(COUNT, dtype=np.uint64)
    code().ternary(seeded().words(COUNT), out, P)
    small = centred(out, P)
    assert set(small.tolist()) == {-1, 0, 1}
    assert chi_square([int((small == k).sum()) for k in (-1, 0, 1)], [COUNT / 3] * 3) < 4


def test_the_ends_of_words_are_the_ends_of_numbers(way: str) -> None:
    third = 2**64 // 3
    words = np.array([0, third, third + 1, 2 * third, 2 * third + 1, 2**64 - 1], dtype=np.uint64)
    out = np.zeros_like(words)
    code().ternary(words, out, P)
    assert centred(out, P).tolist() == [-1, -1, 0, 0, 1, 1]
    out = np.zeros(4, dtype=np.uint64)
    code().errors(np.array([0, 2**21 - 1, (2**21 - 1) << 21, 2**64 - 1], dtype=np.uint64), out, P)
    assert centred(out, P).tolist() == [0, 21, -21, 0]


@pytest.mark.parametrize("bits", [64, 65, 105])
def test_a_flood_is_a_sum_of_three_uniform_numbers(way: str, bits: int) -> None:
    """Two primes give it as a whole number; its moments and its lowest bits are those of such a sum."""
    primes = primes_below(2**50, 2048, 3)
    count = 2**13
    words = seeded().words(count, 3, 2)
    found = []
    for p in primes:
        out = np.zeros(count, dtype=np.uint64)
        code().flood(words, out, p, bits)
        found.append(out.tolist())
    q = math.prod(primes)
    flood = [oracle.centred(oracle.joined(residues, primes), q) for residues in zip(*found, strict=True)]
    mask = 2 ** (bits - 64) - 1
    due = [
        sum(int(low) + ((int(high) & mask) << 64) for low, high in row) - 3 * 2 ** (bits - 1) for row in words
    ]
    assert flood == due
    half = 2 ** (bits - 1)
    scaled = np.array([x / half for x in flood])
    assert np.abs(scaled).max() <= 3
    assert abs(scaled.mean()) < 4 / math.sqrt(count)
    assert abs(scaled.var() - 1) < 4 * math.sqrt(1.6 / count)  # the kurtosis is 2.6
    lowest = np.bincount([x % 16 for x in flood], minlength=16)
    assert chi_square(lowest.tolist(), [count / 16] * 16) < 4


def test_numbers_below_a_prime_are_uniform_and_none_is_lost(way: str) -> None:
    p = 97  # 31 of 128 words are no such number
    out = seeded().uniform(np.empty(COUNT, dtype=np.uint64), p)
    assert chi_square(np.bincount(out.astype(int), minlength=p).tolist(), [COUNT / p] * p) < 4


def test_purposes_and_seeds_give_other_words_and_no_word_comes_twice() -> None:
    words = seeded().words(1000)
    assert not set(words.tolist()) & set(seeded("another").words(1000).tolist())
    assert not set(words.tolist()) & set(Source(bytes(31) + b"\1", "a test").words(1000).tolist())
    assert not set(Source.fresh().words(1000).tolist()) & set(Source.fresh().words(1000).tolist())
    source = seeded()
    np.testing.assert_array_equal(np.concatenate([source.words(3), source.words(997)])[:3], words[:3])
    assert source.words(10**5).size == len(set(source.words(10**5).tolist()))


def test_long_streams_do_not_repeat() -> None:
    words = seeded().words(3 * 2**13 + 5)  # more than one piece
    assert len(set(words.tolist())) == words.size


def test_a_short_seed_is_refused() -> None:
    with pytest.raises(SumError, match="32 bytes"):
        Source(bytes(16), "a test")
