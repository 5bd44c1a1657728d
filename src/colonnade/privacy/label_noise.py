"""Noise on the labels themselves: everything that is sent later is computed from noisy labels.

A label holder that trains on noisy labels cannot give the true ones away by anything it sends, to anybody,
and however often: replies, gradients, the weights of its own model and the moment it stops are functions of
the noisy labels only. Nothing has to be clipped or counted, and no other party has to be trusted.

`private_table` (mechanism = "labels"), once before training: of k classes the true one is kept with
probability e^epsilon / (e^epsilon + k - 1), else one of the others takes its place, all equally likely. Any
label makes any answer at most e^epsilon times as likely as any other label does: pure epsilon, delta 0. The
most probable class of the noisy label is that of the true one, so predictions need no correction;
probabilities are drawn to the middle. A number (regression) is clipped to [-clip, clip] and gets Gaussian
noise, once. How many classes there are is no secret: the job says it (`train.classes`), or the process that
deals the data writes it there.

`NoisyLabels` (mechanism = "gradient"), drawn for every reply: a label becomes a point (one-hot, +-1, or the
clipped number) and gets Gaussian noise. The derivative of the loss is linear in it (`Head.dz`), dL/dz = p - y
for the softmax, so this *is* Gaussian noise on the gradient of every row; but the server's own step uses the
same noisy labels, and its weights cannot carry the true ones out. k draws with sqrt(k) times the noise
tell as much as one draw; the accountant adds them up (`privacy.accountant`). What a reply is computed from is
what all draws of a row so far say about its label (`privacy.posterior`).

Labels and noise are whole numbers (`privacy.grid`, `privacy.discrete`): in doubles some noisy labels could
have come from one label only, which gives it away.

A training run is one release; two runs on the same labels spend twice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import exp
from typing import Any

import numpy as np

from colonnade.arrays import Floats, Numbers, Rows
from colonnade.data.table import Table
from colonnade.job import LossName, PrivacyTerms
from colonnade.job.plan import Plan
from colonnade.losses import LOSSES, Loss
from colonnade.privacy.grid import Grid
from colonnade.privacy.noise import Noise
from colonnade.state import Declared

Draw = Callable[[Rows, Rows, int], Rows]
"""This many random numbers for each of these rows, which have had these numbers of draws before."""


def keep_probability(epsilon: float, classes: int) -> float:
    """Return the probability with which randomised response keeps the true class.

    >>> round(keep_probability(np.log(9), 10), 3)
    0.5
    """
    return 1 / (1 + (classes - 1) * exp(-epsilon))


def private_table(table: Table, plan: Plan[Any], noise: Callable[[], Noise] = Noise) -> Table:
    """Return the table with labels to train on instead of the true ones, if the plan wants that and it has
    any."""
    terms, objective = plan.privacy, plan.objective
    if terms.mechanism != "labels" or table.y is None:
        return table
    loss, epsilon = LOSSES[objective.loss], terms.epsilon or 0.0
    match loss.task:
        case "binary":
            positive = (table.y > 0).astype(np.int64)
            y = 2.0 * noise().response(positive, 2, epsilon).astype(np.float64) - 1
        case "multiclass":
            codes = table.y.astype(np.int64)
            y = noise().response(codes, objective.classes, epsilon).astype(np.float64)
        case "regression":
            from colonnade.privacy.accountant import multiplier_for  # loads dp-accounting

            multiplier = multiplier_for(epsilon, terms.delta, 1)
            noisy = noisy_labels(table.y, loss, terms.clip, multiplier, noise=noise())
            y = noisy(np.arange(len(table.y)))
    return replace(table, y=y)


def delta_of(privacy: PrivacyTerms, loss: LossName) -> float:
    """Return the delta that a mechanism spends; randomised response has none."""
    regression = LOSSES[loss].task == "regression"
    return privacy.delta if privacy.mechanism != "labels" or regression else 0.0


def noisy_labels(
    y: Numbers,
    loss: Loss,
    clip: float,
    multiplier: float,
    classes: int | None = None,
    noise: Noise | None = None,
) -> NoisyLabels:
    """Return labels with noise of `multiplier` times their largest distance, drawn again by every call."""
    points, bound, sensitivity = label_points(y, loss, clip, classes)
    grid = Grid.of(bound, sensitivity, multiplier)
    return NoisyLabels(grid.whole(points), grid, (noise or Noise()).gaussian)


def label_points(
    y: Numbers, loss: Loss, clip: float, classes: int | None = None
) -> tuple[Numbers, float, float]:
    """Return labels as points to which noise can be added, their largest coordinate, and the largest distance
    of two."""
    match loss.task:
        case "binary":
            return y, 1.0, 2.0
        case "multiclass":
            return np.eye(classes or int(y.max()) + 1)[y.astype(np.int64)], 1.0, 2**0.5
        case "regression":
            return np.clip(y, -clip, clip), clip, 2 * clip


@dataclass
class NoisyLabels:
    """Labels with noise: a call is the next draw of each of its rows (all different), and one release of it.

    `drawn` is all that calls change: a row that has had as many draws gets the same one next.
    """

    STATE = Declared(kept=("drawn",))

    points: Rows  # in steps of the grid
    grid: Grid
    draw: Draw = field(default_factory=lambda: Noise().gaussian)
    drawn: Rows = field(init=False)

    def __post_init__(self) -> None:
        self.drawn = np.zeros(len(self.points), dtype=np.int64)

    def __call__(self, rows: Rows) -> Floats:
        if len(np.unique(rows)) < len(rows):
            raise ValueError("a row has one draw in a call: two would be the same")
        points = self.points[rows]
        noise = self.draw(rows, self.drawn[rows], points.size // max(len(rows), 1))
        self.drawn[rows] += 1
        return self.grid.values(points + noise.reshape(points.shape))
