"""The unit of a number to predict: networks learn what is about 1 in size, in any unit of the label.

Where all parties have networks that are described by the job and F0 adds up their outputs, F0 also
multiplies the sum by the spread of the label and adds its mean. So outputs, messages, steps and penalties are
the same whether a label is in euros or in millions of them. When training is over every client takes its
part of both into the last layer of its network, and the model is a plain sum again.

What each side learns: every client the mean and the spread of the label, where it can work out the labels
themselves (docs/threat-model.md). With a privacy mechanism labels are taken as they are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from colonnade.arrays import Numbers
from colonnade.conversations.cascade.settings import CascadeSettings
from colonnade.job.plan import Plan
from colonnade.losses import LOSSES
from colonnade.models.blackbox import Model
from colonnade.regularizers import Penalty

NETWORKS = {"mlp", "cnn"}  # whose last layer is linear, with a bias


@dataclass(frozen=True)
class Unit:
    """What F0 makes of the sum of all outputs: a multiple of it, and an offset."""

    size: float = 1.0
    offset: float = 0.0

    def penalty(self, penalty: Penalty) -> Penalty:
        """Return the penalty of parameters whose outputs are in this unit: as strong as that of the label's
        own."""
        return replace(penalty, l2=penalty.l2 * self.size**2)


NO_UNIT = Unit()


def applies(plan: Plan[CascadeSettings]) -> bool:
    """Return whether F0 has a unit in this run."""
    settings, specs = plan.settings, plan.settings.model
    kinds = {specs.of(party).kind for party in plan.parties}
    return (
        LOSSES[plan.objective.loss].task == "regression"
        and plan.privacy.mechanism == "none"
        and settings.reply != "embeddings"
        and specs.server.kind == "sum"
        and kinds <= NETWORKS
    )


def unit_of(plan: Plan[CascadeSettings], labels: Numbers, *, given: bool = False) -> Unit:
    """Return the spread and the mean of the labels, where F0 has a unit; one `given` as an object has
    none."""
    if given or not applies(plan):
        return NO_UNIT
    spread = float(labels.std())
    return Unit(spread if spread > 0 else 1.0, float(labels.mean()))


def taken_in(model: Model, w: Numbers, unit: Unit) -> Numbers:
    """Return the parameters with which a network gives what it gave, times the unit and with the offset
    added."""
    if unit == NO_UNIT:
        return w
    layout: list[tuple[str, tuple[int, ...]]] = model.layout  # type: ignore[attr-defined]  # all NETWORKS have one
    (_, weights), (_, biases) = layout[-2:]
    bias = int(np.prod(biases))
    last = bias + int(np.prod(weights))
    taken = w.copy()
    taken[-last:] *= unit.size
    taken[-bias:] += unit.offset
    return taken
