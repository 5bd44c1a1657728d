"""Compression with a memory for every row: what a message leaves out waits for the next one about that row.

Top-k leaves most numbers out and few bits say little of each, so somebody must remember what is missing, and
only together with what it belongs to:

    outputs of a client  `Changes`: the server keeps the last outputs of every row, the client a copy h' of
                         them. The k largest of h - h' are sent, or all of it in few bits, and both add what
                         was sent to what they have. What the server lacks is exactly what is still to be sent
                         (the compressed differences of EF-VFL, Valdeira et al. 2024).
    gradients of them    `Late`: the server keeps an error for every row, the k largest of g + e are sent, and
                         e is what remains of them. A part of a row's gradient may be late by a pass or more,
                         but none is lost.

A message without a memory is `Each`. What each side learns: never more than from the arrays themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from colonnade.arrays import Numbers, Rows
from colonnade.compress.protocol import Compressor
from colonnade.compress.topk import TopK
from colonnade.state import UNCHANGED, Declared


class Sending(Protocol):
    def pack(self, rows: Rows, x: Numbers) -> Numbers:
        """Return what to send for the array x about these rows."""
        ...


@dataclass(frozen=True)
class Each:
    """Compresses every message by itself: no error is carried over."""

    STATE = UNCHANGED

    compressor: Compressor

    def pack(self, rows: Rows, x: Numbers) -> Numbers:
        return self.compressor.encode(self.compressor.init(x.shape), x)[0]


@dataclass(frozen=True, eq=False)
class Changes:
    """Sends the compressed changes of [1, rows, outputs] against what the receiver has of these rows."""

    STATE = Declared(kept=("there",))

    compressor: Compressor
    there: Numbers  # [all rows, outputs]

    def pack(self, rows: Rows, x: Numbers) -> Numbers:
        packed, _ = self.compressor.encode(None, (x[0] - self.there[rows])[None])
        self.there[rows] = self.added(packed, self.there[rows])[0]
        return packed

    def added(self, packed: Numbers, had: Numbers) -> Numbers:
        """Return what was there plus the packed changes, [1, rows, outputs]; both ends get the same to the
        bit."""
        found: Numbers = had[None] + self.compressor.decode(packed, (1, *had.shape)).astype(had.dtype)
        return found


@dataclass(frozen=True, eq=False)
class Late:
    """Sends the largest of [rows, outputs] plus what earlier messages about these rows left out."""

    STATE = Declared(kept=("error",))

    top: TopK
    error: Numbers  # [all rows, outputs]

    def pack(self, rows: Rows, x: Numbers) -> Numbers:
        packed, left = self.top.encode(self.error[rows], x)
        self.error[rows] = left
        return packed
