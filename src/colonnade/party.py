"""One party: join, agree on the job, run the conversation, hand back its share and its books.

The program knows a network, a clock, an identity and its own table. It is the same in every world.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

import msgspec
import numpy as np
from numpy.typing import NDArray

from colonnade import __version__
from colonnade.config import Job
from colonnade.conversations.backward import BackwardConversation, WorkCost
from colonnade.conversations.block import Block
from colonnade.conversations.evaluate import Evaluation
from colonnade.conversations.schedule import Schedule
from colonnade.conversations.tune import SAMPLE, smoothness
from colonnade.conversations.window import Window
from colonnade.data.table import Table
from colonnade.errors import ColonnadeError
from colonnade.losses import LOSSES
from colonnade.net.mailbox import Endpoint
from colonnade.optim.sgd import Sgd
from colonnade.optim.steps import automatic_step
from colonnade.presets import batches_in_flight
from colonnade.regularizers import REGULARIZERS
from colonnade.result import Moment
from colonnade.secure.keys import Identity, agree
from colonnade.secure.masked import MaskedSum
from colonnade.secure.plain import PlainSum
from colonnade.secure.protocol import SecureSum
from colonnade.secure.tree import TreeSum

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Assignment:
    """What one party is given: the job, its columns, and who else takes part."""

    job: Job
    train: Table
    test: Table | None
    active: tuple[str, ...]
    target_loss: float | None = None


class Share(msgspec.Struct, kw_only=True):
    """What a party hands back: its weights stay its own, its books become part of the result."""

    party: str
    weights: list[float]
    step: float
    rounds: int
    updates: int
    delays: dict[int, int]
    messages: int
    bytes_by_kind: dict[str, int]
    bytes_by_peer: dict[str, int]
    evaluation_bytes: int
    received_bytes: int
    refused: dict[str, int]
    seconds: float
    cpu_seconds: float
    history: list[Moment]
    metrics: dict[str, float]


@dataclass
class Party:
    net: Endpoint
    identity: Identity
    assignment: Assignment
    evaluation_net: Endpoint | None = None  # apart from training where the world can do that for free
    progress: Callable[[Moment], None] = lambda moment: None

    async def run(self) -> Share:
        """Take part in the run to its end; on failure tell the peers why before raising it here."""
        try:
            share = await self._train()
            for net in self._nets():
                await net.finish()
        except BaseException as error:
            cause = first_cause(error)
            if isinstance(cause, ColonnadeError):
                for net in self._nets():
                    await net.abort(cause)
                raise cause from error
            raise
        return share

    async def _train(self) -> Share:
        job, net = self.assignment.job, self.net
        train = job.train
        measuring = self.evaluation_net or net
        secrets = await agree(net, self.identity, version=__version__, job=job.digest())
        secure, secure_evaluation = self._secure_sum(net, secrets), self._secure_sum(measuring, secrets)
        loss, regularizer = LOSSES[train.loss or "logistic"], REGULARIZERS[train.regularizer]
        root = self.assignment.active[0]
        table, test = self.assignment.train, self.assignment.test
        schedule = Schedule(table.rows, train.batch, train.epochs, job.seed, self.assignment.active)
        window = Window(batches_in_flight(job, len(self.assignment.active)), schedule.rounds)

        if train.step == "auto":
            found = await smoothness(
                net,
                secure,
                table.X,
                loss=loss,
                penalty=train.l2 * regularizer.smoothness,
                root=root,
                rng=np.random.default_rng([job.seed, net.parties.index(net.me), 1]),
                sample=schedule.order(0)[:SAMPLE],
            )

            def rate(delay: int) -> float:
                return automatic_step(found, train.batch, table.rows, delay)
        else:
            fixed = float(train.step)

            def rate(delay: int) -> float:
                return fixed

        block = Block(table.X, schedule, Sgd(), regularizer, train.l2)
        evaluation = Evaluation(
            measuring,
            secure_evaluation,
            root,
            loss,
            table.X,
            test.X if test else None,
            table.y,
            test.y if test else None,
            self.progress,
        )
        with _workers(train.threads, virtual=net.clock.virtual) as pool:
            conversation = BackwardConversation(
                net=net,
                sum=secure,
                schedule=schedule,
                window=window,
                block=block,
                loss=loss,
                y=table.y if net.me in self.assignment.active else None,
                rate=rate,
                evaluation=evaluation,
                evaluate_every=train.evaluate_every,
                target_loss=self.assignment.target_loss,
                sent_bytes=net.meter.bytes,
                cost=WorkCost(job.network.ns_per_value, job.network.us_per_call),
                threads=train.threads,
                pool=pool,
            )
            await conversation.run()
        return self._share(conversation)

    async def close(self) -> None:
        for net in self._nets():
            await net.close()

    def _secure_sum(self, net: Endpoint, secrets: dict[str, bytes]) -> SecureSum:
        match self.assignment.job.secure.sum:
            case "masked":
                return MaskedSum(net, secrets)
            case "tree":
                return TreeSum(net)
            case "plain":
                return PlainSum(net)

    def _nets(self) -> list[Endpoint]:
        return [self.net] if self.evaluation_net is None else [self.net, self.evaluation_net]

    def _share(self, done: BackwardConversation) -> Share:
        meter, evaluation_meter = self.net.meter, (self.evaluation_net or self.net).meter
        return Share(
            party=self.net.me,
            weights=done.block.w.tolist(),
            step=done.rate(done.delays.recent()),
            rounds=done.window.base,
            updates=done.updates,
            delays=dict(sorted(done.delays.counts.items())),
            messages=meter.messages(),
            bytes_by_kind=meter.bytes_by_kind(),
            bytes_by_peer=meter.bytes_by_peer(),
            evaluation_bytes=evaluation_meter.bytes(evaluation=True),
            received_bytes=meter.received_bytes,
            refused=dict(meter.refused),
            seconds=self.net.clock.now(),
            cpu_seconds=0.0,
            history=done.evaluation.history,
            metrics=done.evaluation.metrics,
        )


def first_cause(error: BaseException) -> BaseException:
    """The first real error inside groups of errors; a failure elsewhere only cancels the rest."""
    while isinstance(error, BaseExceptionGroup):
        error = next(
            (inner for inner in error.exceptions if not isinstance(inner, asyncio.CancelledError)),
            error.exceptions[0],
        )
    return error


@contextmanager
def _workers(threads: int, *, virtual: bool) -> Iterator[ThreadPoolExecutor | None]:
    """Real threads, except in the simulated world, where the clock has as many lanes instead."""
    if threads == 1 or virtual:
        yield None
        return
    with ThreadPoolExecutor(threads, thread_name_prefix="block") as pool:
        yield pool
