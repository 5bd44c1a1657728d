"""The server of the cascade: labels, a model of its own, and the latest outputs of all clients.

For every client it keeps one array with its latest output for every row (`latest`), updated in place. An
upload refreshes the client's rows; the answer is computed from them and from what the others sent last
about the same rows, however long ago. How long is measured: the age of an entry is the number of answers
given since it came. Who is answered when is decided in `answer_order`, and how old an entry can be is
in `output_age`.

What each side learns is in `cascade`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from colonnade.arrays import Numbers, Rows
from colonnade.compress.protocol import Plain
from colonnade.compress.rows import Changes
from colonnade.conversations.cascade.answer_order import AnswerOrder, Asked
from colonnade.conversations.cascade.client import Client, Codec
from colonnade.conversations.cascade.diverged import ran_away
from colonnade.conversations.cascade.output_table import LatestOutputs
from colonnade.conversations.cascade.outputs import receive_rows
from colonnade.conversations.cascade.private_replies import PrivateReplies
from colonnade.conversations.cascade.replying import ClientQuestion, Replying
from colonnade.conversations.cascade.row_order import BatchRows
from colonnade.conversations.cascade.settings import CascadeSettings
from colonnade.conversations.cascade.units import Unit
from colonnade.conversations.context import Context
from colonnade.conversations.evaluate import Evaluation, Mark
from colonnade.errors import ProtocolError
from colonnade.messages import Announce, Measure, Reply, Topic, Upload, tag_of
from colonnade.net.expect import finite, floats, said_by
from colonnade.optim.optimizers import Optimizer
from colonnade.optim.replies import Head, OwnStep
from colonnade.state import Declared

NOTHING = np.zeros(0)
HOPELESS = 1e4  # a loss this many times that of the start has diverged


@dataclass
class HeadTrainer:
    """F0 and how it learns; `step` is None where it has no parameters."""

    STATE = Declared(kept=("momentum",), parts=("head", "step"), remade=("state",))

    head: Head
    step: OwnStep | None
    optimizer: Optimizer
    rate: Callable[[int], float]  # the step after this many answers of the run
    state: Any  # the optimiser's own

    def update(self, C: Numbers, y: Numbers, times: int, answered: int) -> None:
        """Make this many steps of F0 on the rows of a wave: outputs C, labels y."""
        if self.step is None:
            return
        for _ in range(times):
            gradient = self.step.gradient(C, y)
            self.head.w = self.optimizer.step(self.state, self.head.w, gradient, self.rate(answered))

    @property
    def momentum(self) -> Any:
        """What the optimiser remembers, as plain values."""
        return self.optimizer.plain(self.state)

    @momentum.setter
    def momentum(self, plain: Any) -> None:
        self.optimizer.restore(self.state, plain)


@dataclass
class Uploads:
    """Reads uploads: which rows a question is about, and the outputs that it holds."""

    STATE = Declared(parts=("codec",))

    walks: dict[str, BatchRows]
    codec: Codec
    vectors: int  # how many parameter vectors an upload has outputs for

    def rows(self, wave: list[Asked]) -> Rows:
        """Return the rows that a wave asks about; refused if its clients ask about different ones."""
        first, *others = (self.walks[client].batch(upload.tag) for client, upload in wave)
        if not all(np.array_equal(first, rows) for rows in others):
            asked = ", ".join(client for client, _ in wave)
            raise ProtocolError(f"{asked} asked about different rows in one synchronous round")
        return first

    def outputs(self, client: str, upload: Upload, rows: Rows, there: Numbers) -> Numbers:
        """Return the outputs [vectors, rows, outputs] of an upload; `there` is the client's array in the
        table."""
        expected = (self.vectors, len(rows), there.shape[1])
        with said_by(client):
            if self.codec.changes is not None:
                return finite(Changes(self.codec.changes, there).added(upload.outputs, there[rows]))
            return finite(self.codec.up.decode(upload.outputs, expected))


@dataclass(frozen=True)
class Judged:
    """How the model is measured: on labels as they are, where F0 is trained on them in a unit of its own."""

    evaluation: Evaluation
    unit: Unit

    def loss(self, z: list[Numbers], penalty: float, sent: int, when: float, mark: Mark) -> float:
        """Record scores of F0 and all clients' penalties; returns the loss, in the label's own unit."""
        if self.evaluation.scribe is None:
            raise RuntimeError("only the server measures a cascade")
        scores = [self.unit.scores(part) for part in z]
        return self.evaluation.scribe.record(scores, self.unit.square * penalty, sent, when, mark)


@dataclass
class Server:
    """Answers clients, trains F0 and measures the model. `own` is the client within this party, if any."""

    STATE = Declared(kept=("mark_at", "start_loss"), parts=("waves", "trainer", "uploads", "private"))

    context: Context[CascadeSettings]
    waves: AnswerOrder
    uploads: Uploads
    latest: LatestOutputs
    trainer: HeadTrainer
    replying: Replying
    judged: Judged
    per_epoch: int
    own: Client | None = None
    private: PrivateReplies | None = None
    mark_at: int = 0  # answers, at which the model is measured next
    start_loss: float = 0.0

    def keep(self) -> None:
        """Let all that answers change be part of checkpoints."""
        gates = self.context.gates
        self.mark_at, y = self._every(), self.context.label_holder.y
        whole = self.latest.read(np.arange(len(y)))
        self.start_loss = float(self.head.losses(self.head.w[None], whole, y).mean())
        for thing in (self, self.latest, self.waves.inbox, *([self.own] if self.own is not None else [])):
            gates.keep(thing)
        for client, downlink in self.replying.downlinks.items():
            gates.keep(downlink, name=f"downlink {client}")
        gates.begin(self.per_epoch)
        if self.private is not None:
            self.private.go_on()

    @property
    def answered(self) -> int:
        """How many answers were given so far."""
        return self.waves.state.answered

    @property
    def head(self) -> Head:
        return self.trainer.head

    async def serve(self) -> None:
        """Answer clients until the run is over, measure on the way, and tell every client when it ends."""
        every, total, reached = self._every(), self.waves.total, False
        await self.context.gates.realign()
        async for wave in self.waves:
            if self.private is not None and not self.private.affords(self.uploads.rows(wave), len(wave)):
                self.waves.put_back(wave)
                break
            await self.answer_wave(wave)
            if self.answered >= self.mark_at and self.answered < total:
                self.mark_at += every
                reached = await self.measure(final=False)
            if self.answered >= total or reached:
                break
            if 0 < self.context.gates.upcoming <= self.answered:
                await self._checkpoint()
        when = self.context.net.clock.now()
        # after an empty answer nobody's parameters change
        await self.waves.release(self.context.plan.pace.ahead, Reply(0, self.answered, NOTHING))
        await self.measure(final=True, when=when)

    async def _checkpoint(self) -> None:
        """Let all clients store their state, and store the own."""
        gates = self.context.gates
        position = gates.upcoming
        await self.waves.still(self.context.plan.pace.ahead)
        await self.context.measuring.net.broadcast(Measure(tag_of(Topic.GATE, position), False))
        await gates.reached(position)

    def _every(self) -> int:
        """Return the number of answers between two measurements."""
        epochs = self.context.plan.pace.evaluate_every
        return max(1, round(epochs * self.per_epoch)) if epochs else self.waves.total

    async def answer_wave(self, wave: list[Asked]) -> None:
        """Refresh the table, answer a wave, update w0 (Algorithm 1 of AsyREVEL at the server)."""
        rows, questions, turns = self.uploads.rows(wave), list[ClientQuestion](), self.waves.state
        for client, upload in wave:
            outputs = self.uploads.outputs(client, upload, rows, self.latest.outputs[client])
            questions.append(ClientQuestion(client, upload.tag, upload.outputs, outputs))
            self.latest.store(client, rows, outputs[0], turns.answered)
        now, after = turns.answered, turns.answered + len(wave)
        C = self.latest.read(rows)
        if self.private is None:
            y: Numbers = self.context.label_holder.y[rows]
        else:
            y = self.private.labels(rows)
            self.private.spend(rows, len(wave))
        replies = self.replying.replies(questions, rows, C, y)
        for asked, packed in zip(questions, replies, strict=True):
            self.latest.note_ages(asked.client, rows, now)
            if self.context.net.clock.virtual:  # `work_ms` stands for columns, and an answer touches none
                evaluated = asked.outputs[0].size * self.replying.evaluations(asked.outputs)
                await self.context.charge(C.size + evaluated)
            turns.answered += 1
            turns.turns[asked.client] += 1
            # the whole wave counts as answered, so that the order within it makes no difference
            await self.waves.inbox.answer(asked.client, Reply(asked.tag, after, packed))
        settings = self.context.plan.settings
        # AsyREVEL's Algorithm 1 updates w0 for every upload; a gradient of the same rows is taken once
        times = len(wave) if settings.reply == "values" else settings.local_steps
        self.trainer.update(C, y, times, after)

    async def measure(self, *, final: bool, when: float | None = None) -> bool:
        """Measure the model from all clients' present outputs; returns whether the target is reached."""
        net = self.context.measuring.net
        when = net.clock.now() if when is None else when
        with net.clock.uncharged():  # nobody is answered meanwhile
            tag = self.judged.evaluation.next_tag()
            await net.broadcast(Measure(tag, final))
            penalty, sent, parts = await self._all_outputs(tag)
            z = [self.head.scores(self.head.w[None], np.concatenate(part, axis=1))[0] for part in parts]
            mark = Mark(self.answered // self.per_epoch, self.answered, final)
            loss = self.judged.loss(z, penalty, round(sent), when, mark)
        # a private run never ends early because of its loss: that it did would tell something of the labels
        if self.private is None and not loss < HOPELESS * self.judged.unit.square * max(self.start_loss, 1.0):
            began = self.judged.unit.square * self.start_loss
            raise ran_away(f"the loss is {loss:.3g}, it began at {began:.3g}", self.head.loss)
        return self.judged.evaluation.over(loss, self.answered / self.per_epoch)

    async def _all_outputs(self, tag: int) -> tuple[float, float, list[list[Numbers]]]:
        """Return all clients' penalties and sent bytes, and their outputs of the training and the test
        rows."""
        net, context = self.context.measuring.net, self.context
        tables = [table.rows for table in (context.train, context.test) if table]
        penalty, sent, plain = 0.0, float(context.net.meter.bytes()), Plain(context.plan.settings.precision)
        found: dict[str, list[Numbers]] = {}
        if self.own is not None:
            penalty, found[context.me] = self.own.penalty(), self.own.all_outputs()
        for client in net.peers:
            width = self.latest.outputs[client].shape[1]
            found[client] = [
                await receive_rows(net, client, plain, tag, number, (rows, width))
                for number, rows in enumerate(tables)
            ]
            books = (await net.recv(Announce, client, tag, values=floats(2, low=0))).values
            penalty, sent = penalty + float(books[0]), sent + float(books[1])
        order = self.waves.clients
        return penalty, sent, [[found[client][k] for client in order] for k in range(len(tables))]
