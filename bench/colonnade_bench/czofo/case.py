"""One run of VFL-CZOFO's experiments: what was asked, and what came of it.

A case is a row of a table, a record what came of it. Bytes are the meter's: everything sent in training, the
first pass over all rows and framing included; `payload` is the arrays alone. Measuring is counted apart and
not here.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec
import numpy as np

from colonnade.attacks.split_labels import gradients_heard
from colonnade.attacks.transcript import Transcript
from colonnade.conversations.predict import Holding
from colonnade.data.split.assign import Assigned
from colonnade.errors import Aborted, Diverged
from colonnade.job import Job, job_from
from colonnade.job.plan import Plan
from colonnade.losses import LOSSES
from colonnade.result import Moment
from colonnade.run.federate import Tables, plan_for, run_tables
from colonnade.run.launch import launch
from colonnade.run.party import Share
from colonnade.run.registry import CONVERSATIONS
from colonnade.run.world import Launch, untapped
from colonnade_bench.common import machine
from colonnade_bench.czofo.data import experiment
from colonnade_bench.czofo.paper_epsilon import Observed
from colonnade_bench.party_tables import first_rows, held_out, label_of

Sections = dict[str, Any]
CLIENT = "party-0"
CALIBRATION = 20  # a case with a limit is first tried on one row in so many


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """What is run: the label of its row, the data and the job's sections."""

    part: str
    name: str
    algorithm: str
    dataset: str
    clients: int = 2
    rows: int | None = None  # of the training rows, where not all
    validation: bool = False
    world: str = "local"
    seed: int = 0
    speed: float = 1.0  # of one client, another for every seed; the others have 1
    listening: bool = False  # keep what the paper's epsilon is computed from
    train: Sections = {}
    cascade: Sections = {}
    model: Sections = {}
    privacy: Sections = {}

    @property
    def slug(self) -> str:
        """The name of the record's file."""
        return re.sub(r"[^a-z0-9.]+", "-", f"{self.part} {self.name} {self.world}".lower()).strip("-")

    @property
    def epochs(self) -> int:
        return int(self.train["epochs"])

    @property
    def steps(self) -> str:
        """The optimiser and the client's step, as the tables say them."""
        step = self.train.get("step", "auto")
        return f"{self.cascade.get('optimizer', 'sgd')} {step if isinstance(step, str) else f'{step:g}'}"

    @property
    def speeds(self) -> list[float]:
        """The speeds of the server and of all clients."""
        slow = self.clients - 1 - self.seed % self.clients
        return [1.0, *(self.speed if client == slow else 1.0 for client in range(self.clients))]

    def shortened(self, epochs: int) -> Case:
        """The same case with another number of epochs."""
        return msgspec.structs.replace(self, train={**self.train, "epochs": epochs})


class Measurement(msgspec.Struct, frozen=True):
    """One measurement of a run: epochs done, bytes sent so far, test accuracy in per cent, training loss."""

    epochs: float
    bytes: int
    accuracy: float
    loss: float


class Record(msgspec.Struct, kw_only=True):
    """What came of a case, and where it was made."""

    case: Case
    machine: str
    device: str
    points: list[Measurement]
    payload: dict[str, int]  # by kind; nothing if stopped before the parties could hand in their shares
    messages: int | None
    sealed: int | None = None  # bytes of TLS records, among the others; none in the local world
    seconds: float
    cpu_seconds: dict[str, float] = {}  # of every party's process, in the network world
    complete: bool = True
    ended: str = ""  # why, where it is not complete
    rows: int | None = None  # of training
    step: float = 0.0  # of the first client
    answers: int = 0  # to all clients
    epsilon: float | None = None  # spent, where replies are private
    train_accuracy: float | None = None  # in per cent, in the end; None in records of older runs
    seen: Observed | None = None  # by the first client, where it listened

    @property
    def last(self) -> Measurement:
        """The last measurement; NaN where there is none."""
        return self.points[-1] if self.points else Measurement(0.0, 0, float("nan"), float("nan"))

    @property
    def accuracy(self) -> float:
        return self.last.accuracy

    @property
    def megabytes(self) -> float:
        return self.last.bytes / 1e6

    @property
    def payload_megabytes(self) -> float | None:
        return self.payload_megabytes_of(*self.payload)

    def payload_megabytes_of(self, *kinds: str) -> float | None:
        """Megabytes of arrays in messages of these kinds, where the parties handed in their shares."""
        return sum(self.payload.get(kind, 0) for kind in kinds) / 1e6 if self.payload else None

    @property
    def framing(self) -> tuple[float | None, float | None]:
        """Bytes of our own framing and of TLS records, in per cent of the payload."""
        payload = sum(self.payload.values())
        sealed = 0 if self.case.world == "local" else self.sealed
        if not payload or sealed is None:
            return None, None
        return 100 * (self.last.bytes - payload - sealed) / payload, 100 * sealed / payload

    def megabytes_to(self, accuracy: float) -> float | None:
        """Megabytes sent until the test accuracy was first measured to be that high."""
        return next((point.bytes / 1e6 for point in self.points if point.accuracy >= accuracy), None)


