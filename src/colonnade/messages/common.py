"""What parties say before they train: which rows are common, and what their columns weigh."""

from __future__ import annotations

from colonnade.arrays import Numbers
from colonnade.messages.base import Hash, Message, Text


class Roster(Message, frozen=True, tag=46):
    """Sent before alignment: ids that the sender has and needs, a commitment to them, how to compare."""

    size: int
    minimum: int
    commitment: Hash
    rules: Text
    method: Text


class Points(Message, frozen=True, tag=47):
    """Blinded ids, the answers to them, or a public key: points of the curve, 65 bytes each."""

    tag: int
    points: Numbers


class Transfer(Message, frozen=True, tag=92):
    """A step of oblivious transfers: hidden seeds, covered codewords and their table's seed, or a check."""

    tag: int
    seed: int
    rows: Numbers


class Hints(Message, frozen=True, tag=48):
    """A part of the table from which the leader reads a share of zero for an id both hold."""

    tag: int
    seed: int
    table: Numbers


class Found(Message, frozen=True, tag=49):
    """Some of the `total` ids that are common to all, each as the receiver's own keyed hash of it."""

    tag: int
    total: int
    names: Numbers


class Seal(Message, frozen=True, tag=50):
    """The digest of the common rows in their common order."""

    digest: bytes


class Sealing(Message, frozen=True, tag=61):
    """The label holder's key for this conversation, and how many rows it will seal the labels of."""

    public: bytes
    rows: int


class SealedLabels(Message, frozen=True, tag=62):
    """Labels of a stretch of rows that can be added up but not read (`secure.elgamal`)."""

    tag: int
    sealed: Numbers


class Tally(Message, frozen=True, tag=63):
    """Every bin of a party's columns: how many bins a column has, how many of them have an order, whether
    the others are categories; the rows of every bin, and its sealed count of labels."""

    bins: Numbers
    ordered: Numbers
    chained: Numbers
    rows: Numbers
    sealed: Numbers


class Evidence(Message, frozen=True, tag=64):
    """The answer to a tally: which bins are joined, the WOE of every bin, the IV of every column."""

    group: Numbers
    woe: Numbers
    iv: Numbers


OfRows = Roster | Points | Transfer | Hints | Found | Seal | Sealing | SealedLabels | Tally | Evidence
