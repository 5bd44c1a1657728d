"""The records of the linear conversations: what they understand, choose and give away."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np

from colonnade.arrays import Floats
from colonnade.conversations.blind.predict import BlindScorer
from colonnade.conversations.blind.predict import together as blind_together
from colonnade.conversations.conversation import Conversation, Space, penalty
from colonnade.conversations.linear.algorithm import pull
from colonnade.conversations.linear.blind_openings import of_blind
from colonnade.conversations.linear.converse import converse_backward
from colonnade.conversations.linear.openings import of_backward, of_pull
from colonnade.conversations.linear.parties import blind as blind
from colonnade.conversations.linear.parties.blind_refusals import (
    blind_notes,
    check_blind,
    check_hidden,
    check_rows,
    check_size,
)
from colonnade.conversations.linear.settings import LinearSettings, Pairs
from colonnade.conversations.pacing.delay_bound import UNBOUNDED, each_ahead, lead_within, stale_within
from colonnade.conversations.pacing.one_order import check_delay
from colonnade.conversations.pacing.schedule import BLOCK
from colonnade.conversations.pacing.stints import pulled_bound
from colonnade.conversations.pooling import pooled_optimum
from colonnade.conversations.predict import Holding, Scorer, SummedPart
from colonnade.errors import JobError, suggest
from colonnade.job import Direction, Job
from colonnade.job.plan import Facts, Pace, Plan
from colonnade.job.presets import DirectionName, Preset
from colonnade.job.sections import USUAL_BATCH
from colonnade.losses import LOSSES, USUAL
from colonnade.models.linear import rows_of
from colonnade.openings.opening import Extent, Opening
from colonnade.optim.estimators import ESTIMATORS, Estimator
from colonnade.optim.steps import own_newton_step

UNDERSTANDS = frozenset(
    f"train.{key}" for key in ("sampling", "start", "estimator", "direction", "reshuffle", "l1", "loss")
)


class LinearShares:
    """Shares of a linear model: the weights of the party's own columns."""

    name = "linear"

    def is_sum(self, job: Job) -> bool:
        return job.secure.reveal == "owner"

    def scorer(self, holding: Holding) -> Scorer:
        if holding.plan.blind is not None and holding.plan.blind.reveal == "never":
            return BlindScorer(holding, holding.plan.blind)
        X = holding.X
        return SummedPart(rows_of(X).scores(0, int(X.shape[0]), np.asarray(holding.arrays["w"])))

    def together(self, holdings: Mapping[str, Holding]) -> Floats:
        if any("part" in held.arrays for held in holdings.values()):
            return blind_together(holdings)
        z: Floats = np.sum([held.X @ held.arrays["w"] for held in holdings.values()], axis=0)
        return z


def direction_of(job: Job, preset: Preset) -> DirectionName:
    """Return whether steps go along the gradient or along a quasi-Newton direction."""
    return job.train.direction or preset.direction


def estimator_of(job: Job, preset: Preset) -> type[Estimator]:
    """Return the kind of the job's gradient estimator; refuse one that there is not."""
    name = job.train.estimator or preset.estimator
    if name not in ESTIMATORS:
        raise JobError(f"train.estimator: there is no {name!r}; {suggest(name, ESTIMATORS)}")
    return ESTIMATORS[name]


