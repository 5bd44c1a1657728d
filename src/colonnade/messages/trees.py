"""What parties that grow trees together say to each other."""

from __future__ import annotations

from typing import ClassVar

from colonnade.arrays import Numbers
from colonnade.messages.base import Message


class Bins(Message, frozen=True, tag=70):
    """How many bins each of the sender's columns has, and whether one more is for gaps.

    `rises` says of every column whether scores may only rise with it, 1, or only fall, -1, or both, 0; or 2,
    that its bins are categories without an order.
    """

    ordered: Numbers
    gaps: Numbers
    rises: Numbers


class Gradients(Message, frozen=True, tag=71):
    """What a tree learns from: first and second derivatives of its rows, or nothing for who sits it out.

    `kept` ends the run: this many of the receiver's splits are in the trees that are kept.
    """

    tag: int
    words: Numbers
    kept: int | None = None
    deals: tuple[
        int, ...
    ] = ()  # the places of parties for which the receiver deals words, if labels are blind
    turn: tuple[int, ...] = ()  # and of those that take part in the tree


class Histograms(Message, frozen=True, tag=72):
    """The sums that a level of a tree needs of the sender's columns; and all the bytes that it has sent."""

    tag: int
    sums: Numbers
    spots: Numbers  # where labels are blind: bins of rows, then sides, in an order unknown to the receiver
    sent: int


class Joined(Message, frozen=True, tag=79):
    """The same where bins of few rows are joined (`trees/told`): the sums of joined bins, slot after slot.

    `ends` are bits: for every slot and bin whether it ends a joined one.
    """

    tag: int
    sums: Numbers
    ends: Numbers
    spots: Numbers
    sent: int


class Divide(Message, frozen=True, tag=73):
    """What becomes of the open nodes of a tree: who splits each, and which children stay open.

    Of the nodes that the receiver splits: by which column, after which bin, and where gaps go.
    """

    tag: int
    party: Numbers
    column: Numbers
    bin: Numbers
    gaps_left: Numbers
    stays: Numbers


class Sets(Message, frozen=True, tag=85):
    """Which bins go left in the receiver's splits of categories on a level: 32 bytes for every open node."""

    tag: int
    left: Numbers


class Sides(Message, frozen=True, tag=74):
    """Which rows of the nodes that the sender splits go left: a bit each, node after node."""

    tag: int
    left: Numbers


class Outcomes(Message, frozen=True, tag=75):
    """Which of some rows go left in every split of the sender, of all trees: a bit each."""

    tag: int
    left: Numbers


class Grown(Message, frozen=True, tag=76):
    """The receiver's own trees with their leaves, where every tree uses one party's columns alone.

    How many nodes each tree has and which class it is of; then of all nodes the number of the split, the two
    children and the score.
    """

    nodes: Numbers
    kind: Numbers
    split: Numbers
    left: Numbers
    right: Numbers
    value: Numbers


class Shuffled(Message, frozen=True, tag=77):
    """What a dealer makes of random words for one column of a tree (`conversations/boost/blind`).

    `order` is that of the column's rows; of many rows none is told, and the receiver draws it, too.
    """

    personal: ClassVar[bool] = True
    tag: int
    words: Numbers
    order: Numbers


class VeiledBins(Message, frozen=True, tag=86):
    """Some rows of the sender's columns as bins, but for the first of each, minus random words
    (`conversations/boost/veiled`)."""

    personal: ClassVar[bool] = True
    tag: int
    words: Numbers


class DealtSums(Message, frozen=True, tag=87):
    """A dealer's part of the sums that a level of a tree needs of another party's veiled bins."""

    personal: ClassVar[bool] = True
    tag: int
    sums: Numbers


class Rest(Message, frozen=True, tag=78):
    """A piece of a message of trees that is longer than a message can be (`conversations/boost/long`)."""

    tag: int
    values: Numbers


OfTrees = (
    Bins
    | Gradients
    | Histograms
    | Joined
    | Divide
    | Sets
    | Sides
    | Outcomes
    | Grown
    | Shuffled
    | VeiledBins
    | DealtSums
    | Rest
)
