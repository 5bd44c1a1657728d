"""Scores, theta and weights in parts (`reveal = "never"`): what a party of two makes of its own parts.

A part is uniform without the other's. The attack reads every part as if it were the number: where masks are
missing, weak or used again, parts of all passes are about the same scores, and what they have in common is
these. So the vectors of all passes, one number a row each, are put beside one another, and the direction in
which they agree most is the guess. A party that holds labels adds them to theta before, and takes its own
score off afterwards, as far as its part of its own weights tells it.

Of gradients a party has a part for every column and pass, which is about thetas' space and no row in it.

Sees: a party's parts of scores and theta in all passes, those that it decrypted with them; its part of its
own weights; its own columns and labels.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from colonnade.arrays import Floats
from colonnade.attacks.case import Case, ColumnGuess, LabelGuess
from colonnade.conversations.linear.noisy.rare import dense
from colonnade.conversations.linear.parted.parted_scores import slots_of
from colonnade.conversations.linear.parties.parted import SCORES, THETA
from colonnade.losses import LOSSES, labels_of
from colonnade.secure.lattice.ciphertexts import centred


def columns_from_parts(case: Case) -> ColumnGuess:
    """Return the other's score of every row, if parts told it, as a guess of each of its columns."""
    z = _in_common(list(_vectors(case)), case.rows)
    own = _standard(_own_scores(case))
    left = z - own * (own @ z) / case.rows
    return ColumnGuess(
        np.arange(case.rows), {party: left[:, None] for party in case.widths if party != case.party}
    )


def labels_from_parts(case: Case) -> LabelGuess:
    """Return what parts have in common, as a guess of which side of a line every label is on."""
    return LabelGuess(_in_common(list(_vectors(case)), case.rows), oriented=False)


def _vectors(case: Case) -> Iterator[Floats]:
    """Yield what a party has of every row, vector by vector, each as if nothing hid it."""
    y = None if case.own.y is None else labels_of(case.own.y)
    classes = LOSSES[case.plan.objective.loss].task == "binary"
    for name, part in case.transcript.parts:
        if name == SCORES:
            yield part
        elif name == THETA and np.any(part):
            asked = part != 0  # of every second or fourth row, which then counts for as many
            theta = part / round(case.rows / asked.sum())
            label = 0.0 if y is None else (y > 0) if classes else y
            yield np.where(asked, theta + label, np.nan)  # theta is a function of the score less the label


def _in_common(vectors: list[Floats], rows: int) -> Floats:
    """Return the direction that vectors have in common, of deviation 1; 0 for all where there are none."""
    told = np.array([each for each in map(_standard, vectors) if np.any(each)]).reshape(-1, rows)
    if not len(told):
        return np.zeros(rows)
    strongest = np.linalg.eigh(told @ told.T)[1][:, -1]
    return _standard(strongest @ told)


def _standard(values: Floats) -> Floats:
    """Return values with mean 0 and deviation 1, 0 where there is none."""
    heard = ~np.isnan(values)
    out = np.zeros(len(values))
    if heard.any() and float(values[heard].std()) > 1e-12 * float(np.abs(values[heard]).max()):
        out[heard] = (values[heard] - values[heard].mean()) / values[heard].std()
    return out


def _own_scores(case: Case) -> Floats:
    """Return the own score of every row, as far as the own part of the own weights tells it."""
    if case.plan.blind is None or case.plan.blind.encrypted is None:
        return np.zeros(case.rows)
    t = slots_of(case.plan.blind.encrypted).plain
    part = centred(np.asarray(case.share.weights["own"], dtype=np.uint64), t)
    turned: Floats = np.asarray(case.share.weights["turn"]) @ part.astype(np.float64)
    scores: Floats = dense(case.own.X, slice(None)) @ turned
    return scores
