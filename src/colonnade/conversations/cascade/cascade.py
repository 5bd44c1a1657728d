"""The cascade conversation (AsyREVEL, TIG, VFL-CZOFO): private models below, the server's on top.

    f(w0, w) = mean_i F0(w0, c_i1 ... c_iq; y_i) + lambda * sum_m g(w_m),   c_im = F_m(w_m; x_im)

A client, whenever it is ready, sends its outputs for a batch of rows; the server answers from the latest
outputs of all clients, updates its own model and replies. What is asked and replied is exchangeable
(`optim.replies`); so is the schedule. The server is the first active party. If it holds columns it is a
client too, of itself: the same program, without the network in between (`answer_order.Inbox`). A server that
holds no columns is only a server.

What each side learns: the server sees every client's outputs in clear, for every row. A client learns
the derivative of the loss by its outputs, and with it the labels, unless the replies are private
(`privacy.mechanisms`). Clients learn nothing of each other but what the replies show of their sum.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from colonnade.arrays import Numbers
from colonnade.conversations.cascade.answer_order import AnswerOrder, Inbox
from colonnade.conversations.cascade.choices import (
    CascadeContext,
    asking_of,
    codec_of,
    own_step_of,
    replying_of,
    seed_of,
    smoothing_of,
)
from colonnade.conversations.cascade.client import Client, RemoteServer
from colonnade.conversations.cascade.exchange import LocalClient, hear, tell
from colonnade.conversations.cascade.first_step import Steps, agree_on_steps, chosen_optimizer
from colonnade.conversations.cascade.output_table import LatestOutputs
from colonnade.conversations.cascade.outputs import receive_rows, send_rows
from colonnade.conversations.cascade.private_replies import private_replies
from colonnade.conversations.cascade.row_order import BatchRows, passes_of
from colonnade.conversations.cascade.server import HeadTrainer, Judged, Server, Uploads
from colonnade.conversations.cascade.tensors import HEAD, OWN, described
from colonnade.conversations.cascade.units import NO_UNIT, Unit, applies, head_unit, taken_in, unit_of
from colonnade.conversations.context import GivenModels, Outcome
from colonnade.conversations.pacing.delays import Lateness
from colonnade.errors import JobError, ProtocolError
from colonnade.messages import Announce, Topic, tag_of
from colonnade.models.build import party_model, server_model
from colonnade.net.expect import floats
from colonnade.optim.replies import (
    Head,
)

NUMBERS = 2**28  # of all rows, from a client whose model has more outputs than the plan says
HEAD_START = 4  # the purpose of a generator; see `choices`


async def converse(context: CascadeContext) -> Outcome:
    """Take part as client, as server, or as both."""
    if context.me != context.evaluator:
        return await take_part(context)
    inbox, evaluation = Inbox(context.net, context.plan.pace.ahead), context.evaluation()
    measured = own_head_unit(context)
    context = in_unit(context, measured)
    client = own_client(context, inbox) if context.train.width else None
    latest = await first_outputs(context, client)
    if context.plan.settings.reply == "embeddings":
        await tell(context, latest, client if isinstance(client, LocalClient) else None)
    unit = await tell_unit(context, clients=len(latest.outputs))
    steps = await agree_on_steps(context, client, clients=len(latest.outputs), unit=unit)
    if client is not None:
        take_unit(client, unit)
        client.rate = decaying(context, steps.step, steps.total)
    judged = Judged(evaluation, measured)
    server = make_server(context, inbox, latest, steps, client, judged)
    server.keep()
    async with asyncio.TaskGroup() as group:
        collecting = group.create_task(inbox.collect()) if context.net.peers else None
        if client is not None:
            group.create_task(client.learn())
        await server.serve()
        if collecting is not None:
            collecting.cancel()
    head = server.head
    tensors, beside = described(GivenModels(client.model if client is not None else None, head.model))
    own = {} if client is None else {OWN: client.final()}
    return Outcome(
        weights={**own, HEAD: taken_in(head.model, head.w, measured), **beside},
        # a server apart has no block of its own, and perhaps no weights or no fixed step either
        step=steps.step if client is not None else (steps.server_step or 0.0) if head.w.size else 0.0,
        rounds=server.answered,
        updates=client.state.updates if client is not None else 0,
        evaluation=evaluation,
        delays=latest.delays(),
        lateness=Lateness(context.plan.settings.delay_bound),
        epsilon=server.private.budget.epsilon_spent() if server.private is not None else None,
        tensors=tensors,
    )


async def take_part(context: CascadeContext) -> Outcome:
    """Be a client and nothing else."""
    if not context.train.width:
        raise JobError(f"{context.me} holds no columns and is not the server; it has nothing to do")
    client = own_client(context, RemoteServer(context.net, context.evaluator))
    evaluation = context.evaluation()
    await send_first_outputs(context, client)
    if isinstance(client, LocalClient):
        await hear(context, client)
    take_unit(client, await hear_unit(context))
    steps = await agree_on_steps(context, client, clients=0)
    client.rate = decaying(context, steps.step, steps.total)
    context.gates.keep(client)
    async with asyncio.TaskGroup() as group:
        learning = group.create_task(client.learn())
        group.create_task(client.serve_measurements(context.evaluator, learning))
    tensors, beside = described(GivenModels(client.model))
    return Outcome(
        weights={OWN: client.final(), **beside},
        step=steps.step,
        rounds=client.state.answered,
        updates=client.state.updates,
        evaluation=evaluation,
        lateness=Lateness(context.plan.settings.delay_bound),
        tensors=tensors,
    )


def own_client(context: CascadeContext, line: Inbox | RemoteServer) -> Client:
    """Return this party's client, with its model at its first parameters and no step yet."""
    specs = context.plan.settings.model
    spec = specs.of(context.me)
    model = context.models.own or party_model(spec, context.train.width, specs.device)
    kind = LocalClient if context.plan.settings.reply == "embeddings" else Client
    return kind(
        context=context,
        model=model,
        asking=asking_of(context, model),
        walk=BatchRows(passes_of(context.plan, context.me, context.train.rows)),
        line=line,
        codec=codec_of(context),
        optimizer=chosen_optimizer(context.plan.settings),
        seed=seed_of(context, context.me),
        rate=lambda answered: 0.0,
    )


