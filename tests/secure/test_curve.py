"""Points of the curve: the whole numbers of the book, and the bytes that earlier releases sent."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from tests.oracles import curve as book

from colonnade.errors import AlignmentError
from colonnade.secure.curve import (
    ORDER,
    POINT,
    Comb,
    base_multiples,
    base_times,
    first_multiples,
    hashed,
    hashed_times,
    multiples,
    one,
    read,
    times,
    totals,
)

SECRETS = [1, 2, 3, ORDER - 1, 2**255 + 19]
PACKED = [secret.to_bytes(32, "big") for secret in SECRETS]


def test_multiples_of_one_point_are_those_of_the_book() -> None:
    point = book.multiply(book.G, 77)
    seven = book.pack(point)
    assert base_multiples(PACKED).tobytes() == b"".join(book.pack(book.multiply(book.G, s)) for s in SECRETS)
    assert multiples(seven, PACKED).tobytes() == b"".join(book.pack(book.multiply(point, s)) for s in SECRETS)
    assert first_multiples(seven, 9).tobytes() == b"".join(
        book.pack(book.multiply(point, s)) for s in range(1, 10)
    )


def test_totals_add_the_rows_of_each_group() -> None:
    parsed = read(base_multiples(PACKED))
    groups = [[0, 1, 2], [4], [0, 0, 4]]
    found = totals(parsed, [np.array(rows) for rows in groups])
    due = [book.pack(book.multiply(book.G, sum(SECRETS[row] for row in rows) % ORDER)) for rows in groups]
    assert [row.tobytes() for row in found] == due
    with pytest.raises(AlignmentError, match="cancel"):
        totals(parsed, [np.array([0, 3])])


@pytest.mark.parametrize("point", [b"", b"\x04", b"\x04" + bytes(64), b"\x02" + bytes(32)])
def test_bytes_of_another_length_are_no_point(point: bytes) -> None:
    with pytest.raises(AlignmentError, match="no point"):
        read(one(point))


def test_points_are_those_of_release_0_2() -> None:
    """Hashes of what 0.2 computed by another package around the library: parties of both releases align."""
    packed = b"".join(hashlib.sha256(str(k).encode()).digest() for k in range(100))
    ids = np.frombuffer(packed, dtype=np.uint8).reshape(-1, 32)
    key, other = hashlib.sha256(b"k").digest(), hashlib.sha256(b"l").digest()
    own = hashed_times(ids, key)
    digits = (np.arange(100 * 32, dtype=np.uint16) % 256).reshape(100, 32)
    blinded = Comb(base_times(key), 8).added(hashed(ids), digits)
    assert own.shape == blinded.shape == (100, POINT)
    assert [hashlib.sha256(each.tobytes()).hexdigest() for each in (own, times(own, other), blinded)] == [
        "dc57ce819056be8324db6a577e6a56a3ebb1cf1796680826ca8eb49c1e9e3136",
        "3224cdfb5a145d2a1e2fa8f281c488850a61f743697a4fb90817b14e5560e64c",
        "6f7c090aa1951920302ed9011976771e7cfd2bb88fb6f184ede318c95cac6366",
    ]
