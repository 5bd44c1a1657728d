"""Adds up what is opened: who hears how much about whose labels and columns, in figures and in words.

The figures are upper bounds by counting. They say how much could have been told, not what somebody makes of
it: bits may all be about one row, and what looks like many bits may tell nothing new.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from colonnade.openings.opening import LINEAR, Opening
from colonnade.result import About, Heard

CAUTION = "upper bounds by counting, and no proof of harmlessness: k numbers of b bits tell at most k b bits"

WORDS: dict[str, str] = {
    "scores": "total scores of rows",
    "thetas": "theta of rows, the derivative of the loss by their scores",
    "gradients": "first and second derivatives of rows",
    "column gradients": "gradients of its own columns, with noise",
    "labels": "labels of rows",
    "weights": "weights of a trained model",
    "bin counts": "how many rows, or which, every bin of a column has",
    "WOE": "the weight of evidence of bins",
    "IV": "how much columns tell of labels: information values, in steps",
    "histograms": "sums over the bins of columns",
    "sides": "which rows a split sends left",
    "outputs": "outputs of a party's model",
    "replies": "what a server replies: derivatives, values or differences of the loss",
    "distances": "distances between sampled rows",
    "projections": "projections of rows on random features",
    "inner products": "inner products of vectors over all blocks",
    "row lengths": "how long rows are, or how many numbers they have",
    "penalties": "the penalty of weights, and how many bytes were sent",
    "pieces": "every party's own part of a total",
    "model": "parameters or settings of the model",
    "stops": "words on how a run goes on or ends",
    "sizes": "how many columns or bins there are",
    "predictions": "total scores of rows that are asked for",
    "mean parts": "mean parts of scores",
    "common ids": "which ids are common",
    "asked rows": "which rows are asked for",
    "progress": "how far a party is",
    "losses": "the training loss",
    "values": "what parties are worth: Shapley values of test metrics, rounded to their intervals",
    "correlations": "how columns go together",
    "names": "what columns are called",
    "masked": "words that are uniform to who hears them",
}


def heard(openings: Iterable[Opening], rows: int, *, of: str | None = None) -> list[Heard]:
    """Return what every party hears about every other's labels and columns, or about those `of` one party, in
    all, over this many rows."""
    sums: dict[tuple[str, About, str], list[Opening]] = {}
    for each in openings:
        if each.about != "nothing":
            owners = [owner for owner in each.of if of in (None, owner)]
            for hearer in each.to:
                for owner in owners:
                    if owner != hearer:
                        sums.setdefault((hearer, each.about, owner), []).append(each)
    return [
        Heard(
            hearer=hearer,
            about=about,
            of=owner,
            kinds=tuple(dict.fromkeys(each.kind for each in found)),
            numbers=sum(each.numbers for each in found),
            bits=sum(each.told for each in found),
            rows=rows,
            epsilon=together(each.epsilon for each in found),
            linear=sum(each.numbers for each in found if each.kind in LINEAR and each.epsilon is None),
        )
        for (hearer, about, owner), found in sums.items()
    ]


HEARD = ("who hears", "about", "what", "numbers", "bits a row", "epsilon")
"""Heads of a table of what is heard."""

ABOUT: dict[About, str] = {
    "labels": "labels",
    "columns": "columns",
    "membership": "which ids are held",
    "nothing": "nothing of anybody's data",
}


def table_of(told: Iterable[Heard]) -> list[tuple[str, ...]]:
    """Return a row of a table for what is heard by whom: labels first, and the most bits of them; who hears
    the same shares a row."""
    hearers: dict[Heard, list[str]] = {}
    for each in sorted((each for each in told if each.about != "nothing"), key=_order):
        hearers.setdefault(msgspec.structs.replace(each, hearer=""), []).append(each.hearer)
    return [
        (
            ", ".join(dict.fromkeys(who)),
            f"{ABOUT[each.about]} of {each.of}",
            "; ".join(WORDS[kind] for kind in each.kinds),
            f"{each.numbers:,}",
            f"{each.per_row:,.0f}" if each.per_row >= 100 else f"{each.per_row:.3g}",
            "none" if each.epsilon is None else f"{each.epsilon:.3g}",
        )
        for each, who in hearers.items()
    ]


def _order(each: Heard) -> tuple[int, float]:
    """Return what sorts rows: labels, then columns, then ids, and the most bits first."""
    return list(ABOUT).index(each.about), -each.per_row


def together(epsilons: Iterable[float | None]) -> float | None:
    """Return the sum of epsilons; None if one is without bound."""
    known = list(epsilons)
    return None if None in known else sum(each for each in known if each is not None)


def line(opening: Opening) -> str:
    """Return an opening as a line of text."""
    to, of = _names(opening.to), _names(opening.of)
    about = "" if opening.about == "nothing" else f", about {opening.about} of {of}"
    rows = f", {opening.rows:,} rows" if opening.rows else ""
    return (
        f"{to}: {WORDS[opening.kind]}{about}: {amount(opening.numbers, opening.bits)}{rows}, {opening.when}"
    )


def amount(numbers: int, bits: float) -> str:
    """Return how much that is, in words.

    >>> amount(1200, 20.5)
    'at most 1,200 numbers of 20.5 bits'
    """
    return f"at most {numbers:,} number{'s' * (numbers != 1)} of {bits:.3g} bits"


def _names(parties: tuple[str, ...]) -> str:
    return ", ".join(parties) or "nobody"
