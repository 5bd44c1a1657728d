"""Sixteen bytes for each of many rows of bytes, by a keyed hash."""

from __future__ import annotations

import hashlib

import numpy as np

from colonnade.arrays import Digests, Numbers, Words


def hashes(key: bytes, ids: Digests, rows: Numbers) -> Words:
    """Return a hash of every id with its row."""
    both = np.concatenate([ids, rows.view(np.uint8)], axis=1)
    packed, size = both.tobytes(), both.shape[1]
    keyed = hashlib.blake2b(key=key, digest_size=16)
    found = []
    for at in range(0, len(packed), size):
        one = keyed.copy()
        one.update(packed[at : at + size])
        found.append(one.digest())
    return np.frombuffer(b"".join(found), dtype=np.uint64).reshape(-1, 2)
