"""The woe conversation: weight of evidence of columns whose label another party holds.

1. The label holder seals every training row's label (`secure.elgamal`) and sends all of them to every party.
2. A party adds up the sealed labels of the rows of each of its bins, seals the sums again, and returns them
   with the number of rows of every bin.
3. The label holder reads the sums: bads per bin. It joins bins (`data.woe`) and tells the party which were
   joined, the WOE of what is left, and the IV of each column.

What each side learns. The label holder: of every bin of a party how many rows and how many bads it has, no
names and no edges, and not which rows are in it. The party never sends a bin of fewer than `least` rows.
The party: the WOE of its joined bins and so, if it guesses the base rate, their bad rates; of no bin with
fewer than `cases` goods or bads. Exact counts of many columns are equations in the labels that have one
solution. So between companies counts get noise before anything follows from them (`privacy.counts`): which
bins are joined, WOE and IV. Nobody else learns anything.

That is for parties that follow the protocol. A label holder that seals something else than its labels, say a
one for a single row, reads the bin of that row from the answer; a party that sends other bins learns their
WOE, of as many rows as `cases` demands. Anything malformed is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from math import log2
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from colonnade.arrays import Floats, Numbers, Rows
from colonnade.data.prepare.bins import ColumnBins
from colonnade.data.prepare.join import join_bins
from colonnade.data.prepare.woe import Counts, Weighed, woe_of
from colonnade.errors import DataError, SumError
from colonnade.job import Woe
from colonnade.messages import Evidence, SealedLabels, Sealing, Tally, Topic, tag_of
from colonnade.net.expect import floats, octets, said_by, whole
from colonnade.net.network import Network
from colonnade.openings.opening import Declare, Opening, sent, undisputed
from colonnade.privacy.counts import CountNoise
from colonnade.secure.curve import POINT
from colonnade.secure.elgamal import Adder, SealingKey

CHUNK = 2048  # rows a message
SEALED = 2 * POINT  # bytes of a sum that only the label holder can read
WEIGHED = "when columns are weighed"
_BADS, _ROWS = attrgetter("bads"), attrgetter("rows")


@dataclass(frozen=True, eq=False)
class Binned:
    """A party's columns in bins: the bins of each, and the bin of every row."""

    bins: Sequence[ColumnBins]
    codes: Sequence[Rows]

    @property
    def rows(self) -> list[int]:
        """The rows of every bin, column after column."""
        return [
            int(n)
            for bins, codes in zip(self.bins, self.codes, strict=True)
            for n in np.bincount(codes, minlength=bins.count)
        ]


@dataclass(frozen=True)
class Evidenced:
    """What a party has in the end: its weighed columns; at the label holder also everybody's counts."""

    columns: list[Weighed]
    counts: dict[str, list[Counts]] = field(default_factory=dict)


async def weigh_as_label_holder(
    net: Network, y: Floats, own: Binned, terms: Woe, noise: CountNoise, declare: Declare = undisputed
) -> Evidenced:
    """Seal the labels, read everybody's sums, and tell each party the WOE of its bins, with noise."""
    bad = y > 0
    check_labels(net.me, bad, terms)
    key = SealingKey.new()
    await net.broadcast(Sealing(key.public, len(bad)))
    for number, start in enumerate(range(0, len(bad) if net.peers else 0, CHUNK)):
        chunk = bad[start : start + CHUNK].astype(int).tolist()
        await net.broadcast(SealedLabels(_tag(number), await net.aside(partial(key.seal, chunk))))
    mine = [counted(bins, codes, bad) for bins, codes in zip(own.bins, own.codes, strict=True)]
    counts = {net.me: mine}
    for peer in net.peers:
        due = whole(None, high=len(bad))
        tally = await net.recv(
            Tally,
            peer,
            bins=due,
            ordered=due,
            chained=octets(None),
            rows=due,
            sealed=octets(None, None),
        )
        counts[peer] = await net.aside(partial(_read_of, key, tally, peer, len(bad), terms))
        bins = sum(len(each.rows) for each in counts[peer])
        await declare([told_of_bins(peer, net.me, len(counts[peer]), bins, len(bad), noise)])
        await net.send(peer, _answer(_noisy(counts[peer], noise), terms))
    return Evidenced(weighed_by(mine, own.bins, terms), counts)


