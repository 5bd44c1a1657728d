"""Weight of evidence where labels are blind: nobody sees a count, and a party those of its bins with noise.

Between the label holder A and each other party P, with nobody's help:

    P -> A:  how many columns and bins it has, and a hash of its bins under a key of its own
    A -> P:  how many rows there are, a public key, and every label encrypted (`secure.lattice`)
    P -> A:  the bads of every bin plus a word that is uniform, out of a fresh encryption of zero and a flood
    A -> P:  what it reads of them, plus noise

P takes its words off: the bads of its bins with A's noise. It joins its bins from these, and finds WOE and
IV by itself.

What each side learns. A: how many columns and bins P has; all else that it reads is uniform. P: counts with
discrete Gaussian noise (`privacy.counts`), of which everything else follows. Labels are hidden as long as
ring learning with errors is hard. No third party takes part, so nobody could collude.

That is for parties that follow the protocol. The same bins are told with the same noise, by their hash. A
party that says another hash, or adds up something else than its bins, is told of that.
"""

from __future__ import annotations

import hashlib
import hmac
import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from colonnade.arrays import Floats, Rows, Words
from colonnade.conversations.peer_line import PeerLine
from colonnade.conversations.woe import (
    Binned,
    Evidenced,
    check_bins,
    check_labels,
    counted,
    weighed_by,
)
from colonnade.data.prepare.woe import Counts
from colonnade.errors import DataError
from colonnade.job import Woe
from colonnade.messages import Announce, Topic
from colonnade.net.network import Network
from colonnade.openings.opening import DOUBLE, Declare, Kind, Opening, sent
from colonnade.privacy.counts import CountNoise
from colonnade.secure.lattice.ciphertexts import Ciphertexts, SecretKey
from colonnade.secure.lattice.histograms import (
    SumAnswer,
    chunks_of,
    decrypted_sums,
    encrypted_rows,
    rows_together,
    sums_over_bins,
)
from colonnade.secure.lattice.parameters import SumParameters, sum_ring

STRETCH, CIPHERTEXTS, CELLS = 2**18, 256, 2**24  # rows, their ciphertexts and bins at once, at the most
MOST_BINS = 2**20  # of all columns of a party
LEAST_BITS = 12  # of half a word: a word of an answer is longer than its lower part
TAILS = 16  # deviations of noise that a word has room for
FINE = 2**8  # steps of a deviation, as both know it


