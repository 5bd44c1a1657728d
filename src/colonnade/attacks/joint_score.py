"""The others' columns from their joint score, which a label holder of a linear model knows of its rows.

It is told z = X w of its rows and takes away its own part X_l w_l: what is left is one linear combination of
all the others' columns, a number for every row. Where one column has most of the weight, or a party has but
one, this number is that column. With the weights of its own block at the end the attacker does a little worse
than it could, which makes no difference where the run has converged.

Sees: the totals of secure sums that one party gets, its own columns and weights, and the job.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from colonnade.arrays import Floats, Rows
from colonnade.attacks.case import Case, ColumnGuess
from colonnade.attacks.theta import rows_of_round
from colonnade.conversations.linear.parties.full_evaluator import NUMBERS
from colonnade.messages import Announce, Topic, topic_of


def columns_from_rounds(case: Case) -> ColumnGuess:
    """Return the guess of a dominator, from the sums of its rounds (`backward`)."""
    return _of_others(case, _last_totals(case, lambda number: rows_of_round(case, number)))


def columns_from_pulls(case: Case) -> ColumnGuess:
    """Return the guess of a party that pulls for itself: its rounds begin at a place of their own
    (`pull`)."""
    holders, pace = case.plan.label_holders, case.plan.pace
    first = holders.index(case.party) * -(-case.rows // pace.batch) // len(holders)
    offset = 0 if pace.schedule == "sync" else first
    return _of_others(case, _last_totals(case, lambda tag: rows_of_round(case, tag // len(holders), offset)))


def columns_from_directions(case: Case) -> ColumnGuess:
    """Return the guess of the evaluator, which adds up the steps along all directions (`full`)."""
    return _of_others(case, _along_directions(case))


def _of_others(case: Case, z: Floats) -> ColumnGuess:
    """Return the others' joint score of every row whose total this party was told, as a guess of each
    column."""
    rows = np.flatnonzero(~np.isnan(z))
    own = np.asarray(case.own.X @ np.asarray(case.share.weights["w"]))
    rest: Floats = (z - own)[rows][:, None]
    return ColumnGuess(rows, {party: rest for party in case.widths if party != case.party})


def _last_totals(case: Case, rows_of: Callable[[int], Rows]) -> Floats:
    """Return the last total of every row, from the sums of rounds; not a number where there was none."""
    z = np.full(case.rows, np.nan)
    for tag, total in case.transcript.totals:
        if topic_of(tag) == Topic.TRAIN:  # whose tags are numbers of rounds
            rows = rows_of(tag)
            z[rows] = total[: len(rows)]
    return z


def _along_directions(case: Case) -> Floats:
    """Return the scores at the end, from those of every direction and how far this party said to go along
    it."""
    steps = {
        message.tag: message.values[0]
        for _, message in case.transcript.said
        if isinstance(message, Announce) and topic_of(message.tag) == Topic.TRAIN
    }
    scores = [
        steps[tag] * total[:-NUMBERS]
        for tag, total in case.transcript.totals
        if topic_of(tag) == Topic.TRAIN and len(total) == case.rows + NUMBERS
    ]
    unit = steps[min(steps)]  # of the scores: the first thing that is said
    z: Floats = unit * np.sum(scores, axis=0, dtype=np.float64)
    return z
