"""One run of VFL-CZOFO's experiments: what was asked, and what came of it.

A case is a row of a table, a record what came of it.
Bytes are the meter's: everything sent in training, the first pass over all rows and framing included;
`payload` is the arrays alone. Measuring is counted apart and not here.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from typing import Any

import msgspec
import numpy as np

from colonnade.attacks.split_labels import gradients_heard
from colonnade.attacks.transcript import Transcript
from colonnade.data.table import Table
from colonnade.errors import Aborted, Diverged
from colonnade.job import Job, job_from
from colonnade.job.rules import batch_of
from colonnade.privacy.paper_epsilon import Observed
from colonnade.result import Moment
from colonnade.run.federate import Setting, resolved
from colonnade.run.launch import Progress, WireTap, run_local, untapped
from colonnade.run.party import Assignment, Share
from colonnade_bench.common import machine
from colonnade_bench.czofo.data import experiment

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
    listening: bool = False  # keep what the paper's epsilon is computed from
    train: Sections = {}
    cascade: Sections = {}
    model: Sections = {}
    privacy: Sections = {}

    @property
    def slug(self) -> str:
        return re.sub(r"[^a-z0-9.]+", "-", f"{self.part} {self.name} {self.world}".lower()).strip("-")

    @property
    def epochs(self) -> int:
        return int(self.train["epochs"])

    def shortened(self, epochs: int) -> Case:
        return msgspec.structs.replace(self, train={**self.train, "epochs": epochs})


class Point(msgspec.Struct, frozen=True):
    """A moment of the run: epochs done, bytes sent so far, test accuracy in per cent, training loss."""

    epochs: float
    bytes: int
    accuracy: float
    loss: float


class Record(msgspec.Struct, kw_only=True):
    """What came of a case, and where it was made."""

    case: Case
    machine: str
    device: str
    points: list[Point]
    payload: dict[str, int]  # by kind; nothing if stopped before the parties could hand in their books
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
    seen: Observed | None = None  # by the first client, where it listened

    @property
    def last(self) -> Point:
        return self.points[-1] if self.points else Point(0.0, 0, float("nan"), float("nan"))

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
        return sum(self.payload.get(kind, 0) for kind in kinds) / 1e6 if self.payload else None

    @property
    def framing(self) -> tuple[float | None, float | None]:
        """Our own framing and TLS records, in per cent of the payload."""
        payload = sum(self.payload.values())
        sealed = 0 if self.case.world == "local" else self.sealed
        if not payload or sealed is None:
            return None, None
        return 100 * (self.last.bytes - payload - sealed) / payload, 100 * sealed / payload

    def megabytes_to(self, accuracy: float) -> float | None:
        """Sent until the test accuracy was first measured to be that high."""
        return next((point.bytes / 1e6 for point in self.points if point.accuracy >= accuracy), None)


def job_of(case: Case, setting_classes: int, device: str = "cpu") -> Job:
    model = dict(case.model)
    if device != "cpu":
        model["device"] = device
    plain: dict[str, Any] = {
        "algorithm": case.algorithm,
        "world": case.world,
        "seed": case.seed,
        "data": {"train": case.dataset, "parties": case.clients, "server": "apart"},
        "train": {"batch": 64, "l2": 0.0, **case.train},
        "cascade": case.cascade,
        "model": model,
        "network": {"deadline_s": 600.0},
    }
    if case.privacy:
        plain["privacy"] = case.privacy
    return resolved(job_from(plain), "multiclass" if setting_classes > 2 else "binary", setting_classes)


def measure(case: Case, device: str = "cpu", seconds: float | None = None) -> Record:
    """Run a case. With a limit in seconds, in as many epochs as fit, and what was reached by then counts."""
    began = time.monotonic()
    assigned, setting = experiment(case.dataset, case.clients, case.rows, case.validation)
    if seconds is not None:
        left = seconds - (time.monotonic() - began)
        case = case.shortened(epochs_within(case, setting, device, left))
    job = job_of(case, len(assigned.labels.classes), device)
    rows = setting.train[assigned.label_holders[0]].rows
    per_epoch = case.clients * -(-rows // batch_of(job, rows))
    points: list[Point] = []

    def heard(moment: Moment) -> None:
        points.append(
            Point(moment.rounds / per_epoch, moment.bytes, 100 * moment.test["test_accuracy"], moment.loss)
        )
        if seconds is not None and time.monotonic() - began > seconds:
            raise Aborted("out of time")

    start, ended = time.monotonic(), ""
    shares: dict[str, Share] = {}
    transcript = Transcript(CLIENT)
    try:
        if case.world == "network":
            from colonnade.run.processes import run_processes

            shares = run_processes(job, assigned, None, None, heard)
        else:
            shares = run_here(job, setting, heard, transcript.tap if case.listening else untapped)
    except Aborted:
        ended = "stopped by its time limit"
    except Diverged as error:
        ended = str(error)
    return Record(
        case=case,
        machine=machine(),
        device=device,
        points=points,
        payload=dict(sum((Counter(share.payload_by_kind) for share in shares.values()), Counter())),
        sealed=sum(share.sealed_bytes for share in shares.values()) if shares else None,
        messages=sum(share.messages for share in shares.values()) if shares else None,
        seconds=time.monotonic() - start,
        cpu_seconds={party: share.cpu_seconds or 0.0 for party, share in shares.items()}
        if case.world == "network"
        else {},
        complete=bool(shares),
        ended=ended,
        rows=rows,
        step=shares[CLIENT].step if shares else 0.0,
        answers=shares[CLIENT].rounds if shares else 0,
        epsilon=shares[assigned.label_holders[0]].epsilon if shares else None,
        seen=observed(transcript, job, setting) if case.listening and shares else None,
    )


def run_here(job: Job, setting: Setting, progress: Progress, tap: WireTap = untapped) -> dict[str, Share]:
    """All parties in this process, without the pooled comparison that a user's run has."""
    test = setting.test or {}
    given = {
        party: Assignment(job, table, test.get(party), setting.active)
        for party, table in setting.train.items()
    }
    return run_local(given, progress, tap)


def observed(transcript: Transcript, job: Job, setting: Setting) -> Observed:
    """The gradients of single rows that a client of `vafl` is told, which the paper's formula asks for."""
    rows = setting.train[CLIENT].rows
    heard = [gradients for _, gradients in gradients_heard(transcript, job, sorted(setting.train), rows)]
    return Observed.of(np.concatenate(heard))


def epochs_within(case: Case, setting: Setting, device: str, seconds: float) -> int:
    """How many epochs fit, by an epoch of a few rows; never more than the case asks for."""
    few = max(1, setting.train[setting.active[0]].rows // CALIBRATION)
    part = Setting(
        setting.dataset,
        {party: _head(table, few) for party, table in setting.train.items()},
        {party: _head(table, few) for party, table in (setting.test or {}).items()},
        setting.active,
    )
    job = job_of(case.shortened(1), _classes(setting), device)
    took = []
    for _ in range(2):  # the first run also loads and compiles
        start = time.monotonic()
        run_here(job, part, lambda moment: None)
        took.append(time.monotonic() - start)
    epoch = took[-1] * CALIBRATION
    return max(1, min(case.epochs, int(0.9 * (seconds - sum(took)) / epoch)))


def _head(table: Table, rows: int) -> Table:
    return table.take(np.arange(min(rows, table.rows)))


def _classes(setting: Setting) -> int:
    y = setting.train[setting.active[0]].y
    return 2 if y is None or y.min() < 0 else int(y.max()) + 1