@dataclass(frozen=True)
class SumsShape:
    """What both ends know of the sums between them."""

    rows: int
    columns: int
    bins: int
    deviation: float = 0.0

    @property
    def ring(self) -> SumParameters:
        """The ring: counts with their noise, modulo a power of two."""
        most = int(self.rows + TAILS * self.deviation)
        terms = min(self.rows, STRETCH) * self.columns
        return sum_ring(max(LEAST_BITS, most.bit_length() // 2 + 2), terms)

    @property
    def apart(self) -> int:
        """How many rows share a ciphertext."""
        return rows_together(self.ring, min(self.rows, STRETCH), self.bins)

    @property
    def stretches(self) -> list[slice]:
        """The rows that are encrypted at once: no message, and no table of bins, grows with all rows."""
        step = min(STRETCH, CIPHERTEXTS * self.apart, max(CELLS // self.columns, 1))
        return [slice(at, min(at + step, self.rows)) for at in range(0, self.rows, step)]


async def weigh_masked_as_label_holder(
    net: Network, y: Floats, own: Binned, terms: Woe, noise: CountNoise, declare: Declare
) -> Evidenced:
    """Let every other party add up encrypted labels, and tell it its sums with noise."""
    bad = y > 0
    check_labels(net.me, bad, terms)
    for peer in net.peers:
        await _tell_counts(net, peer, bad, noise, declare)
    mine = [counted(bins, codes, bad) for bins, codes in zip(own.bins, own.codes, strict=True)]
    return Evidenced(weighed_by(mine, own.bins, terms), {net.me: mine})


async def _tell_counts(
    net: Network, peer: str, bad: NDArray[np.bool_], noise: CountNoise, declare: Declare
) -> None:
    """Answer one party."""
    line, rows = PeerLine(net, peer), len(bad)
    columns, bins = (await line.told(2, 0, MOST_BINS)).tolist()
    asked = await line.opened(bytes)
    deviation = noise.multiplier * columns**0.5
    told = told_of_bins_masked(net.me, peer, rows, bins, deviation)
    await declare([replace(each, epsilon=noise.epsilon) for each in told])
    spread = round(deviation * FINE)
    await line.tell(rows, spread)
    if not columns:
        return
    shape = SumsShape(rows, columns, bins, spread / FINE)
    ring = shape.ring
    key = SecretKey(ring)
    await line.seal(key.public())
    total = np.zeros(bins, dtype=np.uint64)
    for stretch in shape.stretches:
        numbers = bad[stretch].astype(np.uint64)
        await line.seal(await net.aside(partial(encrypted_rows, key, ring, numbers, shape.apart)))
        answer = await line.opened(partial(SumAnswer.read, ring, bins, shape.apart))
        total += await net.aside(partial(decrypted_sums, key, answer, shape.apart))
    drawn = noise.alone(asked + bad.tobytes(), bins, rows, columns)
    sums = (total + drawn.view(np.uint64)) & np.uint64(ring.plain - 1)
    await line.tell(*sums.tolist())


async def weigh_masked_as_party(
    net: Network, label_holder: str, own: Binned, terms: Woe, declare: Declare, secret: bytes | None = None
) -> Evidenced:
    """Add up encrypted labels over the own bins, and weigh these by what comes back.

    `secret` is what the own bins are hashed with, the same in all runs, so that asking again tells nothing.
    """
    check_bins(net.me, own, terms)
    line, sizes = PeerLine(net, label_holder), [bins.count for bins in own.bins]
    await declare([_opened("sizes", net.me, label_holder, 2)])
    await line.tell(len(sizes), sum(sizes))
    await line.seal(_hash_of(own, secret or os.urandom(32)))
    rows, spread = (await line.told(2, 0, 2**40)).tolist()
    if not sizes:
        return Evidenced([])
    if rows != len(own.codes[0]):
        raise DataError(f"{label_holder} has {rows} rows, {net.me} has {len(own.codes[0])}; align them first")
    shape = SumsShape(rows, len(sizes), sum(sizes), spread / FINE)
    ring = shape.ring
    public = await line.opened(partial(Ciphertexts.read, ring, 1, 1))
    masks = np.zeros(shape.bins, dtype=np.uint64)
    for stretch, codes in zip(shape.stretches, _numbered(own, sizes, shape.stretches), strict=True):
        mask = _uniform(shape.bins, ring)
        chunks = chunks_of(stretch.stop - stretch.start, shape.apart)
        sealed = await line.opened(partial(Ciphertexts.read, ring, 1, chunks))
        answer = await net.aside(partial(sums_over_bins, public, sealed, codes, mask, shape.apart))
        await line.seal(answer)
        masks += mask
    told = (await line.told(shape.bins, 0, ring.plain - 1)).view(np.uint64)
    return Evidenced(weighed_by(_counts(own, _signed(told - masks, ring)), own.bins, terms))


def told_of_bins_masked(me: str, peer: str, rows: int, bins: int, deviation: float) -> list[Opening]:
    """Return what the label holder tells a party of labels: the bads of its bins, with noise."""
    bits = math.log2(2 + rows / max(deviation, 1.0))
    return [_opened("sizes", me, peer, 2), _opened("bin counts", me, peer, bins, rows, bits)]


def _opened(kind: Kind, me: str, to: str, numbers: int, rows: int = 0, bits: float = DOUBLE) -> Opening:
    return Opening(
        kind=kind,
        about="labels" if rows else "nothing",
        of=(me,),
        to=(to,),
        numbers=numbers,
        bits=bits,
        carried=DOUBLE,
        rows=rows,
        when="when columns are weighed",
        by=me,
        channel=sent(Announce, Topic.BLIND),
    )


def _numbered(own: Binned, sizes: list[int], stretches: list[slice]) -> Iterator[Rows]:
    """Yield, stretch by stretch, in which of all bins the rows are: [columns, rows]."""
    first = np.cumsum([0, *sizes])[:-1]
    for stretch in stretches:
        yield np.stack(
            [codes[stretch].astype(np.int64) + at for codes, at in zip(own.codes, first, strict=True)]
        )


def _counts(own: Binned, bads: Rows) -> list[Counts]:
    """Return the counts of the own columns; noise may lead beyond what can be, and is cut off there."""
    rows = np.array(own.rows)
    within = np.clip(bads, 0, rows).tolist()
    places = np.cumsum([0, *(bins.count for bins in own.bins)]).tolist()
    return [
        Counts(bins.ordered, not bins.numeric, tuple(own.rows[a:b]), tuple(within[a:b]))
        for bins, (a, b) in zip(own.bins, pairwise(places), strict=True)
    ]


def _hash_of(own: Binned, secret: bytes) -> bytes:
    """Return a hash of the own bins that nobody else can guess the bins by."""
    found = hmac.new(secret, digestmod=hashlib.sha256)
    for bins, codes in zip(own.bins, own.codes, strict=True):
        found.update(np.array([bins.count, len(codes)]).tobytes() + codes.astype("<i8").tobytes())
    return found.digest()


def _uniform(count: int, ring: SumParameters) -> Words:
    """Return words that are uniform modulo t."""
    drawn = np.frombuffer(os.urandom(8 * count), dtype="<u8").astype(np.uint64)
    found: Words = drawn & np.uint64(ring.plain - 1)
    return found


def _signed(words: Words, ring: SumParameters) -> Rows:
    """Return words modulo t as whole numbers around 0."""
    shift = np.uint64(65 - ring.plain.bit_length())
    found: Rows = (words << shift).view(np.int64) >> shift.astype(np.int64)
    return found
