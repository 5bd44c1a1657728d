"""An owner's columns as they are veiled: turned by a secret rotation, then rounded to fixed point.

A party that sees totals of exact fixed-point columns for long enough can find the columns by lattice
reduction. A rotation that only the owner knows takes the grid away: what is found then are columns turned by
an unknown matrix. SGD, SVRG and SAGA with an l2 penalty do not care how columns are turned, and weights are
turned back.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from colonnade.arrays import Floats, Matrix
from colonnade.conversations.context import Context
from colonnade.errors import FixedPointOverflow
from colonnade.models.linear import rows_of, squared_norms
from colonnade.secure.product import Columns
from colonnade.secure.streams import PairStreams, Stream

COARSEST, FINEST = 12, 20  # bits of a column's fraction
LARGEST = 2.0**20  # value of a column
STRETCH = 2048  # rows that are turned and rounded at a time
TURNED = 128  # columns that are turned together: wider blocks are turned in parts


@dataclass(frozen=True, eq=False)
class Turn:
    """A secret rotation of a block's columns: one orthogonal matrix for every part of them."""

    parts: tuple[Floats, ...]

    @staticmethod
    def secret(width: int, key: bytes) -> Turn:
        """Return a random rotation that follows from a key."""
        stream, sizes = Stream(key), _sizes(width)
        return Turn(tuple(_orthogonal(stream, tag, size) for tag, size in enumerate(sizes)))

    @staticmethod
    def none(width: int) -> Turn:
        """Return the rotation that changes nothing."""
        return Turn(tuple(np.eye(size) for size in _sizes(width)))

    def turned(self, X: Matrix, start: int, end: int) -> Floats:
        """Return the columns of some rows, turned."""
        if len(self.parts) == 1:
            return rows_of(X).scores(start, end, self.parts[0])
        some = X[start:end]
        return np.hstack([np.asarray(some[:, cut] @ part) for cut, part in self._cuts()])

    def back(self, w: Floats) -> Floats:
        """Return weights of turned columns as weights of the columns."""
        return np.concatenate([part @ w[cut] for cut, part in self._cuts()])

    def _cuts(self) -> Iterator[tuple[slice, Floats]]:
        start = 0
        for part in self.parts:
            yield slice(start, start + len(part)), part
            start += len(part)


def own_key(context: Context[Any], purpose: str) -> bytes:
    """Return a key that nobody else has; in a simulation it follows from the seed, as everything does."""
    if not context.net.clock.virtual:
        return os.urandom(32)
    return hashlib.sha256(f"{context.plan.seed} {context.me} {purpose}".encode()).digest()


def pair_streams(context: Context[Any]) -> PairStreams:
    """Return the words that pairs share; where results depend on them they follow from the seed in a
    simulation."""
    if not context.net.clock.virtual:
        return context.streams
    pairs = {peer: " ".join(sorted((context.me, peer))) for peer in context.net.peers}
    texts = {peer: f"{context.plan.seed} {pair}" for peer, pair in pairs.items()}
    return PairStreams(context.me, {p: hashlib.sha256(text.encode()).digest() for p, text in texts.items()})


class OwnedColumns:
    """An owner's columns by table, and the secret by which it turns them; of others there are none."""

    def __init__(self, context: Context[Any], key: bytes) -> None:
        blind, tables = context.plan.blind, {"train": context.train, "test": context.test}
        self.turn: Turn | None = None
        self.tables: dict[str, Matrix] = {}
        if blind is not None and context.me in blind.dealers:
            self.turn = Turn.secret(context.train.width, key)
            self.tables = {name: table.X for name, table in tables.items() if table is not None}

    def fixed(self, bits: int) -> dict[str, Columns]:
        """Return the columns, turned and rounded to this many bits of fraction."""
        if self.turn is None:
            return {}
        return {name: fixed(X, self.turn, bits) for name, X in self.tables.items()}


def fixed(X: Matrix, turn: Turn, bits: int) -> Columns:
    """Return columns, turned and rounded; FixedPointOverflow if a value is too large or not a number."""
    with np.errstate(invalid="ignore"):  # what is not a number is refused below
        parts = _stretches(int(X.shape[0]))
        return Columns.joined([_rounded(turn.turned(X, part.start, part.stop), bits) for part in parts])


def _rounded(X: Floats, bits: int) -> Columns:
    largest = float(max(X.max(initial=0.0), -X.min(initial=0.0)))
    _check_size(largest)
    X *= 2.0**bits
    return Columns.small(np.rint(X, out=X), np.rint(largest * 2.0**bits))


def lengths(X: Matrix) -> Floats:
    """Return the most that a squared length of a row can be, and the sum of all, however they are rounded."""
    with np.errstate(invalid="ignore", over="ignore"):
        squared = squared_norms(X)
    _check_size(float(np.sqrt(squared.max(initial=0.0) / max(1, X.shape[1]))))
    rounding = np.sqrt(float(X.shape[1])) * 2.0 ** -(COARSEST + 1)
    squared = (np.sqrt(squared) + rounding) ** 2
    return np.array([squared.max(initial=0.0), squared.sum()])


def _check_size(largest: float) -> None:
    if not largest < LARGEST:
        raise FixedPointOverflow(
            f"a column has a value of size {largest:g}, and blind training takes values below {LARGEST:g}; "
            "scale the columns (data.scale = 'zscore' or 'minmax')"
        )


def _stretches(rows: int) -> list[slice]:
    """Return rows whose numbers stay in the processor's cache from one step to the next."""
    return [slice(start, min(start + STRETCH, rows)) for start in range(0, max(1, rows), STRETCH)]


def _sizes(width: int) -> list[int]:
    """Return the widths of the parts: as equal as they can be."""
    count = max(1, -(-width // TURNED))
    return [width // count + (k < width % count) for k in range(count)]


def _orthogonal(stream: Stream, tag: int, size: int) -> Floats:
    """Return a random orthogonal matrix: of normal numbers, by Box and Muller from the stream's words."""
    words = stream.words(tag, 2 * size * size).reshape(2, size, size)
    uniform = (words >> np.uint64(11)).astype(np.float64) * 2.0**-53
    normal = np.sqrt(-2 * np.log1p(-uniform[0])) * np.cos(2 * np.pi * uniform[1])
    q, r = np.linalg.qr(normal)
    signed: Floats = q * np.sign(np.diag(r))
    return signed
