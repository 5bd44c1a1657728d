"""Exact products row by row: they are right, their noise is what was proved, and it tells nothing."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from tests.oracles import lattice as oracle

from colonnade.arrays import Words
from colonnade.errors import MalformedMessage, SumError
from colonnade.secure.lattice import slots
from colonnade.secure.lattice.arithmetic import Modulus
from colonnade.secure.lattice.ciphertexts import Ciphertexts, SecretKey, centred, residues
from colonnade.secure.lattice.parameters import LEAN, STRICT, SlotParameters
from colonnade.secure.lattice.slots import SlotAnswer, answer, decrypted, encrypted, in_slots
from colonnade.secure.lattice.source import Source

# of ciphertexts, an answer and both parts, from fixed seeds
KNOWN = ["b9212bca751e759a", "84a200473449d486", "cff05991a09ea9a5", "c979be106ca4aced"]
RINGS = {"lean": LEAN, "strict": STRICT}


def seeded(number: int) -> Source:
    return Source(number.to_bytes(32, "big"), "a test")


def exchanged(
    ring: SlotParameters, f: Any, g: Any, seed: int = 1
) -> tuple[SecretKey, Ciphertexts, SlotAnswer, Words]:
    """A key, what was asked, the answer as it arrives, and the owner's part."""
    key = SecretKey(ring, seeded(seed))
    public = Ciphertexts.read(ring, 1, 1, bytes(key.public()))
    terms, rows = f.shape
    chunks = ring.chunks(rows)
    asked = Ciphertexts.read(ring, chunks, terms, bytes(encrypted(key, ring, f)))
    got, own = answer(ring, public, asked, g, seeded(seed + 1))
    return key, asked, SlotAnswer.read(ring, chunks, bytes(got)), own


@pytest.mark.parametrize("ring", RINGS.values(), ids=RINGS)
@pytest.mark.parametrize(("terms", "rows"), [(1, 5), (8, 5000), (16, 8192)])
def test_parts_add_up_to_the_products(ring: SlotParameters, terms: int, rows: int) -> None:
    rng = np.random.default_rng(rows)
    f, g = rng.integers(-(2**15), 2**15, (2, terms, rows)) if terms < 16 else np.full((2, 16, rows), 2**14)
    key, _, got, own = exchanged(ring, f, g)
    total = (decrypted(key, got, rows) + own) % np.uint64(ring.plain)
    np.testing.assert_array_equal(centred(total, ring.plain), (f * g).sum(axis=0))


@pytest.mark.parametrize("ring", RINGS.values(), ids=RINGS)
def test_slots_are_any_numbers_modulo_t(ring: SlotParameters) -> None:
    rng = np.random.default_rng(0)
    half = ring.plain // 2
    f, g = rng.integers(-half, half + 1, (2, 3, ring.degree))
    key, _, got, own = exchanged(ring, f, g)
    total = (decrypted(key, got, ring.degree) + own) % np.uint64(ring.plain)
    due = (f.astype(object) * g.astype(object)).sum(axis=0) % ring.plain
    np.testing.assert_array_equal(total, due.astype(np.uint64))


def test_all_ways_give_the_same_bytes_and_numbers(way: str) -> None:
    f, g = (np.arange(8192).reshape(2, 4096) * step % 64 - 32 for step in (5, 7))
    key, asked, got, own = exchanged(LEAN, f, g)
    found = [bytes(asked), bytes(got), own.tobytes(), decrypted(key, got, 4096).tobytes()]
    assert [hashlib.sha256(data).hexdigest()[:16] for data in found] == KNOWN


def phases(
    ring: SlotParameters, key: SecretKey, c_0: Words, c_1: Words, primes: tuple[int, ...]
) -> list[int]:
    """c_0 + c_1 s of one polynomial, given by coefficients modulo each prime, as whole numbers."""
    found = []
    for k, p in enumerate(primes):
        total = key.times(k, c_1[k][None].copy())[0] + c_0[k]
        found.append((total % np.uint64(p)).tolist())
    return [oracle.joined(residues, primes) for residues in zip(*found, strict=True)]


