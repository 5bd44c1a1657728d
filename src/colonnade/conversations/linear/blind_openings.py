"""What blind training of a linear model opens: totals to the label holder, weights to owners in the end."""

from __future__ import annotations

import numpy as np

from colonnade.conversations.blind.low_bits import told_bits
from colonnade.conversations.evaluate import Marks
from colonnade.conversations.linear.openings import MARKS, measurements, scored
from colonnade.conversations.linear.settings import LinearSettings
from colonnade.conversations.linear.timetable import timetable_of
from colonnade.conversations.linear.tune import AGAIN, FIRST, SAMPLE
from colonnade.conversations.pacing.schedule import Schedule
from colonnade.job.plan import Blind, Plan
from colonnade.losses import LOSSES
from colonnade.messages import Announce, Topic, Unveil
from colonnade.openings.declaration import Declaration
from colonnade.openings.opening import DOUBLE, Extent, Opening


def of_blind(plan: Plan[LinearSettings], blind: Blind, extent: Extent) -> list[Opening]:
    """Return what a blind run opens."""
    found = Declaration(plan, extent)
    found.gates()
    if blind.hidden is not None:
        _hidden(found, blind)
    else:
        _open_scores(found)
    _sizes(found, blind)
    _weights(found, blind)
    return found.openings


def _open_scores(found: Declaration) -> None:
    """Write down the totals of a run whose label holder learns scores."""
    plan, extent, k = found.plan, found.extent, found.scores
    root, settings = plan.evaluator, plan.settings
    timetable = timetable_of(plan, extent.rows)
    schedule = Schedule(extent.rows, plan.pace.batch, timetable.epochs, plan.seed, (root,), True)
    both = 2 if settings.kind.remembers else 1  # a batch is scored by the memory's sum as well
    whole = 2 if settings.kind.has_mean() else 1  # and all rows by all that weights are made of
    found.total("row lengths", 2, root, Topic.BLIND, "at the start", rows=1)
    scores = schedule.epochs * extent.rows * both * k
    found.total("scores", scores, root, Topic.BLIND, "in every batch")
    marks = Marks.of(plan.pace.evaluate_every, schedule)
    # a snapshot scores the mean gradient, and the weights unless they have just been measured
    vectors = sum(1 + 2 * bool(at * schedule.per_epoch % marks.every) for at in timetable.snapshots)
    found.total("scores", vectors * extent.rows * k, root, Topic.BLIND, "at every snapshot")
    proofs = 0 if plan.blind is None else plan.blind.proofs
    found.total("scores", proofs * extent.rows * 2 * k, root, Topic.BLIND, "before weights are told")
    if plan.pace.step == "auto":
        n, again = min(SAMPLE, extent.rows), len(timetable.tunings)
        bent = again + int(not np.isfinite(LOSSES[plan.objective.loss].smoothness))
        numbers = (FIRST + again * AGAIN) * n + bent * n * whole * k
        found.total("scores", numbers, root, Topic.BLIND, "when the step is measured", rows=n)
    times = measurements(plan, schedule)
    scored(found, (times * extent.rows + extent.test) * whole, MARKS, times, beside=1)
    turns = set(range(0, schedule.rounds, marks.every))
    turns |= timetable.gates | set(range(0, schedule.rounds, schedule.per_epoch))
    lasting = bool(plan.pace.step == "auto" and plan.objective.l2)  # is said, as nobody knows the step
    found.words(root, len(turns - {0}) + lasting * len(turns | {0}), Topic.PAUSE, "after every epoch")
    found.told(
        "sizes", 1, root, Announce, Topic.PAUSE, "at the start", about="columns", of=found.others(root)
    )


def _hidden(found: Declaration, blind: Blind) -> None:
    """Write down the totals of a run that hides scores: one of every row, in the end."""
    plan, rows, root = found.plan, found.extent.rows, found.plan.evaluator
    masked = plan.pace.epochs * rows
    found.total("masked", masked, root, Topic.BLIND, "in every batch", about="nothing", of=())
    scored(found, rows + found.extent.test, "in the end", 1, beside=2)


def _sizes(found: Declaration, blind: Blind) -> None:
    """Write down what owners say of their columns: how many they are, and which the penalty leaves alone."""
    sides = [(owner, (found.plan.evaluator, dealer), 0) for owner, dealer in blind.dealers.items()]
    if blind.hidden is not None:
        mate, asker = blind.hidden.mate, found.plan.evaluator
        sides = [(owner, to, found.extent.width(owner)) for owner, to, _ in sides]
        for owner, dealer in blind.hidden.dealers.items():
            sides.append((owner, (mate, dealer), found.extent.width(owner) if owner == asker else 0))
    for owner, to, acts in sides:
        found.told(
            "sizes", 1 + acts, owner, Announce, Topic.BLIND, "at the start", about="nothing", to=to, rows=0
        )


def _weights(found: Declaration, blind: Blind) -> None:
    """Write down the weights that owners are told."""
    plan, extent = found.plan, found.extent
    if blind.reveal != "owner":
        return
    holders = dict.fromkeys(blind.dealers, plan.evaluator)
    if blind.hidden is not None:
        holders[plan.evaluator] = blind.hidden.mate
    for owner, by in holders.items():
        numbers = extent.width(owner) * found.scores
        found.told(
            "weights",
            numbers,
            by,
            Unveil,
            Topic.BLIND,
            "in the end",
            about="labels",
            to=(owner,),
            of=plan.label_holders,
            bits=told_bits(extent.rows, apart=extent.apart) + 1,  # and its sign
            carried=DOUBLE,
        )
