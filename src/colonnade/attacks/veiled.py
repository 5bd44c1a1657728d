"""A blind run as its parties see it: the same attacks as on a clear one, on what is sent there instead.

An owner is sent what is added to its weights, theta times a step, minus random words. The attack reads the
words as if there were none: where a mask is missing, or used again, their signs are labels. The label holder
is told totals of scores, as in a clear run, in fixed point.

Sees: what one party hears and the totals it gets, and the job.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

import numpy as np

from colonnade.arrays import Floats, Numbers, Rows
from colonnade.attacks.case import Case, ColumnGuess, LabelGuess
from colonnade.attacks.theta import rows_of_round
from colonnade.messages import Topic, Veil, topic_of


def labels_from_veils(case: Case) -> LabelGuess:
    """Return the labels that words about every row would give away: those of the first pass, or their
    changes.

    Where the same mask hid two values their difference is a small number, which tells as much as theta does.
    """
    words = (
        message.moved
        for sender, message in case.transcript.heard
        if isinstance(message, Veil) and sender == case.plan.evaluator
    )
    passes = [np.zeros(case.rows)]
    met = np.zeros(case.rows, dtype=np.int64)
    for rows, values in _of_rounds(case, words):
        while len(passes) <= met[rows].max(initial=0):
            passes.append(np.zeros(case.rows))
        for number in np.unique(met[rows]):
            now = met[rows] == number
            passes[number][rows[now]] = values[now]
        met[rows] += 1
    return _unmasked(passes, np.flatnonzero(met))


def labels_from_whole_passes(case: Case) -> LabelGuess:
    """Return the same of a run in which every pass has words about all rows in their order."""
    passes = [
        message.moved.view(np.int64).astype(np.float64)
        for sender, message in case.transcript.heard
        if isinstance(message, Veil) and sender == case.plan.evaluator and message.moved.shape == (case.rows,)
        # others are phases of sines
        if message.moved.dtype == np.uint64
    ]
    return _unmasked(passes or [np.zeros(case.rows)], np.arange(case.rows))


def _unmasked(passes: list[Floats], heard: Rows) -> LabelGuess:
    """Return the first pass, or the first change from one to the next, that no mask hides."""
    changes = [later - earlier for earlier, later in pairwise(passes)]
    small = [each for each in (passes[0], *changes) if np.median(np.abs(each[heard])) < 2.0**60]
    return LabelGuess(small[0] if small else passes[0], oriented=False)


def labels_from_weights(case: Case) -> LabelGuess:
    """Return what the party's own part of the model, which it is given in the end, says of its own rows."""
    return LabelGuess(np.asarray(case.own.X @ np.asarray(case.share.weights["w"])))


def columns_from_blind_rounds(case: Case) -> ColumnGuess:
    """Return the others' joint score of every row, as a guess of each of their columns."""
    totals = (total for tag, total in case.transcript.totals if topic_of(tag) == Topic.BLIND)
    z = np.full(case.rows, np.nan)
    for rows, values in _of_rounds(case, totals):
        z[rows] = values
    rows = np.flatnonzero(~np.isnan(z))
    return ColumnGuess(rows, {party: z[rows][:, None] for party in case.widths if party != case.party})


def _of_rounds(case: Case, words: Iterable[Numbers]) -> Iterator[tuple[Rows, Floats]]:
    """Yield the rows of one round after another, and the first vector of words about them, read as numbers.

    What has another size belongs to no round: it measures, or tunes the step.
    """
    number = 0
    for each in words:
        rows, vectors = rows_of_round(case, number), np.atleast_2d(each)
        if vectors.dtype == np.uint64 and len(vectors) and vectors.shape[1] == len(rows):
            yield rows, np.ascontiguousarray(vectors[0]).view(np.int64).astype(np.float64)
            number += 1