async def weigh_as_party(
    net: Network, label_holder: str, own: Binned, terms: Woe, declare: Declare = undisputed
) -> Evidenced:
    """Add up sealed labels per bin, return the sums, and hear the WOE of the own bins."""
    sealing = await net.recv(Sealing, label_holder)
    rows = len(own.codes[0]) if own.codes else sealing.rows
    if sealing.rows != rows:
        raise DataError(f"{label_holder} has {sealing.rows} rows, {net.me} has {rows}; align them first")
    check_bins(net.me, own, terms)
    with said_by(label_holder):
        adder = Adder(sealing.public, [bins.count for bins in own.bins])
    for number, start in enumerate(range(0, rows, CHUNK)):
        due = octets(min(CHUNK, rows - start), None)
        sealed = (await net.recv(SealedLabels, label_holder, _tag(number), sealed=due)).sealed
        part = [codes[start : start + CHUNK] for codes in own.codes]
        with said_by(label_holder):
            await net.aside(partial(adder.add, sealed, part))
    total = sum(bins.count for bins in own.bins)
    await declare(tallied(net.me, label_holder, len(own.bins), total, rows))
    await net.send(
        label_holder,
        Tally(
            bins=np.array([bins.count for bins in own.bins], dtype=np.int64),
            ordered=np.array([bins.ordered for bins in own.bins], dtype=np.int64),
            chained=np.array([not bins.numeric for bins in own.bins], dtype=np.uint8),
            rows=np.array(own.rows, dtype=np.int64),
            sealed=await net.aside(adder.totals),
        ),
    )
    evidence = await net.recv(
        Evidence, label_holder, group=whole(total), woe=floats(total), iv=floats(len(own.bins), low=0)
    )
    with said_by(label_holder):
        return Evidenced(_understood(evidence, own.bins, label_holder))


# --- what is opened ----------------------------------------------------------------------------------


def tallied(me: str, label_holder: str, columns: int, bins: int, rows: int) -> list[Opening]:
    """Return what a party tells of its columns: how large bins are and, as the label holder unseals the sums,
    how many bads they have."""
    size = 8 * (2 * columns + bins) + columns + SEALED * bins  # whole numbers, a flag a column, sealed sums
    counts = partial(
        Opening,
        kind="bin counts",
        about="columns",
        of=(me,),
        to=(label_holder,),
        rows=rows,
        when=WEIGHED,
        bits=log2(rows + 1),
        by=me,
    )
    told = bins + 3 * columns
    channel = sent(Tally, Topic.TRAIN)
    return [counts(numbers=told, carried=8 * size / max(1, told), channel=channel), counts(numbers=bins)]


def told_of_bins(peer: str, me: str, columns: int, bins: int, rows: int, noise: CountNoise) -> Opening:
    """Return what the label holder tells a party: what follows from a count with noise for every bin."""
    size = 16 * bins + 8 * columns  # which bins are joined, WOE, and IV
    return Opening(
        kind="WOE",
        about="labels",
        of=(me,),
        to=(peer,),
        numbers=bins,
        bits=log2(rows + 1),
        carried=8 * size / max(1, bins),
        rows=rows,
        when=WEIGHED,
        by=me,
        channel=sent(Evidence, Topic.TRAIN),
        epsilon=noise.epsilon,
    )


# --- the label holder's side -------------------------------------------------------------------------


def check_labels(me: str, bad: NDArray[np.bool_], terms: Woe) -> None:
    """Refuse labels of which there are too few for the smallest bin."""
    fewest = int(min(bad.sum(), len(bad) - bad.sum()))
    if fewest < terms.cases:
        raise DataError(
            f"{me}: the training rows have only {fewest} of one of the two labels, woe.cases asks for "
            f"{terms.cases} in every bin; use more rows"
        )


def _read_of(key: SealingKey, tally: Tally, peer: str, rows: int, terms: Woe) -> list[Counts]:
    """Return the counts of a peer's columns, or an error with its name."""
    with said_by(peer):
        return _read(key, tally, peer, rows, terms)


def _read(key: SealingKey, tally: Tally, peer: str, rows: int, terms: Woe) -> list[Counts]:
    """Return the counts of a peer's columns; SumError if what it sent cannot be right."""
    bins = _whole(tally.bins, len(tally.bins), peer)
    ordered, chained = _whole(tally.ordered, len(bins), peer), _whole(tally.chained, len(bins), peer)
    sizes = _whole(tally.rows, sum(bins), peer)
    places = np.cumsum([0, *bins]).tolist()
    if any(sum(sizes[a:b]) != rows for a, b in pairwise(places)):
        raise SumError(f"{peer} sent bins that do not hold every row once")
    if any(size < min(terms.least, rows) for size in sizes):
        raise SumError(f"{peer} sent a bin of fewer than woe.least = {terms.least} rows")
    if any(o > b for o, b in zip(ordered, bins, strict=True)) or len(tally.sealed) != len(sizes):
        raise SumError(f"{peer} sent a tally whose parts do not fit together")
    bads = key.read(tally.sealed, sizes)
    return [
        Counts(o, bool(c), tuple(sizes[a:b]), tuple(bads[a:b]))
        for o, c, (a, b) in zip(ordered, chained, pairwise(places), strict=True)
    ]