def job_of(case: Case, classes: int, device: str = "cpu") -> Job:
    """The job of a case whose label has so many classes."""
    model = dict(case.model)
    if device != "cpu":
        model["device"] = device
    softmax = {"loss": "softmax", "classes": classes} if classes > 2 else {}
    plain: dict[str, Any] = {
        "algorithm": case.algorithm,
        "world": case.world,
        "seed": case.seed,
        "compare": False,
        "data": {"train": case.dataset, "parties": case.clients, "server": "apart"},
        "train": {"batch": 64, "l2": 0.0, "tolerance": 0.0, **softmax, **case.train},
        "cascade": case.cascade,
        "model": model,
        "network": {"deadline_s": 600.0},
        "secure": {"labels": "clear"},  # as in the papers
    }
    if case.speed != 1.0:
        plain["network"]["speeds"] = case.speeds
    if case.privacy:
        plain["privacy"] = case.privacy
    return job_from(plain)


def measure(case: Case, device: str = "cpu", seconds: float | None = None) -> Record:
    """Run a case and return its record.

    With a limit in seconds there are as many epochs as fit, and what was reached by then counts.
    """
    end = None if seconds is None else time.monotonic() + seconds
    assigned, tables = experiment(case.dataset, case.clients, case.rows, case.validation)
    if end is not None:
        case = case.shortened(epochs_within(case, tables, device, end - time.monotonic()))
    attempt = Attempt.of(case, device, assigned, tables)
    start = time.monotonic()
    attempt.run(end)
    return attempt.record(device, time.monotonic() - start)


@dataclass
class Attempt:
    """A case while it runs: what it runs on, and what is known of it so far."""

    case: Case
    order: Launch
    tables: Tables
    points: list[Measurement] = field(default_factory=list)
    transcript: Transcript = field(default_factory=lambda: Transcript(CLIENT))
    shares: dict[str, Share] = field(default_factory=dict)
    ended: str = ""

    @staticmethod
    def of(case: Case, device: str, assigned: Assigned, tables: Tables) -> Attempt:
        """A case that has not begun; `tables` are the assigned columns, prepared."""
        plan, ready = plan_for(job_of(case, len(assigned.labels.classes), device), tables)
        # processes prepare their columns themselves
        data = assigned.parties if case.world == "network" else ready
        return Attempt(case, Launch(plan, data), tables)

    @property
    def rows(self) -> int:
        return self.tables.train[self.order.plan.evaluator].rows

    def run(self, end: float | None) -> None:
        """Run all parties until they have finished, failed, or time is up."""
        per_epoch = self.case.clients * -(-self.rows // self.order.plan.pace.batch)

        def heard(moment: Moment) -> None:
            accuracy = 100 * moment.test["test_accuracy"]
            self.points.append(Measurement(moment.rounds / per_epoch, moment.bytes, accuracy, moment.loss))
            if end is not None and time.monotonic() > end:
                raise Aborted("out of time")

        tap = self.transcript.tap if self.case.listening else untapped
        try:
            self.shares = launch(replace(self.order, progress=heard, tap=tap))
        except Aborted:
            self.ended = "stopped by its time limit"
        except Diverged as error:
            self.ended = str(error)

    def record(self, device: str, seconds: float) -> Record:
        """The record of this attempt, which took so many seconds."""
        case, shares, plan = self.case, self.shares, self.order.plan
        traffic = [share.traffic for share in shares.values()]
        apart = case.world == "network"
        return Record(
            case=case,
            machine=machine(),
            device=device,
            points=self.points,
            payload=dict(sum((Counter(each.payload_by_kind) for each in traffic), Counter())),
            sealed=sum(each.sealed_bytes for each in traffic) if shares else None,
            messages=sum(each.messages for each in traffic) if shares else None,
            seconds=seconds,
            cpu_seconds={party: share.cpu_seconds or 0.0 for party, share in shares.items() if apart},
            complete=bool(shares),
            ended=self.ended,
            rows=self.rows,
            step=shares[CLIENT].step if shares else 0.0,
            answers=shares[CLIENT].rounds if shares else 0,
            epsilon=shares[plan.evaluator].epsilon if shares else None,
            train_accuracy=self.train_accuracy() if shares else None,
            seen=observed(self.transcript, plan, self.rows) if case.listening and shares else None,
        )

    def train_accuracy(self) -> float:
        """The accuracy on the training rows of what all parties have in the end, in per cent."""
        plan, train = self.order.plan, self.tables.train
        holdings = {
            party: Holding(plan, party, self.shares[party].weights, table.X) for party, table in train.items()
        }
        z = CONVERSATIONS[plan.conversation].share.together(holdings)
        y = label_of(train, plan.evaluator)
        return 100 * float((LOSSES[plan.objective.loss].predict(z) == y).mean())


def observed(transcript: Transcript, plan: Plan[Any], rows: int) -> Observed:
    """What the paper's formula needs of the gradients of single rows that a client of `vafl` is told."""
    return Observed.of(np.concatenate([found for _, found in gradients_heard(transcript, plan, rows)]))


def epochs_within(case: Case, tables: Tables, device: str, seconds: float) -> int:
    """How many epochs fit, by an epoch of a few rows; never more than the case asks for."""
    server = tables.active[0]
    few = max(1, tables.train[server].rows // CALIBRATION)
    part = replace(tables, train=first_rows(tables.train, few), test=first_rows(held_out(tables), few))
    y = label_of(tables.train, server)
    classes = 2 if y.min() < 0 else int(y.max()) + 1
    job = msgspec.structs.replace(job_of(case.shortened(1), classes, device), world="local")
    took = []
    for _ in range(2):  # the first run also loads and compiles
        start = time.monotonic()
        with suppress(Diverged):  # so few rows may teach nothing; all that counts here is the time
            run_tables(job, part)
        took.append(time.monotonic() - start)
    epoch = took[-1] * CALIBRATION
    return max(1, min(case.epochs, int(0.9 * (seconds - sum(took)) / epoch)))
