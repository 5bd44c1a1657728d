"""Weights as their owners are told them: with random low bits.

Exact weights are sums of whole numbers, one for every row, and lattice reduction could solve them. Weights of
20 bits, too, tell labels to an owner that chooses its columns: it packs eight rows into one of them, as 1,
1/2, 1/4, ..., and reads their labels off the bits of one weight. So where parties are not all the caller's
a weight is told no more finely than the data know it. A weight of a column of size 1 has a standard error of
at least 1 / sqrt(n), so it is moved by chance by up to that, however small it is, and told in no more than
log2 sqrt(n) bits and three. Scores get a deviation of sqrt(d / 3n) by it, for d columns.

The same key gives the same low bits whenever a run ends: told twice with others, their mean would tell more.
These alone would cancel for an owner that breaks the end off and comes back with other columns. So weights
that are told again are moved once more, twice as far each time.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from math import ceil, log2
from typing import Any

import numpy as np

from colonnade.arrays import Words
from colonnade.conversations.blind.columns import own_key
from colonnade.conversations.context import Context
from colonnade.errors import CheckpointError
from colonnade.secure.streams import Stream, subkey

REVEALED = 20  # bits of a weight that its owner is told where all parties are the caller's
BEYOND = 3  # bits of a weight beyond those of sqrt(n), elsewhere: how many standard errors it may be long
_BLUR, _ENDED = "blur", "ended"
MOST_AGAIN = 8  # times that weights of one run are told again


def told_bits(rows: int, *, apart: bool) -> int:
    """Return how many bits of a weight its owner is told, of the length of all weights.

    >>> told_bits(30_000, apart=True), told_bits(30_000, apart=False)
    (11, 20)
    """
    return min(REVEALED, ceil(log2(max(2, rows)) / 2) + BEYOND) if apart else REVEALED


def blurred(context: Context[Any], parts: Iterable[Words], reach: int) -> list[Words]:
    """Return these parts of weights, each word moved by chance, by `reach` at most either way."""
    key, before = _key(context), _told_before(context)
    told = [moved(part, Stream(key), number, reach) for number, part in enumerate(parts)]
    if before:
        more = Stream(subkey(key, f"told {before} times"))
        told = [moved(part, more, number, reach << before) for number, part in enumerate(told)]
    return told


def moved(part: Words, noise: Stream, number: int, reach: int) -> Words:
    """Return words, each moved by chance by `reach` at most either way."""
    random = noise.words(number, part.size).reshape(part.shape) % np.uint64(2 * reach + 1)
    return part + random - np.uint64(reach)


def _told_before(context: Context[Any]) -> int:
    """Return how often these weights were told before, and have it on disk that they are told once more."""
    found = int(context.gates.noted(_ENDED) or b"0")
    if found > MOST_AGAIN:
        raise CheckpointError(
            f"weights of this run were told {found} times, as its end was cut off so often; start again "
            "without --resume"
        )
    context.gates.note(_ENDED, b"%d" % (found + 1))
    return found


def _key(context: Context[Any]) -> bytes:
    """Return the key of the low bits; a run that goes on, or ends once more, has it again."""
    if context.net.clock.virtual:
        return own_key(context, _BLUR)
    found = context.gates.noted(_BLUR)
    if found is None:
        found = os.urandom(32)
        context.gates.note(_BLUR, found)
    return found
