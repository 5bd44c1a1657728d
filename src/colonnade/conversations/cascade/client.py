"""A client of the cascade: private columns, a private model, and questions to the server.

It walks through its rows in passes of its own (in the synchronous schedule: in the common order), asks
about one batch after the other, and steps when the answer is there. Up to `ahead` questions are under way
at once. It stops when an answer is empty.

What each side learns is in `cascade`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from colonnade.arrays import Matrix, Numbers
from colonnade.compress.protocol import Compressor, Plain
from colonnade.compress.rows import Changes, Each, Late, Sending
from colonnade.compress.topk import TopK
from colonnade.conversations.cascade.diverged import check_size, ran_away
from colonnade.conversations.cascade.outputs import outputs_of, send_rows
from colonnade.conversations.cascade.row_order import BatchRows
from colonnade.conversations.cascade.settings import CascadeSettings
from colonnade.conversations.cascade.units import NO_UNIT, Unit, taken_in
from colonnade.conversations.context import Context
from colonnade.data.table import Table
from colonnade.errors import DeadlineExceeded
from colonnade.messages import (
    TOPIC_SHIFT,
    Announce,
    Measure,
    Reply,
    Topic,
    Upload,
    tag_of,
)
from colonnade.models.blackbox import Linear, Model
from colonnade.net.expect import PACKED, Number, finite, out_of_turn, said_by
from colonnade.net.network import Network
from colonnade.optim.optimizers import Optimizer
from colonnade.optim.replies import Query, ReplyClient, Seed
from colonnade.state import Declared

START = 3  # the purpose of a party's generator of first parameters
SILENCE = 30  # deadlines without a word of the server, which may wait for clients that are slower


@dataclass(frozen=True)
class Codec:
    """How arrays are packed: a client's outputs on the way up, the server's replies on the way down."""

    STATE = Declared(parts=("up", "down"))

    up: Compressor
    down: Compressor
    changes: Compressor | None = None  # if given, uploads hold compressed changes of outputs
    late: TopK | None = None  # if given, replies hold only the largest numbers; the others come later

    def uplink(self, there: Numbers) -> Sending:
        """Return what packs a client's uploads; `there` are its outputs of all rows as the server has
        them."""
        return Each(self.up) if self.changes is None else Changes(self.changes, there.copy())

    def downlink(self, there: Numbers) -> Sending:
        """Return what packs the replies to a client; `there` are its outputs of all rows."""
        return Each(self.down) if self.late is None else Late(self.late, np.zeros_like(there))


class ServerLine(Protocol):
    """A client's line to the server: over the network, or within the party that is the server."""

    async def upload(self, message: Upload) -> None:
        """Send a question."""
        ...

    async def reply(self, tag: int) -> Reply:
        """Wait for the answer to the question with this tag."""
        ...


@dataclass(frozen=True)
class RemoteServer:
    """A client's line to a server that is another party."""

    net: Network
    server: str

    async def upload(self, message: Upload) -> None:
        await self.net.send(self.server, message)

    async def reply(self, tag: int) -> Reply:
        return await self.net.recv(Reply, self.server, tag, values=PACKED, answered=Number(0, 2**53))


@dataclass
class ClientState:
    """What answers change at a client: its parameters, and how far it is."""

    STATE = Declared(
        kept=("w", "updates", "answered", "measured", "asked", "done", "under_way"), remade=("optimizer",)
    )

    w: Numbers
    optimizer: Any  # the optimiser's own; its type is the optimiser's business
    updates: int = 0
    answered: int = 0
    measured: int = 0  # how often the server asked for all outputs
    asked: int = 0  # questions
    done: int = 0  # questions that were answered
    under_way: deque[Query] = field(default_factory=deque)  # those that were not


