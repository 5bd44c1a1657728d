"""A table that answers one question per key and says nothing about which keys it was made for.

Every key has three places in the table; the exclusive or of what stands there is the key's value. To
everybody else the table is noise: values look random to who does not hold the key's own secret, and
places that no key needs are filled at random (an oblivious key-value store, the three-place form of
Garimella, Pinkas, Rosulek, Trieu and Yanai 2021; the same peeling that makes an XOR filter). It takes
1.23 places a key. A seed whose places cannot be peeled is thrown away for the next one.

Keys are 16 bytes that are already hashes; values are 16 bytes. Both are rows of two 64-bit words.
"""

from __future__ import annotations

import os

import numpy as np
from numpy.typing import NDArray

from colonnade.arrays import Rows
from colonnade.errors import AlignmentError

Words = NDArray[np.uint64]  # [n, 2]
Places = Rows  # [n, 3]
Layer = tuple[Rows, Rows]

SPREAD = 1.23
SLACK = 48
SEEDS = 64


def size_for(keys: int) -> int:
    """Return how many places a table for this many keys has: three thirds, one for each of a key's places."""
    return 3 * -(-(int(SPREAD * keys) + SLACK) // 3)


def write_table(keys: Words, values: Words) -> tuple[int, Words]:
    """Return a table that gives `values[i]` for `keys[i]`, and the seed it was made with."""
    size = size_for(len(keys))
    first = int.from_bytes(os.urandom(4), "big")  # none is special: that one failed would tell of the keys
    for seed in range(first, first + SEEDS):
        places = _places(keys, seed, size)
        layers = _peel(places, size)
        if layers is not None:
            return seed, _fill(places, layers, values, size)
    raise AlignmentError(f"no table could be made for {len(keys)} ids; are two of them the same?")


def read_table(table: Words, seed: int, keys: Words) -> Words:
    """Return what the table says for each key: its value, or noise for a key it was not made for."""
    places = _places(keys, seed, len(table))
    found: Words = table.take(places[:, 0], axis=0)
    found ^= table.take(places[:, 1], axis=0)
    found ^= table.take(places[:, 2], axis=0)
    return found


def _places(keys: Words, seed: int, size: int) -> Places:
    """Return three places per key, one in each third of the table."""
    third = size // 3
    places = np.empty((len(keys), 3), dtype=np.int64)
    for k in range(3):
        salt = np.uint64((seed * 3 + k + 1) * 0x9E3779B97F4A7C15 % 2**64)
        mixed = _mix((keys[:, 0] ^ salt) + _mix(keys[:, 1] ^ salt))
        places[:, k] = k * third + (mixed % np.uint64(third)).astype(np.int64)
    return places


def _mix(x: Words) -> Words:
    """Return a hash of each word: the finaliser of splitmix64, in which every bit moves every bit of the
    output."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def _peel(places: Places, size: int) -> list[Layer] | None:
    """Return layers of (keys, a place that no later key needs), or None if some keys hold each other fast."""
    degree = np.bincount(places.ravel(), minlength=size)
    # the exclusive or of the keys at a place is the key itself once it is the only one left
    left = np.zeros(size, dtype=np.int64)
    for k in range(3):
        np.bitwise_xor.at(left, places[:, k], np.arange(len(places)))
    layers, taken = [], 0
    last = np.empty(len(places), dtype=np.int64)  # by key, the last candidate that has it alone
    candidates = np.flatnonzero(degree == 1)
    while candidates.size:
        keys, numbers = left[candidates], np.arange(len(candidates))
        last[keys] = numbers
        once = last[keys] == numbers
        keys, own = keys[once], candidates[once]
        layers.append((keys, own))
        taken += len(keys)
        touched = places[keys].ravel()
        np.subtract.at(degree, touched, 1)
        np.bitwise_xor.at(left, touched, np.repeat(keys, 3))
        candidates = touched[degree[touched] == 1]
    return layers if taken == len(places) else None


def _fill(places: Places, layers: list[Layer], values: Words, size: int) -> Words:
    """Return a random table, changed where a key needs it, last peeled first."""
    table = np.frombuffer(os.urandom(16 * size), dtype=np.uint64).reshape(size, 2).copy()
    for keys, own in reversed(layers):
        table[own] = 0
        a, b, c = places[keys].T
        table[own] = values[keys] ^ table.take(a, axis=0) ^ table.take(b, axis=0) ^ table.take(c, axis=0)
    return table
