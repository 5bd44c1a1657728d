"""C-VFL (Castiglia et al. 2022, "Compressed-VFL"): everybody is told everything, and works on by itself.

In a round every client sends its outputs of the batch, compressed. The server passes all of them on as they
came, with its own parameters, compressed too. Then everybody makes Q steps on that same batch:

    a client  its own outputs, computed again at every step; the others' and F0 as it was told them
    F0        the outputs as it was told them, its own parameters as they are at every step

A client computes its gradient itself, so it must know the labels: the server sends them to all clients before
the first round, with the weights of rows where they have any. With Q = 1 and nothing compressed this is split
learning, number for number.

What each side learns: the server sees every client's outputs, and so does every other client, coarsely; a
client learns all labels, weights of rows and F0. Nobody's columns and nobody's own model are sent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from colonnade.arrays import Numbers, Rows
from colonnade.compress.bundle import Part, joined, parted
from colonnade.compress.protocol import Plain
from colonnade.compress.rows import Sending
from colonnade.conversations.cascade.client import Client, Codec, work
from colonnade.conversations.cascade.output_table import LatestOutputs
from colonnade.conversations.cascade.outputs import receive_rows, send_rows
from colonnade.conversations.cascade.replying import ClientQuestion
from colonnade.conversations.cascade.settings import CascadeSettings
from colonnade.conversations.context import Context
from colonnade.errors import JobError, ProtocolError
from colonnade.losses import loss_for
from colonnade.messages import Announce, Reply, Topic, tag_of
from colonnade.models.build import server_model
from colonnade.net.expect import finite, floats, said_by
from colonnade.optim.replies import GradientServer, Head, Query
from colonnade.state import Declared

EXACT = Plain("float64")  # labels, and weights beside them
TOLD = tag_of(Topic.TRAIN, 1)  # of what clients are told before the first round


@dataclass(frozen=True, eq=False)
class ExchangeKnowledge:
    """What a client knows beside its own columns and model."""

    STATE = Declared(parts=("head",))

    head: Head  # with the parameters of the latest round
    widths: tuple[int, ...]  # outputs of every client
    place: int  # of this client among them
    y: Numbers  # labels of all rows, and their weights beside them if they have any

    @property
    def own(self) -> slice:
        """This client's columns among the outputs of all."""
        start = sum(self.widths[: self.place])
        return slice(start, start + self.widths[self.place])

    def parts(self, codec: Codec, rows: int) -> list[Part]:
        """Return how a round's message about this many rows is packed: the others' outputs, then F0's
        parameters."""
        others = [width for place, width in enumerate(self.widths) if place != self.place]
        outputs: list[Part] = [(codec.up, (1, rows, width)) for width in others]
        return [*outputs, (codec.down, self.head.w.shape)] if self.head.w.size else outputs


@dataclass
class LocalClient(Client):
    """A client that makes its steps by itself; `told` before it asks its first question."""

    STATE = Client.STATE + Declared(parts=("told",))

    told: ExchangeKnowledge | None = field(default=None, init=False)

    async def step(self, query: Query, reply: Reply) -> None:
        if self.told is None:
            raise RuntimeError(f"{self.context.me} was not told the labels")
        told, own, rows = self.told, self.told.own, self.walk.batch(reply.tag)
        with said_by(self.context.evaluator):
            parts = [finite(part) for part in parted(reply.values, told.parts(self.codec, len(rows)))]
        if told.head.w.size:
            told.head.w = parts.pop().astype(told.head.w.dtype, copy=False)
        parts.insert(told.place, query.outputs)
        C = np.concatenate([outputs[0] for outputs in parts], axis=1)
        server, steps = GradientServer(told.head), self.context.plan.settings.local_steps
        await self.context.charge(steps * (work(self.model, query.X) + C.size))
        for number in range(steps):
            if number:
                query = replace(query, w=self.w)
                C[:, own] = self.model.forward(self.w[None], query.X)[0]
            back = server.answer(C, own, query.outputs, told.y[rows])
            self.move(self.asking.gradient(query, back), reply.answered)
        self.state.updates += 1


@dataclass(frozen=True, eq=False)
class Everything:
    """The server's replies: to each client all others' outputs as they came, and F0's parameters."""

    head: Head
    codec: Codec
    clients: tuple[str, ...]  # in the order of their outputs

    @property
    def downlinks(self) -> Mapping[str, Sending]:
        return {}

    def replies(
        self, wave: Sequence[ClientQuestion], rows: Rows, C: Numbers, y: Numbers
    ) -> Iterator[Numbers]:
        came, w0 = {asked.client: asked.packed for asked in wave}, self.head.w
        if w0.size:  # packed once, so that all have the same
            w0, _ = self.codec.down.encode(self.codec.down.init(w0.shape), w0)
        for asked in wave:
            yield joined([*(came[client] for client in self.clients if client != asked.client), w0])

    def evaluations(self, outputs: Numbers) -> int:
        return 0


async def tell(context: Context[CascadeSettings], latest: LatestOutputs, client: LocalClient | None) -> None:
    """Send every client the labels, and how many outputs each has; at the server, with its own client."""
    y, widths = context.label_holder.y, {name: out.shape[1] for name, out in latest.outputs.items()}
    columns = y.reshape(len(y), -1)
    for place, name in enumerate(widths):
        if name == context.me and client is not None:
            client.told = _told(context, widths, place, y)
        else:
            news = np.array([place, columns.shape[1], *widths.values()], dtype=np.float64)
            await context.net.send(name, Announce(TOLD, news))
            await send_rows(context.net, name, EXACT, TOLD, 1, columns)


async def hear(context: Context[CascadeSettings], client: LocalClient) -> None:
    """Receive what `tell` sends; at a client."""
    server, rows = context.evaluator, context.train.rows
    due = floats(None, low=0, high=2.0**20)
    news = (await context.net.recv(Announce, server, TOLD, values=due)).values
    everybody = context.net.parties
    clients = [name for name in everybody if name != server or len(news) == len(everybody) + 2]
    if len(news) != len(clients) + 2 or news[0] != clients.index(context.me) or news[1] not in (1, 2):
        raise ProtocolError(f"{server} announced {news} of {len(clients)} clients' outputs and the labels")
    columns = await receive_rows(context.net, server, EXACT, TOLD, 1, (rows, int(news[1])))
    widths = dict(zip(clients, news[2:].astype(int).tolist(), strict=True))
    y = columns if columns.shape[1] > 1 else columns[:, 0]
    client.told = _told(context, widths, int(news[0]), y)


def _told(
    context: Context[CascadeSettings], widths: Mapping[str, int], place: int, y: Numbers
) -> ExchangeKnowledge:
    specs, outputs = context.plan.settings.model, context.plan.objective.classes or 1
    if context.models.head is None and specs.server.kind == "torch" and specs.server.path is None:
        raise JobError(
            f"{context.plan.algorithm}: every party computes with the server's model, and {context.me} has "
            "not its code; use model.server.kind = 'mlp', or split"
        )
    model = context.models.head or server_model(specs.server, widths.values(), outputs, specs.device)
    head = Head(model, loss_for(context.loss, y), np.zeros(model.parameters))
    return ExchangeKnowledge(head, tuple(widths.values()), place, y)
