"""What training a linear model opens, from its plan: declared line by line, as the algorithms say it."""

from __future__ import annotations

from collections import Counter

import numpy as np

from colonnade.conversations.evaluate import Marks
from colonnade.conversations.linear.parties.from_plan import own_pace
from colonnade.conversations.linear.quasi_newton import lbfgs_joint
from colonnade.conversations.linear.settings import FullSettings, LinearSettings
from colonnade.conversations.linear.timetable import timetable_of
from colonnade.conversations.linear.tune import AGAIN, EXTRA, FIRST, SAMPLE
from colonnade.conversations.pacing.schedule import Schedule, at_own_pace
from colonnade.job.plan import Plan
from colonnade.losses import LOSSES
from colonnade.messages import Announce, Backward, Topic
from colonnade.openings.declaration import Declaration
from colonnade.openings.opening import Extent, Opening

BESIDE = 3  # numbers that are summed beside scores when the model is measured: a penalty in two, bytes
ANSWERS = 7  # numbers behind the scores of a direction in `full`
RETRIES = 3  # how often products are summed again, in the mean of all steps, and at the most at first
MARKS = "when the model is measured"


def of_backward(plan: Plan[LinearSettings], extent: Extent) -> list[Opening]:
    """Return what a clear run of the backward conversation opens."""
    linear = _Linear(plan, extent)
    settings = plan.settings
    joint = linear.joint_numbers() if settings.pairs == "joint" else (0, 0)
    passing = plan.parties if plan.network.broadcast == "tree" else ()
    for root, rows in linear.rows_led(apart=own_pace(plan)).items():
        asked, answered = joint  # all may ride with the rounds of one dominator
        linear.total("scores", rows * linear.scores, root, Topic.TRAIN, "in every batch")
        linear.total("inner products", asked, root, Topic.TRAIN, "with the scores of batches")
        for by in {root, *passing}:  # who passes a theta on sends it as well
            linear.theta(root, rows * linear.scores, Backward, Topic.TRAIN, "in every batch", by=by)
            linear.told(
                "inner products",
                answered,
                by,
                Backward,
                Topic.TRAIN,
                "with theta",
                about="labels",
                of=(root,),
            )
    linear.pauses()
    cuts = np.linspace(0, extent.rows, len(plan.label_holders) + 1).astype(int)
    for root, rows in zip(plan.label_holders, np.diff(cuts).tolist(), strict=True):
        seen = len(linear.timetable.snapshots) * rows * linear.scores
        linear.total("scores", seen, root, Topic.SNAPSHOT, "at every snapshot")
        linear.theta(root, seen, Announce, Topic.SNAPSHOT, "at every snapshot")
    if settings.pairs == "joint":
        linear.words(plan.evaluator, 1, Topic.PAUSE, "in the end")
    linear.measured()
    return linear.openings


def of_pull(plan: Plan[LinearSettings], extent: Extent) -> list[Opening]:
    """Return what a run of the pull conversation opens: all of it to those who pull."""
    linear = _Linear(plan, extent)
    schedule, pullers = linear.schedule, plan.label_holders
    rows = schedule.epochs * extent.rows
    if plan.pace.schedule != "sync":  # a fast one makes rounds that a slow one does not
        rows = (schedule.rounds * len(pullers) + plan.pace.ahead) * schedule.largest
    for root in pullers:
        linear.total("scores", rows * linear.scores, root, Topic.TRAIN, "in every batch")
        seen = len(linear.timetable.snapshots) * extent.rows * linear.scores
        linear.total("scores", seen, root, Topic.SNAPSHOT, "at every snapshot")
    linear.pauses(schedule.epochs if linear.timetable.pairs else 0)
    if plan.pace.open or plan.pace.evaluate_every:
        linear.words(plan.evaluator, schedule.epochs - 1, Topic.PAUSE, "after every epoch")
    linear.measured()
    return linear.openings


def of_full(plan: Plan[FullSettings], extent: Extent) -> list[Opening]:
    """Return what L-BFGS on all rows opens in clear."""
    found = Declaration(plan, extent)
    steps, root, whole = plan.pace.epochs, plan.evaluator, extent.rows * found.scores
    products = 3 * (2 * plan.settings.memory + 3) * RETRIES * (steps + 8)
    found.total("scores", steps * whole, root, Topic.TRAIN, "in every step")
    found.total("inner products", products + steps * ANSWERS + 1, root, Topic.TRAIN, "in every step")
    thetas(found, root, steps * whole, Announce, Topic.TRAIN, "in every step")
    found.told(
        "inner products",
        products + 2 * steps + 2,
        root,
        Announce,
        Topic.TRAIN,
        "in every step",
        about="columns",
    )
    scored(found, extent.rows + extent.test, "in the end")
    found.gates()
    return found.openings


def scored(found: Declaration, rows: int, when: str, times: int = 1, beside: int = BESIDE) -> None:
    """Write down total scores of rows, at the evaluator, and what is summed beside them every time."""
    root = found.plan.evaluator
    found.total("scores", rows * found.scores, root, Topic.EVALUATE, when)
    found.total("penalties", times * beside, root, Topic.EVALUATE, when, rows=0)


