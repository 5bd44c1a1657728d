"""Which loop a party of a linear model runs, and as what kind of party: clear, blind or hidden."""

from __future__ import annotations

from colonnade.conversations.context import Context, Outcome
from colonnade.conversations.linear.algorithm import backward_in_lots
from colonnade.conversations.linear.algorithm.backward import BackwardConversation
from colonnade.conversations.linear.algorithm.backward_in_order import InOrderBackward
from colonnade.conversations.linear.algorithm.backward_joined import JoinedBackward
from colonnade.conversations.linear.algorithm.pull import PullConversation
from colonnade.conversations.linear.algorithm.pull_in_step import PullInStep
from colonnade.conversations.linear.parties.blind import BlindParty
from colonnade.conversations.linear.parties.from_plan import own_pace, training_of
from colonnade.conversations.linear.parties.hidden import HiddenParty
from colonnade.conversations.linear.settings import LinearSettings


async def converse_backward(context: Context[LinearSettings]) -> Outcome:
    """Train with theta in clear or, in a blind run, without telling it to anybody."""
    if context.plan.blind is None:
        return await converse_clear(context)
    if context.plan.blind.hidden is None:
        return await backward_in_lots.converse(BlindParty(context))
    return await backward_in_lots.converse(HiddenParty(context, context.plan.blind.hidden))


async def converse_clear(context: Context[LinearSettings]) -> Outcome:
    """Train the party's block through the backward conversation."""
    training = training_of(context, apart=own_pace(context.plan))
    party, measurement = training.party, training.measurement
    if not context.gates.position:
        await training.pauses.tune()
        await training.pauses.make(0)
    measurement.checkpoints.begin()
    loop = BackwardConversation
    if party.joint is not None:
        loop = InOrderBackward
    elif context.plan.network.join:
        loop = JoinedBackward
    await loop(context, party).run(measurement.at_marks(), training.pauses.at_gates(measurement.checkpoints))
    early = party.pace.stop < party.schedule.rounds
    return measurement.outcome(measurement.sums(party.pace.base), party.pace.lateness, ended_early=early)


async def converse_pull(context: Context[LinearSettings]) -> Outcome:
    """Train the own block, if this party holds the label, and send others the shares that they ask for."""
    training = training_of(context)
    loop = PullInStep if context.plan.pace.schedule == "sync" else PullConversation
    conversation = loop(context, training)
    steps, stints = training.party.steps, conversation.stints
    steps.blocks = steps.updates_per_round = len(conversation.pullers)
    steps.progress = stints.progress
    if not context.gates.position:
        await training.pauses.tune()
    await conversation.run()
    early = stints.state.ended_early
    return training.measurement.outcome(conversation.sums, conversation.lateness, ended_early=early)
