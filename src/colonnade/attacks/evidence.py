"""Labels by least squares from the weight of evidence of a party's own bins.

A bin's WOE and its number of rows give the number of bads in it, where counts are exact. So every bin is an
equation in the labels of its rows, and with enough columns these have one solution.

Sees: the WOE of its own bins, and which of its rows are in them.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq
from scipy.sparse import csr_array, vstack
from scipy.sparse.linalg import lsqr

from colonnade.arrays import Floats, Numbers
from colonnade.attacks.case import Case, LabelGuess
from colonnade.data.prepare.prepare import Preparation


def is_told_evidence(case: Case) -> bool:
    """Return whether the party holds no label, and was told WOE of its columns."""
    stored = case.share.preparation
    return not case.holds_label and stored is not None and bool(Preparation.from_dict(stored).woe)


def labels_from_evidence(case: Case) -> LabelGuess:
    """Return the shortest labels that give all counts."""
    woe = [each.woe for each in Preparation.from_dict(case.share.preparation or {}).woe]
    X = np.asarray(case.own.X, dtype=np.float64)
    equations, counts = [], []
    for column, told in zip(X.T, woe, strict=False):
        values, group = np.unique(column, return_inverse=True)
        if len(values) != len(set(told)) or len(values) < 2:
            continue
        bads = bads_of(np.sort(np.array(sorted(set(told)))), np.bincount(group))
        ones = np.ones(len(group))
        equations.append(csr_array((ones, (group, np.arange(len(group)))), shape=(len(values), len(group))))
        counts.append(bads)
    if not equations:
        return LabelGuess(np.zeros(case.rows))
    A, b = vstack(equations).tocsr(), np.concatenate(counts)
    rate = float(counts[0].sum()) / case.rows
    found: Floats = lsqr(A, b - A @ np.full(case.rows, rate))[0]
    return LabelGuess(found - found.mean())


def bads_of(woe: Floats, rows: Numbers) -> Floats:
    """Return how many bads bins have, from their WOE and rows.

    WOE says the odds of a bin over those of all rows; the latter are those at which all bads add up.
    """
    n = float(rows.sum())

    def bads(odds: float) -> Floats:
        found: Floats = rows / (1 + odds * np.exp(woe))
        return found

    def beyond(log_odds: float) -> float:
        odds = float(np.exp(log_odds))
        return float(bads(odds).sum()) - n / (1 + odds)

    low, high = -12.0, 12.0
    at = brentq(beyond, low, high) if beyond(low) * beyond(high) < 0 else 0.0
    return np.rint(bads(float(np.exp(at))))
