"""Correlations of the columns of several parties, with noise of both that own them, in whole steps.

Every party has columns in standard deviations (`describe.own`); the label is one more of its holder's.

1. Each tells all others what its columns are called, and a hash of them under a key of its own.
2. Each tells all others the correlations of its own columns, with its noise.
3. For every two parties the one with fewer columns asks: it encrypts its columns (`secure.lattice`), the
   owner multiplies by its own and sends c_1. The asker returns its part of all products with noise; the
   owner adds up, adds noise of its own, and tells everybody.

Noise is discrete and Gaussian, of a given part of a correlation's standard error. What is told is rounded to
steps no larger than it.

What each side learns. Everybody: names, and correlations with the noise of each that owns a column. The
owner of a product knows it with the asker's noise alone. Nobody learns a value of a row, as long as ring
learning with errors is hard; no third party takes part. Who asks the same of the same columns again hears
the same: noise follows from a secret of the party and the hashes.

That is for parties that follow the protocol. One that says the hash of other columns than it has, or asks
with numbers that are no columns, is told of these.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from colonnade.arrays import Floats, Words
from colonnade.conversations.own_noise import OwnNoise
from colonnade.conversations.peer_line import PeerLine, parts_of
from colonnade.describe.joint import JointCorrelations, step_of
from colonnade.describe.own import LABEL, MOST, UnitColumns
from colonnade.errors import DataError, MalformedMessage
from colonnade.messages import Announce, Topic
from colonnade.net.expect import said_by
from colonnade.net.network import Network
from colonnade.openings.opening import DOUBLE, Channel, Declare, Kind, Opening, multiplied, sent
from colonnade.result import About
from colonnade.secure.lattice.arithmetic import primes_below
from colonnade.secure.lattice.ciphertexts import Ciphertexts, SecretKey, residues
from colonnade.secure.lattice.columns import (
    CoefficientAnswer,
    TransformedColumns,
    askers_part,
    encrypted_vector,
    opened,
)
from colonnade.secure.lattice.parameters import CoefficientParameters

LEAST = 100  # rows
STRETCH = 2**18  # rows that have a table at once
AHEAD = 2  # columns that an asker is ahead of answers
FINE = 40  # bits of a correlation to which noise is added
PLAIN_BITS, CUT = 45, 38
LONGEST = 2**16  # bytes of names
WHEN = "when columns are correlated"


def ring() -> CoefficientParameters:
    """Return the ring: sums of products of 44 bits, of which words of 38 bits are left."""
    return CoefficientParameters(2048, primes_below(2**50, 2048, 1), 2**PLAIN_BITS, CUT)


def scale_of(rows: int) -> int:
    """Return in which parts of a deviation columns are encrypted: no sum of products can wrap, as both
    columns are equally long."""
    return int(2 ** ((PLAIN_BITS - 2 - math.ceil(math.log2(rows))) // 2))


@dataclass(frozen=True)
class NamedColumns:
    """What a party says of its columns: their names, whether the last is the label, and their hash."""

    names: tuple[str, ...]
    label: bool
    hash: bytes

    @property
    def pairs(self) -> int:
        """How many correlations there are among its own columns."""
        return len(self.names) * (len(self.names) - 1) // 2


@dataclass(frozen=True)
class CorrelationTerms:
    """What all have agreed on: how loud the noise is, in standard errors of a correlation, and the rows."""

    noise: float
    rows: int

    @property
    def deviation(self) -> float:
        """The deviation of one party's noise."""
        return float(self.noise * self.rows**-0.5)

    @property
    def step(self) -> float:
        """In which steps correlations are told."""
        return step_of(self.noise, self.rows)

    @property
    def between(self) -> float:
        """The deviation of what a correlation between two parties is off, rounding included."""
        return math.sqrt(2 * self.deviation**2 + self.step**2 / 12)

    @property
    def bits(self) -> float:
        """Bits of a correlation as it is told."""
        return math.log2(2 / self.step + 1)


