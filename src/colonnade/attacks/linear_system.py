"""FDSKL with a shared seed: the owner of random features solves for the other parties' columns.

The owner learns omega'x + b of every row for each of its features, up to whole turns. It takes away the part
of its own columns; between two rows the offset b cancels. What is left is a linear system in the others'
columns, omega_others' (x - x') = known, one equation per feature. Whole turns are no obstacle: the angles
also tell which rows are alike, between those hardly any angle goes round, and a chain of neighbours reaches
every row. Whoever knows the directions, and has at least
as many features as the others have columns, solves it: with the paper's shared seed everybody knows them.
The masks of the sum do not matter, since only its total is used. With private directions the attacker has
equations with unknown coefficients, and guessing directions of the right distribution gives nothing.

Sees: the totals that one party gets from the secure sum, its own columns and directions, and the job.
Needs: the number of the others' columns, which a party may know.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy.sparse.csgraph import breadth_first_order, minimum_spanning_tree

from colonnade.arrays import Floats
from colonnade.conversations.kernel.phases import TURN
from colonnade.conversations.kernel.settings import KernelSettings
from colonnade.conversations.kernel.setup import FeatureLayout, draw_directions, shared_directions
from colonnade.job.plan import Plan
from colonnade.models.random_features import KERNELS

ROUNDS = 20  # of turning back; a few are enough where it works at all


def guessed_directions(
    plan: Plan[KernelSettings], layout: FeatureLayout, sigma: float, owner: int, widths: Mapping[int, int]
) -> dict[int, Floats]:
    """The directions of the other parties, if they were drawn from the job's seed alone.

    `widths` maps each other party's place among the parties to its number of columns.
    """
    kernel = KERNELS[plan.settings.kind]
    return {
        party: draw_directions(shared_directions(plan.seed, party), kernel, sigma, width, layout)[owner]
        for party, width in widths.items()
    }


def solve(totals: Floats, own: Floats, directions: Floats) -> Floats:
    """The others' columns of every row, up to the mean of each column.

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
    """How two rows differ, from the angles between them; those that went round are turned back."""
    step: Floats = np.zeros(len(directions))
    for _ in range(ROUNDS):
        left = angles - step @ directions
        step = step + (left - TURN * np.rint(left / TURN)) @ inverse
    return step


def error(found: Floats, truth: Floats) -> float:
    """The relative error of what was found; to guess the mean of every column has the error 1."""
    centred = truth - truth.mean(axis=0)
    return float(np.linalg.norm(found - centred) / np.linalg.norm(centred))
