"""How much every party's columns may be worth before anything is trained: information values, AUC bounds."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, floor, log, log2

import msgspec

MOST_IV = 16.0  # an AUC of at most 1.0000: what is above is told as this


class Prospect(msgspec.Struct, frozen=True, kw_only=True):
    """One party's columns: how many, their information value, and that of the best of them.

    Between companies only its owner knows which column is the best.
    """

    party: str
    columns: int
    best: str
    best_iv: float
    iv: float
    auc_at_most: float
    best_auc_at_most: float

    @staticmethod
    def of(party: str, columns: int, iv: float, best_iv: float, best: str = "") -> Prospect:
        """Return what these information values come to."""
        return Prospect(
            party=party,
            columns=columns,
            best=best,
            best_iv=best_iv,
            iv=iv,
            auc_at_most=most_auc(iv),
            best_auc_at_most=most_auc(best_iv),
        )

    @staticmethod
    def of_columns(party: str, ivs: Mapping[str, float]) -> Prospect:
        """Return what a party's columns come to, from the information value of each."""
        best = max(ivs, key=lambda column: ivs[column], default="")
        return Prospect.of(party, len(ivs), sum(ivs.values()), ivs.get(best, 0.0), best)


class Prospects(msgspec.Struct, frozen=True, kw_only=True):
    """All parties' columns on the training rows: the best party first; in steps where companies told them."""

    job: str
    parties: list[Prospect]
    step: float = 0.0

    @staticmethod
    def among(job: str, parties: list[Prospect], step: float = 0.0) -> Prospects:
        """Return these parties, the best first."""
        return Prospects(job=job, parties=sorted(parties, key=lambda each: -each.iv), step=step)


def step_of(rows: int) -> float:
    """Return in which steps an information value of this many rows is told: a power of two of no more than
    twice 1 / sqrt(rows), which is about its standard error.

    >>> [step_of(rows) for rows in (100, 1_000, 24_000)]
    [0.125, 0.0625, 0.0078125]
    """
    return float(2.0 ** -floor(log2(max(1, rows)) / 2))


def in_steps(iv: float, rows: int) -> int:
    """Return an information value in whole steps, rounded up so that a bound stays one."""
    return ceil(min(iv, MOST_IV) / step_of(rows))


def most_steps(rows: int) -> int:
    """Return the most steps that are told."""
    return in_steps(MOST_IV, rows)


def most_auc(iv: float) -> float:
    """Return the highest AUC that a score of columns with this information value can have.

    The information value of all columns together is Jeffreys' divergence of the two classes, and the sum of
    theirs where columns are independent within each class. It is at least 2 V log((1 + V) / (1 - V)) for
    classes at a total variation of V, and no ROC curve of such classes goes above V beyond the diagonal.

    >>> [round(most_auc(iv), 3) for iv in (0.0, 0.1, 0.5, 1e9)]
    [0.5, 0.645, 0.786, 1.0]
    """
    low, high = 0.0, 1.0
    for _ in range(50):  # fewer than a number's 53 bits, so that the middle stays below 1
        middle = (low + high) / 2
        if 2 * middle * log((1 + middle) / (1 - middle)) < iv:
            low = middle
        else:
            high = middle
    return 1 - (1 - high) ** 2 / 2
