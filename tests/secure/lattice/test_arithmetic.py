"""Transforms and products are those of whole numbers, on every kind of processor."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracles import lattice as oracle

from colonnade.arrays import Words
from colonnade.errors import SumError
from colonnade.secure.lattice import arithmetic, portable
from colonnade.secure.lattice.arithmetic import WAYS, Modulus, code, modulus, primes_below, using

RINGS = [(16, 2**50), (32, 2**34), (64, 2**44), (64, 2**20)]


def numbers(rng: np.random.Generator, p: int, *shape: int) -> Words:
    """Numbers below p, many of them as large as can be."""
    drawn = rng.integers(0, p, shape, dtype=np.uint64)
    drawn[rng.random(shape) < 0.3] = p - 1
    return drawn


@pytest.mark.parametrize(("degree", "limit"), RINGS)
def test_products_of_values_are_products_of_polynomials(way: str, degree: int, limit: int) -> None:
    rng = np.random.default_rng(degree)
    m = modulus(primes_below(limit, degree, 1)[0], degree)
    for _ in range(5):
        a, b = numbers(rng, m.p, 2, degree)
        out = np.zeros((1, 1, degree), dtype=np.uint64)
        m.add_products(m.forward(a.copy())[None, None], m.forward(b.copy()), out)
        assert m.inverse(out).ravel().tolist() == oracle.product(a.tolist(), b.tolist(), m.p)


@pytest.mark.parametrize("degree", [16, 32, 2048, 4096, 8192])
@pytest.mark.parametrize("limit", [2**34, 2**43, 2**50])
def test_all_ways_transform_alike_and_back(degree: int, limit: int) -> None:
    m = modulus(primes_below(limit, degree, 1)[0], degree)
    rng = np.random.default_rng(1)
    x = np.concatenate([numbers(rng, m.p, 2, degree), np.full((1, degree), m.p - 1, dtype=np.uint64)])
    due = x.copy()
    with using("numpy"):
        m.forward(due)
    for way in WAYS:
        with using(way):
            values = m.forward(x.copy())
            np.testing.assert_array_equal(values, due)
            np.testing.assert_array_equal(m.inverse(values), x)


@settings(max_examples=60, deadline=None)
@given(
    terms=st.integers(1, 40),
    parts=st.integers(1, 2),
    outputs=st.integers(1, 9),
    limit=st.sampled_from([2**50, 2**34]),
    add=st.booleans(),
    seed=st.integers(0, 2**32),
)
def test_sums_of_products_are_those_of_whole_numbers(
    terms: int, parts: int, outputs: int, limit: int, add: bool, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    m = modulus(primes_below(limit, 16, 1)[0], 16)
    a, b = numbers(rng, m.p, parts, terms, 16), numbers(rng, m.p, outputs, terms, 16)
    before = numbers(rng, m.p, parts, outputs, 16)
    due: Any = (a.astype(object)[:, None] * b.astype(object)[None]).sum(axis=2) + add * before.astype(object)
    for way in WAYS:
        with using(way):
            out = before.copy()
            m.products(a, b, out, (8, 4 * terms * 16, 16, terms * 16), add)
            np.testing.assert_array_equal(out, (due % m.p).astype(np.uint64))


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32), p=st.sampled_from(primes_below(2**50, 4096, 2) + primes_below(2**34, 4096, 1))
)
def test_small_functions_are_those_of_whole_numbers(seed: int, p: int) -> None:
    """Scaling, dropping a prime and cutting, against fractions, in C and in NumPy."""
    rng = np.random.default_rng(seed)
    other, t = primes_below(2**50, 4096, 3)[2], 2**33 + 17
    x, rest, message = numbers(rng, p, 8), numbers(rng, other, 8), numbers(rng, t, 8)
    q = p * other
    whole = [oracle.joined(pair, (p, other)) for pair in zip(x.tolist(), rest.tolist(), strict=True)]
    for module in {code(), portable}:
        out = x.copy()
        module.scaled(message, out, p, t, q % t, pow(t, -1, p))
        scaled = [oracle.rounded(q * m, t) for m in message.tolist()]
        assert out.tolist() == [(a + b) % p for a, b in zip(x.tolist(), scaled, strict=True)]
        out = x.copy()
        module.drop(rest, out, other, p, pow(other, -1, p))
        assert out.tolist() == [oracle.rounded(c, other) % p for c in whole]
        out = x.copy()
        module.cut(out, p, 32)
        assert all(
            (c - oracle.rounded(a << 32, p)) % 2**32 in (0, 2**32 - 1)
            for a, c in zip(x.tolist(), out.tolist(), strict=True)
        )


@pytest.mark.skipif(not arithmetic.COMPILED, reason="no compiler made _lattice")
@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32), bits=st.integers(1, 56), flood=st.integers(64, 126))
def test_c_and_numpy_do_the_same(seed: int, bits: int, flood: int) -> None:
    rng = np.random.default_rng(seed)
    p = primes_below(2**50, 16, 1)[0]
    words = rng.integers(0, 2**64, (16, 3, 2), dtype=np.uint64)
    words[rng.random(words.shape) < 0.2] = 2**64 - 1
    found = []
    for module in (code(), portable):
        out = [numbers(np.random.default_rng(seed), p, 16) for _ in range(5)]
        module.flood(words, out[0], p, flood)
        module.errors(words[:, 0, 0].copy(), out[1], p)
        module.ternary(words[:, 0, 1].copy(), out[2], p)
        count = module.uniform(words.ravel(), out[3], p - 2**45)
        module.cut(out[4], p, min(bits, 49))
        packed = np.empty(2 * bits, dtype=np.uint8)
        module.pack(words[:, 1, 0].copy(), packed, bits)
        back = np.empty(16, dtype=np.uint64)
        module.unpack(packed, back, bits)
        np.testing.assert_array_equal(back, words[:, 1, 0] & np.uint64(2**bits - 1))
        found.append([*(part.tolist() for part in out), count, packed.tobytes()])
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("p", "degree", "told"),
    [
        (97, 12, "power of two"),
        (2**50 + 1, 16, "not a prime"),
        (primes_below(2**50, 16, 1)[0], 4096, "not a prime"),
    ],
)
def test_a_modulus_without_roots_is_refused(p: int, degree: int, told: str) -> None:
    with pytest.raises(SumError, match=told):
        Modulus(p, degree)


def test_a_way_that_is_not_there_is_refused_by_name() -> None:
    with pytest.raises(SumError, match=r"no way 'abacus'.*numpy"), using("abacus"):
        pass


@pytest.mark.skipif(not arithmetic.COMPILED, reason="no compiler made _lattice")
def test_compiled_code_refuses_arrays_that_do_not_fit() -> None:
    m, module = modulus(primes_below(2**50, 16, 1)[0], 16), code()
    a, out = np.zeros((2, 3, 16), dtype=np.uint64), np.zeros((2, 5, 16), dtype=np.uint64)
    b = np.zeros((5, 3, 16), dtype=np.uint64)
    good = (8, 4 * 48, 16, 48)
    m.products(a, b, out, good, add=False)
    for strides in [
        (9, *good[1:]),
        (8, 2**39, 16, 48),
        (8, 4 * 48, 17, 48),
        (8, 4 * 48, 16, 2**62),
        (2**63, 0, 0, 0),
    ]:
        with pytest.raises(ValueError, match="factors end"):
            m.products(a, b, out, strides, add=False)
    with pytest.raises(ValueError, match="shapes"):
        m.products(a[:, :, :8].copy(), b, out, good, add=False)
    with pytest.raises(ValueError, match="no such way"):
        module.products(a, b, out, *good, m.p, 0, 3)
    with pytest.raises(ValueError, match="no such modulus"):
        module.products(a, b, out, *good, 2**50, 0, 0)
    with pytest.raises(ValueError, match="shapes"):
        module.transform(np.zeros((1, 8), dtype=np.uint64), m._tables, m.p, 1, 0, 0)
    with pytest.raises(ValueError, match="shapes"):
        module.unpack(np.zeros(15, dtype=np.uint8), np.zeros(8, dtype=np.uint64), 16)
    odd = np.zeros(8 * 8 + 1, dtype=np.uint8)[1:].view(np.uint64)
    with pytest.raises(ValueError, match="shapes"):
        module.errors(odd, np.zeros(8, dtype=np.uint64), m.p)
