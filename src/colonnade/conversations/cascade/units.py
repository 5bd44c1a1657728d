"""The unit of a number to predict: networks learn what is about 1 in size, in any unit of the label.

Outputs, messages, steps and penalties are the same whether a label is in euros or in millions of them. How
depends on F0:

- F0 has a last layer of its own, `linear` or `mlp`: it is trained on the labels less their mean, divided by
  their spread. When training is over that layer takes both in (`head_unit`). Only the server knows of it. A
  step that the job names is one for labels as they are, and they are left so.
- F0 adds up the outputs of networks that the job describes: it also multiplies the sum by the spread and adds
  the mean. When training is over every client takes its part of both into the last layer of its network, and
  the model is a plain sum again (`unit_of`).

What each side learns: from a sum every client the mean and the spread of the label, where it can work out the
labels themselves (docs/threat-model.md). Where replies have noise labels are taken as they are, so that no
reply says anything of them that epsilon does not cover; labels with noise are as good as any.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from colonnade.arrays import Floats, Numbers
from colonnade.conversations.cascade.settings import CascadeSettings
from colonnade.job.plan import Plan
from colonnade.losses import LOSSES, labels_of, with_weights
from colonnade.losses.weighted import weights_of
from colonnade.models.blackbox import Linear, Model
from colonnade.regularizers import Penalty

NETWORKS = {"mlp", "cnn"}  # whose last layer is linear, with a bias
HEADS = {"linear", "mlp"}  # of which F0 has such a layer, too


@dataclass(frozen=True)
class Unit:
    """A multiple of what models give, and an offset: scores in the label's own unit."""

    size: float = 1.0
    offset: float = 0.0

    @property
    def square(self) -> float:
        """The unit of losses, which are squares of differences."""
        return self.size**2

    def penalty(self, penalty: Penalty) -> Penalty:
        """Return the penalty of parameters whose outputs are in this unit: as strong as that of the label's
        own."""
        return replace(penalty, l2=penalty.l2 * self.square)

    def labels(self, y: Floats) -> Floats:
        """Return labels in this unit, beside the weights that they have."""
        if self == NO_UNIT:
            return y
        return with_weights((labels_of(y) - self.offset) / self.size, weights_of(y))

    def scores(self, z: Numbers) -> Numbers:
        """Return scores in the label's own unit."""
        return z if self == NO_UNIT else self.size * z + self.offset


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
    return NO_UNIT if given or not applies(plan) else _spread_of(labels)


def head_unit(plan: Plan[CascadeSettings], labels: Numbers, *, given: bool = False) -> Unit:
    """Return the spread and the mean of the labels, where F0 is trained in that unit and takes it in."""
    settings = plan.settings
    described = settings.model.server.kind in HEADS and not given
    found = plan.pace.step == settings.server_step == "auto"
    exact = plan.privacy.mechanism in ("none", "labels")
    applies = described and found and exact and LOSSES[plan.objective.loss].any_unit
    return _spread_of(labels) if applies else NO_UNIT


def _spread_of(labels: Numbers) -> Unit:
    spread = float(labels.std())
    return Unit(spread if spread > 0 else 1.0, float(labels.mean()))


def taken_in(model: Model, w: Numbers, unit: Unit) -> Numbers:
    """Return the parameters with which a model gives what it gave, times the unit and with the offset
    added."""
    if unit == NO_UNIT:
        return w
    last, bias = _last_layer(model)
    taken = w.copy()
    taken[-last:] *= unit.size
    taken[-bias:] += unit.offset
    return taken


def _last_layer(model: Model) -> tuple[int, int]:
    """Return how many parameters the last layer has, with its biases, and how many biases."""
    if isinstance(model, Linear):
        return model.parameters, model.outputs
    layout: list[tuple[str, tuple[int, ...]]] = model.layout  # type: ignore[attr-defined]  # all NETWORKS have one
    (_, weights), (_, biases) = layout[-2:]
    bias = int(np.prod(biases))
    return bias + int(np.prod(weights)), bias
