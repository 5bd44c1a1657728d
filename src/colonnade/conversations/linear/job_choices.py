"""What a job chooses of a linear model: estimator, direction and batches, and how these go together."""

from __future__ import annotations

from colonnade.conversations.conversation import Space, penalty
from colonnade.conversations.linear.parties import blind as blind
from colonnade.conversations.linear.settings import LinearSettings, Pairs
from colonnade.conversations.pacing.schedule import check_drawn
from colonnade.errors import JobError, suggest
from colonnade.job import Direction, Job
from colonnade.job.plan import Facts, Pace
from colonnade.job.presets import DirectionName, Preset
from colonnade.job.sections import USUAL_BATCH
from colonnade.optim.estimators import ESTIMATORS, Estimator

UNDERSTANDS = frozenset(
    f"train.{key}" for key in ("sampling", "start", "estimator", "direction", "reshuffle", "l1", "loss")
)


def direction_of(job: Job, preset: Preset) -> DirectionName:
    """Return whether steps go along the gradient or along a quasi-Newton direction."""
    return job.train.direction or preset.direction


def pairs_of(job: Job, preset: Preset) -> Pairs:
    """Return where a quasi-Newton direction has its pairs from: where all parties step on the same batch, one
    H over all blocks unless the job says otherwise, else one for every block."""
    if direction_of(job, preset) != "lbfgs":
        return "none"
    return job.direction.pairs or ("joint" if preset.conversation == "backward" else "hvp")


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


def idle(job: Job, preset: Preset) -> dict[str, str]:
    """Return keys of the direction and of the step that this kind of pairs has no use for."""
    pairs, found = pairs_of(job, preset), {}
    if pairs == "paper" and job.train.step != "auto":
        found["train.step"] = "pairs = 'paper' steps along H and no gradient; its gamma is direction.step"
    if pairs == "paper" and job.direction.every is not None:
        found["direction.every"] = "pairs = 'paper' makes a pair with every update"
    if pairs == "joint" and job.direction.delta != Direction().delta:
        found["direction.delta"] = "pairs = 'joint' knows the steepest directions, and H needs no bound"
    return found


def usual_batch(job: Job, preset: Preset, rows: int) -> int:
    """Return the most rows of a batch, where the job does not say.

    A linear model needs many steps, so a pass over few rows has as many batches as one over many: about
    400, or 100 where steps are quasi-Newton. Noisy steps with an H of every block's own take first order's:
    what H adds there does not make up for first-order steps that are as long, and four times fewer.
    """
    pairs = pairs_of(job, preset)
    first_order = pairs == "none" or (pairs in ("hvp", "batch") and estimator_of(job, preset).fades)
    wanted = 400 if first_order else 100
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


def pairs_apart(batch: int, ahead: int, rows: int) -> int:
    """Return rounds between two pairs: some 5,000 rows, but four pairs a pass where a set has few rows.

    A pair is under way for two times `ahead` rounds, and only one can be.

    >>> pairs_apart(256, 1, 32_561), pairs_apart(20, 2, 2_000), pairs_apart(8, 2, 40)
    (20, 25, 6)
    """
    return max(2 * ahead + 2, min(max(10, 5120 // batch), -(-rows // batch) // 4))


def settings_of(job: Job, preset: Preset, facts: Facts, pace: Pace) -> LinearSettings:
    """Return the settings that linear conversations have alike."""
    direction = job.direction
    check_drawn(job.train.sampling, facts.rows)
    return LinearSettings(
        estimator=job.train.estimator or preset.estimator,
        pairs=pairs_of(job, preset),
        memory=direction.memory,
        pair_every=direction.every or pairs_apart(pace.batch, pace.ahead, facts.rows),
        delta=direction.delta,
        direction_step=direction.step,
        stale=job.train.stale or 0,
        reshuffle=job.train.reshuffle,
        sampling=job.train.sampling,
        start=job.train.start,
    )
