"""Random words that two parties of a run can both make and nobody else can tell from noise.

Every pair of parties has agreed on one secret (`keys.agree`). It is never used itself: every purpose has a
key of its own, derived from the secret, the purpose, who plays which role, and the table of rows it is for.
So two purposes never share a word, also where two parties serve each other.

A word is found by (tag, position): the AES-256 key stream in counter mode, whose counter block is the tag and
the position. Words may be made in any order and need no memory. What hides a value is used once: `once`
remembers its tags at the party that calls it, and a second use raises. A value that must be sent again is
sent as the bytes that were stored, never masked again. Keys are new in every run and never stored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

from colonnade.arrays import Rows, Words
from colonnade.errors import SumError
from colonnade.messages import TOPIC_SHIFT
from colonnade.secure.protocol import UsedTags

TAGS, PAGE = 48, 2**14  # masks that are made in one go: this many tags, and words, at the most
SLACK = 8  # words by which a neighbour may be longer
KEPT = 256  # masks that are kept
_BLOCK = 16  # bytes that one counter block becomes: two words
_PIECE = 2**13  # counter blocks that are made at once
_FEW = 2**15  # words of a tag whose counters are kept for the next


class Roles(NamedTuple):
    """Who is who in a product: the asker knows a vector, the owner columns, the dealer neither."""

    asker: str
    owner: str
    dealer: str


class Stream:
    """Words that depend on a key, a tag and a position alone."""

    def __init__(self, key: bytes) -> None:
        # ECB over explicit counter blocks is counter mode, without a new cipher context per tag
        self._encryptor = Cipher(algorithms.AES(key), modes.ECB()).encryptor()  # noqa: S305
        self._used = UsedTags()
        self._counters: Words = np.empty((0, 0, 2), dtype=np.uint64)  # of the last table, or a longer one

    def words(self, tag: int, count: int) -> Words:
        """Return the first words of a tag; they may be made again, so they must not hide two different
        values."""
        if count <= _FEW:
            first: Words = self.table(np.array([tag], dtype=np.uint64), count)[0]
            return first
        return self._many(tag, count)

    def _many(self, tag: int, count: int) -> Words:
        """Return the first words of a tag, piece by piece, so that counters stay in the processor's cache."""
        counters = np.empty((_PIECE, 2), dtype=np.uint64)
        counters[:, 0], counters[:, 1] = tag, np.arange(_PIECE, dtype=np.uint64)
        blocks = -(-count // 2)
        # an encryptor wants room for nearly a block more than it writes
        made = np.empty(2 * blocks + 2, dtype=np.uint64)
        room = made.view(np.uint8).data
        for start in range(0, blocks, _PIECE):
            part = counters[: blocks - start]
            self._encryptor.update_into(part.reshape(-1).view(np.uint8).data, room[start * _BLOCK :])
            counters[:, 1] += _PIECE
        return made[:count]

    def table(self, tags: Words | Rows, count: int) -> Words:
        """Return the first `count` words of every tag, a row for each."""
        if len(tags) > len(self._counters) or self._counters.shape[1] != -(-count // 2):
            self._counters = np.empty((len(tags), -(-count // 2), 2), dtype=np.uint64)
            self._counters[:, :, 1] = np.arange(self._counters.shape[1], dtype=np.uint64)
        blocks = self._counters[: len(tags)]
        blocks[:, :, 0] = np.asarray(tags)[:, None]
        # an encryptor wants room for nearly a block more than it writes
        stream = np.empty(blocks.size + 2, dtype=np.uint64)
        self._encryptor.update_into(blocks.reshape(-1).view(np.uint8).data, stream.view(np.uint8).data)
        made: Words = stream[:-2].reshape(len(tags), -1)[:, :count]
        return made

    def once(self, tag: int, count: int) -> Words:
        """Return the words of a tag, to hide a value; TagReused if this party has taken them before."""
        self._used.use(tag)
        return self.words(tag, count)

    def write(self, blocks: memoryview, room: memoryview) -> None:
        """Write the words of these counter blocks, each a tag and a position, into the room."""
        self._encryptor.update_into(blocks, room)


class PairStreams:
    """All streams of one party in one run, by peer, purpose and roles; each is there once."""

    def __init__(self, me: str, secrets: Mapping[str, bytes]) -> None:
        self.me = me
        self._secrets = dict(secrets)
        self._made: dict[tuple[str, str, Roles, str], Stream] = {}

    def shared(self, peer: str, purpose: str, roles: Roles, table: str = "") -> Stream:
        """Return the stream that this party shares with a peer for one purpose; two of the roles must be
        theirs."""
        if len(set(roles)) != 3:
            raise SumError(f"a product needs three different parties, not {', '.join(roles)}")
        if self.me not in roles or peer not in roles or peer == self.me:
            raise SumError(f"{self.me} and {peer} share no stream of a product of {', '.join(roles)}")
        name = peer, purpose, roles, table
        if name not in self._made:
            self._made[name] = Stream(_expand(self._secrets[peer], _info(purpose, *roles, table)))
        return self._made[name]


def subkey(secret: bytes, purpose: str) -> bytes:
    """Return the key of a pair's own purpose that has no roles."""
    return _expand(secret, _info(purpose))


class Masks:
    """What a party adds to its pieces: the words of some streams, less the words of others, by tag.

    Sums follow each other by their tags and are about as long, so the masks of some neighbours are made in
    one go. Each is asked for once and kept until then. What is kept is bounded: a tag behind those that were
    made with neighbours is made alone. `less` is taken from every mask, for who wants it added to its pieces.
    """

    def __init__(self, added: Sequence[Stream], subtracted: Sequence[Stream], less: int = 0) -> None:
        self._added, self._subtracted, self._less = added, subtracted, np.array(less, dtype=np.uint64)
        self._ahead: dict[int, Words] = {}  # by tag, what nobody has asked for yet
        self._beyond: dict[int, int] = {}  # by topic, the tag after the last that was made with neighbours
        self._pad = np.empty(0, dtype=np.uint64)
        self._counters: Words = np.empty((0, 0, 2), dtype=np.uint64)  # of the last masks

    def of(self, tag: int, size: int) -> Words:
        """Return the mask of a sum: this many words, or more."""
        mask = self._ahead.pop(tag, None)
        if mask is None or len(mask) < size:
            mask = self._fresh(tag, size)
        return mask

    def _fresh(self, tag: int, size: int) -> Words:
        """Return the mask of a sum, made now; those of its neighbours are made with it."""
        tags, topic = min(TAGS, PAGE // max(size, 1)), tag >> TOPIC_SHIFT
        if tags < 2 or tag < self._beyond.get(topic, 0):
            alone: Words = self._made(tag, 1, size)[0]
            return alone
        first = tag - tag % tags
        self._beyond[topic] = first + tags
        made = self._made(first, tags, size + SLACK)
        self._ahead.update(zip(range(first, first + tags), made, strict=True))
        mask = self._ahead.pop(tag)
        while len(self._ahead) > KEPT:
            del self._ahead[next(iter(self._ahead))]
        return mask

    def _made(self, first: int, tags: int, size: int) -> Words:
        """Return the masks of some tags in a row; a long one in stretches, which stay in the processor's
        cache."""
        blocks = -(-size // 2)
        counters = self._counters
        if counters.shape[:2] != (tags, blocks):
            counters = np.empty((tags, min(blocks, _PIECE), 2), dtype=np.uint64)
            counters[:, :, 1] = np.arange(counters.shape[1], dtype=np.uint64)
            if blocks <= _PIECE:  # or they move on, below
                self._counters = counters
        counters[:, :, 0] = np.arange(first, first + tags, dtype=np.uint64)[:, None]
        total = np.empty(tags * blocks * 2, dtype=np.uint64)
        for start in range(0, total.size, counters.size):
            if start:
                counters[:, :, 1] += _PIECE
            stretch = total[start : start + counters.size]
            self._write(counters.reshape(-1)[: stretch.size], stretch)
        return total.reshape(tags, 2 * blocks)

    def _write(self, counters: Words, total: Words) -> None:
        """Write the masks of these counter blocks."""
        if self._pad.size < counters.size + 2:  # an encryptor wants room for nearly a block more
            self._pad = np.empty(counters.size + 2, dtype=np.uint64)
        source, room = counters.view(np.uint8).data, self._pad.view(np.uint8).data
        words = self._pad[: counters.size]
        total.fill(-self._less)
        for stream in self._added:
            stream.write(source, room)
            total += words
        for stream in self._subtracted:
            stream.write(source, room)
            total -= words


def _info(*parts: str) -> bytes:
    """Return texts as bytes in which no two lists of texts are alike."""
    coded = [part.encode() for part in parts]
    return b"colonnade stream" + b"".join(len(part).to_bytes(4, "big") + part for part in coded)


def _expand(secret: bytes, info: bytes) -> bytes:
    return HKDFExpand(hashes.SHA256(), length=32, info=info).derive(secret)
