"""The record of the backward conversation, and shares of linear models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np

from colonnade.arrays import Floats
from colonnade.conversations.blind.predict import BlindScorer
from colonnade.conversations.blind.predict import together as blind_together
from colonnade.conversations.conversation import Conversation
from colonnade.conversations.linear.blind_openings import of_blind
from colonnade.conversations.linear.converse import converse_backward
from colonnade.conversations.linear.job_choices import (
    UNDERSTANDS,
    check_choices,
    fades,
    idle,
    pairs_of,
    settings_of,
    space,
    usual_batch,
)
from colonnade.conversations.linear.openings import of_backward
from colonnade.conversations.linear.parties.blind_refusals import (
    blind_notes,
    check_blind,
    check_hidden,
    check_rows,
    check_size,
)
from colonnade.conversations.linear.settings import LinearSettings, Pairs
from colonnade.conversations.pacing.delay_bound import each_ahead, lead_within, stale_within
from colonnade.conversations.pacing.one_order import check_delay
from colonnade.conversations.pooling import pooled_optimum
from colonnade.conversations.predict import Holding, Scorer, SummedPart
from colonnade.errors import JobError
from colonnade.job import Job
from colonnade.job.plan import Facts, Pace, Plan
from colonnade.job.presets import Preset
from colonnade.losses import LOSSES, USUAL
from colonnade.models.linear import rows_of
from colonnade.openings.opening import Extent, Opening


class LinearShares:
    """Shares of a linear model: the weights of the party's own columns."""

    name = "linear"

    def is_sum(self, job: Job) -> bool:
        return job.secure.reveal == "owner"

    def scorer(self, holding: Holding) -> Scorer:
        blind = holding.plan.blind
        if blind is not None and blind.reveal == "never":
            if blind.encrypted is None:
                return BlindScorer(holding, blind)
            from colonnade.conversations.linear.parted import parted_scores

            return parted_scores.scorer(holding)
        X = holding.X
        return SummedPart(rows_of(X).scores(0, int(X.shape[0]), np.asarray(holding.arrays["w"])))

    def together(self, holdings: Mapping[str, Holding]) -> Floats:
        if any("part" in held.arrays for held in holdings.values()):
            return blind_together(holdings)
        if any("own" in held.arrays for held in holdings.values()):
            from colonnade.conversations.linear.parted import parted_scores

            return parted_scores.together(holdings)
        z: Floats = np.sum([held.X @ held.arrays["w"] for held in holdings.values()], axis=0)
        return z


def check_backward(job: Job, preset: Preset) -> None:
    """Refuse choices that do not go together, or that cannot be made without telling theta."""
    check_choices(job, preset)
    if job.network.processors > 1:
        check_processors(job, preset)
    if job.secure.labels == "blind":
        check_blind(job, preset)


def check_processors(job: Job, preset: Preset) -> None:
    """Refuse several processors of a party where every party steps on rounds in one order."""
    why = None
    if preset.schedule == "sync":
        why = f"{preset.name} is synchronous, one round at a time"
    elif job.secure.labels == "blind":
        why = "with blind labels all parties step in one order; set secure.labels = 'clear'"
    elif pairs_of(job, preset) == "joint":
        why = "one H over all blocks needs all parties to step in one order; set direction.pairs = 'hvp'"
    if why is not None:
        raise JobError(f"network.processors = {job.network.processors}: {why}, or drop it")


def idle_backward(job: Job, preset: Preset) -> dict[str, str]:
    """Return the keys that `idle` has, and those that only parties at their own pace have a use for."""
    found = idle(job, preset)
    clear, network = job.secure.labels != "blind", job.network
    joint = pairs_of(job, preset) == "joint"
    if not network.join and not (clear and preset.schedule == "async" and not joint):
        found["network.join"] = "thetas are taken in one by one here in any case"
    if not network.charge_forward and not clear:
        found["network.charge_forward"] = "forwards of blind labels are always charged"
    if job.train.stale and (joint or not clear or preset.schedule == "sync"):
        found["train.stale"] = "no party scores ahead of the window here"
    return found


