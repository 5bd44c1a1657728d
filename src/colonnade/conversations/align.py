"""The align conversation: which ids do all parties hold? Nobody shows the others.

Multi-party private set intersection on elliptic-curve Diffie-Hellman (Kolesnikov, Matania, Pinkas,
Rosulek, Trieu 2017, with a Diffie-Hellman OPRF). The party with the fewest ids leads.

1. Every pair shares a secret, so party i can give every id x a share s_i(x) such that all shares of one
   id cancel: s_i(x) = xor over j of PRF(k_ij, x).
2. The leader sends its ids as blinded points r H(x). Party i returns k_i r H(x); the leader removes r and
   has F_i(x) = hash(x, k_i H(x)), which without k_i only party i can compute for other ids.
3. Party i writes a table (`secure.hints`) that holds s_i(y) xor F_i(y) for each of its own ids y.
4. The leader reads all tables at its own ids: where every party holds x the shares cancel to zero, anywhere
   else noise remains, whoever and however many lack it. It tells party i the F_i(x) of the common ids.

What each side learns: how many ids every party brings, and the ids common to all; not which other ids a
party holds, nor which ids some of them share. That is for parties that follow the protocol and do not put
their keys together; a coalition with the leader learns what all parties outside it have in common with the
leader. A party may always lie about its own ids: sizes are shown, and a set that changes between two runs
is refused, since one id more or less would tell whether the others hold it.

Ids travel as points of a curve (`secure.curve`), in chunks; memory is a few words an id.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from colonnade.arrays import Digests, Rows
from colonnade.errors import AlignmentError, DuplicateIds, EmptyIntersection
from colonnade.messages import Found, Hints, Points, Roster, Seal, Topic, tag_of
from colonnade.net.expect import Number, expect, octets, words
from colonnade.net.network import Network
from colonnade.secure.curve import POINT, hashed_times, inverse, scalar, times
from colonnade.secure.hints import Words, read_table, size_for, write_table

Progress = Callable[[int, int], None]

CHUNK = 4096  # points a message
BUCKET = 2**15  # ids a table
IN_FLIGHT = 8  # chunks that are blinded but not yet back
IDS = 2**40  # of one party, at most
PARTIES = 8  # the most that can align

_BLIND, _EVALUATED, _TABLE, _FOUND, _TICK = (kind << 40 for kind in range(5))
_NOTHING = np.empty(0, dtype=np.uint8)


@dataclass(frozen=True, eq=False)
class Alignment:
    """The common rows: `rows[k]` is the place of the k-th of them in this party's own data."""

    rows: Rows
    digest: str
    sizes: dict[str, int]


@dataclass(frozen=True)
class AlignTerms:
    """What all parties must agree on, and what this party demands of the others.

    `order` decides the common order, `rules` names the normalisation, `commitment` stands for this party's
    set without showing it, and `admit` is shown what the peers announce before any id is compared: it raises
    to go no further.
    """

    order: bytes = b""
    rules: str = ""
    minimum: int = 1
    commitment: bytes = b""
    admit: Callable[[Mapping[str, Roster]], None] = lambda rosters: None


async def align(
    net: Network,
    ids: Digests,
    secrets: Mapping[str, bytes],
    terms: AlignTerms | None = None,
    progress: Progress = lambda done, total: None,
) -> Alignment:
    """Find the rows that all parties hold. Every party calls this; `secrets` has 32 bytes for every peer."""
    terms = terms or AlignTerms()
    _check_own(net, ids)
    await net.broadcast(Roster(len(ids), terms.minimum, terms.commitment, terms.rules))
    rosters = await net.gather(Roster, size=Number(1, IDS), minimum=Number(0, IDS))
    minimum = max(1, terms.minimum, *(roster.minimum for roster in rosters.values()))
    sizes = {net.me: len(ids), **{peer: roster.size for peer, roster in rosters.items()}}
    _check_rosters(net.me, rosters, terms)
    _check_sizes(sizes, minimum)
    terms.admit(rosters)
    leader = min(net.parties, key=lambda party: (sizes[party], party))
    side = _Side(net, ids, secrets, sizes, leader, progress)
    found = await (side.lead(minimum) if leader == net.me else side.follow(minimum))
    rows, digest = _ordered(ids, found, terms.order)
    await net.broadcast(Seal(digest))
    for peer, seal in (await net.gather(Seal)).items():
        if seal.digest != digest:
            raise AlignmentError(f"{net.me} and {peer} ended up with different common rows; do not train")
    return Alignment(rows, digest.hex(), sizes)