@dataclass
class Client:
    """One client: its model, how it asks and steps, and its line to the server."""

    STATE = Declared(kept=("momentum",), parts=("state", "asking", "codec", "uplink"))

    context: Context[CascadeSettings]
    model: Model
    asking: ReplyClient
    walk: BatchRows
    line: ServerLine
    codec: Codec
    optimizer: Optimizer
    seed: Seed
    rate: Callable[[int], float]  # the step after this many answers of the run
    unit: Unit = NO_UNIT  # of the sum of all outputs, with this client's part of the offset
    state: ClientState = field(init=False)

    def __post_init__(self) -> None:
        w = self.model.initial(self.context.rng(START))
        self.state = ClientState(w, self.optimizer.init(w))
        self.uplink: Sending = Each(self.codec.up)

    @property
    def w(self) -> Numbers:
        """The present parameters."""
        return self.state.w

    @property
    def momentum(self) -> Any:
        """What the optimiser remembers, as plain values."""
        return self.optimizer.plain(self.state.optimizer)

    @momentum.setter
    def momentum(self, plain: Any) -> None:
        self.optimizer.restore(self.state.optimizer, plain)

    async def learn(self) -> None:
        """Ask and step until the server's answer is empty (Algorithm 1 of AsyREVEL at client m)."""
        state, ahead = self.state, self.context.plan.pace.ahead
        while True:
            while state.asked < state.done + ahead:
                query = await self.ask(state.asked)
                state.under_way.append(query)
                state.asked += 1
            reply = await self.line.reply(tag_of(Topic.TRAIN, state.done))
            query = state.under_way.popleft()
            state.done += 1
            state.answered = max(state.answered, reply.answered)
            if reply.values.size == 0:
                break
            await self.step(query, reply)
        # the server answers every question, also those that come too late
        for number in range(state.done, state.asked):
            await self.line.reply(tag_of(Topic.TRAIN, number))

    async def step(self, query: Query, reply: Reply) -> None:
        """Step on the server's reply to a question."""
        with said_by(self.context.evaluator):
            values = finite(self.codec.down.decode(reply.values, self.asking.reply_shape(query)))
        self.move(self.asking.gradient(query, values), reply.answered)
        self.state.updates += 1

    def move(self, gradient: Numbers, answered: int) -> None:
        """Follow a gradient, after this many answers of the run."""
        state = self.state
        # a new array: questions under way still refer to the old parameters
        state.w = self.optimizer.step(state.optimizer, state.w, gradient, self.rate(answered))
        if not np.isfinite(state.w).all():
            raise ran_away(f"{self.context.me}: parameters are not finite", self.context.loss)

    async def ask(self, number: int) -> Query:
        """Send the outputs for a batch of rows to the server; returns what the answer will need."""
        rows = self.walk.batch(number)
        X = self.context.train.X[rows]
        query = self.asking.ask(self.w, X, (*self.seed, number))
        self._check(query.outputs)
        await self.context.charge(work(self.model, X) * len(query.outputs))
        await self.line.upload(Upload(tag_of(Topic.TRAIN, number), self.uplink.pack(rows, query.outputs)))
        return query

    def final(self) -> Numbers:
        """Return the parameters of the model that is kept: a plain sum of all clients' outputs is the
        score."""
        return taken_in(self.model, self.w, self.unit)

    def penalty(self) -> float:
        """Return the regulariser of the own parameters, times l2."""
        return self.asking.penalty.value(self.w)

    def outputs(self, table: Table) -> Numbers:
        """Return the outputs [rows, outputs] of a table's rows at the present parameters."""
        found = outputs_of(self.model, self.w, table.X, self.context.plan.settings.precision)
        self._check(found)
        return found

    def _check(self, outputs: Numbers) -> None:
        """Say what has happened where a model has run away, before the server refuses what it is sent."""
        most = float(np.finfo(self.context.plan.settings.precision).max)
        check_size(f"{self.context.me}: outputs of its model are", outputs, self.context.loss, most)

    async def serve_measurements(self, server: str, learning: asyncio.Task[None]) -> None:
        """Send the server the outputs of all rows, whenever it asks to measure; store the state at gates."""
        net = self.context.measuring.net
        while True:
            for sender, asked in await self._asked_to_measure(server, learning):
                if sender != server:
                    raise out_of_turn(sender, asked, "only the server measures")
                if asked.tag >> TOPIC_SHIFT == Topic.GATE:
                    await self.context.gates.reached(asked.tag - tag_of(Topic.GATE, 0))
                    continue
                if asked.tag != tag_of(Topic.EVALUATE, self.state.measured):
                    raise out_of_turn(sender, asked, "it is not the next measurement")
                self.state.measured += 1
                plain = Plain(self.context.plan.settings.precision)
                for number, outputs in enumerate(self.all_outputs()):
                    await send_rows(net, server, plain, asked.tag, number, outputs)
                books = np.array([self.penalty(), float(self.context.net.meter.bytes())])
                await net.send(server, Announce(asked.tag, books))
                if asked.final:
                    return

    async def _asked_to_measure(self, server: str, learning: asyncio.Task[None]) -> list[tuple[str, Measure]]:
        """Return what the server asks to measure; once this client has learnt all, only this shows its
        silence."""
        net, deadline = self.context.measuring.net, self.context.plan.network.deadline_s
        while True:
            try:
                async with asyncio.timeout(SILENCE * deadline):
                    return await net.drain(Measure, patient=True)
            except TimeoutError:
                if learning.done():
                    waited = f"waited {SILENCE * deadline:g} s for {server} to measure"
                    raise DeadlineExceeded(f"{net.me} {waited}; is it running and reachable?") from None

    def all_outputs(self) -> list[Numbers]:
        """Return the outputs of the training rows, and of the test rows if there are any."""
        return [self.outputs(table) for table in (self.context.train, self.context.test) if table]


def work(model: Model, X: Matrix) -> int:
    """Return how many stored numbers one forward call touches, as the simulated world counts it."""
    if isinstance(model, Linear) and not isinstance(X, np.ndarray):
        return int(X.nnz) * model.outputs
    return int(X.shape[0]) * max(1, model.parameters)
