"""The cascade conversation (AsyREVEL, TIG, VFL-CZOFO): private models below, the server's on top.

    f(w0, w) = mean_i F0(w0, c_i1 ... c_iq; y_i) + lambda * sum_m g(w_m),   c_im = F_m(w_m; x_im)

A client, whenever it is ready, sends its outputs for a batch of rows; the server answers from the latest
outputs of all clients, updates its own model and replies. What is asked and replied is exchangeable
(`replies`); so is the schedule. The server is the first active party. If it holds columns it is a client
too, of itself: the same program, without the network in between. A server that holds no columns is only
a server.

What each side learns: the server sees every client's outputs in clear, for every row. A client learns
the derivative of the loss by its outputs, and with it the labels, unless the replies are private
(`privacy.mechanisms`). Clients learn nothing of each other but what the replies show of their sum.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import numpy as np

from colonnade.compress.protocol import Plain
from colonnade.compress.quantize import Quantizer
from colonnade.compress.topk import TopK
from colonnade.conversations.cascade.client import (
    Client,
    Passes,
    RemoteServer,
    Walk,
    Wire,
    receive_rows,
    send_rows,
)
from colonnade.conversations.cascade.server import Inbox, Server
from colonnade.conversations.cascade.steps import agree_on_steps, chosen_optimizer
from colonnade.conversations.cascade.table import Table
from colonnade.conversations.context import Context, Outcome
from colonnade.errors import JobError, MalformedMessage
from colonnade.job.rules import batch_of, batches_in_flight, bits_of, smoothing_kind
from colonnade.messages import Announce, Topic, tag_of
from colonnade.models.blackbox import Differentiable, Model
from colonnade.models.build import party_model, server_model
from colonnade.optim.deltas import Deltas, DeltasClient, DeltasServer
from colonnade.optim.replies import (
    Answering,
    Asking,
    FirstStep,
    GradientClient,
    GradientServer,
    Head,
    OwnStep,
    Seed,
    ValuesClient,
    ValuesServer,
    ZerothStep,
)
from colonnade.optim.smoothing import Smoothing
from colonnade.privacy.mechanisms import mean_losses

WIDEST = 2**20  # outputs of a client for one row
# what a party's generators are for; 6 is cascade_step's
DIRECTIONS, START, HEAD_START, HEAD_DIRECTIONS, ROUNDING, SHARED_DIRECTIONS = 2, 3, 4, 5, 7, 8


async def converse(context: Context) -> Outcome:
    """Take part as client, as server, or as both."""
    server = context.evaluator
    inbox = Inbox(context) if context.me == server else None
    client = own_client(context, inbox)
    evaluation = context.evaluation()
    table = await first_pass(context, client)
    terms = await agree_on_steps(context, client, clients=len(table.outputs) if table else 0)
    if client is not None:
        client.rate = decaying(context, terms.step, terms.total)
    if inbox is None or table is None:
        assert client is not None  # noqa: S101  only a server may hold no columns
        async with asyncio.TaskGroup() as group:
            group.create_task(client.learn())
            group.create_task(client.serve_measurements(server))
        return Outcome(
            weights={"w": client.w},
            step=terms.step,
            rounds=client.answered,
            updates=client.updates,
            evaluation=evaluation,
        )
    head = own_head(context, sum(out.shape[1] for out in table.outputs.values()))
    program = Server(
        context=context,
        inbox=inbox,
        table=table,
        walks={party: Walk(passes(context, party)) for party in table.outputs},
        wire=wire_of(context),
        vectors=smoothing_of(context).points_per_step if context.preset.reply == "values" else 1,
        seed=lambda client: seed_of(context, client),
        head=head,
        answering=_answering(context, head),
        own_step=_own_step(context, head, measured=terms.server_step is None),
        rate=decaying(context, 1.0 if terms.server_step is None else terms.server_step, terms.total),
        evaluation=evaluation,
        own=client,
        total=terms.total,
        per_epoch=passes(context, server).per_pass * len(table.outputs),
        max_delay=context.job.train.max_delay or 8 * len(table.outputs),
        ahead=batches_in_flight(context.job, 1),
        optimizer=chosen_optimizer(context),
    )
    if context.job.privacy.mechanism in ("scalar", "gradient"):
        program.make_private(smoothing_of(context))
    async with asyncio.TaskGroup() as group:
        collecting = group.create_task(inbox.collect()) if context.net.peers else None
        if client is not None:
            group.create_task(client.learn())
        await program.serve()
        if collecting is not None:
            collecting.cancel()
    return Outcome(
        weights={"w0": head.w} if client is None else {"w": client.w, "w0": head.w},
        # a server apart has no block of its own, and perhaps no weights or no fixed step either
        step=terms.step if client is not None else (terms.server_step or 0.0) if head.w.size else 0.0,
        rounds=program.answered,
        updates=client.updates if client is not None else 0,
        evaluation=evaluation,
        delays=table.delays(),
        epsilon=program.budget.epsilon_spent() if program.budget is not None else None,
    )


def own_client(context: Context, inbox: Inbox | None) -> Client | None:
    columns = context.train.X.shape[1]
    if columns == 0:
        if inbox is None:
            raise JobError(f"{context.me} holds no columns and is not the server; it has nothing to do")
        return None
    spec = context.job.model.parties.get(context.me, context.job.model)
    model = context.model or party_model(spec, columns, context.job.model.device)
    return Client(
        context=context,
        model=model,
        asking=_asking(context, model),
        walk=Walk(passes(context, context.me)),
        line=inbox or RemoteServer(context.net, context.evaluator),
        wire=wire_of(context),
        w=model.initial(context.rng(START)),
        rate=lambda answered: 0.0,
        ahead=batches_in_flight(context.job, 1),
        optimizer=chosen_optimizer(context),
        seed=seed_of(context, context.me),
        local_steps=local_steps_of(context),
    )


def own_head(context: Context, columns: int) -> Head:
    y = context.y
    assert y is not None  # noqa: S101  the server holds the labels
    # as many classes as the job says: private labels may lack one
    classes = context.job.train.classes or int(y.max()) + 1
    outputs = classes if context.loss.task == "multiclass" else 1
    asked = context.job.model
    model = context.server_model or server_model(asked.server, columns, outputs, asked.device)
    return Head(model, context.loss, model.initial(context.rng(HEAD_START)))


async def first_pass(context: Context, client: Client | None) -> Table | None:
    """Every client's outputs for all rows, so that the server's table is defined from the start."""
    tag = tag_of(Topic.TRAIN, 0)
    outputs = client.outputs(context.train) if client is not None else None
    net, compressor = context.net, wire_of(context).up
    if client is not None and outputs is not None:
        client.uplink = client.wire.uplink(outputs)
    if context.me != context.evaluator:
        assert outputs is not None  # noqa: S101  only a server may hold no columns
        await net.send(context.evaluator, Announce(tag, np.array([float(outputs.shape[1])])))
        await send_rows(net, context.evaluator, compressor, tag, 0, outputs)
        return None
    found = {}
    for party in net.parties:
        if party != context.me:
            said = (await net.recv(Announce, party, tag)).values
            if said.shape != (1,) or not 1 <= said[0] <= WIDEST:
                raise MalformedMessage(f"{party} announced {said} outputs a row; one number up to {WIDEST}")
            shape = (context.train.rows, int(said[0]))
            rows = await receive_rows(net, party, compressor, tag, 0, shape)
            found[party] = rows.astype(context.job.cascade.precision, copy=False)
        elif outputs is not None:
            found[party] = outputs
    return Table(found)


def passes(context: Context, party: str) -> Passes:
    """The synchronous schedule has one order for all; otherwise every client has its own."""
    job, rows = context.job, context.train.rows
    own = context.net.parties.index(party) + 1 if context.preset.schedule == "async" else 0
    return Passes(rows, batch_of(job, rows), (job.seed, own))


def decaying(context: Context, base: float, total: int) -> Callable[[int], float]:
    """The step after so many answers out of a total."""
    if context.job.cascade.decay == "none":
        return lambda answered: base
    return lambda answered: base * max(0.0, 1 - answered / total)


def smoothing_of(context: Context) -> Smoothing:
    asked, preset = context.job.cascade, context.preset
    two_sided = asked.two_sided or preset.two_sided
    return Smoothing(smoothing_kind(context.job, preset), asked.directions, asked.mu, two_sided)


def deltas_of(context: Context) -> Deltas:
    asked, rule = context.job.cascade, smoothing_of(context)
    if context.preset.smoothing == "coordinate":
        return Deltas("coordinate", 0, asked.mu, per="sample")
    return Deltas(rule.directions, rule.count, rule.mu, rule.two_sided, asked.per or "batch")


def wire_of(context: Context) -> Wire:
    """How arrays travel: every party comes to the same, but rounds by its own chance."""
    asked, rng = context.job.cascade, context.rng(ROUNDING)
    (forward, backward), late = bits_of(context.job, context.preset), asked.backward_top
    # values are compared with each other, at a distance of mu: single precision would blur that
    exact = "float64" if context.preset.reply == "values" else asked.precision
    return Wire(
        Plain(asked.precision) if forward == 32 else Quantizer(forward, rng, asked.forward_range),
        TopK(late) if late else Plain(exact) if backward == 32 else Quantizer(backward, rng),
        changes=TopK(asked.forward_top) if asked.forward_top else None,
        late=TopK(late) if late else None,
    )


def seed_of(context: Context, client: str) -> Seed:
    """What the directions of a client's rounds are drawn from, known to it and to the server."""
    return (context.job.seed, context.net.parties.index(client), SHARED_DIRECTIONS)