def _check_own(net: Network, ids: Digests) -> None:
    if not 2 <= len(net.parties) <= PARTIES:
        raise AlignmentError(f"{len(net.parties)} parties cannot align; 2 to {PARTIES} can")
    if not len(ids):
        raise EmptyIntersection(f"{net.me} brings no ids")
    order = np.argsort(names := _text(ids), kind="stable")
    same = np.flatnonzero(names[order][1:] == names[order][:-1])
    if same.size:
        first, second = sorted((int(order[same[0]]), int(order[same[0] + 1])))
        raise DuplicateIds(
            f"{net.me}: rows {first + 1} and {second + 1} have the same id after normalisation, and "
            f"{same.size - 1} more pairs do; keep one row per id"
        )


def _check_rosters(me: str, rosters: Mapping[str, Roster], terms: AlignTerms) -> None:
    for peer, roster in rosters.items():
        if roster.rules != terms.rules:
            raise AlignmentError(f"{peer} normalises ids in another way than {me}; agree on one job")


def _check_sizes(sizes: Mapping[str, int], minimum: int) -> None:
    """Refuse sets that are too small to have so much in common: comparing them could only tell who is in."""
    fewest = min(sizes, key=lambda party: (sizes[party], party))
    if sizes[fewest] < minimum:
        raise EmptyIntersection(
            f"{fewest} brings {sizes[fewest]} ids, {minimum} common ones are demanded; nothing was compared"
        )


