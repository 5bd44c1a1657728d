"""One party of a run, from joining to leaving, and one training: the same program in every world.

`Party` is the lifecycle: agree on keys with every peer, make secure sums, leave when nobody needs this party
any more, and tell the peers if something fails. `train_once` is what a party does in between: it runs the
plan's conversation and returns its share. `run.coalitions.train` does so as often as the run asks for.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec
import numpy as np

from colonnade import __version__
from colonnade.arrays import Floats
from colonnade.conversations.context import NO_MODELS, Context, GivenModels, Measuring, Outcome
from colonnade.conversations.gates import Gates
from colonnade.data.table import Table
from colonnade.disk import Disk, RealDisk
from colonnade.engines.engine import engine_of
from colonnade.errors import Aborted, ColonnadeError, DeadlineExceeded
from colonnade.job import HERE, MEMORY, EngineTerms, SumName
from colonnade.job.plan import Plan
from colonnade.net.endpoint import Endpoint
from colonnade.openings.account import heard
from colonnade.openings.limits import OpeningLimits
from colonnade.openings.opening import UNKNOWN, Declare, Extent, Opening, undisputed
from colonnade.privacy.label_noise import private_table
from colonnade.privacy.noise import Noise
from colonnade.records import Records
from colonnade.result import Heard, Moment, Worth
from colonnade.run.registry import CONVERSATIONS
from colonnade.run.traffic import Traffic
from colonnade.secure.declared import DeclaredSum
from colonnade.secure.keys import Identity, agree, spoken
from colonnade.secure.neighbours import draw
from colonnade.secure.protocol import SecureSum
from colonnade.secure.streams import PairStreams
from colonnade.secure.sums import SUMS
from colonnade.shares import Layout
from colonnade.timeline import PartyTimeline

LAST_WORDS_S = 0.5  # how long a party that waited in vain listens for what its peers say of it

Secrets = dict[str, bytes]
Progress = Callable[[Moment], object]
"""Hears of every evaluation; where it shares the evaluator's process, an answer of True ends the run."""


@dataclass
class Party:
    """One party while it takes part in a run: `async with Party(identity, nets) as party`.

    `nets` are its ends of the run's networks. `for_peers` says what peers may read of an error here.
    `overhear` may put something around its secure sums.
    """

    identity: Identity
    nets: tuple[Endpoint, ...]
    version: str = spoken(__version__)  # what peers are told
    for_peers: Callable[[ColonnadeError], ColonnadeError] = lambda error: error
    overhear: Callable[[SecureSum], SecureSum] = lambda secure: secure
    _sums: list[SecureSum] = field(default_factory=list)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Tell every peer if this party failed, and close all sums and networks."""
        cause = first_cause(error) if error is not None else None
        try:
            if cause is not None:
                known = cause if isinstance(cause, ColonnadeError) else Aborted(f"{self.me} stopped")
                words = self.for_peers(known)
                # all at once: each waits a moment for its last words to be taken
                await asyncio.gather(*(net.abort(words) for net in self.nets), return_exceptions=True)
                if isinstance(cause, ColonnadeError) and DeadlineExceeded.__name__ in f"{cause!r}":
                    cause = await self._explained(cause)
        finally:
            for secure in self._sums:
                with suppress(ColonnadeError):  # a failure there has ended the run already
                    await secure.close()
            for net in self.nets:
                await net.close()
        if cause is not None and cause is not error:
            raise cause from error

    async def _explained(self, silence: ColonnadeError) -> ColonnadeError:
        """Return the same error with what the peers say: a party that was waited for may itself have been
        waiting."""
        await asyncio.sleep(LAST_WORDS_S)
        said = {text for net in self.nets for text in net.last_words.values()} - {str(silence)}
        return type(silence)("; ".join([str(silence), *sorted(said)])) if said else silence

    @property
    def me(self) -> str:
        return self.nets[0].me

    async def join(self, net: Endpoint, digest: str) -> Secrets:
        """Agree with every peer on the version, on what the run is about, and on one secret each."""
        return await agree(net, self.identity, version=self.version, job=digest)

    def secure_sum(self, net: Endpoint, secrets: Secrets, kind: SumName) -> SecureSum:
        """Make a secure sum over a network, for what is declared there; it is closed with the party."""
        summed = SUMS[kind].among(net, secrets)
        secure = self.overhear(summed if summed.metered else DeclaredSum(summed, net.meter.limits))
        self._sums.append(secure)
        return secure

    async def leave(self, *nets: Endpoint) -> None:
        """Wait until nobody needs this party's part in a sum any more, then leave these networks."""
        for secure in self._sums:
            await secure.settle()
        for net in nets:
            await net.finish()