@pytest.mark.parametrize("ring", RINGS.values(), ids=RINGS)
def test_noise_stays_below_its_bound_with_the_worst_numbers(ring: SlotParameters) -> None:
    """Products as large as can be: the noise of an answer is that of its flood, below the proved bound."""
    rng = np.random.default_rng(5)
    half = ring.plain // 2
    largest = ring.slots.forward(np.full((1, ring.terms, ring.degree), half, dtype=np.uint64))
    g = centred(largest[0], ring.plain)  # polynomials all of whose coefficients are as large as can be
    f = rng.integers(-half, half + 1, g.shape)
    key, _, got, own = exchanged(ring, f, g)
    primes = ring.primes[: ring.kept]
    q = math.prod(primes)
    v = phases(ring, key, got.parts[:, 0, 0], got.parts[:, 1, 0], primes)
    off = max(abs(oracle.centred(ring.plain * x, q)) for x in v) / q
    assert 0.15 < off < ring.off < 0.5  # a flood has to be there, and not too much of it
    total = (decrypted(key, got, ring.degree) + own) % np.uint64(ring.plain)
    due = (f.astype(object) * g.astype(object)).sum(axis=0) % ring.plain
    np.testing.assert_array_equal(total, due.astype(np.uint64))


def test_noise_of_products_alone_stays_below_its_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same without a flood, no prime dropped, and errors all as large as can be, of one sign."""
    ring = replace(LEAN, kept=2, terms=4)
    monkeypatch.setattr(slots, "_flood", lambda *_: None)
    half = ring.plain // 2
    g = centred(ring.slots.forward(np.full((1, 4, ring.degree), half, dtype=np.uint64))[0], ring.plain)
    f = np.zeros_like(g)
    key = SecretKey(ring, seeded(1))
    honest = key._source.words
    largest = np.uint64(2**21 - 1)  # 21 bits that are set, and 21 that are not
    key._source.words = lambda *shape: (  # type: ignore[method-assign]
        np.full(shape, largest) if len(shape) == 3 else honest(*shape)
    )
    asked = encrypted(key, ring, f)
    key._source.words = honest  # type: ignore[method-assign]
    got, own = answer(ring, key.public(), asked, g, seeded(2))
    v = phases(ring, key, got.parts[:, 0, 0], got.parts[:, 1, 0], ring.primes)
    mask = ring.slots.inverse((np.uint64(ring.plain) - own) % np.uint64(ring.plain)).tolist()
    noise = max(abs(x) for x in oracle.noise(v, mask, ring.q, ring.plain))
    bound = ring.product_noise + ring.zero_noise + 1
    # all of one sign: the last coefficient sums N errors of 21 times t / 2; rounding may add 1/2 to each
    assert Fraction(21, 22) * bound < noise < bound


def test_noise_with_a_flood_does_not_show_the_owners_numbers() -> None:
    """Correlate noise with what the products put into it: with a flood nothing, without it everything."""
    rng = np.random.default_rng(8)
    f, g = rng.integers(-32, 32, (2, 2, 4096))
    found = {}
    for flooded in (True, False):
        ring = replace(LEAN, kept=2)
        with pytest.MonkeyPatch.context() as patch:
            if not flooded:
                patch.setattr(slots, "_flood", lambda *_: None)
            key, asked, got, _ = exchanged(ring, f, g)
        v = phases(ring, key, got.parts[:, 0, 0], got.parts[:, 1, 0], ring.primes)
        whole = [oracle.message([x], ring.q, ring.plain)[0] for x in v]
        noise = [float(x) for x in oracle.noise(v, whole, ring.q, ring.plain)]
        found[flooded] = np.corrcoef(noise, expected_noise(ring, key, asked, f, g))[0, 1]
    assert found[False] > 0.9999
    assert abs(found[True]) < 0.07  # 4.5 deviations of no correlation at all


def expected_noise(ring: SlotParameters, key: SecretKey, asked: Ciphertexts, f: Any, g: Any) -> Any:
    """What an asker computes for a guess of the owner's numbers: its own errors, times their polynomials."""
    messages, total = in_slots(ring, f)[0], np.zeros(ring.degree)
    for term, factors in enumerate(centred(in_slots(ring, g), ring.plain)[0]):
        parts = [
            np.stack([m.inverse(asked.values[k, 0, part, term].copy()) for k, m in enumerate(ring.moduli)])
            for part in (0, 1)
        ]
        v = phases(ring, key, parts[0], parts[1], ring.primes)
        errors = oracle.noise(v, messages[term].tolist(), ring.q, ring.plain)
        total += multiplied(ring.moduli[0], [int(16 * x) for x in errors], factors.tolist())
    return total


def multiplied(m: Modulus, a: list[int], b: list[int]) -> Any:
    """The product of two polynomials whose coefficients are smaller than p / 2."""
    values = [m.forward(np.array([x % m.p for x in part], dtype=np.uint64)) for part in (a, b)]
    out = np.zeros((1, 1, m.degree), dtype=np.uint64)
    m.add_products(values[0][None, None], values[1], out)
    return centred(m.inverse(out)[0, 0], m.p)


