"""FDSKL with a shared seed: the owner of random features solves for the other parties' columns.

The owner learns omega'x + b of every row for each of its features, up to whole turns. It takes away the part
of its own columns; between two rows the offset b cancels. What is left is a linear system in the others'
columns, omega_others' (x - x') = known, one equation per feature. Whole turns are no obstacle: the angles
also tell which rows are alike, between those hardly any angle goes round, and a chain of neighbours reaches
every row. A party that knows the directions, and has at least
as many features as the others have columns, solves it: with the paper's shared seed everybody knows them.
The masks of the sum do not matter, since only its total is used. With private directions the attacker has
equations with unknown coefficients, and guessing directions of the right distribution gives nothing.

Sees: the totals that one party gets from the secure sum, its own columns and directions, and the job.
Needs: the number of the others' columns, which a party may know.
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import itemgetter

import numpy as np
from scipy.sparse.csgraph import breadth_first_order, minimum_spanning_tree

from colonnade.arrays import Floats, Rows
from colonnade.attacks.case import Case, ColumnGuess
from colonnade.conversations.kernel.features import STRETCH
from colonnade.conversations.kernel.phases import TURN, unpack
from colonnade.conversations.kernel.predict import KernelShare
from colonnade.conversations.kernel.settings import KernelSettings
from colonnade.conversations.kernel.setup import (
    FeatureLayout,
    draw_directions,
    draw_seeds,
    layout_of,
    shared_directions,
)
from colonnade.job.plan import Plan
from colonnade.messages import Announce, Topic, topic_of
from colonnade.models.random_features import KERNELS, SeededFeatures
from colonnade.secure.protocol import is_words

MOST_ROWS = 500  # whose differences are compared, two by two
MOST_FEATURES = 1024  # that are solved with, where every round brings some
ROUNDS = 20  # of turning back; a few are enough where it works at all


def guessed_directions(
    plan: Plan[KernelSettings], layout: FeatureLayout, sigma: float, owner: int, widths: Mapping[int, int]
) -> dict[int, Floats]:
    """Return the directions of the other parties, if they were drawn from the job's seed alone.

    `widths` maps each other party's place among the parties to its number of columns.
    """
    kind, found = plan.settings.kind, {}
    for party, width in widths.items():
        rng = shared_directions(plan.seed, party)
        if layout.running:
            seeds, adds = draw_seeds(rng, layout)[[owner, owner]], np.zeros(_blocks_used(layout, owner))
            part = SeededFeatures(kind, sigma, width, layout.block, seeds, adds)
            found[party] = part.whole().omega
        else:
            found[party] = draw_directions(rng, KERNELS[kind], sigma, width, layout)[owner]
    return found


def _blocks_used(layout: FeatureLayout, owner: int) -> int:
    """Return how many blocks of features are enough, where there are as many as there are rounds."""
    return min(layout.width(owner), MOST_FEATURES) // layout.block


def columns_from_angles(case: Case) -> ColumnGuess:
    """Return the others' columns, if directions were drawn from the job's seed; else it is a wild guess."""
    plan, names = case.plan, case.plan.parties
    layout = layout_of(plan, case.rows)
    owner = layout.owners.index(case.party)
    rows, totals = _angles_heard(case, layout, owner)
    rows, totals = rows[:MOST_ROWS], totals[:MOST_ROWS]
    features = KernelShare.from_arrays(case.share.weights).features[case.party].whole()
    own = np.asarray(case.own.X[rows] @ features.omega[:, : totals.shape[1]])
    widths = {names.index(name): width for name, width in case.widths.items() if name != case.party}
    directions = guessed_directions(plan, layout, _bandwidth(case), owner, widths)
    known = np.vstack(list(directions.values()))[:, : totals.shape[1]]
    found = solve(totals, own, known)
    parts = np.split(found, np.cumsum(list(widths.values()))[:-1], axis=1)
    return ColumnGuess(rows, {names[at]: part for at, part in zip(widths, parts, strict=True)})


def _angles_heard(case: Case, layout: FeatureLayout, owner: int) -> tuple[Rows, Floats]:
    """Return the rows that were projected on the own features, and their angles; a sum has a stretch of
    features."""
    bits, rows, angles = case.plan.settings.bits, [], []
    # in the order of rounds, and of stretches within each
    heard = iter([total for _, total in sorted(case.transcript.totals, key=itemgetter(0)) if is_words(total)])
    if layout.running:  # every round has all rows, a stretch of them after the other
        size, n = max(1, STRETCH // layout.block), case.rows
        shapes = [(min(size, n - start), layout.block) for start in range(0, n, size)]
        blocks = [
            np.vstack([unpack(total, shape, bits) for shape, total in zip(shapes, heard, strict=False)])
            for _ in range(_blocks_used(layout, owner))
        ]
        return np.arange(n), np.hstack(blocks)
    # the first pass, in which every row comes once
    for number in range(layout.schedule.per_epoch):
        batch, count = layout.rows(number), layout.wanted(number, owner)
        width, parts = max(1, STRETCH // len(batch)), []
        for first in range(0, count, width):
            total = next(heard, None)
            if total is None:  # the run ended before
                break
            parts.append(unpack(total, (len(batch), min(width, count - first)), bits))
        else:
            rows.append(batch)
            angles.append(np.hstack(parts))
    return np.concatenate(rows), np.vstack(angles)


def _bandwidth(case: Case) -> float:
    """Return the bandwidth that all parties were told, or this party told all."""
    if case.plan.settings.sigma != "median":
        return float(case.plan.settings.sigma)
    passed = [*case.transcript.heard, *case.transcript.said]
    told = (m for _, m in passed if isinstance(m, Announce) and topic_of(m.tag) == Topic.TUNE)
    return float(next(told).values[0])


def solve(totals: Floats, own: Floats, directions: Floats) -> Floats:
    """Return the others' columns of every row, up to the mean of each column.

    `totals` and `own` hold a row per row and a column per feature: the angle that the sum gave, and the
    attacker's own part of it. `directions` has a row per column of the others.
    """
    rest = totals - own
    phasors = np.exp(1j * rest)
    unlike = 1.0 - (phasors @ phasors.conj().T).real / rest.shape[1]
    order, before = breadth_first_order(minimum_spanning_tree(np.maximum(unlike, 1e-9)), 0, directed=False)
    inverse: Floats = np.linalg.pinv(directions).astype(np.float64)
    found: Floats = np.zeros((len(rest), len(directions)))
    for row in order[1:]:
        found[row] = found[before[row]] + _between(rest[row] - rest[before[row]], directions, inverse)
    centred: Floats = found - found.mean(axis=0)
    return centred


def _between(angles: Floats, directions: Floats, inverse: Floats) -> Floats:
    """Return how two rows differ, from the angles between them; those that went round are turned back."""
    step: Floats = np.zeros(len(directions))
    for _ in range(ROUNDS):
        left = angles - step @ directions
        step = step + (left - TURN * np.rint(left / TURN)) @ inverse
    return step


def error(found: Floats, truth: Floats) -> float:
    """Return the relative error of what was found; to guess the mean of every column has the error 1."""
    centred = truth - truth.mean(axis=0)
    return float(np.linalg.norm(found - centred) / np.linalg.norm(centred))