class Share(msgspec.Struct, kw_only=True):
    """What a party returns after a run: its weights, which stay its own, and counts for the result."""

    party: str
    weights: dict[str, Any]  # arrays
    step: float
    rounds: int
    updates: int
    delays: dict[int, int]
    launched: int = 0
    delay_bound: int | None = None
    tau_1: int | None = None
    tau_2: int | None = None
    traffic: Traffic
    seconds: float
    history: list[Moment]
    metrics: dict[str, float]
    epsilon: float | None = None
    converged: bool | None = None
    chosen: dict[str, float] = {}  # settings that the data decided, by name
    tensors: dict[str, Layout] = {}  # in the vectors of `weights`, where they are networks
    preparation: dict[str, Any] | None = None  # how the party's columns became numbers
    test_scores: Any = None  # an array, at the party that evaluates the model
    cpu_seconds: float | None = None
    peak_memory_mb: float | None = None  # of the party's process, where it has one of its own
    opened: list[Heard] = []  # what every other party hears of this one's labels and columns
    timeline: PartyTimeline | None = None  # when it computed and sent, where the run was to be recorded
    worth: Worth | None = None  # what parties are worth, where the run says so

    def counts(self) -> Share:
        """Return the same without its arrays, as JSON can have it."""
        return msgspec.structs.replace(self, weights={}, test_scores=None)


@dataclass(frozen=True)
class Kept:
    """Where a party keeps its checkpoints, and whether to go on from those that lie there."""

    folder: Path
    resume: bool = False
    disk: Disk = field(default_factory=RealDisk)
    run: str = ""  # to which they belong, where runs have numbers


@dataclass(frozen=True, eq=False)
class Work:
    """What one party needs to train: the plan, its own columns, and the loss at which to stop, if any."""

    plan: Plan[Any]
    train: Table
    test: Table | None = None
    target_loss: float | None = None
    models: GivenModels = NO_MODELS
    progress: Progress = lambda moment: None
    digest: str = ""  # what the parties agree on, where that is more than the plan
    kept: Kept | None = None  # where checkpoints go, and whether the run goes on from them
    memory: int = MEMORY  # bytes that this party may use
    engine: EngineTerms = HERE
    columns: Mapping[str, int] = field(default_factory=dict)  # of other parties, where that is known
    widest: int = UNKNOWN  # columns of a party that may learn its weights
    apart: bool = False  # whether the parties are not all the caller's
    objects: bool = False  # whether some party's model is an object that the plan does not describe
    start: Floats | None = None  # own weights to begin with, no more than a hint; None: nobody has any

    def openings(self, me: str) -> list[Opening]:
        """Return everything that one training may tell anybody, as far as this party knows how large data
        are."""
        return CONVERSATIONS[self.plan.conversation].openings(self.plan, self.extent(me))

    def extent(self, me: str) -> Extent:
        """Return how large data are, as far as this party knows."""
        test = 0 if self.test is None else self.test.rows
        columns = {**self.columns, me: self.train.width}
        objects = self.objects or self.models != NO_MODELS
        kept = self.kept is not None
        return Extent(self.train.rows, test, columns, objects, self.widest, self.apart, kept)


async def train_once(party: Party, work: Work, net: Endpoint, measuring: Endpoint | None = None) -> Share:
    """Take part in the plan's conversation to its end; returns this party's share.

    `measuring` is a network for measurements alone, where there is one.
    """
    plan, openings = work.plan, work.openings(net.me)
    limits = OpeningLimits(openings, net.me)
    for each in (net, measuring):
        if each is not None:
            each.declare(limits)
    secrets = await party.join(net, work.digest or plan.digest())
    shared = secrets
    if plan.neighbours is not None:
        near = await draw(net, plan.neighbours)
        shared = {peer: secret for peer, secret in secrets.items() if peer in near}
    secure = party.secure_sum(net, shared, plan.secure_sum)
    # the same sum serves both where they share a network: topics keep their tags apart
    beside = secure if measuring is None else party.secure_sum(measuring, shared, plan.secure_sum)
    gates = _gates(work, net)
    await gates.open()
    try:
        with engine_of(work.engine) as engine:
            outcome = await CONVERSATIONS[plan.conversation].converse(
                Context(
                    plan=plan,
                    net=net,
                    sum=secure,
                    measuring=Measuring(measuring or net, beside),
                    train=private_table(work.train, plan, lambda: Noise(gates.secret())),
                    test=work.test,
                    target_loss=work.target_loss,
                    progress=work.progress,
                    models=work.models,
                    streams=PairStreams(net.me, secrets),
                    checkpoints=gates,
                    memory=work.memory,
                    widest=work.widest,
                    apart=work.apart,
                    engine=engine,
                    start=work.start,
                )
            )
    finally:
        await gates.settle()  # also where the run is cut off: its next session reads what was written
    return _share(work, openings, outcome, net, measuring or net)