def test_a_guess_of_the_owners_numbers_cannot_be_confirmed_by_c_1() -> None:
    """Without an encryption of zero c_1 is the asked c_1 times the polynomial; with it, any number."""
    rng = np.random.default_rng(2)
    f, g = rng.integers(-32, 32, (2, 1, 4096))
    ring = replace(LEAN, kept=2)
    m = ring.moduli[0]

    def transformed_back(_: object, out: list[Words], __: object) -> None:
        for modulus, part in zip(ring.moduli, out, strict=True):
            modulus.inverse(part)

    for guarded in (True, False):
        polynomial = residues(centred(in_slots(ring, g), ring.plain)[0, 0], m.p)
        with pytest.MonkeyPatch.context() as patch:
            if not guarded:
                patch.setattr(slots, "zeros_added", transformed_back)
            _, asked, got, _ = exchanged(ring, f, g)
        out = np.zeros((1, 1, ring.degree), dtype=np.uint64)
        m.add_products(m.forward(polynomial)[None, None], asked.values[0, 0, 1], out)
        left = (got.parts[0, 1, 0].astype(object) - m.inverse(out)[0, 0].astype(object)) % m.p
        if guarded:
            assert abs(float(np.mean(left / m.p)) - 0.5) < 0.03
            assert len(set(left.tolist())) > 4000
        else:
            assert not left.any()


def test_more_noise_than_is_honest_is_seen() -> None:
    f = np.ones((1, 4096), dtype=np.int64)
    louder = replace(LEAN)
    louder.__dict__["flood_bits"] = LEAN.flood_bits + 1  # one step up
    key, _, got, _ = exchanged(louder, f, f)
    with pytest.raises(SumError, match="from a whole number"):
        decrypted(key, SlotAnswer(LEAN, got.parts), 4096)
    other = SecretKey(LEAN, seeded(9))
    with pytest.raises(SumError, match="from a whole number"):
        decrypted(other, SlotAnswer(LEAN, got.parts), 4096)


def test_answers_of_the_same_numbers_differ_each_time() -> None:
    f = np.ones((1, 10), dtype=np.int64)
    key = SecretKey(LEAN)
    public, asked = key.public(), encrypted(key, LEAN, f)
    first, second = (bytes(answer(LEAN, public, asked, f)[0]) for _ in range(2))
    assert first != second
    assert bytes(encrypted(key, LEAN, f)) != bytes(asked)
    assert bytes(SecretKey(LEAN).public()) != bytes(public)


def test_numbers_beyond_a_slot_and_other_sizes_are_refused() -> None:
    f = np.ones((1, 10), dtype=np.int64)
    key = SecretKey(LEAN, seeded(1))
    with pytest.raises(SumError, match="slots hold"):
        encrypted(key, LEAN, f * LEAN.plain)
    asked = encrypted(key, LEAN, f)
    with pytest.raises(SumError, match="not asked for"):
        answer(LEAN, key.public(), asked, np.ones((2, 10), dtype=np.int64))
    many = np.ones((17, 10), dtype=np.int64)
    asked = encrypted(key, LEAN, many)
    with pytest.raises(SumError, match="more than 16"):
        answer(LEAN, key.public(), asked, many)


@pytest.mark.parametrize("cut", [-1, 1, -32])
def test_bytes_of_another_length_are_refused(cut: int) -> None:
    f = np.ones((1, 10), dtype=np.int64)
    _, asked, got, _ = exchanged(LEAN, f, f)
    cases: list[tuple[bytes, Callable[[bytes], object]]] = [
        (bytes(asked), lambda data: Ciphertexts.read(LEAN, 1, 1, data)),
        (bytes(got), lambda data: SlotAnswer.read(LEAN, 1, data)),
    ]
    for data, read in cases:
        with pytest.raises(MalformedMessage):
            read(data[:cut] if cut < 0 else data + bytes(cut))
        with pytest.raises(MalformedMessage):
            read(b"")
        read(data)


def test_a_number_that_no_sender_writes_is_refused() -> None:
    f = np.ones((1, 10), dtype=np.int64)
    _, asked, got, _ = exchanged(LEAN, f, f)
    data = bytearray(bytes(asked))
    data[32:39] = b"\xff" * 7
    with pytest.raises(MalformedMessage, match="not below"):
        Ciphertexts.read(LEAN, 1, 1, bytes(data))
    data = bytearray(bytes(got))
    data[-7:] = b"\xff" * 7
    with pytest.raises(MalformedMessage, match="not below"):
        SlotAnswer.read(LEAN, 1, bytes(data))