def thetas(
    found: Declaration, root: str, numbers: float, message: type, topic: Topic, when: str, by: str = ""
) -> None:
    """Write down thetas: they tell labels and, for most losses, the total score of every row as well."""
    found.told("thetas", numbers, by or root, message, topic, when, about="labels", of=(root,))
    if not by or by == root:
        hearers = found.others(root)
        found.follows("scores", numbers, found.plan.parties, hearers, when, about="columns")


class _Linear(Declaration):
    """The openings of a run that goes batch by batch."""

    def __init__(self, plan: Plan[LinearSettings], extent: Extent) -> None:
        super().__init__(plan, extent)
        self.settings = plan.settings
        self.timetable = timetable_of(plan, extent.rows)
        kind = at_own_pace(remembers=self.settings.kind.remembers) if own_pace(plan) else Schedule
        self.schedule = kind(
            extent.rows, plan.pace.batch, self.timetable.epochs, plan.seed, plan.label_holders
        )
        self.gates()

    def theta(self, root: str, numbers: float, message: type, topic: Topic, when: str, by: str = "") -> None:
        """Write down thetas of a label holder."""
        thetas(self, root, numbers, message, topic, when, by)

    def rows_led(self, *, apart: bool) -> dict[str, int]:
        """Return how many rows every dominator sums scores of; where each has its own pace, at the most."""
        schedule, pace = self.schedule, self.plan.pace
        if apart:
            beyond = 2 * pace.ahead + 2 * self.settings.stale + 4
            most = schedule.epochs * schedule.rows + beyond * schedule.largest
            return dict.fromkeys(schedule.dominators, most)
        if len(schedule.dominators) == 1:
            return {schedule.dominators[0]: schedule.epochs * schedule.rows}
        found: Counter[str] = Counter()
        for number in range(schedule.rounds):
            found[schedule.dominator(number)] += schedule.round(number).size
        return dict(found)

    @property
    def sample(self) -> int:
        """How many rows the step is measured on."""
        return min(SAMPLE, self.schedule.block_size)

    def joint_numbers(self) -> tuple[int, int]:
        """Return how many numbers ride with scores, and with thetas, where one H is over all blocks."""
        vectors, n = self.vectors, self.sample * self.scores
        rounds = self.schedule.rounds
        pairs = rounds // self.settings.pair_every
        products = 2 * (vectors + 2)
        return (
            rounds * (vectors + 1) + pairs * (2 * n + products),
            rounds * (vectors + 3) + pairs * (n + products),
        )

    @property
    def vectors(self) -> int:
        """How many vectors H has at the most."""
        return 2 * (self.settings.memory + lbfgs_joint.STEEPEST)

    def pauses(self, pairs: int | None = None) -> None:
        """Write down what is opened while all stand still: how steep the objective is, pairs of samples.

        `pairs` is how often these are made, where that is not as the timetable says.
        """
        root, n, k = self.plan.evaluator, self.sample, self.scores
        measured = 1 + len(self.timetable.tunings)
        when = "when the step is measured"
        if self.settings.pairs == "joint":
            steps = lbfgs_joint.FIRST + (measured - 1) * lbfgs_joint.AGAIN
            products = measured * (2 * lbfgs_joint.STEEPEST * (self.vectors + 1) + 1)
            self.total("scores", (steps + measured) * n * k, root, Topic.CURVATURE, when, rows=n)
            self.total("inner products", 2 * steps + products, root, Topic.CURVATURE, when, rows=n)
            self.told("scores", steps * n * k, root, Announce, Topic.CURVATURE, when, about="labels", rows=n)
            self.told(
                "inner products", 2 * steps + products, root, Announce, Topic.CURVATURE, when, about="columns"
            )
        elif self.plan.pace.step == "auto":
            steps = FIRST + (measured - 1) * AGAIN
            bounded = np.isfinite(LOSSES[self.plan.objective.loss].smoothness)
            self.total("scores", steps * n, root, Topic.TUNE, when, rows=n)
            bent = measured - int(bounded)
            self.total("scores", bent * n * k, root, Topic.TUNE, when, rows=n)
            self.total("row lengths", steps * EXTRA, root, Topic.TUNE, when, rows=n)
            self.told(
                "scores",
                steps * (n + EXTRA),
                root,
                Announce,
                Topic.TUNE,
                when,
                about="columns",
                rows=n,
                of=self.plan.parties,
            )
        if self.settings.pairs == "batch":
            pairs = len(self.timetable.pairs) if pairs is None else pairs
            when = "for every pair of a quasi-Newton direction"
            self.total("scores", pairs * n * k, root, Topic.PAIR, when, rows=n)
            thetas(self, root, pairs * n * k, Announce, Topic.PAIR, when)

    def measured(self) -> None:
        """Write down what is opened when the model is measured, at marks and in the end."""
        times = measurements(self.plan, self.schedule)
        if self.settings.pairs == "joint":
            times += 1  # once more, where the last weights are not the best
        scored(self, times * self.extent.rows + self.extent.test, MARKS, times)
        if self.settings.pairs == "joint":
            scored(self, self.extent.test, "in the end", 0)


def measurements(plan: Plan[LinearSettings], schedule: Schedule) -> int:
    """Return how often the model is measured, at the most."""
    return -(-schedule.rounds // Marks.of(plan.pace.evaluate_every, schedule).every)
