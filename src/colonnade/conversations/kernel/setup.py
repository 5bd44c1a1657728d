"""What the kernel conversation agrees on before it starts: features, their owners, bandwidth and step.

Feature block j belongs to the active party that dominates round j. Its directions are drawn by every
party for its own columns; its offset b is drawn by one other party, pinned for good, since a feature whose
offset changes between calls is another feature. The bandwidth is a fraction of the median distance
between sampled rows (`colonnade.models.bandwidth`), and the penalty is chosen on the same rows
(`colonnade.models.penalty`).

What each side learns: the evaluator learns the distance over all columns of every two of about a thousand
sampled rows, or of as many pairs if bandwidth (or fraction) and penalty are given; every party learns the
bandwidth and the penalty. With
`omega = "shared"` every party can draw everybody's directions, so the owner of as many features as the
others have columns solves for their columns (`colonnade.attacks.linear_system`); with private directions it
cannot.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from colonnade.arrays import Floats, Numbers, Rows
from colonnade.conversations.context import Context
from colonnade.conversations.kernel.settings import KernelSettings
from colonnade.conversations.pacing.schedule import Schedule
from colonnade.errors import DataError
from colonnade.job.plan import Plan
from colonnade.messages import Announce, Topic, tag_of
from colonnade.models.bandwidth import Sample, spread
from colonnade.models.random_features import KERNELS, KernelFunction, RandomFeatures, SeededFeatures
from colonnade.net.expect import floats, out_of_turn
from colonnade.optim.steps import kernel_step

PRIVATE, SHARED, PINNED, SAMPLE = 2, 3, 4, 5  # what generators are for
SEED_WORDS = 4  # of 32 bits


@dataclass(frozen=True)
class FeatureLayout:
    """Which features belong to which round and owner; the same at every party."""

    schedule: Schedule
    block: int  # M, the features of one step
    growth: int  # rounds that bring a new block; after them training goes on over what is there
    cached: bool

    @property
    def running(self) -> bool:
        """Whether f of every row is kept and follows the rounds: all of them only add features."""
        return self.cached and self.growth == self.schedule.rounds

    @property
    def owners(self) -> tuple[str, ...]:
        """The parties that own features: those that dominate rounds."""
        return self.schedule.dominators

    @property
    def features(self) -> int:
        """How many features there are in all."""
        return self.growth * self.block

    def width(self, owner: int, before: int | None = None) -> int:
        """Return how many features an owner has: in all, or of the rounds before a round."""
        end = self.growth if before is None else min(before, self.growth)
        return self.block * len(range(owner, end, len(self.owners)))

    def place(self, number: int) -> slice:
        """Return where the block of a round lies among its owner's features."""
        first = number // len(self.owners) * self.block
        return slice(first, first + self.block)

    def wanted(self, number: int, owner: int) -> int:
        """Return how many features, from the first on, a round's rows must be projected on for an owner.

        With a cache a row is projected once, on its first visit, on all features there will be.
        Without one every visit asks again for all features so far, as the paper's Algorithm 2 does.
        """
        if self.cached:
            return self.width(owner) if number < self.schedule.per_epoch else 0
        return self.width(owner, before=number + 1)

    def rows(self, number: int) -> Rows:
        """Return the rows of a round."""
        batch = self.schedule.round(number)
        return _order(self.schedule, batch.epoch)[batch.start : batch.end]


@lru_cache(maxsize=4)
def _order(schedule: Schedule, epoch: int) -> Rows:
    return schedule.order(epoch)


