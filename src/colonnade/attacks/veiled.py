"""A blind run as its parties see it: the same attacks as on a clear one, on what is sent there instead.

An owner is sent what is added to its weights, theta times a step, minus random words. The attack reads the
words as if there were none: where a mask is missing, or used again, their signs are labels. The label holder
is told totals of scores, as in a clear run, in fixed point.

Sees: what one party hears and the totals it gets, and the job.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from colonnade.arrays import Floats, Numbers, Rows
from colonnade.attacks.case import Case, Columns, Labels
from colonnade.attacks.theta import rows_of_round
from colonnade.messages import Topic, Veil, topic_of


def labels_from_veils(case: Case) -> Labels:
    """The labels that the signs of the first words about every row would give away."""
    first = np.zeros(case.rows)
    met = np.zeros(case.rows, dtype=bool)
    words = (message.moved for _, message in case.transcript.heard if isinstance(message, Veil))
    for rows, values in _of_rounds(case, words):
        new = ~met[rows]
        first[rows[new]] = values[new]
        met[rows] = True
    return Labels(first, oriented=False)


def columns_from_blind_rounds(case: Case) -> Columns:
    """The others' joint score of every row, as a guess of each of their columns."""
    totals = (total for tag, total in case.transcript.totals if topic_of(tag) == Topic.BLIND)
    z = np.full(case.rows, np.nan)
    for rows, values in _of_rounds(case, totals):
        z[rows] = values
    rows = np.flatnonzero(~np.isnan(z))
    return Columns(rows, {party: z[rows][:, None] for party in case.widths if party != case.party})


def _of_rounds(case: Case, words: Iterable[Numbers]) -> Iterator[tuple[Rows, Floats]]:
    """The rows of one round after another, and the first vector of words about them, read as numbers.

    What has another size belongs to no round: it measures, or tunes the step.
    """
    number = 0
    for each in words:
        rows = rows_of_round(case, number)
        if each.ndim == 2 and len(each) and each.shape[1] == len(rows):
            yield rows, np.ascontiguousarray(each[0]).view(np.int64).astype(np.float64)
            number += 1
