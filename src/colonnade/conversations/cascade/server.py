"""The server of the cascade: labels, a model of its own, and the latest outputs of all clients.

For every client it keeps one array with its latest output for every row (the stale table), updated in
place. An upload refreshes the client's rows; the answer is computed from them and from what the others
sent last about the same rows, however long ago. How long is measured: the age of an entry is the number
of answers given since it was computed.

Asynchronous and synchronous are the same code: a *wave* is one upload, or one of every client. The delay
is bounded: no answer is given while it would leave some client unheard for more than `max_delay` answers.
A client comes back to a row within two passes, so no entry is older than (max_delay + 1) * 2 passes.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from colonnade.arrays import Numbers, Rows
from colonnade.compress.protocol import Plain
from colonnade.compress.rows import Changes
from colonnade.conversations.cascade.client import Client, Walk, Wire, charge, receive_rows
from colonnade.conversations.cascade.table import Table
from colonnade.conversations.context import Context
from colonnade.conversations.evaluate import Evaluation, Mark
from colonnade.errors import Diverged, JobError, MalformedMessage
from colonnade.messages import Announce, Measure, Reply, Upload
from colonnade.optim.optimizers import Descent, Optimizer
from colonnade.optim.replies import Answering, Head, OwnStep, Seed, ValuesServer
from colonnade.optim.smoothing import Smoothing
from colonnade.privacy.labels import NoisyLabels, label_points
from colonnade.privacy.mechanisms import NoisyScalars
from colonnade.privacy.posterior import Posterior

if TYPE_CHECKING:
    from colonnade.privacy.accountant import Budget

Asked = tuple[str, Upload]

NOTHING = np.zeros(0)
HOPELESS = 1e4  # this many times the loss of the start is no training any more


class Inbox:
    """Where uploads of all clients meet; the server's own client is one of them."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._uploads: asyncio.Queue[Asked] = asyncio.Queue()
        self._own: dict[int, asyncio.Future[Reply]] = {}

    async def upload(self, message: Upload) -> None:
        self._own[message.tag] = asyncio.get_running_loop().create_future()
        self._uploads.put_nowait((self._context.me, message))

    async def reply(self, tag: int) -> Reply:
        reply = await self._own[tag]
        del self._own[tag]
        return reply

    async def answer(self, client: str, reply: Reply) -> None:
        if client == self._context.me:
            self._own[reply.tag].set_result(reply)
        else:
            await self._context.net.send(client, reply)

    async def next(self) -> Asked:
        return await self._uploads.get()

    async def collect(self) -> None:
        """Uploads from the network, for ever."""
        while True:
            for asked in await self._context.net.drain(Upload):
                self._uploads.put_nowait(asked)


