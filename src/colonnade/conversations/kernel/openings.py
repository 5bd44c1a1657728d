"""What training a kernel machine opens: projections to owners of features, scores, and what tunes it."""

from __future__ import annotations

from collections import Counter

import numpy as np

from colonnade.conversations.evaluate import Marks
from colonnade.conversations.kernel.features import STRETCH
from colonnade.conversations.kernel.gram import GramSettings
from colonnade.conversations.kernel.predict import BITS, CHUNK, FEW
from colonnade.conversations.kernel.settings import KernelSettings
from colonnade.conversations.kernel.setup import SAMPLE, FeatureLayout, layout_of
from colonnade.conversations.linear.openings import BESIDE, MARKS, scored
from colonnade.job.plan import Plan
from colonnade.messages import Announce, Backward, Topic
from colonnade.models.bandwidth import Sample
from colonnade.models.random_features import KERNELS
from colonnade.openings.declaration import Declaration
from colonnade.openings.opening import Extent, Opening

AGREED = 4  # numbers that all are told: bandwidth, spread, classes, penalty


def of_kernel(plan: Plan[KernelSettings], extent: Extent) -> list[Opening]:
    """Return what a run of the kernel conversation opens."""
    found = Declaration(plan, extent)
    settings, root, k = plan.settings, plan.evaluator, found.scores
    layout = layout_of(plan, extent.rows)
    schedule, owners = layout.schedule, layout.owners
    found.gates()
    sample = Sample.draw(
        np.random.default_rng([plan.seed, SAMPLE]),
        extent.rows,
        KERNELS[settings.kind],
        settings.sigma,
        settings.fraction,
        penalty=settings.chosen_l2,
    )
    pairs = len(sample.pairs[0])
    found.total("distances", pairs, root, Topic.TUNE, "at the start", rows=min(pairs, extent.rows))
    found.told("model", AGREED, root, Announce, Topic.TUNE, "at the start", about="columns", of=plan.parties)
    words = _projected(layout, settings.bits)
    for place, owner in enumerate(owners):
        found.total("projections", words[place], owner, Topic.TRAIN, "at the first visit of a row")
    if len(owners) > 1:
        led: Counter[str] = Counter()
        thetas: Counter[str] = Counter()
        for number in range(schedule.rounds):
            size, dominator = schedule.round(number).size, schedule.dominator(number)
            led[dominator] += size * k
            thetas[dominator] += size * k * (number >= layout.growth)
        for owner in owners:
            found.total("scores", led[owner], owner, Topic.TRAIN, "in every batch")
            passing = plan.parties if plan.network.broadcast == "tree" else (owner,)
            for by in {owner, *passing}:
                found.told(
                    "thetas",
                    thetas[owner],
                    by,
                    Backward,
                    Topic.TRAIN,
                    "in every batch",
                    about="labels",
                    to=owners,
                    of=(owner,),
                )
    times = -(-schedule.rounds // Marks.of(plan.pace.evaluate_every, schedule).every)
    scored(found, times * extent.rows + extent.test, MARKS, times, BESIDE)
    seen = extent.test + (0 if layout.cached else times * extent.rows)
    if seen:
        for place, owner in enumerate(owners):
            unseen = _unseen(layout, place, extent.test)
            if not layout.cached:
                unseen += times * _unseen(layout, place, extent.rows)
            found.total("projections", unseen, owner, Topic.EVALUATE, MARKS)
    return found.openings


def _projected(layout: FeatureLayout, bits: int) -> list[int]:
    """Return how many words of projections every owner gets in training."""
    schedule, found = layout.schedule, [0] * len(layout.owners)
    if layout.running:
        size = max(1, STRETCH // layout.block)
        whole, rest = divmod(schedule.rows, size)
        each = whole * _words(size * layout.block, bits) + _words(rest * layout.block, bits)
        for place in range(len(layout.owners)):
            found[place] = each * len(range(place, schedule.rounds, len(layout.owners)))
        return found
    visits = schedule.per_epoch if layout.cached else schedule.rounds
    for number in range(visits):
        rows = schedule.round(number).size
        width = max(1, STRETCH // rows)
        for place in range(len(layout.owners)):
            whole, rest = divmod(layout.wanted(number, place), width)
            found[place] += whole * _words(width * rows, bits) + _words(rest * rows, bits)
    return found


def _words(phases: int, bits: int) -> int:
    """Return how many words this many phases take."""
    return -(-phases * bits // 64)


def _unseen(layout: FeatureLayout, place: int, rows: int) -> int:
    """Return at least as many words as an owner gets of rows whose projections nobody keeps."""
    count = layout.width(place)
    pieces = max(1, -(-count // FEW)) * max(1, -(-rows * max(1, count) // CHUNK) + 1)
    return _words(rows * count, BITS) + pieces


def of_gram(plan: Plan[GramSettings], extent: Extent) -> list[Opening]:
    """Return what summing the whole kernel matrix opens: inner products of all rows, to one party."""
    found, root = Declaration(plan, extent), plan.evaluator
    found.gates()
    found.total("inner products", extent.rows**2, root, Topic.TRAIN, "at the start")
    found.total("inner products", extent.test * extent.rows, root, Topic.EVALUATE, "in the end")
    found.total("row lengths", extent.test, root, Topic.EVALUATE, "in the end", rows=extent.test)
    return found.openings