def local_steps_of(context: Context) -> int:
    return context.job.cascade.local_steps or context.preset.local_steps


def _asking(context: Context, model: Model) -> Asking:
    regularizer, l2 = context.regularizer, context.job.train.l2
    if context.preset.reply != "values":
        if not isinstance(model, Differentiable):
            raise JobError(f"{context.me}: {context.preset.name} needs gradients, this model has none")
        if context.preset.reply == "deltas":
            return DeltasClient(model, regularizer, l2, deltas_of(context))
        return GradientClient(model, regularizer, l2)
    private = context.job.privacy.mechanism == "scalar"
    return ValuesClient(model, smoothing_of(context), regularizer, l2, context.rng(DIRECTIONS), private)


def _answering(context: Context, head: Head) -> Answering:
    if context.preset.reply == "gradient":
        if not isinstance(head.model, Differentiable):
            raise JobError(f"{context.preset.name} needs the gradient of F0, and this model has none")
        return GradientServer(head)
    if context.preset.reply == "deltas":
        return DeltasServer(head, deltas_of(context))
    return ValuesServer(head, mean_losses)


def _own_step(context: Context, head: Head, *, measured: bool) -> OwnStep | None:
    if not head.w.size:
        return None
    if context.preset.reply != "values" or context.job.cascade.server == "first":
        if not isinstance(head.model, Differentiable):
            raise JobError("the server learns by back-propagation here, and this F0 has no gradient")
        return FirstStep(head)
    return ZerothStep(head, smoothing_of(context), context.rng(HEAD_DIRECTIONS), measured)
