"""The records of the kernel conversations: what they understand, choose, give away and are compared with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from colonnade.arrays import Floats, Matrix
from colonnade.conversations.conversation import Conversation, Rehearsal, Space
from colonnade.conversations.kernel import gram, kernel
from colonnade.conversations.kernel.gram import GramSettings
from colonnade.conversations.kernel.openings import of_gram, of_kernel
from colonnade.conversations.kernel.predict import KernelShares
from colonnade.conversations.kernel.settings import KernelSettings
from colonnade.conversations.kernel.setup import layout_of
from colonnade.conversations.pacing.one_order import check_delay
from colonnade.conversations.pacing.schedule import check_drawn
from colonnade.conversations.pooling import AllColumns, Pooled
from colonnade.errors import JobError
from colonnade.job import Job, Kernel, LossName, PrivacyTerms, Train
from colonnade.job.plan import Facts, Pace, Plan, Task
from colonnade.job.presets import Preset
from colonnade.job.sections import USUAL_BATCH
from colonnade.losses import LOSSES, USUAL, SmoothHinge, mean_loss
from colonnade.models.bandwidth import ROWS
from colonnade.openings.leaks import Leak

if TYPE_CHECKING:  # it needs the rest of a pooled fit, which a party does not
    from colonnade.baselines.dsg import DsgFit

# smooth_hinge: at the same lambda a kernel machine needs a loss that ignores rows right by a margin
KERNEL_LOSSES: Mapping[Task, LossName] = {
    **USUAL,
    "binary": SmoothHinge.name,
}
FEATURES, BLOCK, MOMENTUM = 8192, 256, 0.9  # of a machine with a cap, where the job does not say
# where the job leaves it open, no more projections are kept than this: three quarters of a gibibyte
CACHED_VALUES = 10**8
CACHE_LIMIT = 2**31
# where the job does not say and there is no cap: the rounds of a pass, the new features of a round, and the
# most projections of a round, of which some are under way at a time
ROUNDS, WIDEST, ROUND_VALUES = 40, 64, 2**24
FEWEST = 16  # rows of a batch


def check(job: Job, preset: Preset) -> None:
    """Refuse what kernel machines cannot do."""
    if job.data.intercept:
        raise JobError(f"data.intercept: {preset.name} is a kernel machine, which has no intercept; drop it")
    if job.train.regularizer != "l2":
        raise JobError(f"train.regularizer: {preset.name} has the norm of its kernel's space; use l2")


def check_kernel(job: Job, preset: Preset) -> None:
    """Refuse also what would make another algorithm of the paper's."""
    check(job, preset)
    if preset.capped:
        if job.train.sampling != "passes":
            raise JobError(
                f"train.sampling = {job.train.sampling!r}: {preset.name} keeps what it has of a row from its "
                "first visit on, in passes; drop it or use fdskl"
            )
        return
    for key, given in (
        ("features", job.kernel.features != "auto"),
        ("momentum", job.kernel.momentum is not None),
        ("step", job.kernel.step == "falling"),
    ):
        if given:
            raise JobError(
                f"kernel.{key}: {preset.name} is the paper's algorithm: new features in every round, "
                "a constant step, no cap and no momentum; drop the key or use fdskl-capped"
            )