def check_choices(job: Job, preset: Preset) -> None:
    """Refuse an estimator that there is not, ways of the papers that it has no use for, and sparse weights
    along a quasi-Newton direction."""
    kind, train = estimator_of(job, preset), job.train
    papers = {"sampling": train.sampling == "replacement", "start": train.start == "all-rows"}
    for key in (key for key, asked in papers.items() if asked):
        if job.secure.labels == "blind":
            raise JobError(
                f"train.{key} = {getattr(train, key)!r}: runs with blind labels make passes; set "
                "secure.labels = 'clear', which is what the papers do, or drop it"
            )
    if papers["start"] and not kind.has_mean():
        raise JobError("train.start = 'all-rows': plain SGD remembers nothing; drop it, or use svrg or saga")
    if papers["sampling"] and not train.reshuffle:
        raise JobError(
            "train.reshuffle = False: with sampling = 'replacement' every batch is drawn; drop one of them"
        )
    if job.train.l1 and direction_of(job, preset) == "lbfgs":
        raise JobError(
            f"train.l1 = {job.train.l1}: weights are set to zero one by one, and a quasi-Newton direction "
            "mixes them; set train.direction = 'plain'"
        )


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
    elif direction_of(job, preset) == "lbfgs" and job.direction.pairs in (None, "joint"):
        why = "one H over all blocks needs all parties to step in one order; set direction.pairs = 'hvp'"
    if why is not None:
        raise JobError(f"network.processors = {job.network.processors}: {why}, or drop it")


def check_pull(job: Job, preset: Preset) -> None:
    """Refuse what cannot be done where every party pulls for itself."""
    check_choices(job, preset)
    parties = len(job.data.party_names)
    if job.train.labels_at is not None and not 1 <= job.train.labels_at <= parties:
        raise JobError(f"train.labels_at: {job.train.labels_at} of {parties} parties; give 1 to {parties}")
    if direction_of(job, preset) == "lbfgs" and job.direction.pairs == "joint":
        raise JobError(
            "direction.pairs = 'joint': one H over all blocks needs all parties to step on the same batch, "
            f"and in {preset.name} each pulls and steps for itself, at its own pace; use 'hvp' or 'batch' "
            "here, or train.direction = 'lbfgs' with vfb2-svrg, vfb2-saga, ..."
        )


def idle(job: Job, preset: Preset) -> dict[str, str]:
    """Return keys of the direction and of the step that this kind of pairs has no use for."""
    if direction_of(job, preset) != "lbfgs":
        return {}
    pairs = job.direction.pairs or ("joint" if preset.conversation == "backward" else "hvp")
    found = {}
    if pairs == "paper" and job.train.step != "auto":
        found["train.step"] = "pairs = 'paper' steps along H and no gradient; its gamma is direction.step"
    if pairs == "paper" and job.direction.every is not None:
        found["direction.every"] = "pairs = 'paper' makes a pair with every update"
    if pairs == "joint" and job.direction.delta != Direction().delta:
        found["direction.delta"] = "pairs = 'joint' knows the steepest directions, and H needs no bound"
    return found


def idle_backward(job: Job, preset: Preset) -> dict[str, str]:
    """Return the keys that `idle` has, and those that only parties at their own pace have a use for."""
    found = idle(job, preset)
    clear, network = job.secure.labels != "blind", job.network
    joint = direction_of(job, preset) == "lbfgs" and job.direction.pairs in (None, "joint")
    if not network.join and not (clear and preset.schedule == "async" and not joint):
        found["network.join"] = "thetas are taken in one by one here in any case"
    if not network.charge_forward and not clear:
        found["network.charge_forward"] = "forwards of blind labels are always charged"
    if job.train.stale and (joint or not clear or preset.schedule == "sync"):
        found["train.stale"] = "no party scores ahead of the window here"
    return found


