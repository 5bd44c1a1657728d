"""Points of an elliptic curve, thousands at a time: hashed to, multiplied, added.

The curve is secp256k1, by libsecp256k1; no other file knows the library. Its order is prime, so every point
but one generates the whole group and there are no small subgroups to check for; parsing refuses bytes that
are no point. The library's multiplication takes a time that depends a little on the scalar; what a peer can
time is a chunk of thousands of points, once, under a scalar that lives for one alignment.

Points travel with both coordinates, 65 bytes each, as the rows of one array: no Python object is made for a
point. Half the bytes would do, but finding the other coordinate again takes a quarter of a multiplication. A
`Comb` adds a random multiple of one point: 22 or 32 additions from a table take a third of one.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from btclib_libsecp256k1 import ffi, lib
from numpy.typing import NDArray

from colonnade.arrays import Digests, Rows
from colonnade.errors import AlignmentError

Points = NDArray[np.uint8]  # [n, 65]: points with both coordinates
Digits = NDArray[np.uint16]  # [n, windows]: scalars, a digit for each window of a comb

ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
POINT = 65
_PARSED = 64  # bytes of a point inside the library
_UNCOMPRESSED = 2  # the library's name for the format
_NO_POINT = "a peer sent bytes that are no point of the curve"
_CANCEL = "a peer sent points that cancel each other"
_CONTEXT = lib.secp256k1_context_create(1)
lib.secp256k1_context_randomize(_CONTEXT, os.urandom(32))  # so that times tell less of secrets


def scalar() -> bytes:
    """Return a new secret multiplier, for one alignment."""
    while not 0 < int.from_bytes(drawn := os.urandom(32), "big") < ORDER:
        pass
    return drawn


def base_times(secret: bytes) -> bytes:
    """Return the generator of the group, multiplied by `secret`."""
    return base_multiples([secret]).tobytes()


def base_multiples(secrets: Sequence[bytes]) -> Points:
    """Return the generator of the group, multiplied by each of the secrets."""
    parsed = _room(len(secrets))
    for row, secret in enumerate(secrets):
        lib.secp256k1_ec_pubkey_create(_CONTEXT, parsed + row, secret)
    return _written(parsed, len(secrets))


def multiples(point: bytes, secrets: Sequence[bytes]) -> Points:
    """Return one point, multiplied by each of the secrets."""
    first, parsed = read(one(point)), _room(len(secrets))
    for row, secret in enumerate(secrets):
        ffi.memmove(parsed + row, first, _PARSED)
        lib.secp256k1_ec_pubkey_tweak_mul(_CONTEXT, parsed + row, secret)
    return _written(parsed, len(secrets))


def first_multiples(point: bytes, count: int) -> Points:
    """Return the point, twice the point, and so on up to `count` times."""
    parsed = _room(count)
    ffi.memmove(parsed, read(one(point)), _PARSED)
    _step(parsed, count)
    return _written(parsed, count)


def hashed_times(ids: Digests, secret: bytes) -> Points:
    """Return the point secret H(x) of every id x."""
    parsed = hashed(ids)
    for row in range(len(ids)):
        lib.secp256k1_ec_pubkey_tweak_mul(_CONTEXT, parsed + row, secret)
    return _written(parsed, len(ids))


def times(points: Points, secret: bytes) -> Points:
    """Return each point, multiplied by `secret`.

    >>> ids, one, other = np.zeros((1, 32), dtype=np.uint8), scalar(), scalar()
    >>> bool((times(hashed_times(ids, one), other) == times(hashed_times(ids, other), one)).all())
    True
    """
    parsed = read(points)
    for row in range(len(points)):
        lib.secp256k1_ec_pubkey_tweak_mul(_CONTEXT, parsed + row, secret)
    return _written(parsed, len(points))


class Comb:
    """Random multiples of one point, as sums of entries of a table.

    A scalar is drawn as digits d_0, d_1, ... and stands for the sum of (d_j + 1) 2^(j width), which is
    uniform up to 2^-127, since 2^256 is so near the order of the group. Digits count from one: the table
    cannot hold zero times the point. The same digits give the same scalar at every comb of one width.
    """

    def __init__(self, point: bytes, width: int = 8) -> None:
        self.windows, self._size = -(-256 // width), 2**width
        self._table = _room(self.windows * self._size)
        opening = read(one(point))
        for window in range(self.windows):
            start = self._table + window * self._size
            ffi.memmove(start, opening, _PARSED)
            _step(start, self._size)
            opening = start + (self._size - 1)  # a window opens with the last entry of the one before

    def draw(self, count: int) -> Digits:
        """Return this many random scalars."""
        drawn = np.frombuffer(os.urandom(2 * count * self.windows), dtype=np.uint16)
        return (drawn & np.uint16(self._size - 1)).reshape(count, self.windows)

    def added(self, parsed: Any, digits: Digits) -> Points:
        """Return each of the parsed points plus its multiple of the comb's own point.

        A sum of zero has no bytes and becomes 65 random ones, which match nothing: a peer that could provoke
        an error here would learn from it that it guessed an id.
        """
        count = len(digits)
        addresses = np.empty((count, self.windows + 1), dtype=np.uint64)
        addresses[:, 0] = _address(parsed) + _PARSED * np.arange(count, dtype=np.uint64)
        entries = digits + self._size * np.arange(self.windows, dtype=np.uint64)
        addresses[:, 1:] = _address(self._table) + _PARSED * entries
        pointers = ffi.cast("secp256k1_pubkey **", ffi.from_buffer(addresses))
        width, sums = self.windows + 1, _room(count)
        zero = [
            row
            for row in range(count)
            if not lib.secp256k1_ec_pubkey_combine(_CONTEXT, sums + row, pointers + row * width, width)
        ]
        for row in zero:
            ffi.memmove(sums + row, parsed, _PARSED)
        points = _written(sums, count)
        for row in zero:
            points[row] = np.frombuffer(os.urandom(POINT), dtype=np.uint8)
        return points


def negative(point: bytes) -> bytes:
    """Return the point that adds up to zero with this one."""
    parsed = read(one(point))
    lib.secp256k1_ec_pubkey_negate(_CONTEXT, parsed)
    return _written(parsed, 1).tobytes()


def hashed(ids: Digests) -> Any:
    """Return H(x) of every id, a point whose logarithm nobody knows, parsed.

    SHA-512 gives 64 uniform bytes, which ElligatorSwift maps to a nearly uniform point.
    """
    parsed, packed = _room(len(ids)), ids.tobytes()
    for row in range(len(ids)):
        uniform = hashlib.sha512(b"colonnade id" + packed[32 * row : 32 * row + 32]).digest()
        lib.secp256k1_ellswift_decode(_CONTEXT, parsed + row, uniform)
    return parsed


def hashed_points(ids: Digests) -> Points:
    """Return H(x) of every id."""
    return _written(hashed(ids), len(ids))


def added(points: Points, others: Points) -> Points:
    """Return the sum of each point and the other in its place; AlignmentError if it is zero."""
    left, right, sums = read(points), read(others), _room(len(points))
    both = ffi.new("secp256k1_pubkey *[2]")
    for row in range(len(points)):
        both[0], both[1] = left + row, right + row
        if not lib.secp256k1_ec_pubkey_combine(_CONTEXT, sums + row, both, 2):
            raise AlignmentError(_CANCEL)
    return _written(sums, len(points))


def totals(parsed: Any, groups: Sequence[Rows]) -> Points:
    """Return the sum of each group of rows among parsed points; AlignmentError if one is zero."""
    sums = _room(len(groups))
    for place, rows in enumerate(groups):
        addresses = _address(parsed) + np.uint64(_PARSED) * rows.astype(np.uint64)
        pointers = ffi.cast("secp256k1_pubkey **", ffi.from_buffer(addresses))
        if not lib.secp256k1_ec_pubkey_combine(_CONTEXT, sums + place, pointers, len(rows)):
            raise AlignmentError(_CANCEL)
    return _written(sums, len(groups))


def read(points: Points) -> Any:
    """Return points as the library keeps them; AlignmentError if some bytes are none."""
    parsed = _room(len(points))
    source = ffi.from_buffer(np.ascontiguousarray(points))
    for row in range(len(points)):
        if not lib.secp256k1_ec_pubkey_parse(_CONTEXT, parsed + row, source + POINT * row, POINT):
            raise AlignmentError(_NO_POINT)
    return parsed


def one(point: bytes) -> Points:
    """Return a point as an array of one row; AlignmentError if it has another length."""
    if len(point) != POINT:
        raise AlignmentError(_NO_POINT)
    return np.frombuffer(point, dtype=np.uint8).reshape(1, POINT)


def _step(parsed: Any, count: int) -> None:
    """Fill a room of `count` places with the multiples of its first one."""
    both = ffi.new("secp256k1_pubkey *[2]")
    both[1] = parsed
    for place in range(1, count):
        both[0] = parsed + (place - 1)
        lib.secp256k1_ec_pubkey_combine(_CONTEXT, parsed + place, both, 2)


def _written(parsed: Any, count: int) -> Points:
    points = np.empty((count, POINT), dtype=np.uint8)
    target, length = ffi.from_buffer(points), ffi.new("size_t *", POINT)
    for row in range(count):
        lib.secp256k1_ec_pubkey_serialize(_CONTEXT, target + POINT * row, length, parsed + row, _UNCOMPRESSED)
    return points


def _room(count: int) -> Any:
    return ffi.new("secp256k1_pubkey[]", count)


def _address(pointer: Any) -> np.uint64:
    return np.uint64(int(ffi.cast("uintptr_t", pointer)))
