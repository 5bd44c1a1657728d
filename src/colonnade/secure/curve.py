"""Ids as points of an elliptic curve, blinded so that they can be compared only when all parties take part.

The curve is secp256k1, by libsecp256k1. Its order is prime, so every point but one generates the whole group
and there are no small subgroups to check for; parsing refuses bytes that are no point. A party's scalar lives
for one alignment. The library's multiplication takes a time that depends a little on the scalar; what a peer
can time is a chunk of thousands of points, once.
"""

from __future__ import annotations

import hashlib
import os

import numpy as np
from coincurve import PublicKey
from numpy.typing import NDArray

from colonnade.arrays import Digests
from colonnade.errors import AlignmentError

Points = NDArray[np.uint8]  # [n, 33]: compressed points

ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
POINT = 33


def scalar() -> bytes:
    """A new secret multiplier, for one alignment."""
    while not 0 < int.from_bytes(drawn := os.urandom(32), "big") < ORDER:
        pass
    return drawn


def inverse(secret: bytes) -> bytes:
    """The multiplier that undoes `secret`."""
    return pow(int.from_bytes(secret, "big"), -1, ORDER).to_bytes(32, "big")


def hashed_times(ids: Digests, secret: bytes) -> Points:
    """The point secret H(x) of every id x."""
    return _array([_to_curve(row.tobytes()).multiply(secret).format() for row in ids])


def times(points: Points, secret: bytes) -> Points:
    """Each point, multiplied by `secret`.

    >>> ids, secret = np.zeros((1, 32), dtype=np.uint8), scalar()
    >>> there = times(hashed_times(ids, secret), other := scalar())
    >>> bool((times(there, inverse(other)) == hashed_times(ids, secret)).all())
    True
    """
    try:
        return _array([PublicKey(row.tobytes()).multiply(secret).format() for row in points])
    except ValueError:
        raise AlignmentError("a peer sent bytes that are no point of the curve") from None


def _to_curve(digest: bytes) -> PublicKey:
    """A point whose logarithm nobody knows: the first counter whose hash is the abscissa of one."""
    for counter in range(256):
        try:
            return PublicKey(b"\2" + hashlib.sha256(b"colonnade id" + bytes([counter]) + digest).digest())
        except ValueError:  # half of all abscissas are on no point
            continue
    raise AlignmentError("an id has no point")  # one in 2^256


def _array(points: list[bytes]) -> Points:
    return np.frombuffer(b"".join(points), dtype=np.uint8).reshape(-1, POINT)
