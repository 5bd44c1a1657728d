"""Inner products with encrypted vectors: right within the proved error, and only c_1 leaves the owner."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from colonnade.errors import MalformedMessage, SumError
from colonnade.secure.lattice import columns
from colonnade.secure.lattice.arithmetic import code
from colonnade.secure.lattice.ciphertexts import SecretKey, centred, residues
from colonnade.secure.lattice.columns import (
    CoefficientAnswer,
    TransformedColumns,
    askers_part,
    encrypted_vector,
    encrypted_weights,
    opened,
)
from colonnade.secure.lattice.parameters import LEAN, STRICT, coefficients_beside
from colonnade.secure.lattice.source import Source

RING = coefficients_beside(LEAN)
LARGEST = 2**12
# of an answer and both parts, from fixed seeds
KNOWN = ["c0a79c313168d2af", "22fcbc8701575f17", "6128baa902b048b8"]


def seeded(number: int) -> Source:
    return Source(number.to_bytes(32, "big"), "a test")


def asked_gradient(
    X: Any, t: Any, together: int = 1, ring: Any = RING
) -> tuple[bytes, Any, Any, TransformedColumns]:
    """The answer's bytes, the owner's part, the asker's part, and the columns."""
    table = TransformedColumns(ring, X, LARGEST, together)
    key = SecretKey(ring, seeded(1))
    asked = encrypted_vector(key, ring, residues(t, ring.plain), together)
    got, own = table.gradient(key.public(), asked, seeded(2))
    data = bytes(got)
    part = askers_part(key, CoefficientAnswer.read(ring, table.answers, data), X.shape[1], table.of_a_chunk)
    return data, own, part, table


