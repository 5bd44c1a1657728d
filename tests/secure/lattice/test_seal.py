"""Microsoft SEAL, through TenSEAL's `sealapi`, reads what is encrypted here, and the other way round.

SEAL keeps one prime for keys that are never used here, so it is given one more than the ring has.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.oracles import lattice as oracle

from colonnade.arrays import Words
from colonnade.secure.lattice.arithmetic import Modulus, primes_below
from colonnade.secure.lattice.ciphertexts import SecretKey, centred
from colonnade.secure.lattice.parameters import LEAN
from colonnade.secure.lattice.slots import in_slots

seal: Any = pytest.importorskip("tenseal.sealapi", reason="TenSEAL is not installed: SEAL is not compared")

N, T = LEAN.degree, LEAN.plain
DATA_SIZE = N * len(LEAN.primes)  # words of one part of a ciphertext


class SealModulus(Modulus):
    """SEAL's transforms take the least of all roots of order 2N."""

    def _root(self) -> int:
        some = super()._root()
        found, power = some, some
        for _ in range(self.degree - 1):
            power = power * some * some % self.p
            found = min(found, power)
        return found


@pytest.fixture(scope="module")
def context() -> Any:
    chosen = seal.EncryptionParameters(seal.SCHEME_TYPE.BFV)
    chosen.set_poly_modulus_degree(N)
    chosen.set_coeff_modulus([seal.Modulus(p) for p in primes_below(2**50, N, 3)])
    chosen.set_plain_modulus(T)
    made = seal.SEALContext(chosen, True, seal.SEC_LEVEL_TYPE.NONE)
    assert made.parameters_set()
    return made


@pytest.fixture(scope="module")
def seals_key(context: Any) -> Any:
    return seal.KeyGenerator(context).secret_key()


def same_key(seals_key: Any) -> SecretKey:
    """Our key with the coefficients of SEAL's, which are given as values at its own roots."""
    data = seals_key.data()
    key = SecretKey(LEAN)
    for k, m in enumerate(LEAN.moduli):
        values = np.array([data.data(k * N + j) for j in range(N)], dtype=np.uint64)
        small = SealModulus(m.p, N).inverse(values)
        assert set(centred(small, m.p).tolist()) == {-1, 0, 1}
        key._values[k] = m.forward(small)
    return key


def plaintext(coefficients: Words) -> Any:
    """SEAL reads polynomials as text, the highest power first."""
    terms = [f"{int(c):x}x^{k}" if k else f"{int(c):x}" for k, c in enumerate(coefficients) if c]
    return seal.Plaintext(" + ".join(reversed(terms)))


def parts(ciphertext: Any) -> list[list[Words]]:
    """c_0 and c_1 modulo each prime, as coefficients."""
    array = ciphertext.dyn_array()
    return [
        [
            np.array([array.at(part * DATA_SIZE + k * N + j) for j in range(N)], dtype=np.uint64)
            for k in range(len(LEAN.primes))
        ]
        for part in (0, 1)
    ]


def decrypted(key: SecretKey, both: list[list[Words]]) -> list[int]:
    """The message of a ciphertext, in whole numbers."""
    residues = [
        ((key.times(k, both[1][k][None].copy())[0] + both[0][k]) % np.uint64(p)).tolist()
        for k, p in enumerate(LEAN.primes)
    ]
    v = [oracle.joined(pair, LEAN.primes) for pair in zip(*residues, strict=True)]
    return oracle.message(v, LEAN.q, T)


def test_we_read_what_seal_encrypts_and_multiplies(context: Any, seals_key: Any) -> None:
    rng = np.random.default_rng(0)
    m, g = rng.integers(0, T, (2, N), dtype=np.uint64)
    key = same_key(seals_key)
    ciphertext, product = seal.Ciphertext(), seal.Ciphertext()
    seal.Encryptor(context, seals_key).encrypt_symmetric(plaintext(m), ciphertext)
    assert decrypted(key, parts(ciphertext)) == m.tolist()
    seal.Evaluator(context).multiply_plain(ciphertext, plaintext(g), product)
    due = np.zeros((1, 1, N), dtype=np.uint64)
    LEAN.slots.add_products(LEAN.slots.forward(m.copy())[None, None], LEAN.slots.forward(g.copy()), due)
    assert decrypted(key, parts(product)) == LEAN.slots.inverse(due).ravel().tolist()


def test_our_products_of_seals_ciphertexts_are_seals(context: Any, seals_key: Any) -> None:
    """Coefficient by coefficient: the same numbers modulo every prime, where g is small."""
    rng = np.random.default_rng(1)
    m, g = rng.integers(0, T, N, dtype=np.uint64), rng.integers(0, 100, N, dtype=np.uint64)
    ciphertext, product = seal.Ciphertext(), seal.Ciphertext()
    seal.Encryptor(context, seals_key).encrypt_symmetric(plaintext(m), ciphertext)
    seal.Evaluator(context).multiply_plain(ciphertext, plaintext(g), product)
    for before, after in zip(parts(ciphertext), parts(product), strict=True):
        for modulus, ours, theirs in zip(LEAN.moduli, before, after, strict=True):
            out = np.zeros((1, 1, N), dtype=np.uint64)
            modulus.add_products(modulus.forward(g.copy())[None, None], modulus.forward(ours), out)
            np.testing.assert_array_equal(modulus.inverse(out).ravel(), theirs)


def test_slots_hold_the_numbers_that_seals_batches_do(context: Any) -> None:
    """SEAL's slots are in another order; polynomials of constant slots, and the sets of numbers, agree."""
    numbers = np.random.default_rng(2).integers(-1000, 1000, N)
    ours = in_slots(LEAN, np.full((1, N), 7, dtype=np.int64)).ravel()
    assert ours.tolist() == [7] + [0] * (N - 1)
    encoder, text = seal.BatchEncoder(context), plaintext(in_slots(LEAN, numbers[None]).ravel())
    assert sorted(encoder.decode_int64(text)) == sorted(numbers.tolist())