@dataclass
class Server:
    context: Context
    inbox: Inbox
    table: Table
    walks: dict[str, Walk]
    wire: Wire
    vectors: int  # parameter vectors that an upload has outputs for
    seed: Callable[[str], Seed]
    head: Head
    answering: Answering
    own_step: OwnStep | None
    rate: Callable[[int], float]
    evaluation: Evaluation
    own: Client | None  # the client within this party, if it holds columns
    total: int  # answers of the whole run
    per_epoch: int
    max_delay: int
    ahead: int
    optimizer: Optimizer = field(default_factory=Descent)
    budget: Budget | None = None
    answered: int = 0
    stopped: bool = False
    start_loss: float = 0.0

    def __post_init__(self) -> None:
        self.clients = tuple(self.table.outputs)
        self.heard = dict.fromkeys(self.clients, 0)
        self.turns = dict.fromkeys(self.clients, 0)
        self.waiting: list[Asked] = []
        self.state = self.optimizer.init(self.head.w)
        self.downlinks = {client: self.wire.downlink(out) for client, out in self.table.outputs.items()}
        self.labels: Callable[[Rows], Numbers] = self.exact_labels

    async def serve(self) -> None:
        """Answer until the run is over, measure on the way, and let every client go."""
        mark_at, y = self.every, self.context.y
        assert y is not None  # noqa: S101  the server holds the labels
        whole = self.table.read(np.arange(len(y)))
        self.start_loss = float(self.head.losses(self.head.w[None], whole, y).mean())
        async for wave in self.waves():
            if not self.affordable(wave):
                self.waiting = wave + self.waiting
                break
            await self.answer_wave(wave)
            if self.answered >= mark_at and self.answered < self.total:
                mark_at += self.every
                await self.measure(final=False)
            if self.answered >= self.total or self.stopped:
                break
        when = self.context.net.clock.now()
        await self.release_clients()
        await self.measure(final=True, when=when)

    def make_private(self, smoothing: Smoothing) -> None:
        """Replace exact replies by noisy ones whose noise covers every reply of the run."""
        from colonnade.privacy.accountant import Budget  # dp-accounting is loaded only where it is used

        terms, scalar, y = self.context.job.privacy, self.scalar, self.context.y
        assert y is not None  # noqa: S101  the server holds the labels
        if scalar and self.head.w.size:
            raise JobError("privacy: the server's own weights would carry labels into every reply; use a sum")
        clients = len(self.clients)
        if self.context.preset.schedule == "async":
            # passes of all clients together, of which each may be in the middle of one when the run ends
            allowed = -(-self.total * clients // self.per_epoch) + clients - 1
        else:
            allowed = -(-self.total // self.per_epoch) * self.releases(clients)
        self.budget = Budget.plan(terms.epsilon or 0.0, terms.delta, allowed, self.context.train.rows)
        z = self.budget.multiplier
        if scalar:
            self.answering = ValuesServer(self.head, NoisyScalars(smoothing, terms.clip, z))
        else:
            classes = self.context.job.train.classes
            points, sensitivity = label_points(y, self.context.loss, terms.clip, classes)
            release = NoisyLabels(points, z * sensitivity)
            self.labels, self.head.soft = Posterior(release, self.context.loss, terms.clip), True

    @property
    def scalar(self) -> bool:
        return self.context.job.privacy.mechanism == "scalar"

    def releases(self, answers: int) -> int:
        """How often a wave of so many answers tells about a label: noisy labels are drawn once for all."""
        return answers if self.scalar else 1

    def exact_labels(self, rows: Rows) -> Numbers:
        y = self.context.y
        assert y is not None  # noqa: S101  the server holds the labels
        return y[rows]

    @property
    def every(self) -> int:
        epochs = self.context.job.train.evaluate_every
        return max(1, round(epochs * self.per_epoch)) if epochs else self.total

    async def waves(self) -> AsyncIterator[list[Asked]]:
        """Uploads in the order of arrival, alone (async) or one of every client (sync)."""
        together = len(self.clients) if self.context.preset.schedule == "sync" else 1
        while True:
            self.waiting.append(await self.inbox.next())
            self.heard[self.waiting[-1][0]] = self.answered
            while self.timely():
                ready = [asked for asked in self.waiting if self.in_turn(asked[0])][:together]
                if len(ready) < together:
                    break
                self.waiting = [asked for asked in self.waiting if asked not in ready]
                yield ready

    def in_turn(self, client: str) -> bool:
        """No network slows down the server's own client, so it is held to the pace of the quickest other."""
        others = [turns for name, turns in self.turns.items() if name != self.context.me]
        return client != self.context.me or self.turns[client] <= max(others, default=self.total)

    def timely(self) -> bool:
        """Whether nobody is unheard for too long, those whose uploads wait here apart."""
        asking = {client for client, _ in self.waiting}
        silent = [self.answered - at for client, at in self.heard.items() if client not in asking]
        return max(silent, default=0) < self.max_delay

    def affordable(self, wave: list[Asked]) -> bool:
        return self.budget is None or self.budget.affords(self.rows(wave), self.releases(len(wave)))

    def rows(self, wave: list[Asked]) -> Rows:
        """What a wave is about."""
        first, *others = (self.walks[client].batch(upload.tag) for client, upload in wave)
        if not all(np.array_equal(first, rows) for rows in others):
            asked = ", ".join(client for client, _ in wave)
            raise MalformedMessage(f"{asked} asked about different rows in one synchronous round")
        return first

    async def answer_wave(self, wave: list[Asked]) -> None:
        """Algorithm 1 of AsyREVEL, when the server receives: refresh the table, answer, update w0."""
        rows, asked = self.rows(wave), []
        for client, upload in wave:
            outputs = self.received(client, upload, rows)
            asked.append((client, upload.tag, outputs))
            self.table.store(client, rows, outputs[0], self.answered)
        now, after = self.answered, self.answered + len(wave)
        C, y = self.table.read(rows), self.labels(rows)
        if self.budget is not None:
            self.budget.spend(rows, self.releases(len(wave)))
        for client, tag, outputs in asked:
            self.table.note_ages(client, rows, now)
            seed = (*self.seed(client), tag)
            values = self.answering.answer(C, self.table.columns[client], outputs, y, seed)
            if not np.isfinite(values).all():
                raise Diverged(f"the loss is not finite after {now} answers; use a smaller step")
            await charge(self.context, C.size + outputs[0].size * self.answering.evaluations(outputs))
            self.answered += 1
            self.turns[client] += 1
            # the whole wave counts as answered, so that the order within it makes no difference
            await self.inbox.answer(client, Reply(tag, after, self.downlinks[client].pack(rows, values)))
        if self.own_step is not None:
            # Algorithm 1 updates w0 for every upload; a gradient of the same rows is taken once
            for _ in wave if self.context.preset.reply == "values" else wave[:1]:
                gradient = self.own_step.gradient(C, y)
                self.head.w = self.optimizer.step(self.state, self.head.w, gradient, self.rate(after))

    def received(self, client: str, upload: Upload, rows: Rows) -> Numbers:
        """[vectors, rows, outputs], if it is that."""
        expected = (self.vectors, len(rows), self.table.outputs[client].shape[1])
        try:
            if self.wire.changes is not None:
                there = self.table.outputs[client]
                return Changes(self.wire.changes, there).added(upload.outputs, there[rows])
            return self.wire.up.decode(upload.outputs, expected)
        except MalformedMessage as error:
            raise MalformedMessage(
                f"{client} sent outputs of shape {upload.outputs.shape}; rows and outputs are {expected[1:]}"
            ) from error

    async def release_clients(self) -> None:
        """An empty answer to whatever is still asked: after it, nobody's parameters change."""
        under_way = dict.fromkeys(self.clients, self.ahead)
        while any(under_way.values()):
            client, upload = self.waiting.pop(0) if self.waiting else await self.inbox.next()
            under_way[client] -= 1
            await self.inbox.answer(client, Reply(upload.tag, self.answered, NOTHING))

    async def measure(self, *, final: bool, when: float | None = None) -> None:
        """Ask every client for its outputs and write down the loss. Nobody is answered meanwhile."""
        net, context = self.context.evaluation_net, self.context
        when = net.clock.now() if when is None else when
        with net.clock.uncharged():
            tag = self.evaluation.next_tag()
            await net.broadcast(Measure(tag, final))
            tables = [table.rows for table in (context.train, context.test) if table]
            penalty, sent, plain = 0.0, float(context.net.meter.bytes()), Plain(context.job.cascade.precision)
            found: dict[str, list[Numbers]] = {}
            if self.own is not None:
                penalty, found[context.me] = self.own.penalty(), self.own.all_outputs()
            for client in net.peers:
                width = self.table.outputs[client].shape[1]
                found[client] = [
                    await receive_rows(net, client, plain, tag, number, (rows, width))
                    for number, rows in enumerate(tables)
                ]
                books = (await net.recv(Announce, client, tag)).values
                penalty, sent = penalty + float(books[0]), sent + float(books[1])
            parts = [[found[client][number] for client in self.clients] for number in range(len(tables))]
            z = [self.head.scores(self.head.w[None], np.concatenate(part, axis=1))[0] for part in parts]
            mark = Mark(self.answered // self.per_epoch, self.answered, final)
            loss = self.evaluation.record(z, penalty, round(sent), when, mark)
        # a private run never ends early because of its loss: that it did would tell something of the labels
        if self.budget is None and not loss < HOPELESS * max(self.start_loss, 1.0):
            raise Diverged(f"the loss is {loss:.3g}, it began at {self.start_loss:.3g}; use a smaller step")
        target = context.target_loss
        self.stopped = target is not None and loss <= target