@dataclass
class _Side:
    """One party's part, as the leader or as a follower.

    The leader tells the others of every step that it finishes, so that no wait is longer than a step.
    """

    net: Network
    ids: Digests
    secrets: Mapping[str, bytes]
    sizes: Mapping[str, int]
    leader: str
    progress: Progress

    def __post_init__(self) -> None:
        self.chunks = -(-self.sizes[self.leader] // CHUNK)
        followers = [party for party in self.net.parties if party != self.leader]
        self.steps = sum(self.chunks + buckets_for(self.sizes[party]) for party in followers)
        self.done = 0

    # -- the leader ---------------------------------------------------------------------------------

    async def lead(self, minimum: int) -> Rows:
        """Find the common ids, tell every peer which they are, and return the own rows that hold them."""
        shuffled = np.random.Generator(np.random.PCG64(int.from_bytes(os.urandom(16), "big")))
        order = shuffled.permutation(len(self.ids))
        ids = self.ids[order]  # the order of points must not tell the order of the file
        blind = scalar()
        unblind = inverse(blind)
        zero = await asyncio.to_thread(_share_of_zero, ids, list(self.secrets.values()))
        values = {peer: np.empty_like(zero) for peer in self.net.peers}
        room = asyncio.Semaphore(IN_FLIGHT * len(self.net.peers))
        # before a chunk goes out, room for all its answers is set aside
        async with asyncio.TaskGroup() as group:
            group.create_task(self._blind(ids, blind, room))
            for peer in self.net.peers:
                group.create_task(self._unblind(peer, ids, unblind, values[peer], room))
            reads = [group.create_task(self._read_tables(peer, ids)) for peer in self.net.peers]
        for peer, read in zip(self.net.peers, reads, strict=True):
            zero ^= values[peer] ^ read.result()
        common = np.flatnonzero(~zero.any(axis=1))
        if len(common) < minimum:
            common = common[:0]  # how many there are is nobody's business: too few, and that is all
        for peer in self.net.peers:
            names = values[peer][common]
            await self._tell(peer, len(common), names[np.argsort(names[:, 0])])
        _check_common(len(common), minimum)
        found: Rows = order[common]
        return found

    async def _blind(self, ids: Digests, blind: bytes, room: asyncio.Semaphore) -> None:
        """Send the own ids to all peers as blinded points, chunk by chunk."""
        for chunk in range(self.chunks):
            for _ in self.net.peers:
                await room.acquire()
            points = await asyncio.to_thread(hashed_times, _cut(ids, chunk), blind)
            await self.net.broadcast(Points(_tag(_BLIND, chunk), points))

    async def _unblind(
        self, peer: str, ids: Digests, unblind: bytes, values: Words, room: asyncio.Semaphore
    ) -> None:
        """Fill `values` with F of every own id under a peer's key, from the points that it returns."""
        for chunk in range(self.chunks):
            mine = _cut(ids, chunk)
            due = octets(len(mine), POINT)
            points = (await self.net.recv(Points, peer, _tag(_EVALUATED, chunk), points=due)).points
            _cut(values, chunk)[:] = await asyncio.to_thread(_values, mine, points, unblind)
            room.release()
            await self._tick()

    async def _read_tables(self, peer: str, ids: Digests) -> Words:
        """The entries of a peer's tables at each of our ids, read bucket by bucket."""
        found = np.empty((len(ids), 2), dtype=np.uint64)
        keys = _words(ids)
        buckets = buckets_for(self.sizes[peer])
        where = _bucket(keys, buckets)
        for bucket in range(buckets):
            due = words(size_for(_capacity(self.sizes[peer], buckets)), 2)
            hints = await self.net.recv(
                Hints, peer, _tag(_TABLE, bucket), table=due, seed=Number(0, 2**64 - 1)
            )
            mine = np.flatnonzero(where == bucket)
            found[mine] = await asyncio.to_thread(read_table, hints.table, hints.seed, keys[mine])
            await self._tick()
        return found

    async def _tick(self) -> None:
        """Count one finished step and tell all peers, who would otherwise give up waiting."""
        self.done += 1
        self.progress(self.done, self.steps)
        await self.net.broadcast(Points(_tag(_TICK, self.done), _NOTHING))

    async def _tell(self, peer: str, total: int, names: Words) -> None:
        for chunk in range(max(1, -(-len(names) // CHUNK))):
            await self.net.send(peer, Found(_tag(_FOUND, chunk), total, _cut(names, chunk)))

    # -- everybody else -----------------------------------------------------------------------------

    async def follow(self, minimum: int) -> Rows:
        """Help the leader find the common ids, and return the own rows that hold them."""
        key = scalar()
        values = np.empty((len(self.ids), 2), dtype=np.uint64)
        async with asyncio.TaskGroup() as group:
            group.create_task(self._evaluate(key))
            group.create_task(self._write_tables(key, values))
            group.create_task(self._listen())
        # no more can be common than the fewest that anybody brought, which are the leader's
        brought = Number(0, self.sizes[self.leader])
        first = await self.net.recv(Found, self.leader, _tag(_FOUND, 0), total=brought, names=words(None, 2))
        _check_common(first.total, minimum)
        found = [first.names]
        for chunk in range(1, -(-first.total // CHUNK)):
            due = words(min(CHUNK, first.total - chunk * CHUNK), 2)
            found.append((await self.net.recv(Found, self.leader, _tag(_FOUND, chunk), names=due)).names)
        expect(self.leader, first, {"names": words(min(CHUNK, first.total), 2)})
        return self._recognise(np.concatenate(found), values)

    async def _evaluate(self, key: bytes) -> None:
        """Multiply the leader's blinded points by the own key, chunk by chunk."""
        for chunk in range(self.chunks):
            due = octets(min(CHUNK, self.sizes[self.leader] - chunk * CHUNK), POINT)
            points = (await self.net.recv(Points, self.leader, _tag(_BLIND, chunk), points=due)).points
            evaluated = await asyncio.to_thread(times, points, key)
            await self.net.send(self.leader, Points(_tag(_EVALUATED, chunk), evaluated))

    async def _write_tables(self, key: bytes, values: Words) -> None:
        """Fill `values` with F of the own ids, and send the leader a table of s xor F for every bucket."""
        keys = _words(self.ids)
        buckets = buckets_for(len(self.ids))
        where = _bucket(keys, buckets)
        capacity = _capacity(len(self.ids), buckets)
        for bucket in range(buckets):
            mine = np.flatnonzero(where == bucket)
            ids = self.ids[mine]
            for start in range(0, len(mine), CHUNK):
                part = slice(start, start + CHUNK)
                values[mine[part]] = await asyncio.to_thread(_own_values, ids[part], key)
            zero = await asyncio.to_thread(_share_of_zero, ids, list(self.secrets.values()))
            # noise fills a bucket up to its capacity: its size must not tell how many ids fall into it
            spare = np.frombuffer(os.urandom(32 * (capacity - len(mine))), dtype=np.uint64).reshape(-1, 4)
            seed, table = await asyncio.to_thread(
                write_table,
                np.concatenate([keys[mine], spare[:, :2]]),
                np.concatenate([zero ^ values[mine], spare[:, 2:]]),
            )
            await self.net.send(self.leader, Hints(_tag(_TABLE, bucket), seed, table))

    async def _listen(self) -> None:
        for step in range(1, self.steps + 1):
            await self.net.recv(Points, self.leader, _tag(_TICK, step), points=octets(0))
            self.progress(step, self.steps)

    def _recognise(self, names: Words, values: Words) -> Rows:
        """The own rows whose F the leader named."""
        order = np.argsort(values[:, 0], kind="stable")
        place = np.minimum(np.searchsorted(values[order, 0], names[:, 0]), len(values) - 1)
        rows: Rows = order[place]
        if not (values[rows] == names).all() or len(np.unique(rows)) < len(rows):
            raise AlignmentError(f"{self.leader} named common ids that {self.net.me} did not bring, or twice")
        return rows


def _check_common(common: int, minimum: int) -> None:
    if common < minimum:
        raise EmptyIntersection(
            f"fewer ids are common to all parties than the {minimum} that are needed; look at the id columns "
            "and their normalisation (align.keys in the job)"
        )


def _ordered(ids: Digests, found: Rows, key: bytes) -> tuple[Rows, bytes]:
    """The common rows in an order that all parties derive alike, and a digest of that order."""
    names = [hashlib.blake2b(ids[row].tobytes(), key=key[:64], digest_size=16).digest() for row in found]
    order = np.argsort(np.array(names, dtype="S16"), kind="stable")
    rows: Rows = np.asarray(found, dtype=np.int64)[order]
    return rows, hashlib.sha256(b"colonnade rows" + key + ids[rows].tobytes()).digest()


# -- local work, on threads: libsecp256k1 and hashlib run beside the event loop -----------------------


def _own_values(ids: Digests, key: bytes) -> Words:
    return _hashes(ids, hashed_times(ids, key))


def _values(ids: Digests, points: NDArray[np.uint8], unblind: bytes) -> Words:
    return _hashes(ids, times(points, unblind))


def _hashes(ids: Digests, points: NDArray[np.uint8]) -> Words:
    both = np.concatenate([ids, points], axis=1)
    return _pairs([hashlib.blake2b(row.tobytes(), digest_size=16).digest() for row in both])


def _share_of_zero(ids: Digests, secrets: list[bytes]) -> Words:
    """s(x) of every id: the xor of what all parties have for the same id is zero."""
    total = np.zeros((len(ids), 2), dtype=np.uint64)
    for secret in secrets:
        key = hashlib.blake2b(b"colonnade align", key=secret).digest()
        total ^= _pairs([hashlib.blake2b(row.tobytes(), key=key, digest_size=16).digest() for row in ids])
    return total


def _pairs(hashes: list[bytes]) -> Words:
    return np.frombuffer(b"".join(hashes), dtype=np.uint64).reshape(-1, 2)


def _words(ids: Digests) -> Words:
    """The first half of every digest, which is the id's key in a table."""
    return np.ascontiguousarray(ids[:, :16]).view(np.uint64)


def _text(ids: Digests) -> NDArray[np.bytes_]:
    return np.ascontiguousarray(ids).view("S32").ravel()


def buckets_for(size: int) -> int:
    """How many tables a party with so many ids writes."""
    return max(1, round(size / BUCKET))


def _bucket(keys: Words, buckets: int) -> Rows:
    return (keys[:, 1] % np.uint64(buckets)).astype(np.int64)


def _capacity(size: int, buckets: int) -> int:
    """The most ids of one bucket: ten standard deviations over the mean, which no bucket ever exceeds."""
    if buckets == 1:
        return size
    mean = size / buckets
    return int(mean + 10 * mean**0.5)


def _cut(values: NDArray[Any], chunk: int) -> NDArray[Any]:
    return values[chunk * CHUNK : (chunk + 1) * CHUNK]


def _tag(kind: int, number: int) -> int:
    return tag_of(Topic.ALIGN, kind + number)