def backward_ahead(job: Job, preset: Preset, label_holders: int) -> int:
    """Return how many batches are in flight: what the job says, or one for every dominator, as in the
    paper."""
    ahead = job.train.ahead or label_holders
    if job.secure.labels == "blind":
        return check_delay(ahead, job.train.max_delay, each=1)  # one label holder launches all, in order
    if takes_turns(pairs_of(job, preset), ahead, label_holders):
        return check_delay(ahead, job.train.max_delay)
    backward_lead(job, ahead, label_holders)
    return ahead


def takes_turns(pairs: Pairs, ahead: int, label_holders: int) -> bool:
    """Return whether dominators take turns: there is one, or one batch, or one H that needs one order of
    rounds."""
    return ahead == 1 or label_holders == 1 or pairs == "joint"


def backward_lead(job: Job, ahead: int, label_holders: int) -> int:
    """Return how many rounds a dominator may launch between two of another, so that `max_delay` is kept."""
    own = each_ahead(ahead, label_holders)
    return lead_within(label_holders, own, backward_stale(job, ahead, label_holders), job.train.max_delay)


def backward_stale(job: Job, ahead: int, label_holders: int) -> int:
    """Return how many rounds beyond its window a dominator may get: what the job says, or all that it
    uses."""
    if job.train.stale is not None or not job.network.join:
        return job.train.stale or 0
    return stale_within(label_holders, each_ahead(ahead, label_holders), job.train.max_delay)


def choose_backward(job: Job, preset: Preset, facts: Facts, pace: Pace) -> LinearSettings:
    """Return the settings of backward."""
    chosen = settings_of(job, preset, facts, pace)
    blind = job.secure.labels == "blind"
    if blind:
        check_size(facts)
    if job.secure.scores == "hidden":
        check_hidden(job, chosen.estimator, facts, pace)
    loss = LOSSES[job.train.loss or USUAL[facts.task]]
    if chosen.pairs == "hvp" and (facts.weighted or not loss.curved_by_theta):
        raise JobError(
            "direction.pairs = 'hvp': a party without the label cannot tell the curvature from theta where "
            f"rows have weights or the loss is {LOSSES.named(lambda loss: not loss.curved_by_theta)}; "
            "use 'joint' or 'batch'"
        )
    holders = len(facts.label_holders)
    if blind or pace.schedule == "sync" or takes_turns(chosen.pairs, pace.ahead, holders):
        return chosen
    return msgspec.structs.replace(
        chosen,
        lead=backward_lead(job, pace.ahead, holders),
        stale=backward_stale(job, pace.ahead, holders),
        stale_where_it_pays=job.train.stale is None,
    )


def backward_openings(plan: Plan[LinearSettings], extent: Extent) -> list[Opening]:
    """Return what a run of the backward conversation opens."""
    return of_backward(plan, extent) if plan.blind is None else of_blind(plan, plan.blind, extent)


def backward_notes(plan: Plan[LinearSettings]) -> list[str]:
    """Return what a run of the backward conversation gives away."""
    return theta_notes(plan) if plan.blind is None else blind_notes(plan)


def theta_notes(plan: Plan[Any]) -> list[str]:
    """Return what theta in clear gives away, of the labels as they are trained on."""
    told = LOSSES[plan.objective.loss].theta_tells
    if plan.privacy.mechanism == "labels":
        return [f"theta is sent to every party and tells of randomised labels, not of true ones: {told}"]
    return [f"theta is sent to every party: {told}"]


BACKWARD = Conversation(
    name="backward",
    converse=converse_backward,
    settings=LinearSettings,
    choose=choose_backward,
    pooled=pooled_optimum,
    share=LinearShares(),
    openings=backward_openings,
    notes=backward_notes,
    leaks=lambda privacy: ("labels",) if privacy.mechanism == "none" else (),
    check=check_backward,
    fits=check_rows,
    idle=idle_backward,
    understands=UNDERSTANDS
    | {
        "train.stale",
        "train.evaluate_every",
        "network.broadcast",
        "network.join",
        "network.charge_forward",
        "network.processors",
    },
    usual_batch=usual_batch,
    ahead=backward_ahead,
    fades=fades,
    intercept=lambda job: True,
    space=space,
    traits=frozenset({"weights-apart", "waits-a-round", "quick-alone", "blind-labels", "blind-by-itself"}),
)