def layout_of(plan: Plan[KernelSettings], rows: int) -> FeatureLayout:
    """Return the layout that a plan asks for."""
    pace, settings = plan.pace, plan.settings
    drawn = settings.sampling == "replacement"
    schedule = Schedule(rows, pace.batch, pace.epochs, plan.seed, plan.label_holders, replaced=drawn)
    growth = min(settings.features // settings.block, schedule.rounds)
    return FeatureLayout(schedule, settings.block, growth, settings.cache)


@dataclass(frozen=True)
class Agreed:
    """A few numbers that all parties must share."""

    sigma: float
    spread: float  # a bound on the largest eigenvalue of the kernel
    classes: int  # scores per row
    l2: float

    @property
    def outputs(self) -> tuple[int, ...]:
        """The shape of one row's score."""
        return () if self.classes == 1 else (self.classes,)


async def agree(context: Context[KernelSettings]) -> Agreed:
    """Agree on bandwidth and penalty, from distances of sampled rows, and on the number of classes."""
    plan, kernel = context.plan, KERNELS[context.plan.settings.kind]
    tag, root = tag_of(Topic.TUNE, 0), context.evaluator
    rng = np.random.default_rng([plan.seed, SAMPLE])
    settings = plan.settings
    sample = Sample.draw(
        rng, context.train.rows, kernel, settings.sigma, settings.fraction, penalty=settings.chosen_l2
    )
    piece = sample.distances(context.train.X)
    if context.me != root:
        await context.sum.give(piece, root=root, tag=tag)
        told = await context.net.recv(Announce, root, tag, values=floats(4, low=0))
        sigma, eigenvalue, classes, l2 = told.values
        if not sigma > 0 or classes != max(1, plan.objective.classes):
            raise out_of_turn(
                root, told, f"no kernel has sigma = {sigma:g} and {classes:g} scores a row here"
            )
        return Agreed(float(sigma), float(eigenvalue), int(classes), float(l2))
    total = await context.sum.collect(piece, tag=tag)
    distance = np.maximum(total, 0.0)  # rounding can take a 0 below it
    classes = plan.objective.classes or 1
    y = context.label_holder.y
    found = sample.bandwidth(distance, y, classes)
    if found is None:
        raise DataError("the sampled rows are all alike, so no bandwidth fits them; set kernel.sigma")
    eigenvalue = spread(kernel, distance, found)
    l2 = plan.objective.l2
    if settings.chosen_l2:
        l2 = sample.penalty(distance, found, y, context.loss, classes)
    await context.net.broadcast(Announce(tag, np.array([found, eigenvalue, float(classes), l2])))
    return Agreed(found, eigenvalue, classes, l2)


def step_of(context: Context[KernelSettings], layout: FeatureLayout, agreed: Agreed, delay: int) -> float:
    """Return the step gamma: what the job says, or what the kernel allows."""
    step = context.plan.pace.step
    if step != "auto":
        return float(step)
    loss = context.label_holder.loss if context.holds_label else context.loss
    falling = context.plan.settings.step == "falling"
    allowed = kernel_step(loss, agreed.spread, layout.schedule.largest, layout.block, delay, falling=falling)
    return min(allowed, 1 / agreed.l2) if agreed.l2 else allowed  # beyond, weights would turn over


def draw_features(
    context: Context[KernelSettings], layout: FeatureLayout, agreed: Agreed
) -> list[RandomFeatures]:
    """Draw this party's part of every owner's features: its directions, and the offsets that fall to it."""
    own, rng = _generators(context)
    kernel = KERNELS[context.plan.settings.kind]
    omegas = draw_directions(rng, kernel, agreed.sigma, context.train.width, layout)
    drawn = []
    for owner, omega in enumerate(omegas):
        adds = _adds(context, layout, owner, omega.shape[1])
        b = np.where(adds, own.uniform(0.0, 2 * np.pi, omega.shape[1]), 0.0)
        drawn.append(RandomFeatures(omega, b))
    return drawn


def seed_features(
    context: Context[KernelSettings], layout: FeatureLayout, agreed: Agreed
) -> list[SeededFeatures]:
    """Draw the seeds of the same, where nobody keeps features; the offsets of a block fall to one party."""
    own, rng = _generators(context)
    directions, offsets = (draw_seeds(each, layout) for each in (rng, own))
    return [
        SeededFeatures(
            context.plan.settings.kind,
            agreed.sigma,
            context.train.width,
            layout.block,
            np.stack([directions[owner], offsets[owner]]),
            _adds(context, layout, owner, layout.width(owner) // layout.block),
        )
        for owner in range(len(layout.owners))
    ]


def draw_seeds(rng: np.random.Generator, layout: FeatureLayout) -> Numbers:
    """Draw the seeds of every owner's features."""
    return rng.integers(0, 2**32, (len(layout.owners), SEED_WORDS))


def _generators(context: Context[KernelSettings]) -> tuple[np.random.Generator, np.random.Generator]:
    """Return the generator of what only this party knows, and that of its directions."""
    own, me = _private(context), context.net.parties.index(context.me)
    shared = context.plan.settings.omega == "shared"
    return own, shared_directions(context.plan.seed, me) if shared else own


def _adds(context: Context[KernelSettings], layout: FeatureLayout, owner: int, count: int) -> Numbers:
    """Return for each of this many offsets of an owner's features whether they are this party's to add.

    Everybody knows who adds which offset; nobody but that party knows the offset.
    """
    parties = context.net.parties
    me = parties.index(context.me)
    others = [at for at, party in enumerate(parties) if party != layout.owners[owner]] or [me]
    pinned = np.random.default_rng([context.plan.seed, PINNED, owner]).choice(others, size=count)
    return np.asarray(pinned == me)


def draw_directions(
    rng: np.random.Generator, kernel: KernelFunction, sigma: float, width: int, layout: FeatureLayout
) -> list[Floats]:
    """Draw a party's directions of every owner's features, for its `width` columns."""
    counts = [layout.width(owner) for owner in range(len(layout.owners))]
    return [kernel.directions(rng, (width, count)) / sigma for count in counts]


def shared_directions(seed: int, party: int) -> np.random.Generator:
    """Return the generator of a party's shared directions; anybody who knows the job can make it."""
    return np.random.default_rng([seed, SHARED, party])


def _private(context: Context[KernelSettings]) -> np.random.Generator:
    """Return the generator of what only this party knows."""
    if context.plan.world == "network":
        return np.random.default_rng(secrets.randbits(128))
    # in one process nothing is secret, and a run can be repeated
    return context.rng(PRIVATE)