def held_to(net: Endpoint, book: Declare = undisputed) -> Declare:
    """Let a network open nothing but what the function that is returned is told first; `book` hears of it
    before."""
    limits = OpeningLimits((), net.me)
    net.declare(limits)

    async def declare(openings: list[Opening]) -> None:
        await book(openings)
        for each in openings:
            limits.allow(each)

    return declare


def _gates(work: Work, net: Endpoint) -> Gates:
    """Return this party's checkpoints: none where the plan has none, or there is no place for them."""
    plan, kept = work.plan, work.kept
    if plan.checkpoints is None or kept is None:
        return Gates(net, plan.evaluator)
    words = (work.digest or plan.digest(), str(work.target_loss), kept.run)
    job = hashlib.sha256(" ".join(words).encode()).hexdigest()
    data = cache(lambda: fingerprint(work.train, work.test))
    records = Records(kept.folder, kept.disk, net.me, job, data)
    if not kept.resume:
        records.forget()
    return Gates(net, plan.evaluator, records, plan.checkpoints, plan.network.latency_ms / 1e3)


def fingerprint(*tables: Table | None) -> str:
    """Return a digest of what a party trains on: its columns, labels and weights, row by row."""
    digest = hashlib.blake2b(digest_size=32)
    for table in tables:
        if table is None:
            digest.update(b"none")
            continue
        X = table.X
        arrays = [X] if isinstance(X, np.ndarray) else [X.data, X.indices, X.indptr]
        for array in (*arrays, table.y, table.weight):
            if array is not None:
                digest.update(f"{array.dtype.str} {array.shape}".encode())
                digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def _share(
    work: Work, openings: list[Opening], outcome: Outcome, net: Endpoint, measuring: Endpoint
) -> Share:
    scribe, privacy = outcome.evaluation.scribe, work.plan.privacy
    # randomised labels spend their whole epsilon before anything is sent; only their holder reports it
    told = privacy.epsilon if privacy.mechanism == "labels" and work.train.y is not None else None
    blind = work.plan.blind
    noisy = blind.told.epsilon if blind is not None and blind.told is not None else None
    return Share(
        party=net.me,
        weights=dict(outcome.weights),
        step=outcome.step,
        rounds=outcome.rounds,
        updates=outcome.updates,
        delays=dict(sorted(outcome.delays.items())),
        launched=outcome.launched,
        delay_bound=outcome.lateness.bound,
        tau_1=outcome.lateness.tau_1,
        tau_2=outcome.lateness.tau_2,
        traffic=Traffic.of(net, measuring),
        seconds=net.clock.now(),
        history=scribe.history if scribe is not None else [],
        metrics=scribe.metrics if scribe is not None else {},
        epsilon=told or outcome.epsilon,
        converged=scribe.ending.converged if scribe is not None else outcome.converged,
        chosen=outcome.chosen,
        tensors=dict(outcome.tensors),
        test_scores=scribe.test_scores if scribe is not None else None,
        opened=told_by(net.me, openings, work.train.rows, told or outcome.epsilon or noisy),
    )


def told_by(me: str, openings: list[Opening], rows: int, epsilon: float | None = None) -> list[Heard]:
    """Return what every other party hears of this one, at the most; `epsilon` bounds what it tells of a
    label."""
    return [
        msgspec.structs.replace(each, epsilon=epsilon) if each.about == "labels" else each
        for each in heard(openings, rows, of=me)
    ]


def first_cause(error: BaseException) -> BaseException:
    """Return the first error inside groups of errors that is not a cancellation: a failure cancels all
    else."""
    while isinstance(error, BaseExceptionGroup):
        error = next(
            (inner for inner in error.exceptions if not isinstance(inner, asyncio.CancelledError)),
            error.exceptions[0],
        )
    return error