@settings(max_examples=20, deadline=None)
@given(
    rows=st.integers(1, 5000),
    width=st.integers(1, 9),
    together=st.sampled_from([1, 2, 8]),
    strict=st.booleans(),
    seed=st.integers(0, 2**32),
)
def test_gradients_are_right_within_their_error(
    rows: int, width: int, together: int, strict: bool, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    ring = coefficients_beside(STRICT if strict else LEAN)
    X, t = rng.integers(-50, 51, (rows, width)), rng.integers(-LARGEST, LARGEST, rows)
    _, own, part, table = asked_gradient(X, t, together, ring)
    assert np.abs(opened(ring, part, own) - X.T @ t).max() <= ring.error(table.size)


def test_vectors_may_be_parts_modulo_t() -> None:
    """A part of theta is uniform modulo t; what wraps around falls out again."""
    rng = np.random.default_rng(1)
    X, t = rng.integers(-3, 4, (3000, 5)), rng.integers(-LARGEST, LARGEST, 3000)
    mask = rng.integers(0, RING.plain, 3000)
    found = []
    for vector in ((t + mask) % RING.plain, (-mask) % RING.plain):
        _, own, part, table = asked_gradient(X, vector)
        found.append(own + part)
    total = opened(RING, found[0], found[1])
    assert np.abs(total - X.T @ t).max() <= 2 * RING.error(table.size)


def test_the_error_is_that_of_rounding(way: str) -> None:
    """2^12 units are a row: deviation .011 row, of which 10.7 times t / 2^32 units are due to rounding."""
    rng = np.random.default_rng(2)
    X, t = rng.integers(0, 2, (2048, 64)), rng.integers(-LARGEST, LARGEST, 2048)
    _, own, part, _ = asked_gradient(X, t)
    deviation = (opened(RING, part, own) - X.T @ t).std()
    assert 0.7 < deviation / (np.sqrt(RING.degree / 18) * RING.unit) < 1.3


@settings(max_examples=10, deadline=None)
@given(rows=st.integers(1, 5000), width=st.integers(1, 9), seed=st.integers(0, 2**32))
def test_scores_are_right_within_their_error(rows: int, width: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    X, w = rng.integers(-50, 51, (rows, width)), rng.integers(-(2**20), 2**20, width)
    key, table = SecretKey(RING), TransformedColumns(RING, X, LARGEST)
    got, own = table.scores(key.public(), encrypted_weights(key, RING, residues(w, RING.plain)))
    part = askers_part(key, CoefficientAnswer.read(RING, table.chunks, bytes(got)), rows, 1)
    assert np.abs(opened(RING, part, own) - X @ w).max() <= RING.error(int(np.abs(X).sum(axis=1).max()))


def test_all_ways_give_the_same_bytes_and_numbers(way: str) -> None:
    X, t = np.arange(3000 * 5).reshape(3000, 5) * 7 % 13 - 6, np.arange(3000) * 5 % 8191 - 4095
    found = asked_gradient(X, t)[:3]
    assert [hashlib.sha256(bytes(data)).hexdigest()[:16] for data in found] == KNOWN


def test_a_guess_of_a_column_cannot_be_confirmed_by_c_1(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an encryption of zero c_1 is what the right column would give; with it, any number."""
    rng = np.random.default_rng(3)
    X, t = rng.integers(0, 2, (2048, 1)), rng.integers(-LARGEST, LARGEST, 2048)
    table, key = TransformedColumns(RING, X, LARGEST), SecretKey(RING, seeded(4))
    asked = encrypted_vector(key, RING, residues(t, RING.plain))
    m = RING.moduli[0]
    out = np.zeros((1, 1, RING.degree), dtype=np.uint64)
    m.add_products(
        np.ascontiguousarray(table._table[:, 0, 0, 0]).reshape(1, 1, -1), asked.values[0, 0, 1], out
    )
    guess = m.inverse(out)[0]
    code().cut(guess, m.p, RING.cut)
    got, _ = table.gradient(key.public(), asked)
    off = centred((got.c_1 - guess) & np.uint64(2**32 - 1), 2**32) / 2**32
    assert abs(off.mean()) < 0.03
    assert 0.27 < off.std() < 0.31  # uniform in [-1/2, 1/2): 0.289
    monkeypatch.setattr(columns, "zeros_added", lambda _, out, __: m.inverse(out[0]))
    np.testing.assert_array_equal(table.gradient(key.public(), asked)[0].c_1, guess)


def test_an_owners_part_alone_and_c_1_alone_look_uniform() -> None:
    """Columns of zeros are answered with as much noise, and as many bytes, as any."""
    X, t = np.zeros((2048, 64), dtype=np.int64), np.full(2048, LARGEST)
    data, own, part, _ = asked_gradient(X, t)
    assert len(data) == 64 * 2048 * 4
    words = np.frombuffer(data, dtype="<u4") / 2**32
    assert abs(words.mean() - 0.5) < 0.005
    assert abs(words.std() - 0.2887) < 0.005
    for one in (own, part):
        assert abs((one / 2**32).mean() - 0.5) < 0.18
        assert len(set(one.tolist())) == 64


def test_a_column_that_could_wrap_is_refused() -> None:
    X = np.full((2**12, 1), 2**9, dtype=np.int64)  # 2^21 times 2^12, of 2^33
    with pytest.raises(SumError, match="too large for sums modulo"):
        TransformedColumns(RING, X, LARGEST)
    TransformedColumns(RING, X // 2, LARGEST - 1)
    with pytest.raises(SumError, match="do not share"):
        TransformedColumns(RING, X // 4, LARGEST, together=3)


def test_what_was_not_asked_for_is_not_answered() -> None:
    key, table = SecretKey(RING), TransformedColumns(RING, np.ones((3000, 5), dtype=np.int64), 1)
    vector, weights = np.zeros(2000, dtype=np.uint64), np.zeros(9, dtype=np.uint64)
    with pytest.raises(SumError, match="ciphertexts are due"):
        table.gradient(key.public(), encrypted_vector(key, RING, vector))
    with pytest.raises(SumError, match="ciphertexts are due"):
        table.scores(key.public(), encrypted_weights(key, RING, weights))
    with pytest.raises(SumError, match="numbers below"):
        encrypted_vector(key, RING, vector + np.uint64(RING.plain))


def test_bytes_of_another_length_are_refused() -> None:
    data = bytes(2048 * 4)
    CoefficientAnswer.read(RING, 1, data)
    for wrong in (b"", data[:-1], data + b"\0", data * 2):
        with pytest.raises(MalformedMessage):
            CoefficientAnswer.read(RING, 1, wrong)
