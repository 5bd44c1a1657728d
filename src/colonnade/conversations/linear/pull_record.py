"""The record of the pull conversation: what it understands, chooses and gives away."""

from __future__ import annotations

import msgspec

from colonnade.conversations.conversation import Conversation
from colonnade.conversations.linear.converse import converse_pull
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
from colonnade.conversations.linear.openings import of_pull
from colonnade.conversations.linear.record import LinearShares
from colonnade.conversations.linear.settings import LinearSettings
from colonnade.conversations.pacing.delay_bound import UNBOUNDED
from colonnade.conversations.pacing.stints import pulled_bound
from colonnade.conversations.pooling import pooled_optimum
from colonnade.errors import JobError
from colonnade.job import Job
from colonnade.job.plan import Facts, Pace
from colonnade.job.presets import Preset
from colonnade.job.sections import USUAL_BATCH
from colonnade.optim.steps import own_newton_step


def check_pull(job: Job, preset: Preset) -> None:
    """Refuse what cannot be done where every party pulls for itself."""
    check_choices(job, preset)
    parties = len(job.data.party_names)
    if job.train.labels_at is not None and not 1 <= job.train.labels_at <= parties:
        raise JobError(f"train.labels_at: {job.train.labels_at} of {parties} parties; give 1 to {parties}")
    if pairs_of(job, preset) == "joint":
        raise JobError(
            "direction.pairs = 'joint': one H over all blocks needs all parties to step on the same batch, "
            f"and in {preset.name} each pulls and steps for itself, at its own pace; use 'hvp' or 'batch' "
            "here, or train.direction = 'lbfgs' with vfb2-svrg, vfb2-saga, ..."
        )


def pull_ahead(job: Job, preset: Preset, label_holders: int) -> int:
    """Return how many batches are in flight at every party that pulls: what the job says or, where messages
    take time, two.

    With one a party waits for its own scores before every update. Where they are there at once a second one
    would only make weights older, and where the job bounds delays it would take room from slow parties.
    """
    waits = job.world in ("network", "mpi") or job.network.latency_ms > 0
    pays = waits and job.train.max_delay is None and second_pays(job, preset, label_holders)
    ahead = job.train.ahead or (2 if pays else 1)
    lead_of(ahead, label_holders, job.train.max_delay)
    return ahead


def second_pays(job: Job, preset: Preset, label_holders: int) -> bool:
    """Return whether a second batch in flight, which at best doubles the updates, no more than halves H's
    step."""
    if pairs_of(job, preset) == "none":
        return True
    batch = job.train.batch or USUAL_BATCH
    one, two = (own_newton_step(batch, delay=0, blocks=label_holders, ahead=k) for k in (1, 2))
    return 2 * two >= one


def lead_of(ahead: int, label_holders: int, max_delay: int | None) -> int:
    """Return how many rounds a party may be ahead of the slowest, so that no batch is over `max_delay`
    updates late.

    >>> lead_of(1, 3, 4), lead_of(1, 3, 12), lead_of(2, 1, 1)
    (0, 2, 4611686018427387904)
    """
    others = label_holders - 1
    least = pulled_bound(ahead, label_holders, 0) or 0
    if max_delay is None:
        return UNBOUNDED
    if max_delay < least:
        raise JobError(
            f"train.max_delay: {label_holders} label holders that pull for themselves, with ahead = {ahead} "
            f"batches in flight each, are {least} updates late at the least, over max_delay = {max_delay}; "
            f"set max_delay = {least}, or use a synchronous algorithm"
        )
    return (max_delay - least) // (2 * others) if others else UNBOUNDED


def choose_pull(job: Job, preset: Preset, facts: Facts, pace: Pace) -> LinearSettings:
    """Return the settings of pull."""
    chosen = settings_of(job, preset, facts, pace)
    if pace.schedule == "sync":
        return chosen
    lead = lead_of(pace.ahead, len(facts.label_holders), job.train.max_delay)
    return msgspec.structs.replace(chosen, lead=lead)


PULL = Conversation(
    name="pull",
    converse=converse_pull,
    settings=LinearSettings,
    choose=choose_pull,
    pooled=pooled_optimum,
    share=LinearShares(),
    openings=of_pull,
    notes=lambda plan: ["every party that holds the label learns the total score of every row"],
    leaks=lambda privacy: (),
    check=check_pull,
    idle=idle,
    understands=UNDERSTANDS | {"train.labels_at", "network.charge_forward"},
    usual_batch=usual_batch,
    ahead=pull_ahead,
    fades=fades,
    intercept=lambda job: True,
    space=space,
    traits=frozenset({"quick-alone", "labels-everywhere"}),
)
