"""One party: join, agree on the job, run the conversation, hand back its share and its books.

The program knows a network, a clock, an identity and its own table. It is the same in every world.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import msgspec

from colonnade import __version__
from colonnade.conversations.cascade import cascade
from colonnade.conversations.context import Context, Outcome
from colonnade.conversations.kernel import gram, kernel
from colonnade.conversations.linear import backward, pull
from colonnade.data.table import Table
from colonnade.errors import ColonnadeError
from colonnade.job import Job
from colonnade.job.rules import preset_of
from colonnade.models.blackbox import Model
from colonnade.net.endpoint import Endpoint
from colonnade.privacy.labels import private_table
from colonnade.result import Moment
from colonnade.secure.keys import Identity, agree
from colonnade.secure.masked import MaskedSum
from colonnade.secure.plain import PlainSum
from colonnade.secure.protocol import SecureSum
from colonnade.secure.tree import TreeSum

CONVERSATIONS: dict[str, Callable[[Context], Awaitable[Outcome]]] = {
    "backward": backward.converse,
    "pull": pull.converse,
    "kernel": kernel.converse,
    "gram": gram.converse,
    "cascade": cascade.converse,
}


@dataclass(frozen=True)
class Assignment:
    """What one party is given: the job, its columns, and who else takes part."""

    job: Job
    train: Table
    test: Table | None
    active: tuple[str, ...]
    target_loss: float | None = None
    model: Model | None = None
    server_model: Model | None = None


class Share(msgspec.Struct, kw_only=True):
    """What a party hands back: its weights stay its own, its books become part of the result."""

    party: str
    weights: dict[str, Any]
    step: float
    rounds: int
    updates: int
    delays: dict[int, int]
    messages: int
    bytes_by_kind: dict[str, int]
    bytes_by_peer: dict[str, int]
    payload_by_kind: dict[str, int] = {}  # of bytes_by_kind, what is arrays and not framing
    sealed_bytes: int = 0  # of them, what encryption adds; the rest is our own framing
    evaluation_bytes: int
    received_messages: int
    received_bytes: int
    refused: dict[str, int]
    seconds: float
    cpu_seconds: float | None = None
    peak_memory_mb: float | None = None  # of the party's process, where it has one of its own
    history: list[Moment]
    metrics: dict[str, float]
    epsilon: float | None = None


@dataclass
class Party:
    net: Endpoint
    identity: Identity
    assignment: Assignment
    evaluation_net: Endpoint | None = None
    progress: Callable[[Moment], None] = lambda moment: None
    for_peers: Callable[[ColonnadeError], ColonnadeError] = lambda error: (
        error
    )  # what they may read of a fault
    _sums: list[SecureSum] = field(default_factory=list)

    async def run(self) -> Share:
        """Take part in the run to its end; on failure tell the peers why before raising it here."""
        try:
            share = await self._converse()
            for secure in self._sums:
                await secure.settle()
            for net in self._nets():
                await net.finish()
        except BaseException as error:
            cause = first_cause(error)
            if isinstance(cause, ColonnadeError):
                for net in self._nets():
                    await net.abort(self.for_peers(cause))
                raise cause from error
            raise
        return share

    async def close(self) -> None:
        for secure in self._sums:
            with suppress(ColonnadeError):  # whatever failed there has ended the run already
                await secure.close()
        for net in self._nets():
            await net.close()

    async def _converse(self) -> Share:
        given, net = self.assignment, self.net
        measuring = self.evaluation_net or net
        preset = preset_of(given.job)
        secrets = await agree(net, self.identity, version=__version__, job=given.job.digest())
        secure = self._secure_sum(net, secrets)
        outcome = await CONVERSATIONS[preset.conversation](
            Context(
                job=given.job,
                preset=preset,
                net=net,
                sum=secure,
                evaluation_net=measuring,
                # the same sum serves both where they share a network: topics keep their tags apart
                evaluation_sum=secure if measuring is net else self._secure_sum(measuring, secrets),
                train=private_table(given.train, given.job),
                test=given.test,
                active=given.active,
                target_loss=given.target_loss,
                progress=self.progress,
                model=given.model,
                server_model=given.server_model,
            )
        )
        return self._share(outcome)

    def _secure_sum(self, net: Endpoint, secrets: dict[str, bytes]) -> SecureSum:
        secure: SecureSum
        match self.assignment.job.secure.sum:
            case "masked":
                secure = MaskedSum(net, secrets)
            case "tree":
                secure = TreeSum(net)
            case "plain":
                secure = PlainSum(net)
        self._sums.append(secure)
        return secure

    def _nets(self) -> list[Endpoint]:
        return [self.net] if self.evaluation_net is None else [self.net, self.evaluation_net]

    def _share(self, outcome: Outcome) -> Share:
        meter, evaluation_meter = self.net.meter, (self.evaluation_net or self.net).meter
        return Share(
            party=self.net.me,
            weights=dict(outcome.weights),
            step=outcome.step,
            rounds=outcome.rounds,
            updates=outcome.updates,
            delays=dict(sorted(outcome.delays.items())),
            messages=meter.messages(),
            bytes_by_kind=meter.bytes_by_kind(),
            bytes_by_peer=meter.bytes_by_peer(),
            payload_by_kind=meter.payload_by_kind(),
            sealed_bytes=meter.sealed_bytes(),
            evaluation_bytes=evaluation_meter.bytes(evaluation=True),
            received_messages=meter.received_messages,
            received_bytes=meter.received_bytes,
            refused=dict(meter.refused),
            seconds=self.net.clock.now(),
            history=outcome.evaluation.history,
            metrics=outcome.evaluation.metrics,
            epsilon=self._labels_told() or outcome.epsilon,
        )

    def _labels_told(self) -> float | None:
        """Epsilon of labels that were made private before anything was sent, at their holder."""
        given, terms = self.assignment, self.assignment.job.privacy
        return terms.epsilon if terms.mechanism == "labels" and given.train.y is not None else None


def first_cause(error: BaseException) -> BaseException:
    """The first real error inside groups of errors; a failure elsewhere only cancels the rest."""
    while isinstance(error, BaseExceptionGroup):
        error = next(
            (inner for inner in error.exceptions if not isinstance(inner, asyncio.CancelledError)),
            error.exceptions[0],
        )
    return error
