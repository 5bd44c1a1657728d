"""FDSKL with a shared seed: the owner of random features solves for the other parties' columns.

The owner learns omega'x + b of every row for each of its features. It takes away the part of its own
columns; between two rows the offset b cancels. What is left is a linear system in the others' columns,
omega_others' (x - mean) = known, one equation per feature. Whoever knows the directions, and has at least
as many features as the others have columns, solves it: with the paper's shared seed everybody knows them.
The masks of the sum do not matter, since only its total is used. With private directions the attacker has
equations with unknown coefficients, and guessing directions of the right distribution gives nothing.

Sees: the totals that one party gets from the secure sum, its own columns and directions, and the job.
Needs: the number of the others' columns, which a party may know.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from colonnade.arrays import Floats
from colonnade.conversations.kernel.settings import KernelSettings
from colonnade.conversations.kernel.setup import FeatureLayout, draw_directions, shared_directions
from colonnade.job.plan import Plan
from colonnade.models.random_features import KERNELS


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

    `totals` and `own` hold a row per row and a column per feature: what the sum gave, and the attacker's
    own part of it. `directions` has a row per column of the others.
    """
    rest = totals - own
    rest = rest - rest.mean(axis=0)
    found, *_ = np.linalg.lstsq(directions.T, rest.T, rcond=None)
    centred: Floats = found.T
    return centred


def error(found: Floats, truth: Floats) -> float:
    """The relative error of what was found; to guess the mean of every column has the error 1."""
    centred = truth - truth.mean(axis=0)
    return float(np.linalg.norm(found - centred) / np.linalg.norm(centred))
