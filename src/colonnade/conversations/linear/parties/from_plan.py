"""A party's trainer as its plan says: which rounds there are, when they are due, and what steps it takes."""

from __future__ import annotations

from colonnade.conversations.context import Context
from colonnade.conversations.linear.block import Block
from colonnade.conversations.linear.parties.clear import Trainer
from colonnade.conversations.linear.quasi_newton.lbfgs_joint import Joint
from colonnade.conversations.linear.quasi_newton.lbfgs_local import Curvature
from colonnade.conversations.linear.settings import LinearSettings
from colonnade.conversations.linear.step_sizes import StepSizes
from colonnade.conversations.linear.timetable import Timetable
from colonnade.conversations.linear.tune import Tuner
from colonnade.conversations.pacing.delay_bound import each_ahead
from colonnade.conversations.pacing.delays import Delays
from colonnade.conversations.pacing.one_order import OneOrder
from colonnade.conversations.pacing.own_pace import OwnPace
from colonnade.conversations.pacing.pacing import Pacing
from colonnade.conversations.pacing.schedule import Schedule, at_own_pace


def trainer_of(
    context: Context[LinearSettings], dominators: tuple[str, ...], *, own_pace: bool = False
) -> Trainer:
    """Return a party's trainer as the plan says; dominators take turns, or launch rounds each at its own
    pace."""
    pace, settings = context.plan.pace, context.plan.settings
    rows, joint = context.train.rows, settings.pairs == "joint"
    timetable = Timetable.of(
        pace.epochs,
        -(-rows // pace.batch),
        svrg=settings.kind.snapshots,
        tune=pace.step == "auto" or joint,
        pair_every=settings.pair_every if settings.pairs == "batch" else None,
    )
    kind = at_own_pace(remembers=settings.kind.remembers) if own_pace else Schedule
    schedule = kind(rows, pace.batch, timetable.epochs, context.plan.seed, dominators, settings.reshuffle)
    window: Pacing = OneOrder(pace.ahead, schedule.rounds, timetable.gates)
    if own_pace:
        window = OwnPace(
            len(dominators),
            each_ahead(pace.ahead, len(dominators)),
            schedule.rounds,
            timetable.gates,
            keeper=context.me == context.evaluator,
            stale=settings.stale,
            lead=settings.lead,
            own=dominators.index(context.me) if context.me in dominators else None,
        )
    block = block_of(context, schedule)
    sample = schedule.places(0, 0, schedule.block_size)
    steps = StepSizes(
        plan=context.plan,
        schedule=schedule,
        window=window,
        delays=Delays(window.ahead - 1),  # k rounds under way are, on average, no later than that
        progress=lambda: min(1.0, window.finished / schedule.rounds),
        blocks=len(context.plan.parties),
    )
    return Trainer(
        context=context,
        timetable=timetable,
        schedule=schedule,
        window=window,
        block=block,
        steps=steps,
        evaluation=context.evaluation(),
        tuner=Tuner(context, sample) if pace.step == "auto" and not joint else None,
        curvature=Curvature(context, block, sample) if settings.pairs not in ("none", "joint") else None,
        joint=Joint(context, block, sample, steps) if joint else None,
    )


def block_of(context: Context[LinearSettings], schedule: Schedule) -> Block:
    """Return the party's columns with weights of zero, but for an intercept that the loss begins
    elsewhere."""
    classes, table = context.plan.objective.shape, context.train
    estimator = context.plan.settings.kind(table.rows, (table.width, *classes))
    block = Block(table.X, schedule, estimator, context.penalty, classes, context.memory, context.engine)
    if table.free and context.holds_label:
        block.w[list(table.free)] = context.label_holder.start
    return block
