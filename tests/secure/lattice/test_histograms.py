"""Sums over bins of encrypted numbers: exact, with the owner's noise; and what hides the owner's bins."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from colonnade.errors import MalformedMessage, SumError
from colonnade.secure.lattice import histograms
from colonnade.secure.lattice.arithmetic import code
from colonnade.secure.lattice.ciphertexts import Ciphertexts, SecretKey, centred
from colonnade.secure.lattice.histograms import (
    SumAnswer,
    chunks_of,
    decrypted_sums,
    encrypted_rows,
    rows_together,
    sums_over_bins,
)
from colonnade.secure.lattice.parameters import MOST_SUM_BITS, SumParameters, sum_ring
from colonnade.secure.lattice.source import Source

RING = sum_ring(12, 600)
KNOWN = ["a44bb665438b44e3", "888127ac1c2c0d6d"]  # of what crosses, from fixed seeds


def seeded(number: int) -> Source:
    return Source(number.to_bytes(32, "big"), "a test")


def naive(ring: SumParameters, numbers: Any, bins: Any, noise: Any) -> list[int]:
    """What the sums are, in whole numbers of Python."""
    found = [int(each) for each in noise]
    for column in bins.tolist():
        for row, place in enumerate(column):
            found[place] += int(numbers[row])
    return [each % ring.plain for each in found]


def told(
    ring: SumParameters, numbers: Any, bins: Any, noise: Any, apart: int
) -> tuple[bytes, bytes, list[int]]:
    """What crosses, both ways, and what the asker reads."""
    key = SecretKey(ring, seeded(1))
    said = bytes(encrypted_rows(key, ring, numbers, apart))
    asked = Ciphertexts.read(ring, 1, chunks_of(len(numbers), apart), said)
    public = Ciphertexts.read(ring, 1, 1, bytes(key.public()))
    answer = bytes(sums_over_bins(public, asked, bins, noise, apart, seeded(2)))
    got = SumAnswer.read(ring, len(noise), apart, answer)
    return said, answer, decrypted_sums(key, got, apart).tolist()


def made_up(ring: SumParameters, rows: int, columns: int, sums: int, seed: int) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    numbers, noise = (rng.integers(0, ring.plain, count, dtype=np.uint64) for count in (rows, sums))
    return numbers, rng.integers(0, sums, (columns, rows)), noise


@settings(max_examples=25, deadline=None)
@given(
    rows=st.integers(0, 900),
    columns=st.integers(1, 6),
    width=st.integers(1, 60),
    apart=st.sampled_from([16, 64, 256, 2048]),
    bits=st.integers(10, MOST_SUM_BITS),
    seed=st.integers(0, 2**32),
)
def test_sums_are_exact(rows: int, columns: int, width: int, apart: int, bits: int, seed: int) -> None:
    ring = sum_ring(bits, rows * columns)
    numbers, bins, noise = made_up(ring, rows, columns, columns * width, seed)
    bins = bins % width + width * np.arange(columns)[:, None]  # no two columns share a bin
    _, _, found = told(ring, numbers, bins, noise, apart)
    assert found == naive(ring, numbers, bins, noise)


def test_every_way_says_the_same(way: str) -> None:
    numbers, bins, noise = made_up(RING, 150, 1, 40, 0)
    said, answer, found = told(RING, numbers, bins, noise, 64)
    assert found == naive(RING, numbers, bins, noise)
    digests = [hashlib.blake2b(each, digest_size=8).hexdigest() for each in (said, answer)]
    assert digests == KNOWN


@pytest.mark.parametrize("loudest", [0, 2**64 - 1])
def test_the_loudest_flood_decrypts(loudest: int, monkeypatch: pytest.MonkeyPatch) -> None:
    ring, real = sum_ring(20, 2000), code().flood
    numbers, bins, noise = made_up(ring, 2000, 1, 40, 0)
    key = SecretKey(ring, seeded(1))
    asked, public = encrypted_rows(key, ring, numbers, 64), key.public()
    monkeypatch.setattr(code(), "flood", lambda words, *rest: real(np.full_like(words, loudest), *rest))
    got = sums_over_bins(public, asked, bins, noise, 64)
    assert decrypted_sums(key, got, 64).tolist() == naive(ring, numbers, bins, noise)


def test_a_flood_of_one_bit_more_could_be_wrong() -> None:
    ring = sum_ring(16, 600)
    assert ring._off(ring.flood_bits) < 0.5 <= ring._off(ring.flood_bits + 1)
    assert ring.cut == 2 * 16 + 13
    assert ring.told(10**7) < 2**-32


def test_rings_without_room_are_refused() -> None:
    with pytest.raises(SumError, match="do not fit an answer"):
        sum_ring(MOST_SUM_BITS + 1, 100)
    with pytest.raises(SumError, match="take fewer rows"):
        SumParameters(4096, RING.primes, 2**46, 2**60)
    with pytest.raises(SumError, match="power of two"):
        SumParameters(4096, RING.primes, 2**24 - 1)


def test_sums_that_were_not_asked_for_are_refused() -> None:
    numbers, _, noise = made_up(RING, 150, 1, 40, 0)
    key = SecretKey(RING)
    asked = encrypted_rows(key, RING, numbers, 64)
    with pytest.raises(SumError, match="were not asked for"):
        sums_over_bins(key.public(), asked, np.zeros((1, 300), dtype=np.int64), noise, 64)


@pytest.mark.parametrize("change", [lambda data: data[:-1], lambda data: data + b"0", lambda data: b""])
def test_bytes_that_nobody_writes_are_refused(change: Any) -> None:
    numbers, bins, noise = made_up(RING, 150, 1, 40, 0)
    _, answer, _ = told(RING, numbers, bins, noise, 64)
    with pytest.raises(MalformedMessage):
        SumAnswer.read(RING, 40, 64, change(answer))


def test_many_rows_share_a_ciphertext_where_few_bins_are_told() -> None:
    assert rows_together(RING, 30_000, 736) == 512
    assert rows_together(RING, 500, 736) == 64
    assert rows_together(RING, 30_000, 2) == 2048
    assert rows_together(RING, 10, 736) == 16


class Stopped(Exception):
    """Carries what an answer is before it is cut."""


def before_cutting(bins: Any, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Any, Any, Any]:
    """An asker's key and ciphertexts, and the answer with all its bits: by prime, c_1 and c_0."""
    seen: list[Any] = []

    def kept(ring: Any, by_prime: Any) -> Any:
        seen.append([each.copy() for each in by_prime])
        return np.zeros(by_prime[0].shape, dtype=np.uint64)

    key = SecretKey(RING)
    numbers = np.zeros(bins.shape[1], dtype=np.uint64)
    asked, public = encrypted_rows(key, RING, numbers, 64), key.public()
    with monkeypatch.context() as patched:
        patched.setattr(histograms, "_cut", kept)
        sums_over_bins(public, asked, bins, np.zeros(64, dtype=np.uint64), 64)
    return key, asked, seen[0], seen[1]


