"""Labels from theta = dL/dz, which parties of the `backward` and `full` conversations are told of every row.

For the logistic loss -theta is the label times the probability of the other one: its sign is the label. For
several classes theta is negative at the true class alone. For a number theta = z - y, and at the first round
every score is (nearly) zero. No model, no columns and no guess are needed: every party reads it off.

Sees: what one party hears, and the job.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from colonnade.arrays import Floats, Rows
from colonnade.attacks.case import Case, LabelGuess
from colonnade.conversations.linear.parties.from_plan import own_pace
from colonnade.conversations.pacing.schedule import Schedule, at_own_pace
from colonnade.messages import Announce, Backward, Topic, topic_of


def labels_from_theta(case: Case) -> LabelGuess:
    """Return the labels that the first theta of every row gives away."""
    shape = case.plan.objective.shape
    first = np.zeros((case.rows, *shape))
    met = np.zeros(case.rows, dtype=bool)
    for rows, theta in thetas_heard(case):
        new = ~met[rows]
        first[rows[new]] = theta[new]
        met[rows] = True
    if not shape:
        return LabelGuess(-first)
    return LabelGuess(np.where(met, first.argmin(axis=1), -1))


def thetas_heard(case: Case) -> Iterator[tuple[Rows, Floats]]:
    """Yield the rows of every theta that a party was told, and theta; what rides behind it is left out."""
    shape = case.plan.objective.shape
    width = int(np.prod(shape, dtype=int))
    for _, message in case.transcript.heard:
        if isinstance(message, Backward):
            rows = rows_of_round(case, message.tag)
            yield rows, message.theta.ravel()[: len(rows) * width].reshape(len(rows), *shape)
        elif isinstance(message, Announce) and _has_theta(message, case.rows * width):
            yield np.arange(case.rows), message.values[2:].reshape(case.rows, *shape)


def _has_theta(message: Announce, size: int) -> bool:
    """Return whether an answer of the `full` conversation has theta of all rows behind its two numbers."""
    return topic_of(message.tag) == Topic.TRAIN and len(message.values) == 2 + size


def rows_of_round(case: Case, number: int, offset: int | None = None) -> Rows:
    """Return the rows of a round, which every party derives from the plan; with an offset, of one that is
    pulled."""
    plan = case.plan
    kind = (
        at_own_pace(remembers=plan.settings.kind.remembers) if offset is None and own_pace(plan) else Schedule
    )
    schedule = kind(
        case.rows, plan.pace.batch, plan.pace.epochs, plan.seed, plan.label_holders, plan.settings.reshuffle
    )
    return schedule.rows_of(schedule.round(number, offset or 0))