def usual_batch(job: Job, preset: Preset, rows: int) -> int:
    """Return the batch where the job names none; without a cap every round costs a projection of all rows."""
    return USUAL_BATCH if preset.capped else max(FEWEST, -(-rows // ROUNDS))


def kernel_ahead(job: Job, preset: Preset, label_holders: int) -> int:
    """Return how many batches are in flight: what the job says, or one; projections are sent ahead in any
    case. The paper's active parties run side by side, each with a step of its own under way."""
    usual = label_holders if preset.literal else 1
    return check_delay(job.train.ahead or usual, job.train.max_delay)


def choose(job: Job, preset: Preset, facts: Facts, pace: Pace) -> KernelSettings:
    """Return the settings of a kernel machine; refuses features whose projections would not fit into
    memory."""
    asked, rows = job.kernel, facts.rows
    check_drawn(job.train.sampling, rows)
    rounds = -(-rows // pace.batch) * pace.epochs
    features, block = _capped(asked, rows) if preset.capped else _growing(asked, rows, rounds)
    if asked.cache:
        _check_memory(rows, features // block, block, rounds)
    return KernelSettings(
        kind=asked.kind,
        sigma=asked.sigma,
        fraction=asked.fraction,
        features=features,
        block=block,
        step=_step(asked, preset),
        momentum=MOMENTUM if asked.momentum is None else asked.momentum,
        omega=asked.omega,
        bits=asked.bits,
        cache=asked.cache,
        chosen_l2=job.train.l2 == "auto",
        sampling=job.train.sampling,
    )


def _step(asked: Kernel, preset: Preset) -> Literal["falling", "constant"]:
    """Return how steps go: as the job says, else constant as in the paper, or falling where there is a
    cap."""
    return asked.step or ("falling" if preset.capped else "constant")


def _capped(asked: Kernel, rows: int) -> tuple[int, int]:
    """Return how many features there are in all, and how many a round adds until then."""
    affordable = min(FEATURES, max(1, CACHED_VALUES // rows))
    features = affordable if asked.features == "auto" else asked.features
    return features, min(BLOCK if asked.block == "auto" else asked.block, features)


def _growing(asked: Kernel, rows: int, rounds: int) -> tuple[int, int]:
    """Return the same where every round adds some."""
    block = min(WIDEST, max(1, ROUND_VALUES // rows)) if asked.block == "auto" else asked.block
    return rounds * block, block


def _check_memory(rows: int, blocks: int, block: int, rounds: int) -> None:
    """Refuse more projections than an owner can hold: of all features, or of a round where all rounds add
    some."""
    kept = block if blocks >= rounds else block * blocks
    if rows * kept <= CACHE_LIMIT:
        return
    remedy = f"block = {CACHE_LIMIT // rows}" if blocks >= rounds else f"features = {CACHE_LIMIT // rows}"
    raise JobError(
        f"kernel: {kept} projections of {rows} rows need {rows * kept * 8 / 2**30:.0f} GiB at the active "
        f"parties; set {remedy} or less, or cache = false"
    )


def choose_gram(job: Job, preset: Preset, facts: Facts, pace: Pace) -> GramSettings:
    """Return the settings of pp-svmv; refused where there are not two classes to tell apart."""
    if facts.task != "binary":
        label = "a number" if facts.task == "regression" else f"one of {facts.classes} classes"
        raise JobError(
            f"algorithm: {preset.name} tells two classes apart, and this label is {label}; use fdskl"
        )
    return GramSettings(
        sigma=job.kernel.sigma, fraction=job.kernel.fraction, chosen_l2=job.train.l2 == "auto"
    )


def pooled(plan: Plan[KernelSettings], columns: AllColumns) -> Pooled:
    """Train by doubly stochastic gradients on pooled data, with as many features in the same blocks."""
    loss, (X, y) = LOSSES[plan.objective.loss], columns.pooled()
    fit = pooled_fit(plan, X, y)
    train_loss = mean_loss(loss, fit.scores(X), y) + fit.penalty
    return columns.measured(loss, fit.scores, train_loss, fit.penalty)


def pooled_fit(plan: Plan[KernelSettings], X: Matrix, y: Floats) -> DsgFit:
    """Return the same machine trained where all columns lie together."""
    from colonnade.baselines.dsg import DsgKernel, fit_dsg

    pace, settings = plan.pace, plan.settings
    train = Train(
        batch=pace.batch,
        step=pace.step,
        epochs=pace.epochs,
        l2="auto" if settings.chosen_l2 else plan.objective.l2,
        classes=plan.objective.classes or None,
    )
    kernel_section = DsgKernel(
        kind=settings.kind,
        sigma=settings.sigma,
        fraction=settings.fraction,
        block=settings.block,
        step=settings.step,
        momentum=settings.momentum,
    )
    features = layout_of(plan, len(y)).features
    loss = LOSSES[plan.objective.loss]
    return fit_dsg(X, y, loss, kernel_section, train, features=features, seed=plan.seed)


def pooled_svc(plan: Plan[GramSettings], columns: AllColumns) -> Pooled:
    """Train scikit-learn's SVC on pooled data."""
    from colonnade.baselines.svc import bandwidth_and_penalty, fit_svc, trade_off

    loss, (X, y) = LOSSES[plan.objective.loss], columns.pooled()
    gram.check_memory(len(y))
    settings = plan.settings
    sigma, l2 = bandwidth_and_penalty(
        X,
        y,
        loss,
        sigma=settings.sigma,
        fraction=settings.fraction,
        l2="auto" if settings.chosen_l2 else plan.objective.l2,
        seed=plan.seed,
    )
    fit = fit_svc(X, y, sigma=sigma, C=trade_off(len(y), l2))
    train_loss = mean_loss(loss, fit.decision_function(X), y)
    return columns.measured(loss, fit.decision_function, train_loss, 0.0)


def space(job: Job, preset: Preset) -> Space:
    """Return the penalty, and how wide the kernel is."""
    width = "kernel.fraction" if job.kernel.sigma == "median" else "kernel.sigma"
    least = 0.1 if job.kernel.sigma == "median" else job.kernel.sigma / 10
    return {
        "train.l2": {"low": 1e-7, "high": 1e-2, "log": True},
        width: {"low": least, "high": 30 * least, "log": True},
    }


def notes(plan: Plan[KernelSettings]) -> list[str]:
    """Return what a kernel run gives away, in words."""
    found = ["the active parties learn how alike two rows are, from projections on their random features"]
    settings = plan.settings
    if settings.chosen_l2 or (settings.sigma == "median" and settings.fraction == "auto"):
        found.append(
            f"{plan.evaluator} learns the distances of {ROWS} sampled rows from each other, which choose "
            "bandwidth and penalty; numbers for kernel.fraction and train.l2 spare them"
        )
    if plan.settings.omega == "shared":
        found.append(
            "omega = 'shared': everybody can draw all directions, so an active party with as many features "
            "as the others have columns can solve for their columns"
        )
    return found


def leaks(privacy: PrivacyTerms) -> tuple[Leak, ...]:
    """Return what a kernel run gives away, as parties' policies name it."""
    return ("similarity",)


KERNEL = Conversation(
    name="kernel",
    converse=kernel.converse,
    settings=KernelSettings,
    choose=choose,
    pooled=pooled,
    share=KernelShares(),
    openings=of_kernel,
    notes=notes,
    leaks=leaks,
    losses=KERNEL_LOSSES,
    check=check_kernel,
    understands=frozenset({"kernel.keys", "network.broadcast", "train.sampling"}),
    space=space,
    usual_batch=usual_batch,
    ahead=kernel_ahead,
    fades=lambda job, preset: _step(job.kernel, preset) == "falling",
    rehearsal=Rehearsal(rows=2000, passes=2),
    traits=frozenset({"counts-classes"}),
)

GRAM = Conversation(
    name="gram",
    converse=gram.converse,
    settings=GramSettings,
    choose=choose_gram,
    pooled=pooled_svc,
    share=KernelShares(),
    openings=of_gram,
    notes=lambda plan: ["one active party learns how alike every two rows are"],
    leaks=leaks,
    losses=KERNEL_LOSSES,
    check=check,
    understands=frozenset({"kernel.keys"}),
    space=space,
    traits=frozenset({"counts-classes", "no-share"}),
)