def make_server(
    context: CascadeContext,
    inbox: Inbox,
    latest: LatestOutputs,
    steps: Steps,
    client: Client | None,
    judged: Judged,
) -> Server:
    """Return the server, with F0 at its first parameters."""
    settings, clients, rows = context.plan.settings, tuple(latest.outputs), context.train.rows
    head = own_head(context, [out.shape[1] for out in latest.outputs.values()])
    optimizer = chosen_optimizer(settings)
    server_step = 1.0 if steps.server_step is None else steps.server_step
    smoothing = smoothing_of(context)
    walks = {party: BatchRows(passes_of(context.plan, party, rows)) for party in clients}
    together = len(clients) if context.plan.pace.schedule == "sync" else 1
    per_epoch = passes_of(context.plan, context.me, rows).per_pass * len(clients)
    noisy, private, codec = None, None, codec_of(context)
    if context.plan.privacy.mechanism in ("scalar", "gradient"):
        private, noisy = private_replies(
            context, head, smoothing, clients=len(clients), total=steps.total, per_epoch=per_epoch
        )
    return Server(
        context=context,
        waves=AnswerOrder(context.me, inbox, clients, together, settings.silence, steps.total),
        uploads=Uploads(walks, codec, smoothing.points_per_step if settings.reply == "values" else 1),
        latest=latest,
        trainer=HeadTrainer(
            head,
            own_step_of(context, head, measured=steps.server_step is None),
            optimizer,
            decaying(context, server_step, steps.total),
            optimizer.init(head.w),
        ),
        replying=replying_of(context, head, noisy, codec, latest),
        judged=judged,
        per_epoch=per_epoch,
        own=client,
        private=private,
    )


def own_head(context: CascadeContext, widths: Sequence[int]) -> Head:
    """Return F0 at its first parameters; `widths` are how many outputs every client has."""
    specs = context.plan.settings.model
    outputs, unit = context.plan.objective.classes or 1, own_unit(context)
    model = context.models.head or server_model(
        specs.server, widths, outputs, specs.device, unit=unit.size, offset=unit.offset
    )
    return Head(model, context.label_holder.loss, model.initial(context.rng(HEAD_START)))


