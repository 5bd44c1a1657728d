"""The oblivious function of ids: the curve by the book, one value for both sides, nothing to be seen."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracles import curve as book

from colonnade.arrays import Digests
from colonnade.errors import AlignmentError
from colonnade.secure import oprf
from colonnade.secure.curve import ORDER, POINT, Comb, base_times, hashed, negative, read, scalar, times


def ids_of(count: int) -> Digests:
    packed = b"".join(hashlib.sha256(str(k).encode()).digest() for k in range(count))
    return np.frombuffer(packed, dtype=np.uint8).reshape(-1, 32)


def h(digest: bytes) -> book.Point:
    return book.swift(hashlib.sha512(b"colonnade id" + digest).digest())


def test_the_map_to_the_curve_is_that_of_bip_324() -> None:
    """Its first published vector, and the map written down in whole numbers."""
    x = 0xEDD1FD3E327CE90CC7A3542614289AEE9682003E9CF7DCC9CF2CA9743BE5AA0C
    assert book.swift(bytes(64))[0] == x
    ids = ids_of(40)
    one = times(oprf_hashes(ids), (1).to_bytes(32, "big"))
    assert [row.tobytes() for row in one] == [book.pack(h(row.tobytes())) for row in ids]


def oprf_hashes(ids: Digests) -> np.ndarray[tuple[int, int], np.dtype[np.uint8]]:
    """H of every id, in 65 bytes: a comb adds G, and -G takes it off again."""
    minus_one = (ORDER - 1).to_bytes(32, "big")
    comb, back = Comb(base_times((1).to_bytes(32, "big")), 4), Comb(base_times(minus_one), 4)
    digits = comb.draw(len(ids))
    return back.added(read(comb.added(hashed(ids), digits)), digits)


@settings(deadline=None, max_examples=15)
@given(st.integers(1, ORDER - 1), st.integers(1, ORDER - 1), st.sampled_from([4, 8]))
def test_multiples_and_combs_are_those_of_the_book(one: int, other: int, width: int) -> None:
    point = book.multiply(book.G, one)
    packed = np.frombuffer(base_times(one.to_bytes(32, "big")), dtype=np.uint8).reshape(1, -1)
    assert packed.tobytes() == book.pack(point)
    assert times(packed, other.to_bytes(32, "big")).tobytes() == book.pack(book.multiply(point, other))
    comb = Comb(packed.tobytes(), width)
    digits = comb.draw(1)
    drawn = sum((int(digit) + 1) << (width * place) for place, digit in enumerate(digits[0]))
    assert comb.added(read(packed), digits).tobytes() == book.pack(book.multiply(point, drawn + 1))
    assert negative(packed.tobytes()) == book.pack(book.multiply(book.G, ORDER - one))


@pytest.mark.parametrize("width", [4, 8, 12])
def test_both_sides_have_the_same_value(width: int) -> None:
    ids, key = ids_of(30), scalar()
    blinding = oprf.draw(len(ids), width)
    answers = oprf.evaluate(oprf.blind(ids, blinding, width), key)
    found = oprf.unblind(ids, answers, blinding, width, oprf.public_key(key))
    assert (found == oprf.compute(ids, key)).all()
    by_the_book = book.multiply(h(ids[0].tobytes()), int.from_bytes(key, "big"))
    public = book.pack(book.multiply(book.G, int.from_bytes(key, "big")))
    value = hashlib.blake2b(
        ids[0].tobytes() + book.pack(by_the_book), key=public[1:], digest_size=16
    ).digest()
    assert found[0].tobytes() == value


def test_a_blinded_id_is_another_point_every_time() -> None:
    ids = np.concatenate([ids_of(1)] * 200)
    points = oprf.blind(ids, oprf.draw(200, 4), 4)
    assert len(np.unique(points, axis=0)) == 200
    bits = np.unpackbits(points[:, 1:]).mean()
    assert abs(bits - 0.5) < 5 * 0.5 / (200 * 256) ** 0.5


def test_an_answer_that_takes_all_off_is_noise_and_no_error() -> None:
    """A key holder that guesses x can make the sum zero; that must look like any other answer."""
    ids, key = ids_of(2), scalar()
    blinding = oprf.draw(2, 4)
    secret = sum((int(digit) + 1) << (4 * place) for place, digit in enumerate(blinding[0])) % ORDER
    answers = oprf.evaluate(oprf.blind(ids, blinding, 4), key)
    k = int.from_bytes(key, "big")
    answers[0] = np.frombuffer(base_times((secret * k % ORDER).to_bytes(32, "big")), dtype=np.uint8)
    found = oprf.unblind(ids, answers, blinding, 4, oprf.public_key(key))
    again = oprf.unblind(ids, answers, blinding, 4, oprf.public_key(key))
    assert (found[0] != again[0]).any()
    assert (found[1] == oprf.compute(ids, key)[1]).all()


def test_bytes_that_are_no_point_are_refused() -> None:
    points = np.zeros((1, POINT), dtype=np.uint8)
    with pytest.raises(AlignmentError, match="no point of the curve"):
        oprf.evaluate(points, scalar())
    points[0] = np.frombuffer(base_times(scalar()), dtype=np.uint8)
    points[0, -1] ^= 1  # beside the curve: a small subgroup of another curve would give the key away
    with pytest.raises(AlignmentError, match="no point of the curve"):
        oprf.evaluate(points, scalar())
