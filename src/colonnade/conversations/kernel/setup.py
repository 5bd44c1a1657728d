"""What the kernel conversation agrees on before it starts: features, their owners, bandwidth and step.

Feature block j belongs to the active party that dominates round j. Its directions are drawn by every
party for its own columns; its offset b is drawn by one other party, pinned for good, since a feature whose
offset changes between calls is another feature. The bandwidth is a fraction of the median distance
between sampled rows (`colonnade.models.bandwidth`).

What each side learns: the evaluator learns the distance over all columns of every two of about a thousand
sampled rows, or of as many pairs if the fraction is given; every party learns the bandwidth. With
`omega = "shared"` every party can draw everybody's directions, so the owner of as many features as the
others have columns solves for their columns (`colonnade.attacks.linear_system`); with private directions it
cannot.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from colonnade.arrays import Floats, Rows
from colonnade.conversations.context import Context
from colonnade.conversations.schedule import Schedule
from colonnade.errors import DataError, JobError
from colonnade.job import Job
from colonnade.job.rules import batch_of
from colonnade.messages import Announce, Topic, tag_of
from colonnade.models.bandwidth import Sample, spread
from colonnade.models.random_features import KERNELS, KernelFunction, RandomFeatures
from colonnade.optim.steps import kernel_step

FEATURES = 8192
# numbers that an automatic cap lets all active parties together keep: three quarters of a gibibyte
CACHED_VALUES = 10**8
CACHE_LIMIT = 2**31
PRIVATE, SHARED, PINNED, SAMPLE = 2, 3, 4, 5


@dataclass(frozen=True)
class Plan:
    """Which features belong to which round and owner; the same at every party."""

    schedule: Schedule
    block: int  # M, the features of one step
    growth: int  # rounds that bring a new block; after them training goes on over what is there
    cached: bool

    @property
    def owners(self) -> tuple[str, ...]:
        return self.schedule.dominators

    @property
    def features(self) -> int:
        return self.growth * self.block

    def width(self, owner: int, before: int | None = None) -> int:
        """How many features an owner has, in all or of the rounds before one."""
        end = self.growth if before is None else min(before, self.growth)
        return self.block * len(range(owner, end, len(self.owners)))

    def place(self, number: int) -> slice:
        """Where the block of a round lies among its owner's features."""
        first = number // len(self.owners) * self.block
        return slice(first, first + self.block)

    def wanted(self, number: int, owner: int) -> int:
        """Of how many features, from the first on, the owner lacks the projections of a round's rows.

        With a cache a row is projected once, on its first visit, on all features there will be.
        Without one every visit asks again for all features so far, as the paper's Algorithm 2 does.
        """
        if self.cached:
            return self.width(owner) if number < self.schedule.per_epoch else 0
        return self.width(owner, before=number + 1)

    def rows(self, number: int) -> Rows:
        batch = self.schedule.round(number)
        return _order(self.schedule, batch.epoch)[batch.start : batch.end]


@lru_cache(maxsize=4)
def _order(schedule: Schedule, epoch: int) -> Rows:
    return schedule.order(epoch)