def usual_batch(job: Job, preset: Preset, rows: int) -> int:
    """Return the most rows of a batch, where the job does not say.

    A linear model needs many steps, so a pass over few rows has as many batches as one over many: about
    400, or 100 where steps are quasi-Newton. Noisy steps with an H of every block's own take first order's:
    what H adds there does not make up for first-order steps that are as long, and four times fewer.
    """
    pairs = job.direction.pairs or ("joint" if preset.conversation == "backward" else "hvp")
    own = pairs in ("hvp", "batch") and estimator_of(job, preset).fades
    wanted = 100 if direction_of(job, preset) == "lbfgs" and not own else 400
    return max(8, min(USUAL_BATCH, rows // wanted))


def fades(job: Job, preset: Preset) -> bool:
    """Return whether the estimator has noise that only smaller steps take out, and the job gives no size of
    them."""
    step = job.direction.step if direction_of(job, preset) == "lbfgs" else job.train.step
    return estimator_of(job, preset).fades and step == "auto"


def space(job: Job, preset: Preset) -> Space:
    """Return the penalties; where steps have noise that depends on it, the batch as well."""
    found = dict(penalty(job, preset))
    if direction_of(job, preset) == "plain":
        found["train.l1"] = [0.0, 1e-5, 1e-4, 1e-3]
    if estimator_of(job, preset).fades:
        found["train.batch"] = [16, 64, 256]
    return found


def backward_ahead(job: Job, preset: Preset, label_holders: int) -> int:
    """Return how many batches are in flight: what the job says, or one for every dominator, as in the
    paper."""
    ahead = job.train.ahead or label_holders
    if job.secure.labels == "blind":
        return check_delay(ahead, job.train.max_delay, each=1)  # one label holder launches all, in order
    if takes_turns(job, ahead, label_holders):
        return check_delay(ahead, job.train.max_delay)
    backward_lead(job, ahead, label_holders)
    return ahead


def takes_turns(job: Job, ahead: int, label_holders: int) -> bool:
    """Return whether dominators take turns: there is one, or one batch, or one H that needs one order of
    rounds."""
    joint = job.train.direction == "lbfgs" and job.direction.pairs in (None, "joint")
    return ahead == 1 or label_holders == 1 or joint


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
    if direction_of(job, preset) == "plain":
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


def pairs_apart(batch: int, ahead: int, rows: int) -> int:
    """Return rounds between two pairs: some 5,000 rows, but four pairs a pass where a set has few rows.

    A pair is under way for two times `ahead` rounds, and only one can be.

    >>> pairs_apart(256, 1, 32_561), pairs_apart(20, 2, 2_000), pairs_apart(8, 2, 40)
    (20, 25, 6)
    """
    return max(2 * ahead + 2, min(max(10, 5120 // batch), -(-rows // batch) // 4))


def _settings(job: Job, preset: Preset, facts: Facts, pace: Pace, pairs: Pairs) -> LinearSettings:
    direction = job.direction
    if job.train.sampling == "replacement" and facts.rows > BLOCK:
        raise JobError(f"train.sampling = 'replacement': {facts.rows:,} rows; it is for {BLOCK:,} at most")
    return LinearSettings(
        estimator=job.train.estimator or preset.estimator,
        pairs=(direction.pairs or pairs) if direction_of(job, preset) == "lbfgs" else "none",
        memory=direction.memory,
        pair_every=direction.every or pairs_apart(pace.batch, pace.ahead, facts.rows),
        delta=direction.delta,
        direction_step=direction.step,
        stale=job.train.stale or 0,
        reshuffle=job.train.reshuffle,
        sampling=job.train.sampling,
        start=job.train.start,
    )


def choose_backward(job: Job, preset: Preset, facts: Facts, pace: Pace) -> LinearSettings:
    """Return the settings of backward; by default a quasi-Newton direction has one H over all blocks."""
    chosen = _settings(job, preset, facts, pace, pairs="joint")
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
    if blind or pace.schedule == "sync" or takes_turns(job, pace.ahead, holders):
        return chosen
    return msgspec.structs.replace(
        chosen,
        lead=backward_lead(job, pace.ahead, holders),
        stale=backward_stale(job, pace.ahead, holders),
        stale_where_it_pays=job.train.stale is None,
    )


def choose_pull(job: Job, preset: Preset, facts: Facts, pace: Pace) -> LinearSettings:
    """Return the settings of pull; by default every block of a quasi-Newton direction has an H of its own."""
    chosen = _settings(job, preset, facts, pace, pairs="hvp")
    if pace.schedule == "sync":
        return chosen
    lead = lead_of(pace.ahead, len(facts.label_holders), job.train.max_delay)
    return msgspec.structs.replace(chosen, lead=lead)


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
    traits=frozenset({"weights-apart", "quick-alone", "blind-labels", "blind-by-itself"}),
)

PULL = Conversation(
    name="pull",
    converse=pull.converse,
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