@dataclass
class Correlating:
    """One party's part."""

    net: Network
    own: UnitColumns
    terms: CorrelationTerms
    secret: bytes  # the same in all runs
    declare: Declare

    def __post_init__(self) -> None:
        self.lines = {peer: PeerLine(self.net, peer) for peer in self.net.peers}

    async def joint(self) -> JointCorrelations:
        """Take part to the end; returns the correlations of all columns."""
        if self.own.rows < LEAST:
            raise DataError(
                f"{self.net.me} has {self.own.rows} rows; noise drowns correlations of fewer than {LEAST}"
            )
        named = await self._named()
        blocks = {(self.net.me, self.net.me): await self._own_block(named)}
        for peer in self.net.peers:
            blocks[peer, peer] = _square(await self._heard(peer, named[peer].pairs), len(named[peer].names))
        for asker, owner in pairs_of(named):
            blocks[asker, owner] = await self._between(asker, owner, named)
        return put_together(named, blocks, self.terms)

    async def _named(self) -> dict[str, NamedColumns]:
        """Tell what the own columns are called; returns what everybody has said."""
        me, own = self.net.me, self.own
        said = json.dumps({"names": own.names, "label": own.label, "rows": own.rows}).encode()
        mine = NamedColumns(own.names, own.label, _hash_of(own, self.secret))
        await self.declare(
            [_opening("names", "columns", me, self.net.peers, len(said), 0, 8, sent(Announce, Topic.BLIND))]
        )
        for line in self.lines.values():
            await line.tell(*said)
            await line.seal(mine.hash)
        found = {me: mine}
        for peer, line in self.lines.items():
            text = bytes((await line.told(None, 0, 255)).astype(np.uint8))
            with said_by(peer):
                names, label, rows = _read(text)
            if rows != own.rows:
                raise DataError(f"{peer} has {rows} rows, {me} has {own.rows}; align them first")
            found[peer] = NamedColumns(names, label, await line.opened(bytes))
        return dict(sorted(found.items()))

    async def _own_block(self, named: dict[str, NamedColumns]) -> Floats:
        """Declare what will be told of the own columns, and tell everybody how they go together."""
        await self.declare(list(told_of_columns(self.net.me, named, self.terms)))
        R = self.own.Z.T @ self.own.Z / self.own.rows
        above = np.triu_indices(len(R), 1)
        told = self._noisy(R[above], "own columns", named[self.net.me].hash)
        await self._tell(told)
        return _square(told, len(R))

    async def _between(self, asker: str, owner: str, named: dict[str, NamedColumns]) -> Floats:
        """Return the correlations of the columns of two parties: [columns of the asker, of the owner]."""
        shape = len(named[asker].names), len(named[owner].names)
        if not min(shape):
            return np.zeros(shape)
        if self.net.me == asker:
            await self._ask(owner, shape, named)
        elif self.net.me == owner:
            products = await self._answer(asker, shape)
            told = self._noisy(products.ravel(), f"between, as {asker} asks", named[asker].hash)
            await self._tell(told)
            return told.reshape(shape)
        return (await self._heard(owner, shape[0] * shape[1])).reshape(shape)

    async def _ask(self, owner: str, shape: tuple[int, int], named: dict[str, NamedColumns]) -> None:
        """Send the own columns encrypted, and return the own part of all products with noise."""
        field, line, scale = ring(), self.lines[owner], scale_of(self.terms.rows)
        key = SecretKey(field)
        await line.seal(key.public())
        part = np.zeros(shape, dtype=np.uint64)
        chance = self._noise(b"").rounding("columns")
        for cut in cuts_of(self.terms.rows):
            codes = coded(self.own.Z[cut], scale, chance)
            for number in range(shape[0] + AHEAD):
                if number < shape[0]:
                    words = residues(codes[:, number], field.plain)
                    await line.seal(await self.net.aside(partial(encrypted_vector, key, field, words)))
                if number >= AHEAD:
                    got = await line.opened(partial(CoefficientAnswer.read, field, shape[1]))
                    part[number - AHEAD] += askers_part(key, got, shape[1], field.degree)
        length = self.terms.rows * scale**2 / field.unit  # of a correlation of 1
        least = field.least_noise / field.unit
        deviation = np.full(part.size, max(self.terms.deviation * length, least))
        noise = self._noise(named[owner].hash).words(deviation, f"products of {owner}", 0)
        told = (part.ravel() + noise.view(np.uint64)) & np.uint64(2**field.cut - 1)
        line.let_open(part.size)
        await line.seal(told.astype("<u8").tobytes())

    async def _answer(self, asker: str, shape: tuple[int, int]) -> Floats:
        """Multiply what was asked by the own columns; returns correlations with the asker's noise."""
        field, line, scale = ring(), self.lines[asker], scale_of(self.terms.rows)
        public = await line.opened(partial(Ciphertexts.read, field, 1, 1))
        own: Words = np.zeros(shape, dtype=np.uint64)
        chance = self._noise(b"").rounding("columns")
        for cut in cuts_of(self.terms.rows):
            codes = coded(self.own.Z[cut], scale, chance)
            table = await self.net.aside(partial(TransformedColumns, field, codes, scale))
            for number in range(shape[0]):
                asked = await line.opened(partial(Ciphertexts.read, field, 1, table.chunks))
                answer, part = await self.net.aside(partial(table.gradient, public, asked))
                own[number] += part
                await line.seal(answer)
        back = await line.opened(lambda data: parts_of(data, own.size))
        mask = np.uint64(2**field.cut - 1)
        sums = opened(field, own.ravel() & mask, back & mask)
        found: Floats = (sums / (self.terms.rows * scale**2)).reshape(shape)
        return found

    def _noisy(self, values: Floats, purpose: str, other: bytes) -> Floats:
        """Return numbers as they are told: with the own noise, in whole steps."""
        deviation = np.full(len(values), self.terms.deviation * 2.0**FINE)
        noise = self._noise(other).words(deviation, purpose, 0) if self.terms.noise else 0 * deviation
        most = math.floor(1 / self.terms.step)
        steps = np.clip(np.rint((values + noise * 2.0**-FINE) / self.terms.step), -most, most)
        told: Floats = steps * self.terms.step
        return told

    def _noise(self, other: bytes) -> OwnNoise:
        """Return the noise for the own columns beside another's, the same whenever both are the same."""
        said = _hash_of(self.own, self.secret) + other + repr(self.terms).encode()
        return OwnNoise(hmac.digest(self.secret, said, hashlib.sha256))

    async def _tell(self, told: Floats) -> None:
        """Tell everybody numbers, in steps."""
        steps = np.rint(told / self.terms.step).astype(np.int64).tolist()
        for line in self.lines.values():
            await line.tell(*steps)

    async def _heard(self, peer: str, count: int) -> Floats:
        """Return numbers that a peer tells."""
        most = math.floor(1 / self.terms.step)
        steps = await self.lines[peer].told(count, -most, most)
        found: Floats = steps.astype(np.float64) * self.terms.step
        return found


