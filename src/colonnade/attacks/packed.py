"""Labels off one weight for every eight rows: an owner chooses its columns, and proposes a tiny step.

With a step so small that scores stay at nothing, a weight is the sum of its column's numbers, each with
its row's label as a sign. Eight rows share a column as 1, 1/2, 1/4, ..., so that signs are a weight's digits.

Sees: its own weights, of a run of one pass that it proposes. Needs no modified software.
"""

from __future__ import annotations

import numpy as np

from colonnade.arrays import Floats
from colonnade.attacks.case import Case, LabelGuess

PACKED = 8
MOST = 960  # rows whose labels are read at once
STEP = 1e-3


def labels_from_packed_columns(case: Case) -> LabelGuess:
    """Return the labels of the first rows, off weights of columns that were chosen for it."""
    rows = min(MOST, case.rows)
    packed = np.zeros((case.rows, -(-rows // PACKED)))
    places = np.arange(rows)
    packed[places, places // PACKED] = 2.0 ** -(places % PACKED)
    heard = case.chosen(packed, STEP)
    w = np.asarray(heard.share.weights["w"], dtype=np.float64)
    scores = np.zeros(case.rows)
    scores[:rows] = digits(w * 2 * min(case.rows, case.plan.pace.batch) / STEP, rows)
    return LabelGuess(scores)


def digits(weights: Floats, rows: int) -> Floats:
    """Return the signs that add up to these weights: of the largest number first."""
    found, rest = np.empty(len(weights) * PACKED), weights.copy()
    for place in range(PACKED):
        sign = np.where(rest >= 0, 1.0, -1.0)
        found[place::PACKED] = sign
        rest -= sign * 2.0**-place
    return found[:rows]
