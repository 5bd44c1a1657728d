"""A whole federation: deal the data, run the parties in a world, gather the result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np

from colonnade import __version__
from colonnade.data.assign import deal
from colonnade.data.formats import suggest
from colonnade.errors import JobError
from colonnade.job import Job
from colonnade.job.rules import batches_in_flight, preset_of
from colonnade.losses import LOSSES
from colonnade.privacy.labels import delta_of
from colonnade.result import Cost, Moment, Privacy, Result, Staleness
from colonnade.run.inputs import Setting, label_holders, labelled, prepared
from colonnade.run.launch import Progress, WireTap, run_local, run_simulated, untapped
from colonnade.run.notes import disclosures
from colonnade.run.party import Assignment, Share
from colonnade.run.pooled import Pooled, compare
from colonnade.secure.hosts import unsafe_reason

__all__ = ["Run", "Setting", "check", "conclude", "federate", "resolved", "run_tables"]

# a kernel machine of the same lambda needs a loss that is done with rows that are right by a margin
KERNEL_LOSS = {"binary": "smooth_hinge", "multiclass": "softmax", "regression": "squared"}
DEFAULT_LOSS = {"binary": "logistic", "regression": "squared", "multiclass": "softmax"}


@dataclass(frozen=True)
class Run:
    """A finished federation: the result, every party's share, and who was who."""

    job: Job
    result: Result
    shares: dict[str, Share]


def federate(job: Job, *, progress: Progress = lambda moment: None, out: Path | None = None) -> Run:
    """Run the job from its files to its result."""
    preset_of(job)
    loss = job.train.loss
    data = job.data
    if (holders := label_holders(job)) is not None:
        data = msgspec.structs.replace(data, active=holders)
    if data.intercept is None and preset_of(job).conversation not in ("backward", "pull"):
        data = msgspec.structs.replace(data, intercept=False)  # a linear model's matter
    dealt = deal(data, task=LOSSES[loss].task if loss else None, seed=job.seed)
    job = resolved(job, dealt.labels.task, len(dealt.labels.classes))
    check(job, {party: len(hand.train.columns) for party, hand in dealt.hands.items()}, dealt.active)
    if job.world == "network":
        from colonnade.run.processes import run_processes

        return conclude(job, prepared(dealt), lambda target: run_processes(job, dealt, target, out, progress))
    setting = prepared(dealt)
    return run_tables(job, setting, progress=progress)


def run_tables(
    job: Job, setting: Setting, *, progress: Progress = lambda moment: None, tap: WireTap = untapped
) -> Run:
    """Run a job on tables that are ready, in this process."""
    launch = {"local": run_local, "simulated": run_simulated}[job.world]
    setting = labelled(job, setting)
    check(job, {party: table.width for party, table in setting.train.items()}, setting.active)

    def start(target: float | None) -> dict[str, Share]:
        assignments = {
            party: Assignment(
                job,
                table,
                setting.test[party] if setting.test else None,
                setting.active,
                target,
                setting.models.get(party),
                setting.server_model,
            )
            for party, table in setting.train.items()
        }
        return launch(assignments, progress, tap)

    return conclude(job, setting, start)


def resolved(job: Job, task: str, classes: int = 0) -> Job:
    """The job with everything spelt out, as the parties will agree on it."""
    if task == "multiclass":
        job = msgspec.structs.replace(job, train=msgspec.structs.replace(job.train, classes=classes))
    if job.train.loss is None:
        kernel = preset_of(job).conversation in ("kernel", "gram")
        defaults = KERNEL_LOSS if kernel else DEFAULT_LOSS
        if task not in defaults:
            raise JobError(
                f"train.loss: no loss for {task} labels yet; use data.positive to make two classes"
            )
        job = msgspec.structs.replace(job, train=msgspec.structs.replace(job.train, loss=defaults[task]))
    return job


