"""Noise on the labels themselves: everything that is sent later is computed from noisy labels.

A label holder that trains on noisy labels cannot give the true ones away, whatever it sends, to whomever, and
however often: replies, gradients, the weights of its own model and the moment it stops are functions of the
noisy labels only. Nothing has to be clipped or counted, and no other party has to be trusted.

`randomised` (mechanism = "labels"), once before training: of k classes the true one is kept with probability
e^epsilon / (e^epsilon + k - 1), else one of the others takes its place, all equally likely. Any label makes
any answer at most e^epsilon times as likely as any other label does: pure epsilon, delta 0. The most probable
class of the noisy label is that of the true one, so predictions need no correction; probabilities are drawn
to the middle. A number (regression) is clipped to [-clip, clip] and gets Gaussian noise, once. How many
classes there are is no secret: the job says it (`train.classes`), or whoever deals the data writes it there.

`NoisyLabels` (mechanism = "gradient"), anew for every reply: a label becomes a point (one-hot, +-1, or the
clipped number) and gets Gaussian noise. The derivative of the loss is linear in it (`Head.dz`), dL/dz = p - y
for the softmax, so this *is* Gaussian noise on the gradient of every row; but the server's own step uses the
same noisy labels, and its weights cannot carry the true ones out. k draws with sqrt(k) times the noise
tell as much as one draw; the accountant adds them up (`privacy.accountant`). What a reply is computed from is
what all draws of a row so far say about its label (`privacy.posterior`).

A training run is one release; two runs on the same labels spend twice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import exp
from typing import Any

import numpy as np

from colonnade.arrays import Numbers, Rows
from colonnade.data.table import Table
from colonnade.job import LossName, PrivacyTerms
from colonnade.job.plan import Plan
from colonnade.losses import LOSSES, Loss
from colonnade.privacy.noise import Noise
from colonnade.state import Declared

Draw = Callable[[Rows, Rows, int], Numbers]
"""So many random numbers for each of these rows, each of which has had so many draws before."""


def keep_probability(epsilon: float, classes: int) -> float:
    """Return the probability with which randomised response keeps the true class.

    >>> round(keep_probability(np.log(9), 10), 3)
    0.5
    """
    return 1 / (1 + (classes - 1) * exp(-epsilon))


def randomised(codes: Rows, classes: int, epsilon: float, draw: Draw | None = None) -> Numbers:
    """Return the classes 0 ... k - 1 after randomised response: each is kept, or replaced by one of the
    others."""
    keep = keep_probability(epsilon, classes)
    rows = np.arange(len(codes))
    u = (draw or Noise().uniform)(rows, np.zeros_like(rows), 1)[:, 0]
    # what is left of the unit interval after `keep`, in equal parts for the other classes
    part = np.maximum(u - keep, 0.0) / max(1 - keep, 1e-300) * (classes - 1)
    other = 1 + np.minimum(part, classes - 2).astype(np.int64)
    return np.where(u < keep, codes, (codes + other) % classes)


def private_table(table: Table, plan: Plan[Any], noise: Callable[[], Noise] = Noise) -> Table:
    """Return the table with labels to train on instead of the true ones, if the plan wants that and it has
    any."""
    terms, objective = plan.privacy, plan.objective
    if terms.mechanism != "labels" or table.y is None:
        return table
    loss, epsilon = LOSSES[objective.loss], terms.epsilon or 0.0
    match loss.task:
        case "binary":
            y = 2.0 * randomised((table.y > 0).astype(np.int64), 2, epsilon, noise().uniform) - 1
        case "multiclass":
            codes = table.y.astype(np.int64)
            y = randomised(codes, objective.classes, epsilon, noise().uniform).astype(np.float64)
        case _:
            from colonnade.privacy.accountant import multiplier_for  # loads dp-accounting

            points, sensitivity = label_points(table.y, loss, terms.clip)
            deviation = sensitivity * multiplier_for(epsilon, terms.delta, 1)
            y = NoisyLabels(points, deviation, noise().gaussian)(np.arange(len(points)))
    return replace(table, y=y)


def delta_of(privacy: PrivacyTerms, loss: LossName) -> float:
    """Return the delta that a mechanism spends; randomised response has none."""
    regression = LOSSES[loss].task == "regression"
    return privacy.delta if privacy.mechanism != "labels" or regression else 0.0


def label_points(y: Numbers, loss: Loss, clip: float, classes: int | None = None) -> tuple[Numbers, float]:
    """Labels as points to which noise can be added, and the largest distance of two of them."""
    match loss.task:
        case "binary":
            return y, 2.0
        case "multiclass":
            return np.eye(classes or int(y.max()) + 1)[y.astype(np.int64)], 2**0.5
    return np.clip(y, -clip, clip), 2 * clip


@dataclass
class NoisyLabels:
    """Labels with noise: a call is the next draw of each of its rows (all different), and one release of it.

    `drawn` is all that calls change: a row that has had as many draws gets the same one next.
    """

    STATE = Declared(kept=("drawn",))

    points: Numbers
    deviation: float
    draw: Draw = field(default_factory=lambda: Noise().gaussian)
    drawn: Rows = field(init=False)

    def __post_init__(self) -> None:
        self.drawn = np.zeros(len(self.points), dtype=np.int64)

    def __call__(self, rows: Rows) -> Numbers:
        if len(np.unique(rows)) < len(rows):
            raise ValueError("a row has one draw in a call: two would be the same")
        points = self.points[rows]
        normal = self.draw(rows, self.drawn[rows], points.size // max(len(rows), 1))
        self.drawn[rows] += 1
        noisy: Numbers = points + self.deviation * normal.reshape(points.shape)
        return noisy
