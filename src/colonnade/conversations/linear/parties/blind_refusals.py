"""What a blind run of a linear model cannot do, and why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from colonnade.conversations.blind.fixed_point import Lengths, check_room
from colonnade.conversations.context import Context
from colonnade.data.prepare.party_data import RowLengths
from colonnade.errors import JobError
from colonnade.job import Job
from colonnade.job.plan import Facts, Pace, Plan
from colonnade.job.presets import Preset
from colonnade.losses import LOSSES, USUAL
from colonnade.openings.opening import ROWS_A_WEIGHT
from colonnade.optim.estimators import ESTIMATORS

LARGEST = 2**33  # bytes of veiled columns at the label holder
UNPROVEN = (
    "nothing is measured before the end, so a wrong word of a dealer or owner makes another model: {way}"
)


def check_blind(job: Job, preset: Preset) -> None:
    """Refuse a job whose steps need weights that nobody has."""
    clear = "or set secure.labels = 'clear'"
    if (job.train.direction or preset.direction) != "plain":
        raise JobError(
            f"secure.labels = 'blind': a quasi-Newton direction needs products of weights; "
            f"set train.direction = 'plain', {clear}"
        )
    if job.train.l1:
        raise JobError(
            f"train.l1 = {job.train.l1}: weights are set to zero one by one, and in a blind run nobody knows "
            f"one; drop train.l1, {clear}"
        )
    if job.train.regularizer != "l2":
        raise JobError(
            f"train.regularizer = {job.train.regularizer!r}: its gradient needs every weight, and in a blind "
            f"run nobody knows one; use 'l2', {clear}"
        )
    if job.train.stale:
        raise JobError(
            f"train.stale = {job.train.stale}: in a blind run one label holder launches all rounds, and "
            f"none is scored beyond those in flight; set train.ahead, {clear}"
        )


def refuse_wide(context: Context[Any], widths: Mapping[str, int], instead: str) -> None:
    """Refuse an owner of more columns than may be told: what it hears of each would give labels of rows away.

    It is asked at those that tell, and before they tell anything: an owner may say of itself what it likes.
    """
    holders = context.plan.label_holders
    for owner, width in widths.items():
        if owner not in holders and width > context.widest:
            raise JobError(
                f"secure.reveal = 'owner': {owner} has {width} columns, and of {context.train.rows} rows at "
                f"most {context.widest} weights are told, one for {ROWS_A_WEIGHT} rows; {instead}"
            )


def check_hidden(job: Job, estimator: str, facts: Facts, pace: Pace) -> None:
    """Refuse what cannot be done where nobody knows a score."""
    loss = LOSSES[job.train.loss or USUAL[facts.task]]
    known = LOSSES.named(lambda each: each.shared_form is not None)
    wrong = {
        f"train.loss = {loss.name!r}: use {known}": loss.shared_form is None,
        f"train.estimator = {estimator!r}: use vfb-sgd": not ESTIMATORS[estimator].unchanged,
        "batches in flight: use vfb-sgd, which is synchronous": pace.ahead != 1,
        "train.step = 'auto': give a number": pace.step == "auto",
        "weights of rows or classes: drop them": facts.weighted or job.train.class_weight is not None,
        "secure.reveal = 'never': use 'owner'": job.secure.reveal != "owner",
    }
    for what, is_wrong in wrong.items():
        if is_wrong:
            raise JobError(f"secure.scores = 'hidden' does not go with {what}, or set secure.scores = 'open'")


def blind_notes(plan: Plan[Any]) -> list[str]:
    """Return what a blind run gives away, in words."""
    if plan.blind is None:
        return []
    told = (
        "each owner learns its own weights" if plan.blind.reveal == "owner" else "nobody learns the weights"
    )
    helpers = ", ".join(sorted(set(plan.blind.dealers.values())))
    if plan.blind.hidden is not None:
        mate, dealer = plan.blind.hidden.mate, plan.blind.hidden.dealer
        way = "the label holder sees only how good the model is in the end"
        if plan.blind.noisy is not None:
            way += ", and secure.proofs = 2 whether it is an optimum"
        return [
            f"labels are blind and scores hidden: nobody learns theta, gradients or scores in training, "
            f"unless {plan.evaluator} and {mate} collude, or one of them with {dealer}; in the end {told}, "
            f"and {plan.evaluator} the total score of every row once",
            "the logistic function is a sum of sines, within 0.002"
            if LOSSES[plan.objective.loss].shared_form == "sines"
            else "labels and scores must stay in the fixed-point range, and nobody can see whether they do",
            *([] if plan.blind.proofs else [UNPROVEN.format(way=way)]),
        ]
    unproven = not plan.blind.proofs and not plan.pace.evaluate_every
    found = [UNPROVEN.format(way="secure.proofs = 2 finds it")] if unproven else []
    return [
        f"labels are blind: nobody but {plan.evaluator} learns theta, gradients or labels, unless an owner "
        f"and the party that deals for it collude (dealers: {helpers}); in the end {told}",
        f"{plan.evaluator} learns the total score of every row in every pass, and with as many passes as "
        "there are columns how alike any two rows are; with a dealer's help it would learn columns, and "
        "those of an owner of fewer than six it may find alone (secure.scores = 'hidden' prevents that)",
        *found,
    ]


def check_rows(job: Job, rows: RowLengths) -> None:
    """Refuse rows that leave no room for steps, before they are prepared."""
    if job.secure.labels == "blind":
        lengths = Lengths.of(np.array([rows.longest, rows.mean * rows.rows]))
        check_room(rows.rows, job.train.batch or 1, lengths)


def check_size(facts: Facts) -> None:
    """Refuse columns that are too many to be veiled."""
    columns = sum(facts.columns.values()) - facts.columns[facts.label_holders[0]]
    if (size := 8 * facts.rows * columns) > LARGEST:
        raise JobError(
            f"secure.labels = 'blind': {columns:,} columns of {facts.rows:,} rows are {size / 2**30:.0f} GiB "
            "when they are veiled, as every number is, also zeros; use fewer columns, or labels = 'clear'"
        )