def pairs_of(named: dict[str, NamedColumns]) -> Iterator[tuple[str, str]]:
    """Yield who asks whom: of every two parties the one with fewer columns asks, as it sends more."""
    names = sorted(named)
    for k, one in enumerate(names):
        for other in names[k + 1 :]:
            fewer = len(named[other].names) < len(named[one].names)
            yield (other, one) if fewer else (one, other)


def told_of_columns(me: str, named: dict[str, NamedColumns], terms: CorrelationTerms) -> Iterator[Opening]:
    """Yield what is told of a party's columns and label, by itself or by those it multiplies with."""
    others = tuple(party for party in named if party != me)
    mine, through = named[me], sent(Announce, Topic.BLIND)
    columns = len(mine.names) - mine.label

    def of(
        about: About, numbers: int, channel: Channel | None, to: tuple[str, ...] = others
    ) -> Iterator[Opening]:
        if numbers and to:
            yield _opening("correlations", about, me, to, numbers, terms.rows, terms.bits, channel)

    yield from of("columns", columns * (columns - 1) // 2, through)
    yield from of("labels", columns * mine.label, through)
    for asker, owner in pairs_of(named):
        if me in (asker, owner):
            other = named[owner if me == asker else asker]
            for to, channel in told_by(me, owner, others, through):
                yield from of("columns", columns * len(other.names), channel, to)
                yield from of("labels", len(other.names) * mine.label, channel, to)


def told_by(
    me: str, owner: str, others: tuple[str, ...], through: Channel
) -> Iterator[tuple[tuple[str, ...], Channel | None]]:
    """Yield to whom products of two parties' columns are told, and how: the owner tells all of them, once it
    has them from the asker."""
    if me == owner:
        yield others, through
    else:
        yield (owner,), multiplied(Topic.BLIND)
        yield tuple(party for party in others if party != owner), None


def _opening(
    kind: Kind,
    about: About,
    me: str,
    to: Sequence[str],
    numbers: int,
    rows: int,
    bits: float,
    channel: Channel | None,
) -> Opening:
    return Opening(
        kind=kind,
        about=about if rows else "nothing",
        of=(me,),
        to=tuple(to),
        numbers=numbers,
        bits=bits,
        carried=DOUBLE,
        rows=rows,
        when=WHEN,
        by=me,
        channel=channel,
    )


def put_together(
    named: dict[str, NamedColumns], blocks: dict[tuple[str, str], Floats], terms: CorrelationTerms
) -> JointCorrelations:
    """Return the correlations of all columns, the label last."""
    columns = [(party, name) for party, each in named.items() for name in each.names]
    start = dict(zip(named, np.cumsum([0, *(len(each.names) for each in named.values())]), strict=False))
    R = np.zeros((len(columns), len(columns)))
    for (one, other), block in blocks.items():
        a, b = start[one], start[other]
        R[a : a + block.shape[0], b : b + block.shape[1]] = block
        R[b : b + block.shape[1], a : a + block.shape[0]] = block.T
    label = [place for place, (_, name) in enumerate(columns) if name == LABEL]
    order = [place for place in range(len(columns)) if place not in label] + label
    names = tuple(columns[place] for place in order)
    noise = terms.between if terms.noise else 0.0
    return JointCorrelations(names, R[np.ix_(order, order)], terms.rows, bool(label), noise)


def cuts_of(rows: int) -> list[slice]:
    """Return the stretches of rows that are multiplied at once."""
    return [slice(at, min(at + STRETCH, rows)) for at in range(0, rows, STRETCH)]


def coded(Z: Floats, scale: int, chance: np.random.Generator) -> NDArray[np.int64]:
    """Return columns as whole numbers, rounded by chance: a column of two values is rounded alike in all rows
    otherwise, and its correlations are off by that."""
    found: NDArray[np.int64] = np.floor(Z * scale + chance.random(Z.shape)).astype(np.int64)
    return found


def _square(above: Floats, width: int) -> Floats:
    """Return a matrix of ones on the diagonal, from what is above it."""
    found = np.eye(width)
    found[np.triu_indices(width, 1)] = above
    full: Floats = found + np.triu(found, 1).T
    return full


def _read(text: bytes) -> tuple[tuple[str, ...], bool, int]:
    """Return what a peer says of its columns; MalformedMessage if that is no such thing."""
    try:
        said = json.loads(text[:LONGEST])
        names, label, rows = said["names"], said["label"], said["rows"]
        fits = isinstance(label, bool) and isinstance(rows, int) and len(names) <= MOST + 1
        if fits and all(isinstance(name, str) for name in names):
            return tuple(names), label, rows
    except (ValueError, TypeError, KeyError):
        pass
    raise MalformedMessage("names of columns that cannot be read")


def _hash_of(own: UnitColumns, secret: bytes) -> bytes:
    """Return a hash of the own columns, by which nobody else can guess them."""
    found = hmac.new(secret, json.dumps(own.names).encode(), hashlib.sha256)
    found.update(np.ascontiguousarray(own.Z).tobytes())
    return found.digest()


def hidden_names(names: Sequence[str], raw: Sequence[str]) -> tuple[str, ...]:
    """Return names of prepared columns without the values of categories, which are numbered.

    >>> hidden_names(["age", "city=Bonn", "city=Ulm"], ["age", "city"])
    ('age', 'city #1', 'city #2')
    """
    found, counts = [], dict.fromkeys(raw, 0)
    for name in names:
        of = max((each for each in raw if name.startswith(f"{each}=")), key=len, default="")
        if not of or name in raw:
            found.append(name)
            continue
        counts[of] += 1
        found.append(f"{of} #{counts[of]}")
    return tuple(found)
