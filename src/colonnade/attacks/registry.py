"""All attacks that an audit tries, a row each: what it is after, on which runs it makes sense, what it does.

A new attack is a function from a `Case` to a guess, and its row here. `applies` asks the plan and the party
alone; an attack that is tried and learns nothing is a result, one that cannot be tried is not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from colonnade.attacks import linear_system, split_labels, zeroth_order
from colonnade.attacks.case import Case, Guess, Labels
from colonnade.attacks.joint_score import columns_from_scores
from colonnade.attacks.theta import labels_from_theta
from colonnade.conversations.cascade.client import Walk, passes_of
from colonnade.losses import LOSSES


@dataclass(frozen=True)
class Attack:
    """One row: `sees` says in words what the attacker uses; an `active` one departs from the protocol."""

    name: str
    aim: Literal["labels", "columns"]
    sees: str
    applies: Callable[[Case], bool]
    guess: Callable[[Case], Guess]
    active: bool = False


def _told_theta(case: Case) -> bool:
    return case.plan.conversation in ("backward", "full") and not case.holds_label


def _gets_totals(case: Case) -> bool:
    plan = case.plan
    summed = plan.conversation in ("backward", "pull") or (
        plan.conversation == "full" and case.party == plan.evaluator
    )
    return summed and case.holds_label and len(plan.parties) > 1 and not plan.objective.shape


def _asks(case: Case, reply: str) -> bool:
    """Whether the party is a client of a cascade with two classes that gets such replies, uncompressed."""
    plan = case.plan
    return (
        plan.conversation == "cascade"
        and not case.holds_label
        and LOSSES[plan.objective.loss].task == "binary"
        and plan.settings.reply == reply
        and not plan.settings.packing.backward_top
    )


def _told_gradients(case: Case) -> bool:
    if _asks(case, "gradient"):
        return True
    return _asks(case, "deltas") and case.plan.settings.questions.smoothing == "coordinate"


def _told_values(case: Case) -> bool:
    settings = case.plan.settings
    return (
        _asks(case, "values")
        and settings.model.parties.get(case.party, settings.model).outputs == 1
        and settings.questions.per == "batch"
        and settings.packing.forward_bits == 32
        and not settings.packing.forward_top
    )


def _from_gradients(case: Case) -> Labels:
    return Labels(split_labels.sides(case.transcript, case.plan, case.rows), oriented=False)


def _from_values(case: Case) -> Labels:
    return Labels(zeroth_order.passive(case.transcript, case.plan, case.rows))


def _probing(case: Case) -> Labels:
    """Run again as a client that asks about single rows, and read their labels off the replies."""
    plan = case.plan
    walk = Walk(passes_of(plan, case.party, case.rows))
    digits = zeroth_order.DIGITS if plan.privacy.mechanism == "none" else 1
    probe = zeroth_order.Probe(walk, case.rows, plan.settings.questions.directions + 1, digits)
    return Labels(zeroth_order.read_off(probe, case.again(probe), plan))


def _owns_features(case: Case) -> bool:
    plan = case.plan
    return plan.conversation == "kernel" and case.holds_label and plan.settings.cache


ATTACKS: tuple[Attack, ...] = (
    Attack("labels from theta", "labels", "dL/dz of every row", _told_theta, labels_from_theta),
    Attack("labels from gradients", "labels", "dL/dh of its outputs", _told_gradients, _from_gradients),
    Attack("labels from function values", "labels", "loss differences", _told_values, _from_values),
    Attack("labels from probes", "labels", "replies to made-up outputs", _told_values, _probing, active=True),
    Attack(
        "columns from joint scores",
        "columns",
        "totals of secure sums less its own part",
        _gets_totals,
        columns_from_scores,
    ),
    Attack(
        "columns from angles",
        "columns",
        "sums of projections, and directions if they are shared",
        _owns_features,
        linear_system.columns_from_angles,
    ),
)
