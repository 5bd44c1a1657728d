"""All attacks that an audit tries, a row each: what it is after, on which conversations, by whom, and how.

A new attack is a function from a `Case` to a guess, and its row here. Whether it can be tried is a matter of
the plan and the party alone: an attack that is tried and learns nothing is a result, one that cannot be tried
is none.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from colonnade.attacks import (
    encrypted,
    evidence,
    in_parts,
    joint_score,
    lattice,
    linear_system,
    packed,
    split_labels,
    subspace,
    tree_bins,
    tree_columns,
    tree_labels,
    veiled,
    zeroth_order,
)
from colonnade.attacks.case import Case, Guess, LabelGuess
from colonnade.attacks.closing import CLOSED_BY, JOINT
from colonnade.attacks.theta import labels_from_theta
from colonnade.conversations.cascade.row_order import BatchRows, passes_of
from colonnade.losses import LOSSES


@dataclass(frozen=True)
class Attack:
    """One row: `on` names conversations, `by` says whether a party can do it there, `sees` what it uses.

    An `active` attacker departs from the protocol, which takes a run of its own.
    """

    name: str
    aim: Literal["labels", "columns"]
    sees: str
    on: tuple[str, ...]
    by: Callable[[Case], bool]
    guess: Callable[[Case], Guess]
    active: bool = False

    @property
    def closed_by(self) -> str:
        """The setting that ends what it finds."""
        return CLOSED_BY[self.name]

    def applies(self, case: Case) -> bool:
        """Return whether it can be tried by this party on this run."""
        return case.plan.conversation in self.on and self.by(case)


def _told_theta(case: Case) -> bool:
    return not case.holds_label and case.plan.blind is None


def _owns_blindly(case: Case) -> bool:
    """Return whether the party owns columns of a blind run of two classes."""
    two = LOSSES[case.plan.objective.loss].task == "binary"
    return two and case.plan.blind is not None and case.party in case.plan.blind.dealers


def _is_told_weights(case: Case) -> bool:
    return _owns_blindly(case) and "w" in case.share.weights


def _encrypted(case: Case) -> bool:
    """Return whether the party takes part in a run of two classes whose products are encrypted."""
    return case.plan.blind is not None and case.plan.blind.encrypted is not None


def _owns_noisily(case: Case) -> bool:
    """Return whether the party is told gradients with noise, and holds no label."""
    blind = case.plan.blind
    return blind is not None and blind.told is not None and not case.holds_label and case.own.width > 0


def _is_told_evidence(case: Case) -> bool:
    two = LOSSES[case.plan.objective.loss].task == "binary"
    return two and evidence.is_told_evidence(case)


def _hears_scores(case: Case) -> bool:
    """Return whether the party is told scores of a run in which owners are told gradients with noise."""
    return case.plan.blind is not None and case.plan.blind.noisy is not None and _measures(case)


def _owns_encrypted(case: Case) -> bool:
    return _encrypted(case) and not case.holds_label


def _holds_encrypted(case: Case) -> bool:
    """Return whether the party holds the label and is told gradients with noise."""
    blind = case.plan.blind
    return _encrypted(case) and blind is not None and blind.told is not None and case.holds_label


def _has_parts(case: Case) -> bool:
    """Return whether the party has parts of scores and theta that nobody knows."""
    blind = case.plan.blind
    return blind is not None and blind.encrypted is not None and blind.reveal == "never"


def _asks_blindly(case: Case) -> bool:
    one = not case.plan.objective.shape
    return one and case.plan.blind is not None and case.party == case.plan.evaluator


def _told_totals(case: Case) -> bool:
    plan = case.plan
    return case.holds_label and plan.blind is None and len(plan.parties) > 1 and not plan.objective.shape


def _evaluates(case: Case) -> bool:
    return _told_totals(case) and case.party == case.plan.evaluator


def _measures(case: Case) -> bool:
    """Return whether the party is told the scores of all rows, once or more often."""
    plan = case.plan
    return case.party == plan.evaluator and len(plan.parties) > 1 and not plan.objective.shape


def _measures_exactly(case: Case) -> bool:
    return subspace.opened(case) and _measures(case)


def _keeps_features(case: Case) -> bool:
    return case.holds_label and case.plan.settings.cache


def _client_of_two_classes(case: Case) -> bool:
    """Return whether the party is a client that gets whole replies about labels of two classes."""
    two = LOSSES[case.plan.objective.loss].task == "binary"
    return two and not case.holds_label and not case.plan.settings.packing.backward_top


def _told_gradients(case: Case) -> bool:
    asked = case.plan.settings.questions
    coordinates = asked.reply == "deltas" and asked.smoothing == "coordinate"
    return _client_of_two_classes(case) and (asked.reply == "gradient" or coordinates)


def _told_values(case: Case) -> bool:
    settings = case.plan.settings
    return (
        _client_of_two_classes(case)
        and settings.reply == "values"
        and settings.model.of(case.party).width == 1
        and settings.packing.forward_bits == 32
        and not settings.packing.forward_top
    )


def _from_gradients(case: Case) -> LabelGuess:
    return LabelGuess(split_labels.sides(case.transcript, case.plan, case.rows), oriented=False)


def _from_values(case: Case) -> LabelGuess:
    return LabelGuess(zeroth_order.passive(case.transcript, case.plan, case.rows))


def _from_probes(case: Case) -> LabelGuess:
    """Run again as a client that asks about single rows, and read their labels off the replies."""
    plan = case.plan
    walk = BatchRows(passes_of(plan, case.party, case.rows))
    digits = zeroth_order.DIGITS if plan.privacy.mechanism == "none" else 1
    probe = zeroth_order.Probe(walk, case.rows, plan.settings.questions.directions + 1, digits)
    return LabelGuess(zeroth_order.read_off(probe, case.again(probe), plan))


def _sees_nodes(case: Case) -> bool:
    return not case.holds_label and not case.plan.objective.classes


def _reads_histograms(case: Case) -> bool:
    plan = case.plan
    whole = not plan.settings.additive and plan.settings.trees.colsample_bytree == 1
    return case.party == plan.evaluator and plan.blind is None and len(plan.parties) > 1 and whole


TOTALS = "totals of secure sums less its own part"
CASCADE = ("cascade",)

ATTACKS: tuple[Attack, ...] = (
    Attack(
        name="labels from theta",
        aim="labels",
        sees="dL/dz of every row",
        on=("backward", "full"),
        by=_told_theta,
        guess=labels_from_theta,
    ),
    Attack(
        name="labels from gradients",
        aim="labels",
        sees="dL/dh of its outputs",
        on=CASCADE,
        by=_told_gradients,
        guess=_from_gradients,
    ),
    Attack(
        name="labels from function values",
        aim="labels",
        sees="values of the loss at its outputs",
        on=CASCADE,
        by=_told_values,
        guess=_from_values,
    ),
    Attack(
        name="labels from probes",
        aim="labels",
        sees="replies to made-up outputs",
        on=CASCADE,
        by=_told_values,
        guess=_from_probes,
        active=True,
    ),
    Attack(
        name="labels from veiled words",
        aim="labels",
        sees="dL/dz of every row minus random words",
        on=("backward",),
        by=_owns_blindly,
        guess=veiled.labels_from_veils,
    ),
    Attack(
        name="labels from veiled words",
        aim="labels",
        sees="dL/dz of every row minus random words",
        on=("full",),
        by=_owns_blindly,
        guess=veiled.labels_from_whole_passes,
    ),
    Attack(
        name="labels from its own weights",
        aim="labels",
        sees="its part of the model, which is its result",
        on=("backward",),
        by=_is_told_weights,
        guess=veiled.labels_from_weights,
    ),
    Attack(
        name="labels from its own weights",
        aim="labels",
        sees="its part of the model, which is its result",
        on=("full",),
        by=_owns_noisily,
        guess=veiled.labels_from_weights,
    ),
    Attack(
        name="labels from packed columns",
        aim="labels",
        sees="its own weights, of columns that it chose",
        on=("backward",),
        by=_is_told_weights,
        guess=packed.labels_from_packed_columns,
        active=True,
    ),
    Attack(
        name="labels from weight of evidence",
        aim="labels",
        sees="the WOE of its own bins",
        on=("backward", "pull", "full", "kernel", "boost", "cascade"),
        by=_is_told_evidence,
        guess=evidence.labels_from_evidence,
    ),
    Attack(
        name="labels from its gradients",
        aim="labels",
        sees="gradients of its own columns, with noise",
        on=("full",),
        by=_owns_noisily,
        guess=encrypted.labels_from_gradients,
    ),
    Attack(
        name="labels from ciphertexts",
        aim="labels",
        sees="theta of every row, encrypted",
        on=("full",),
        by=_owns_encrypted,
        guess=encrypted.labels_from_ciphertexts,
    ),
    Attack(
        name="labels from its parts",
        aim="labels",
        sees="its parts of scores and theta",
        on=("full",),
        by=lambda case: _has_parts(case) and not case.holds_label,
        guess=in_parts.labels_from_parts,
    ),
    Attack(
        name="columns from its parts",
        aim="columns",
        sees="its parts of scores, theta and weights",
        on=("full",),
        by=lambda case: _has_parts(case) and case.holds_label,
        guess=in_parts.columns_from_parts,
    ),
    Attack(
        name="columns from its gradients",
        aim="columns",
        sees="gradients of its own columns, with noise",
        on=("full",),
        by=_holds_encrypted,
        guess=encrypted.columns_from_gradients,
    ),
    Attack(JOINT, "columns", TOTALS, ("backward",), _told_totals, joint_score.columns_from_rounds),
    Attack(JOINT, "columns", TOTALS, ("backward",), _asks_blindly, veiled.columns_from_blind_rounds),
    Attack(JOINT, "columns", TOTALS, ("pull",), _told_totals, joint_score.columns_from_pulls),
    Attack(JOINT, "columns", TOTALS, ("full",), _evaluates, joint_score.columns_from_directions),
    Attack(
        name="columns from the space of scores",
        aim="columns",
        sees="the scores of all rows in every measurement",
        on=("backward", "pull"),
        by=_measures,
        guess=subspace.columns_from_measurements,
    ),
    Attack(
        name="columns from the space of scores",
        aim="columns",
        sees="the scores of all rows in every pass or, where they are hidden, once",
        on=("full",),
        by=_hears_scores,
        guess=subspace.columns_from_measurements,
    ),
    Attack(
        name="columns from exact scores",
        aim="columns",
        sees="the same, as whole numbers",
        on=("backward",),
        by=_measures_exactly,
        guess=lattice.columns_from_exact_totals,
    ),
    Attack(
        name="labels from gradients of trees",
        aim="labels",
        sees="what it sums over its bins: g and h, or words that hide them",
        on=("boost",),
        by=lambda case: not case.holds_label,
        guess=tree_labels.labels_from_gradients,
    ),
    Attack(
        name="labels from nodes of trees",
        aim="labels",
        sees="which rows share a node",
        on=("boost",),
        by=_sees_nodes,
        guess=tree_labels.labels_from_nodes,
    ),
    Attack(
        name="columns from histograms",
        aim="columns",
        sees="sums of g and h over bins, which it reads in blind runs as well",
        on=("boost",),
        by=_reads_histograms,
        guess=tree_columns.columns_from_histograms,
    ),
    Attack(
        name="bins from small sums",
        aim="columns",
        sees="sums of g and h over bins, against the words of single rows and pairs",
        on=("boost",),
        by=_reads_histograms,
        guess=tree_bins.bins_from_small_sums,
    ),
    Attack(
        name="columns from angles",
        aim="columns",
        sees="sums of projections, and directions if they are shared",
        on=("kernel",),
        by=_keeps_features,
        guess=linear_system.columns_from_angles,
    ),
)
