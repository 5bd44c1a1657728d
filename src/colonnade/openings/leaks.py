"""What a run gives away by construction, named as parties' policies accept it, in the words of all pages.

The account says how many numbers are told; this says what they come to where nothing has to be solved or
guessed. Proposals, refusals, reports and sheets have these words, and nobody else has others.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Literal, NamedTuple

Leak = Literal[
    "labels",
    "scores",
    "shares",
    "outputs",
    "embeddings",
    "similarity",
    "evidence",
    "nodes",
    "two-parties",
    "few-rows",
    "values",
    "statistics",
]
"""What a run may give away, as parties' policies name it."""

Who = Literal["all", "holders", "first", "others"]
"""All parties, those with the label, the first of these, or those without it."""


class Learnt(NamedTuple):
    """Who learns something, and what: the words behind the name of one party, or of each."""

    who: Who
    words: str


LEAKS: dict[Leak, Learnt] = {
    "labels": Learnt("others", "can work out the label of every training row"),
    "shares": Learnt(
        "holders",
        "sees other parties' own scores of training rows, by itself or together with some: the secure sum "
        "does not hide pieces",
    ),
    "outputs": Learnt("first", "sees what every party's model makes of each training row"),
    "embeddings": Learnt(
        "all", "sees what the others' models make of each training row, and the server's model"
    ),
    "two-parties": Learnt(
        "holders", "can work out the other party's score of every row: with two parties nothing can hide it"
    ),
    "few-rows": Learnt("others", "can work out something of labels from its own weights, as rows are few"),
    "values": Learnt("others", "hears what every party is worth, or may be at the most, in steps"),
    "scores": Learnt("holders", "sees the others' joint score of every training row"),
    "similarity": Learnt("holders", "learns how alike two rows are in the others' columns"),
    "evidence": Learnt(
        "all", "learns how bads spread over bins: the label holder of every party's, each party of its own"
    ),
    "statistics": Learnt("all", "learns, with noise, how every two columns go together, also with the label"),
    "nodes": Learnt(
        "all",
        "learns parts of trees: the label holder sums for bins of every column, each party who shares a node",
    ),
}
"""The worst first."""

_SUBJECT: dict[Who, str] = {
    "all": "every party",
    "holders": "each label holder",
    "first": "the first label holder",
    "others": "every party",
}


def meaning(leak: Leak) -> str:
    """Return what somebody accepts who accepts a leak.

    >>> meaning("scores")
    "each label holder sees the others' joint score of every training row"
    """
    who, words = LEAKS[leak]
    return f"{_SUBJECT[who]} {words}"


def readings(
    parties: Sequence[str], active: Sequence[str], known: Collection[str]
) -> Iterator[tuple[str, str]]:
    """Yield every party with something that it learns in a job that gives these things away, the worst
    first."""
    for leak, (who, words) in LEAKS.items():
        if leak not in known:
            continue
        for party in parties:
            holds, first = party in active, list(active[:1]) == [party]
            if who == "all" or (holds if who == "holders" else first if who == "first" else not holds):
                yield party, words