def check(job: Job, widths: Mapping[str, int], active: tuple[str, ...]) -> None:
    """Refuse what cannot work or leaks more than it says, before anything starts.

    `widths` has the number of columns of every party.
    """
    _check_names(job, tuple(widths))
    apart = next((party for party, columns in widths.items() if not columns), None)
    if apart is not None and preset_of(job).conversation != "cascade":
        raise JobError(
            f"data: {apart} holds no columns, and {job.algorithm} has no server that could do without them; "
            "give it some, or use an algorithm with a server (asyrevel-gau, czofo, ...)"
        )
    linear = preset_of(job).conversation in ("backward", "pull")
    batches_in_flight(job, len(active))
    if linear and job.train.loss == "softmax" and job.train.classes is None:
        raise JobError("train.classes: softmax has a score per class; say how many classes there are")
    reason = unsafe_reason(len(widths)) if job.secure.sum == "tree" else None
    if reason and not job.secure.accept_leak:
        raise JobError(f"secure.sum = 'tree': {reason}; use sum = 'masked', or set accept_leak = true")


def _check_names(job: Job, parties: tuple[str, ...]) -> None:
    faults = job.network.faults
    named = {
        "model.parties": list(job.model.parties),
        "network.faults.crash": list(faults.crash),
        "network.faults.partitions": [party for cut in faults.partitions for party in cut["side"]],
    }
    for key, names in named.items():
        for name in names:
            if name not in parties:
                raise JobError(f"{key}: there is no party {name!r}; {suggest(str(name), parties)}")


def conclude(job: Job, setting: Setting, start: Callable[[float | None], dict[str, Share]]) -> Run:
    pooled = compare(job, setting)
    target = pooled.optimum + job.train.target if job.train.target is not None else None
    shares = start(target)
    return Run(job, _result(job, setting, shares, pooled), shares)


def _result(job: Job, setting: Setting, shares: dict[str, Share], pooled: Pooled) -> Result:
    evaluator = shares[setting.active[0]]
    metrics = {
        "train_loss": evaluator.metrics["train_loss"],
        "suboptimality": evaluator.metrics["train_loss"] - pooled.optimum,
        **{key: value for key, value in evaluator.metrics.items() if key != "train_loss"},
    }
    kinds: Counter[str] = Counter()
    refused: Counter[str] = Counter()
    delays: Counter[int] = Counter()
    for share in shares.values():
        kinds.update(share.bytes_by_kind)
        refused.update(share.refused)
        delays.update(share.delays)
    last: Moment = evaluator.history[-1]
    return Result(
        algorithm=job.algorithm,
        dataset=setting.dataset,
        parties=list(setting.train),
        active=list(setting.active),
        world=job.world,
        seed=job.seed,
        version=__version__,
        step={party: share.step for party, share in shares.items()},
        metrics=metrics,
        pooled=pooled.metrics,
        cost=Cost(
            seconds=last.seconds,
            virtual_seconds=last.virtual_seconds,
            epochs=last.epoch,
            rounds=last.rounds,
            messages=sum(share.messages for share in shares.values()),
            bytes_sent=sum(sum(share.bytes_by_kind.values()) for share in shares.values()),
            payload_bytes=sum(sum(share.payload_by_kind.values()) for share in shares.values()),
            sealed_bytes=sum(share.sealed_bytes for share in shares.values()),
            bytes_by_kind=dict(sorted(kinds.items())),
            bytes_by_party={party: sum(share.bytes_by_kind.values()) for party, share in shares.items()},
            bytes_by_pair={party: share.bytes_by_peer for party, share in shares.items()},
            evaluation_bytes=sum(share.evaluation_bytes for share in shares.values()),
            updates_by_party={party: share.updates for party, share in shares.items()},
            refused=dict(refused),
        ),
        staleness=_staleness(delays),
        privacy=Privacy(
            secure_sum="none" if preset_of(job).conversation == "cascade" else job.secure.sum,
            mechanism=job.privacy.mechanism,
            epsilon=evaluator.epsilon,
            delta=delta_of(job) if evaluator.epsilon is not None else None,
            notes=disclosures(job, len(shares)),
        ),
        history=evaluator.history,
    )


def _staleness(delays: Counter[int]) -> Staleness:
    if not delays:
        return Staleness(mean=0.0, p95=0, max=0)
    ages = np.array(sorted(delays))
    counts = np.array([delays[int(age)] for age in ages])
    at_most = np.cumsum(counts) / counts.sum()
    return Staleness(
        mean=float((ages * counts).sum() / counts.sum()),
        p95=int(ages[np.searchsorted(at_most, 0.95)]),
        max=int(ages[-1]),
    )
