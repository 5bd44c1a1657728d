"""Oblivious transfers: of two seeds the chooser gets the one it wants, and the giver cannot tell which.

Masny and Rindal 2019 on secp256k1, in the random-oracle model: the chooser sends two points r0, r1 such that
it knows the logarithm of r_c + H_c(r_(1-c)) for its choice c; the other sum is a point that a hash has
decided. Both points are uniform for any c. The giver answers with a point yG, new for every transfer, and
hides both seeds with hashes of y times the sums. (Theirs ends with the hashes themselves; seeds that the
giver draws are a transfer whose messages no cheating chooser can influence.)
"""

from __future__ import annotations

import hashlib
import os

import numpy as np
from numpy.typing import NDArray

from colonnade.secure.curve import POINT, Points, added, base_times, hashed_points, negative, scalar, times

SEED = 32  # bytes
Seeds = NDArray[np.uint8]  # [transfers, 32]
Hidden = NDArray[np.uint8]  # [transfers, 2, 32]: both seeds, each under a pad


def choose(choices: NDArray[np.bool_], context: bytes) -> tuple[Points, list[bytes]]:
    """Return two points for every choice, one after the other, and the secrets to open what comes back."""
    count = len(choices)
    secrets = [scalar() for _ in range(count)]
    other = hashed_points(np.frombuffer(os.urandom(32 * count), dtype=np.uint8).reshape(-1, 32))
    known = _stacked([base_times(secret) for secret in secrets])
    chosen = added(known, _negated(_hashes(other, choices, context)))
    pairs = np.empty((count, 2, POINT), dtype=np.uint8)
    rows = np.arange(count)
    pairs[rows, choices.astype(np.intp)] = chosen
    pairs[rows, 1 - choices.astype(np.intp)] = other
    return pairs.reshape(-1, POINT), secrets


def give(offers: Points, seeds: tuple[Seeds, Seeds], context: bytes) -> tuple[Points, Hidden]:
    """Return the giver's points, and both seeds of every transfer such that the chooser can read one."""
    pairs = offers.reshape(-1, 2, POINT)
    secrets = [scalar() for _ in range(len(pairs))]
    answers = _stacked([base_times(secret) for secret in secrets])
    hidden = np.empty((len(pairs), 2, SEED), dtype=np.uint8)
    for side in (0, 1):
        choices = np.full(len(pairs), side, dtype=np.bool_)
        points = added(pairs[:, side], _hashes(pairs[:, 1 - side], choices, context))
        shared = _multiplied(points, secrets)
        hidden[:, side] = seeds[side] ^ _pads(shared, choices, offers, answers, context)
    return answers, hidden


def opened(
    choices: NDArray[np.bool_],
    secrets: list[bytes],
    offers: Points,
    answer: tuple[Points, Hidden],
    context: bytes,
) -> Seeds:
    """Return the chosen seed of every transfer."""
    points, hidden = answer
    pads = _pads(_multiplied(points, secrets), choices, offers, points, context)
    chosen: Seeds = hidden[np.arange(len(choices)), choices.astype(np.intp)] ^ pads
    return chosen


def _hashes(points: Points, choices: NDArray[np.bool_], context: bytes) -> Points:
    """Return H_c of the point of every transfer, a point whose logarithm nobody knows."""
    digests = [
        hashlib.blake2b(b"point" + _place(k, c) + point.tobytes(), key=context, digest_size=32).digest()
        for k, (c, point) in enumerate(zip(choices, points, strict=True))
    ]
    return hashed_points(_stacked(digests))


def _pads(
    shared: Points, choices: NDArray[np.bool_], offers: Points, answers: Points, context: bytes
) -> NDArray[np.uint8]:
    """Return what hides the seeds: hashes of the shared points, and of all that was said about the
    transfer."""
    pairs = offers.reshape(-1, 2 * POINT)
    said = zip(choices, shared, pairs, answers, strict=True)
    pads = [
        hashlib.blake2b(
            b"seed" + _place(k, c) + b"".join(each.tobytes() for each in points),
            key=context,
            digest_size=SEED,
        ).digest()
        for k, (c, *points) in enumerate(said)
    ]
    return _stacked(pads)


def _place(number: int, choice: np.bool_) -> bytes:
    return number.to_bytes(4, "big") + bytes([int(choice)])


def _multiplied(points: Points, secrets: list[bytes]) -> Points:
    """Return every point, multiplied by a secret of its own."""
    return np.concatenate([times(points[k : k + 1], secret) for k, secret in enumerate(secrets)])


def _negated(points: Points) -> Points:
    return _stacked([negative(point.tobytes()) for point in points])


def _stacked(rows: list[bytes]) -> NDArray[np.uint8]:
    return np.frombuffer(b"".join(rows), dtype=np.uint8).reshape(len(rows), -1)
