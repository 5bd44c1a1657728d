"""The others' columns from their joint score, which a label holder of a linear model knows of its rows.

It is told z = X w of its rows and takes away its own part X_l w_l: what is left is one linear combination of
all the others' columns, a number for every row. Where one column has most of the weight, or a party has but
one, this number is that column. With the weights of its own block at the end the attacker does a little worse
than it could, which makes no difference where the run has converged.

Sees: the totals of secure sums that one party gets, its own columns and weights, and the job.
"""

from __future__ import annotations

import numpy as np

from colonnade.arrays import Floats
from colonnade.attacks.case import Case, Columns
from colonnade.attacks.theta import rows_of_round
from colonnade.messages import TOPIC_SHIFT, Announce, Topic, topic_of

NUMBERS = 4  # behind the scores of a direction in the `full` conversation


def columns_from_scores(case: Case) -> Columns:
    """The others' joint score of every row whose total this party was told, as a guess of each column."""
    z = _along_directions(case) if case.plan.conversation == "full" else _of_rounds(case)
    rows = np.flatnonzero(~np.isnan(z))
    own = np.asarray(case.own.X @ np.asarray(case.share.weights["w"]))
    rest: Floats = (z - own)[rows][:, None]
    return Columns(rows, {party: rest for party in case.widths if party != case.party})


def _of_rounds(case: Case) -> Floats:
    """The last total of every row, from the sums of rounds; not a number where there was none."""
    z = np.full(case.rows, np.nan)
    holders = case.plan.label_holders
    at = holders.index(case.party)
    for tag, total in case.transcript.totals:
        if topic_of(tag) != Topic.TRAIN:
            continue
        number, offset = tag & ((1 << TOPIC_SHIFT) - 1), 0
        if case.plan.conversation == "pull":
            number //= len(holders)
            if case.plan.pace.schedule != "sync":
                offset = at * -(-case.rows // case.plan.pace.batch) // len(holders)
        rows = rows_of_round(case, number, offset)
        z[rows] = total[: len(rows)]
    return z


def _along_directions(case: Case) -> Floats:
    """The scores at the end, from those of every direction and how far this party said to go along it."""
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