def _whole(values: Numbers, due: int, peer: str) -> list[int]:
    """Return this many whole numbers from 0 on, as a list."""
    if values.dtype.kind not in "iu" or values.shape != (due,) or (values < 0).any():
        raise SumError(f"{peer} sent a tally of shape {values.shape} {values.dtype}; {due} counts were due")
    return [int(value) for value in values]


def counted(bins: ColumnBins, codes: Rows, bad: NDArray[np.bool_]) -> Counts:
    """Return the counts of an own column, for which nothing needs to be sealed."""
    rows, bads = (np.bincount(each, minlength=bins.count).tolist() for each in (codes, codes[bad]))
    return Counts(bins.ordered, not bins.numeric, tuple(rows), tuple(bads))


def weighed_by(counts: Sequence[Counts], columns: Sequence[ColumnBins], terms: Woe) -> list[Weighed]:
    """Return columns with the weight of evidence that their counts give."""
    groups = [join_bins(each, terms) for each in counts]
    found = [woe_of(each.joined(group)) for each, group in zip(counts, groups, strict=True)]
    return [
        Weighed(bins, group, woe, iv) for bins, group, (woe, iv) in zip(columns, groups, found, strict=True)
    ]


def _noisy(columns: Sequence[Counts], noise: CountNoise) -> list[Counts]:
    """Return the counts of a peer's columns, with the noise of all of them together."""
    bads, rows = (np.array([n for each in columns for n in of(each)]) for of in (_BADS, _ROWS))
    told = noise.told(bads, rows, len(columns))
    places = np.cumsum([0, *(len(each.rows) for each in columns)])
    return [
        replace(each, bads=tuple(told[a:b].tolist()))
        for each, (a, b) in zip(columns, pairwise(places), strict=True)
    ]


def told_ivs(counts: Sequence[Counts], noise: CountNoise, terms: Woe) -> list[float]:
    """Return the information values of columns as their counts with noise give them."""
    found: list[float] = _answer(_noisy(counts, noise), terms).iv.tolist()
    return found


def _answer(counts: Sequence[Counts], terms: Woe) -> Evidence:
    groups = [join_bins(each, terms) for each in counts]
    told = [woe_of(each.joined(group)) for each, group in zip(counts, groups, strict=True)]
    return Evidence(
        group=np.array([g for group in groups for g in group], dtype=np.int64),
        woe=np.array([woe[g] for group, (woe, _) in zip(groups, told, strict=True) for g in group]),
        iv=np.array([iv for _, iv in told]),
    )


# --- a party's side ----------------------------------------------------------------------------------


def check_bins(me: str, own: Binned, terms: Woe) -> None:
    """Refuse to show counts of too few rows, in bins of any party."""
    fewest = min(own.rows, default=terms.least)
    if own.codes and fewest < min(terms.least, len(own.codes[0])):
        raise DataError(f"{me}: a bin has {fewest} rows, woe.least asks for {terms.least}")


def _understood(evidence: Evidence, bins: Sequence[ColumnBins], sender: str) -> list[Weighed]:
    """Return the party's columns with what the label holder told; SumError if it does not fit them."""
    total = sum(each.count for each in bins)
    group, woe, iv = evidence.group, evidence.woe, evidence.iv
    fits = group.shape == woe.shape == (total,) and iv.shape == (len(bins),) and group.dtype.kind == "i"
    if not fits or not (np.isfinite(woe).all() and np.isfinite(iv).all()):
        raise SumError(f"{sender} sent evidence that does not fit the bins")
    columns, start = [], 0
    for each, value in zip(bins, iv.tolist(), strict=True):
        groups = group[start : start + each.count].tolist()
        by_bin = dict(zip(groups, woe[start : start + each.count].tolist(), strict=True))
        if sorted(by_bin) != list(range(len(by_bin))):
            raise SumError(f"{sender} sent evidence whose joined bins are not numbered")
        columns.append(Weighed(each, tuple(groups), tuple(by_bin[g] for g in sorted(by_bin)), value))
        start += each.count
    return columns


def _tag(number: int) -> int:
    return tag_of(Topic.WOE, number)