def without(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Switch off what hides the owner's bins."""
    if name == "zero":

        def inverse_only(public: Any, out: Any, source: Any) -> None:
            for m, parts in zip(RING.moduli, out, strict=True):
                m.inverse(parts)

        monkeypatch.setattr(histograms, "zeros_added", inverse_only)
    if name == "flood":
        monkeypatch.setitem(RING.__dict__, "flood_bits", 1)


def c_1_of(asked: Any, bins: Any, k: int) -> Any:
    """The asker's own c_1 times what it guesses the owner's polynomial to be."""
    m = RING.moduli[k]
    where, sign = histograms._terms(bins, 64, RING.degree, 0, 1)
    factors = np.zeros((1, chunks_of(bins.shape[1], 64), RING.degree), dtype=np.uint64)
    factors.reshape(-1)[where] = np.where(sign, np.uint64(m.p - 1), np.uint64(1))
    values, total = m.forward(factors)[0], np.zeros(RING.degree, dtype=np.uint64)
    for chunk, value in enumerate(values):
        out = np.zeros((1, 1, RING.degree), dtype=np.uint64)
        m.add_products(asked.values[k, 0, 1, chunk][None, None], value[None].copy(), out)
        total = (total + out[0, 0]) % np.uint64(m.p)
    return m.inverse(total[None].copy())[0]


@pytest.mark.parametrize("protection", ["zero", ""])
def test_a_guess_of_all_bins_is_confirmed_without_a_fresh_zero(
    protection: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    without(protection, monkeypatch)
    bins = np.random.default_rng(0).integers(0, 64, (1, 200))
    _, asked, c_1, _ = before_cutting(bins, monkeypatch)
    confirmed = bool((c_1_of(asked, bins, 0) == c_1[0][0]).all())
    assert confirmed == (protection == "zero")


@pytest.mark.parametrize("protection", ["flood", ""])
def test_noise_tells_which_bins_rows_are_in_without_a_flood(
    protection: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The asker knows its errors e: e times the owner's polynomial, for the true bins and for others."""
    without(protection, monkeypatch)
    if protection:
        without("zero", monkeypatch)  # whose noise is about as large; it hides nothing for certain
    rng = np.random.default_rng(0)
    bins = rng.integers(0, 64, (1, 200))
    key, asked, c_1, c_0 = before_cutting(bins, monkeypatch)
    p = RING.primes[0]
    phase = c_0[0] + key.times(0, c_1[0].copy())[:, ::64].reshape(-1)[:64]
    noise = centred(phase % np.uint64(p), p).astype(np.float64)
    m = RING.moduli[0]
    errors = m.inverse(asked.values[0, 0, 0].copy()) + key.times(0, m.inverse(asked.values[0, 0, 1].copy()))
    e = centred(errors % np.uint64(p), p)

    def expected(guess: Any) -> Any:
        where, sign = histograms._terms(guess, 64, RING.degree, 0, 1)
        found = np.zeros(64)
        for at, minus in zip(where.tolist(), sign.tolist(), strict=True):
            chunk, shift = divmod(at, RING.degree)
            turned = np.concatenate([-e[chunk], e[chunk]])[RING.degree + np.arange(0, 4096, 64) - shift]
            found += -turned if minus else turned
        return found

    right = abs(np.corrcoef(noise, expected(bins))[0, 1])
    wrong = max(abs(np.corrcoef(noise, expected(rng.permuted(bins, axis=1)))[0, 1]) for _ in range(10))
    assert (right > 0.99) == (protection == "flood")
    assert protection or right < 0.6
    assert wrong < 0.7
