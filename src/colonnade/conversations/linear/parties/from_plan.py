"""A clear party as its plan says: which rounds there are, when they are due, and what steps it takes."""

from __future__ import annotations

from dataclasses import dataclass

from colonnade.conversations.context import Context
from colonnade.conversations.linear.block import block_of
from colonnade.conversations.linear.parties.clear import ClearParty
from colonnade.conversations.linear.parties.measurement import Measurement
from colonnade.conversations.linear.parties.pauses import Pauses
from colonnade.conversations.linear.quasi_newton.lbfgs_joint import Joint
from colonnade.conversations.linear.quasi_newton.lbfgs_local import Curvature
from colonnade.conversations.linear.settings import LinearSettings
from colonnade.conversations.linear.step_sizes import StepSizes
from colonnade.conversations.linear.timetable import timetable_of
from colonnade.conversations.linear.tune import Tuner
from colonnade.conversations.pacing.delay_bound import each_ahead
from colonnade.conversations.pacing.delays import Delays
from colonnade.conversations.pacing.one_order import OneOrder
from colonnade.conversations.pacing.own_pace import OwnPace
from colonnade.conversations.pacing.pacing import Pacing
from colonnade.conversations.pacing.schedule import Schedule, at_own_pace
from colonnade.conversations.pacing.shares_ahead import joining_pays
from colonnade.job.plan import Plan

PICKED = (
    "the paper's pairs want settings picked for the data: a larger direction.delta, or another "
    "direction.step (gamma; smaller is not always better); or drop direction.pairs = 'paper'"
)


@dataclass(frozen=True, eq=False)
class ClearTraining:
    """A clear party, what it does at pauses, and its part in measuring the model."""

    party: ClearParty
    pauses: Pauses
    measurement: Measurement


def own_pace(plan: Plan[LinearSettings]) -> bool:
    """Return whether dominators launch rounds each at its own pace; or else they take turns.

    One batch at a time is one order of batches, and so is what one H over all blocks needs.
    """
    return plan.pace.ahead > 1 and len(plan.label_holders) > 1 and plan.settings.pairs != "joint"


def training_of(context: Context[LinearSettings], *, apart: bool = False) -> ClearTraining:
    """Return a party's training as the plan says; `apart`: label holders launch rounds at their own pace."""
    plan, pace, settings = context.plan, context.plan.pace, context.plan.settings
    rows, dominators, joint = context.train.rows, context.plan.label_holders, settings.pairs == "joint"
    timetable = timetable_of(plan, rows)
    kind = at_own_pace(remembers=settings.kind.remembers) if apart else Schedule
    drawn = settings.sampling == "replacement"
    schedule = kind(rows, pace.batch, timetable.epochs, plan.seed, dominators, settings.reshuffle, drawn)
    block = block_of(context, schedule)
    sample = schedule.places(0, 0, schedule.block_size)
    tuner = Tuner(context, sample) if pace.step == "auto" and not joint else None

    def pays() -> bool:
        """Return whether shares ahead pay: by the mean of all blocks or, without a tuner, by the own one."""
        own = block.all_rows.values(0, rows) / rows
        values = own if tuner is None else tuner.values_a_row
        alike = joining_pays(plan.network, values * len(dominators) * pace.batch)
        return plan.network.join and (alike or not settings.stale_where_it_pays)

    rounds = OneOrder(pace.ahead, schedule.rounds, timetable.gates, stale=settings.stale)
    window: Pacing = rounds
    if apart:
        window = OwnPace(
            len(dominators),
            each_ahead(pace.ahead, len(dominators)),
            schedule.rounds,
            timetable.gates,
            keeper=context.me == context.evaluator,
            stale=settings.stale,
            lead=settings.lead,
            own=dominators.index(context.me) if context.me in dominators else None,
            pays=pays,
        )
    steps = StepSizes(
        plan=plan,
        schedule=schedule,
        pace=window,
        delays=Delays(window.ahead - 1),  # k rounds under way are, on average, no later than that
        progress=lambda: min(1.0, window.finished / schedule.rounds),
        blocks=len(plan.parties),
    )
    party = ClearParty(
        context=context,
        schedule=schedule,
        pace=window,
        block=block,
        steps=steps,
        curvature=Curvature(context, block, sample) if settings.pairs not in ("none", "joint") else None,
        joint=Joint(context, block, sample, steps) if joint else None,
    )
    evaluation = context.evaluation(PICKED if settings.pairs == "paper" else None)
    training = ClearTraining(
        party, Pauses(party, timetable, tuner), Measurement(party, timetable, evaluation)
    )
    keep(training)
    return training


def keep(training: ClearTraining) -> None:
    """Let all that rounds change be part of checkpoints, under the names that these have had since 0.2."""
    party, gates = training.party, training.party.context.gates
    gates.keep(party, "tally", "given", "block", "steps", "curvature", "joint", name="Trainer")
    gates.keep(party.pace, name="Trainer.window")
    gates.keep(training.pauses, name="Trainer")