def own_head_unit(context: CascadeContext) -> Unit:
    """Return the unit in which F0 is trained by itself; at the server."""
    given = context.models.head is not None
    return head_unit(context.plan, context.label_holder.labels, given=given)


def in_unit(context: CascadeContext, unit: Unit) -> CascadeContext:
    """Return the same with labels in a unit; at the server."""
    if unit == NO_UNIT:
        return context
    train = replace(context.train, y=unit.labels(context.label_holder.labels))
    return replace(context, train=train, checkpoints=context.gates)


def own_unit(context: CascadeContext) -> Unit:
    """Return the unit of a sum; at the server."""
    given = context.models.head is not None
    return unit_of(context.plan, context.label_holder.labels, given=given)


async def tell_unit(context: CascadeContext, *, clients: int) -> Unit:
    """Tell every client what it will take into its network, its part of the offset with it; at the server."""
    unit = own_unit(context)
    part = replace(unit, offset=unit.offset / clients)
    if applies(context.plan):
        await context.net.broadcast(Announce(tag_of(Topic.TUNE, 2), np.array([part.size, part.offset])))
    return part


async def hear_unit(context: CascadeContext) -> Unit:
    """Return F0's unit, as the server tells it to a client."""
    if not applies(context.plan):
        return NO_UNIT
    said = await context.net.recv(Announce, context.evaluator, tag_of(Topic.TUNE, 2), values=floats(2))
    if not said.values[0] > 0:
        raise ProtocolError(f"{context.evaluator} sent a unit of {said.values[0]:g}; it must be positive")
    return Unit(float(said.values[0]), float(said.values[1]))


def take_unit(client: Client, unit: Unit) -> None:
    """Let a client that has not asked anything yet know the unit; its penalty is in it as well."""
    if unit != NO_UNIT:
        if client.context.models.own is not None:
            me = client.context.me
            raise JobError(
                f"{me}: its model is an object where the job describes a network, and cannot take in the "
                f"unit of the label; say kind = 'torch' in [model.parties.{me}]"
            )
        client.unit, client.asking = unit, asking_of(client.context, client.model, unit)


async def send_first_outputs(context: CascadeContext, client: Client) -> None:
    """Tell the server this client's outputs of all rows, so that its table is defined from the start."""
    tag, outputs = tag_of(Topic.TRAIN, 0), client.outputs(context.train)
    await context.net.send(context.evaluator, Announce(tag, np.array([float(outputs.shape[1])])))
    # rounded by a generator of its own: the client's own generator begins with its first question
    there = await send_rows(context.net, context.evaluator, codec_of(context).up, tag, 0, outputs)
    client.uplink = client.codec.uplink(there)


async def first_outputs(context: CascadeContext, client: Client | None) -> LatestOutputs:
    """Receive every client's outputs of all rows; at the server."""
    tag, net, found = tag_of(Topic.TRAIN, 0), context.net, dict[str, Numbers]()
    own = client.outputs(context.train) if client is not None else None
    if client is not None and own is not None:
        client.uplink = client.codec.uplink(own)
    compressor, specs = codec_of(context).up, context.plan.settings.model
    for party in net.parties:
        if party != context.me:
            most = max(specs.of(party).width, NUMBERS // context.train.rows)
            said = (await net.recv(Announce, party, tag, values=floats(1, low=1, high=most))).values
            shape = (context.train.rows, int(said[0]))
            rows = await receive_rows(net, party, compressor, tag, 0, shape)
            found[party] = rows.astype(context.plan.settings.precision, copy=False)
        elif own is not None:
            found[party] = own
    return LatestOutputs(found)


def decaying(context: CascadeContext, base: float, total: int) -> Callable[[int], float]:
    """Return the step as a function of the answers given so far, out of a total."""
    if context.plan.settings.decay == "none":
        return lambda answered: base
    return lambda answered: base * max(0.0, 1 - answered / total)
