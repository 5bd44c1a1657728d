"""How ids are cut up: chunks of points, lots of transfers, buckets of a table; and the tags of messages.

All that is as large as a bucket or a lot has room for more ids than any can get, and noise fills it up: sizes
must not tell how many ids fall into one.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from colonnade.arrays import Digests, Rows, Words
from colonnade.messages import Topic, tag_of

CHUNK = 4096  # points a message
BUCKET = 2**15  # ids a table
LOT = 2**16  # of the leader's ids whose transfers are extended at once

Buckets = NDArray[np.uint16]


class AlignStep(IntEnum):
    """What a message of an alignment is about."""

    BLIND = 0
    EVALUATED = 1
    TABLE = 2
    FOUND = 3
    TICK = 4
    KEY = 5
    CHOICES = 6
    SEEDS = 7
    COVERED = 8
    CHALLENGE = 9
    PROOF = 10


def tag(step: AlignStep, number: int = 0) -> int:
    """Return the tag of the message with this number."""
    return tag_of(Topic.ALIGN, (int(step) << 40) + number)


def chunks_for(size: int) -> int:
    """Return how many messages this number of points takes."""
    return -(-size // CHUNK)


def chunk_at(number: int) -> slice:
    """Return where a chunk lies."""
    return slice(number * CHUNK, (number + 1) * CHUNK)


def due(size: int, number: int) -> int:
    """Return how many of the points are in a chunk."""
    return min(CHUNK, size - number * CHUNK)


def lots_for(size: int) -> int:
    """Return how many lots a leader's ids take."""
    return max(1, round(size / LOT))


def tables_for(size: int, lots: int = 1) -> int:
    """Return how many tables a party with this number of ids writes: as many for each lot."""
    return lots * max(1, round(size / (lots * BUCKET)))


def capacity(size: int, parts: int) -> int:
    """Return the most ids that one of these parts may have: ten standard deviations over the mean, which none
    exceeds."""
    if parts == 1:
        return size
    mean = size / parts
    return int(mean + 10 * mean**0.5)


def bucket_of(ids: Digests, buckets: int) -> Buckets:
    """Return the bucket of every id."""
    second = np.ascontiguousarray(ids[:, 8:16]).view(np.uint64).ravel()
    return (second % np.uint64(buckets)).astype(np.uint16)


def rows_of(where: Buckets, bucket: int) -> Rows:
    """Return the rows in a bucket."""
    return np.flatnonzero(where == bucket)


def keys_of(ids: Digests) -> Words:
    """Return the first half of every digest, which is the id's key in a table."""
    return np.ascontiguousarray(ids[:, :16]).view(np.uint64)
