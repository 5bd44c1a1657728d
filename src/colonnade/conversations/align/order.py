"""Ids that a party has twice, and the common rows in an order that all parties derive alike.

Digests are compared as words in NumPy and enciphered a chunk at a time: no Python object is made for an id.
"""

from __future__ import annotations

import hashlib

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from colonnade.arrays import Digests, Rows, Words
from colonnade.conversations.align.layout import chunk_at, chunks_for, keys_of


def twice(ids: Digests) -> list[tuple[int, int]]:
    """Return the pairs of rows that have the same id."""
    first = _word(ids, 0)
    order = np.argsort(first, kind="stable")
    first = first[order]
    alike = np.flatnonzero(first[1:] == first[:-1])
    rows = np.unique(order[np.concatenate([alike, alike + 1])])  # hardly any, so all words may be compared
    rows = rows[np.lexsort([_word(ids[rows], place) for place in range(4)])]
    same = np.flatnonzero((ids[rows[1:]] == ids[rows[:-1]]).all(axis=1))
    return [(int(rows[k]), int(rows[k + 1])) for k in same]


def ordered(ids: Digests, found: Rows, key: bytes) -> tuple[Rows, bytes]:
    """Return the rows that were found in their common order, and a digest of that order."""
    names = np.empty((len(found), 2), dtype=np.uint64)
    secret = hashlib.blake2b(b"colonnade order", key=key[:64], digest_size=32).digest()
    for chunk in range(chunks_for(len(found))):
        part = chunk_at(chunk)
        names[part] = keyed(ids[found[part]], secret)
    first, second = names.byteswap().T  # numbers whose order is that of the bytes
    rows: Rows = np.asarray(found, dtype=np.int64)[np.lexsort((second, first))]
    digest = hashlib.sha256(b"colonnade rows" + key)
    for chunk in range(chunks_for(len(rows))):
        digest.update(ids[rows[chunk_at(chunk)]].tobytes())
    return rows, digest.digest()


def keyed(ids: Digests, key: bytes) -> Words:
    """Return sixteen bytes for every id that look random to anybody without the 32 bytes of the key.

    The first half of the digest, enciphered: AES is a permutation, so ids differ after it as they did before.
    """
    cipher = Cipher(algorithms.AES(key), modes.ECB()).encryptor()  # noqa: S305 - no two blocks are alike
    hidden = cipher.update(keys_of(ids).tobytes())
    return np.frombuffer(hidden, dtype="<u8").astype(np.uint64).reshape(-1, 2)


def share_of_zero(ids: Digests, secrets: list[bytes]) -> Words:
    """Return s(x) of every id: the exclusive or of what all parties have for the same id is zero."""
    total = np.zeros((len(ids), 2), dtype=np.uint64)
    for secret in secrets:
        total ^= keyed(ids, hashlib.blake2b(b"colonnade align", key=secret, digest_size=32).digest())
    return total


def _word(ids: Digests, place: int) -> Words:
    return np.ascontiguousarray(ids[:, 8 * place : 8 * place + 8]).view(np.uint64).ravel()
