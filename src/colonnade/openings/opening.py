"""One line of what a run tells somebody: about what, whose, to whom, how many numbers, of how many bits.

Everything that a protocol opens is counted, that is every number which is not uniform to who hears it. The
figures follow from the plan and the size of the data, so they are known before a run begins. They are the
most that may be opened; a run that ends early opens less.

Counting is an upper bound and no proof of harmlessness: k numbers of b bits tell at most k b bits, but they
may tell these of one row.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from math import ceil
from typing import Literal

import msgspec

from colonnade.messages import Message, Topic
from colonnade.result import About

Kind = Literal[
    "scores",
    "thetas",
    "gradients",
    "column gradients",
    "labels",
    "weights",
    "bin counts",
    "WOE",
    "IV",
    "histograms",
    "sides",
    "outputs",
    "replies",
    "distances",
    "projections",
    "inner products",
    "row lengths",
    "penalties",
    "pieces",
    "model",
    "stops",
    "sizes",
    "predictions",
    "mean parts",
    "common ids",
    "asked rows",
    "progress",
    "losses",
    "values",
    "correlations",
    "names",
    "masked",
]
"""What is opened; `account.WORDS` has the words for each."""

LINEAR: frozenset[Kind] = frozenset({"weights", "column gradients"})
"""What is a linear statistic of labels, or follows from some: as many of these as rows give every label."""

TOTAL = "total"
"""The name of what a secure sum opens, among the names of messages."""

PRODUCT = "product"
"""The name of what one party lets another open of a product of theirs, out of words that are uniform."""

DOUBLE = 64  # bits of a number as it travels, where nothing makes it shorter
ROWS_A_WEIGHT = 50
UNKNOWN = 2**20  # columns that a party may have, where nobody has said

Channel = tuple[str, int]
"""Where numbers leave: the name of a message, `TOTAL` or `PRODUCT`, and a topic."""


class Opening(msgspec.Struct, frozen=True, kw_only=True):
    """Some numbers of one kind that each of `to` hears about the labels or columns of each of `of`.

    `numbers` and `bits` are what each hearer gets at the most, `rows` the rows that they are about. `by` is
    who sends them; nobody does where a sum is opened to its root. Numbers that are told with fewer bits than
    they travel in have both (`carried`). Without a `channel` they follow from others that are declared.
    `epsilon` is what noise lets all of them together tell of one label, where it has noise of its own.
    """

    kind: Kind
    about: About
    of: tuple[str, ...]
    to: tuple[str, ...]
    numbers: int
    bits: float = DOUBLE
    carried: float = 0.0
    rows: int = 0
    when: str = ""
    by: str = ""
    channel: Channel | None = None
    epsilon: float | None = None

    @property
    def bytes(self) -> int:
        """The most bytes that these numbers may take in messages."""
        return ceil(self.numbers * (self.carried or self.bits) / 8)

    @property
    def told(self) -> float:
        """The most bits that a hearer gets."""
        return self.numbers * self.bits


def most_columns(rows: int) -> int:
    """Return how many columns a party may have that is told their weights: one for 50 rows.

    Weights are as many linear statistics of the labels as there are columns. The mean leverage of rows, how
    much of a row's label is in them, is columns / rows; beyond 0.02 they begin to tell single labels.
    """
    return max(1, rows // ROWS_A_WEIGHT)


@dataclass(frozen=True)
class Extent:
    """How large the data of a run are: rows, test rows, and columns of those parties of which that is known.

    `objects` is whether some party's model is an object, of which the plan does not know how many outputs it
    has. `widest` is the most columns that a party may have of which nothing is known, and `apart` whether
    parties are not all the caller's. `checkpoints` is whether a party has a place for them.
    """

    rows: int
    test: int = 0
    columns: Mapping[str, int] = field(default_factory=dict)
    objects: bool = False
    widest: int = UNKNOWN
    apart: bool = False
    checkpoints: bool = True

    def width(self, party: str) -> int:
        """Return how many columns a party has, at the most."""
        return self.columns.get(party, self.widest)


Declare = Callable[[list[Opening]], Awaitable[None]]
"""Hears what is about to be opened, before it is; raises to go no further."""


async def undisputed(openings: list[Opening]) -> None:
    """Let everything be opened."""


def sent(kind: type[Message], topic: Topic) -> Channel:
    """Return where a kind of message about a topic leaves."""
    return kind.__name__, int(topic)


def summed(topic: Topic) -> Channel:
    """Return where sums about a topic are opened."""
    return TOTAL, int(topic)


def multiplied(topic: Topic) -> Channel:
    """Return where products about a topic are opened."""
    return PRODUCT, int(topic)