def plan_of(job: Job, rows: int, active: tuple[str, ...]) -> Plan:
    train, kernel = job.train, job.kernel
    schedule = Schedule(rows, batch_of(job, rows), train.epochs, job.seed, active)
    affordable = min(FEATURES, max(1, CACHED_VALUES // rows))
    cap = affordable if kernel.features == "auto" else kernel.features
    block = min(kernel.block, cap)
    growth = min(cap // block, schedule.rounds)
    plan = Plan(schedule, block, growth, kernel.cache)
    if plan.cached and rows * plan.features > CACHE_LIMIT:
        raise JobError(
            f"kernel.features: {plan.features} projections of {rows} rows need "
            f"{rows * plan.features * 8 / 2**30:.0f} GiB at the active parties; "
            f"set features = {CACHE_LIMIT // rows} or less, or cache = false"
        )
    return plan


@dataclass(frozen=True)
class Terms:
    """A few numbers that every party must use alike."""

    sigma: float
    spread: float  # a bound on the largest eigenvalue of the kernel
    classes: int  # scores per row

    @property
    def outputs(self) -> tuple[int, ...]:
        """The shape of one row's score."""
        return () if self.classes == 1 else (self.classes,)


async def agree_terms(context: Context) -> Terms:
    """The bandwidth from distances of sampled rows, unless it is given, and how many classes there are."""
    job, kernel = context.job.kernel, KERNELS[context.job.kernel.kind]
    tag = tag_of(Topic.TUNE, 0)
    rng = np.random.default_rng([context.job.seed, SAMPLE])
    sample = Sample.draw(rng, context.train.rows, kernel, job.sigma, job.fraction)
    total = await context.sum.sum(sample.distances(context.train.X), root=context.evaluator, tag=tag)
    if total is None:
        sigma, eigenvalue, classes = (await context.net.recv(Announce, context.evaluator, tag)).values
        return Terms(float(sigma), float(eigenvalue), int(classes))
    assert context.y is not None  # noqa: S101  the evaluator holds the label
    distance = np.maximum(total, 0.0)  # rounding can take a 0 below it
    # as many classes as the job says: private labels may lack one
    counted = context.job.train.classes or int(context.y.max()) + 1
    classes = counted if context.loss.task == "multiclass" else 1
    found = sample.bandwidth(distance, context.y, classes)
    if found is None:
        raise DataError("the sampled rows are all alike, so no bandwidth fits them; set kernel.sigma")
    eigenvalue = spread(kernel, distance, found)
    await context.net.broadcast(Announce(tag, np.array([found, eigenvalue, float(classes)])))
    return Terms(found, eigenvalue, classes)


def step_of(context: Context, plan: Plan, terms: Terms, delay: int) -> float:
    """gamma: what the job says, or what the kernel allows."""
    train = context.job.train
    if train.step != "auto":
        return float(train.step)
    return kernel_step(context.loss, terms.spread, plan.schedule.largest, plan.block, delay)


def draw_features(context: Context, plan: Plan, terms: Terms) -> list[RandomFeatures]:
    """This party's directions of every owner's features, and the offsets that fell to this party."""
    job, parties = context.job, context.net.parties
    me = parties.index(context.me)
    own = _private(context)
    rng = shared_directions(job.seed, me) if job.kernel.omega == "shared" else own
    omegas = draw_directions(rng, KERNELS[job.kernel.kind], terms.sigma, context.train.width, plan)
    drawn = []
    for index, (owner, omega) in enumerate(zip(plan.owners, omegas, strict=True)):
        others = [at for at, party in enumerate(parties) if party != owner] or [me]
        # everybody knows who adds which offset; nobody but that party knows the offset
        pinned = np.random.default_rng([job.seed, PINNED, index]).choice(others, size=omega.shape[1])
        b = np.where(pinned == me, own.uniform(0.0, 2 * np.pi, omega.shape[1]), 0.0)
        drawn.append(RandomFeatures(omega, b))
    return drawn


def draw_directions(
    rng: np.random.Generator, kernel: KernelFunction, sigma: float, width: int, plan: Plan
) -> list[Floats]:
    """A party's directions of every owner's features, for its `width` columns."""
    counts = [plan.width(owner) for owner in range(len(plan.owners))]
    return [kernel.directions(rng, (width, count)) / sigma for count in counts]


def shared_directions(seed: int, party: int) -> np.random.Generator:
    """The generator of a party's directions that anybody who knows the job can make."""
    return np.random.default_rng([seed, SHARED, party])


def _private(context: Context) -> np.random.Generator:
    if context.job.world == "network":
        return np.random.default_rng(secrets.randbits(128))
    # in one process nothing is secret, and a run can be repeated
    return context.rng(PRIVATE)
