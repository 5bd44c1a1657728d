"""A whole federation: deal the data, run the parties in a world, gather the result.

The pooled comparison is made here, by whoever has dealt the columns; no party takes part in it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec
import numpy as np

from colonnade import __version__
from colonnade.baselines.dsg import fit_dsg
from colonnade.baselines.pooled import fit_pooled, pool
from colonnade.baselines.svc import fit_svc, median_bandwidth, trade_off
from colonnade.combinations import batches_in_flight, preset_of
from colonnade.config import Job
from colonnade.conversations.gram import check_memory
from colonnade.conversations.kernel_plan import plan_of
from colonnade.data.deal import Deal, deal
from colonnade.data.formats import suggest
from colonnade.data.table import Table
from colonnade.errors import JobError
from colonnade.losses import LOSSES
from colonnade.metrics import metrics_of
from colonnade.models.blackbox import Model
from colonnade.party import Assignment, Share
from colonnade.privacy.labels import delta_of
from colonnade.regularizers import REGULARIZERS
from colonnade.result import Cost, Moment, Privacy, Result, Staleness
from colonnade.secure.tree import unsafe_reason
from colonnade.worlds import Progress, WireTap, run_local, run_simulated, untapped

# a kernel machine of the same lambda needs a loss that is done with rows that are right by a margin
KERNEL_LOSS = {"binary": "smooth_hinge", "multiclass": "softmax", "regression": "squared"}
DEFAULT_LOSS = {"binary": "logistic", "regression": "squared", "multiclass": "softmax"}


@dataclass(frozen=True)
class Run:
    """A finished federation: the result, every party's share, and who was who."""

    job: Job
    result: Result
    shares: dict[str, Share]


@dataclass(frozen=True)
class Pooled:
    """The same model on pooled data: its loss, from which sub-optimality is counted, and its metrics."""

    optimum: float
    metrics: dict[str, float]


@dataclass(frozen=True, eq=False)
class Setting:
    """Every party's prepared columns."""

    dataset: str
    train: dict[str, Table]
    test: dict[str, Table] | None
    active: tuple[str, ...]
    models: Mapping[str, Model] = field(default_factory=dict)  # of single parties, given as objects
    server_model: Model | None = None


def federate(job: Job, *, progress: Progress = lambda moment: None, out: Path | None = None) -> Run:
    """Run the job from its files to its result."""
    preset_of(job)
    loss = job.train.loss
    data = job.data
    if (holders := label_holders(job)) is not None:
        data = msgspec.structs.replace(data, active=holders)
    if data.intercept is None and preset_of(job).conversation not in ("backward", "pull"):
        data = msgspec.structs.replace(data, intercept=False)  # a linear model's matter
    dealt = deal(data, task=LOSSES[loss].task if loss else None, seed=job.seed)  # type: ignore[arg-type]
    job = resolved(job, dealt.labels.task, len(dealt.labels.classes))
    check(job, {party: len(hand.train.columns) for party, hand in dealt.hands.items()}, dealt.active)
    if job.world == "network":
        from colonnade.processes import run_processes

        return conclude(
            job, _prepared(dealt), lambda target: run_processes(job, dealt, target, out, progress)
        )
    setting = _prepared(dealt)
    return run_tables(job, setting, progress=progress)


def run_tables(
    job: Job, setting: Setting, *, progress: Progress = lambda moment: None, tap: WireTap = untapped
) -> Run:
    """Run a job on tables that are ready, in this process."""
    launch = {"local": run_local, "simulated": run_simulated}[job.world]
    setting = _labelled(job, setting)
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


def label_holders(job: Job) -> int | None:
    """How many parties hold the label, where the algorithm rather than the data decides that."""
    if preset_of(job).conversation != "pull":
        return None
    parties = len(job.data.party_names)
    return job.train.labels_at or parties


def _labelled(job: Job, setting: Setting) -> Setting:
    """The label at every party that the algorithm assumes to hold it."""
    if preset_of(job).conversation != "pull":
        return setting
    holders = tuple(setting.train)[: job.train.labels_at or len(setting.train)]
    first = setting.active[0]

    def labelled(tables: dict[str, Table]) -> dict[str, Table]:
        y = tables[first].y
        return {party: replace(t, y=y if party in holders else None) for party, t in tables.items()}

    test = labelled(setting.test) if setting.test is not None else None
    return replace(setting, train=labelled(setting.train), test=test, active=holders)


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


def _kernel_notes(job: Job) -> list[str]:
    notes = ["the active parties learn how alike two rows are, from projections on their random features"]
    if job.kernel.omega == "shared":
        notes.append(
            "omega = 'shared': everybody can draw all directions, so an active party with as many features "
            "as the others have columns can solve for their columns"
        )
    return notes


def privacy_notes(job: Job, parties: int) -> list[str]:
    """What the user should know before trusting the sum."""
    notes = []
    if preset_of(job).conversation == "cascade":
        return cascade_notes(job)
    if job.secure.sum == "plain":
        notes.append("plain sum: the dominators see every party's partial scores in clear")
    if parties == 2:
        notes.append("two parties: the total minus the own share is the other's share, no sum can hide it")
    if job.secure.sum == "tree" and (reason := unsafe_reason(parties)):
        notes.append(f"tree sum: {reason}")
    if preset_of(job).conversation == "kernel":
        notes += _kernel_notes(job)
    elif preset_of(job).conversation == "pull":
        notes.append("every party that holds the label learns the total score of every row")
    elif job.train.loss == "logistic":
        notes.append("theta is sent to every party: it gives away the label and the total score of its row")
    return notes


def cascade_notes(job: Job) -> list[str]:
    """What a cascade gives away, whatever its paper says."""
    notes = ["the server sees every party's outputs for every row in clear"]
    if job.privacy.mechanism == "none":
        notes.append("a client can work out the label of every row from the replies to its own questions")
        if preset_of(job).reply == "deltas":
            notes.append(
                "deltas are not differentially private: the client knows the directions, and given them a "
                "reply is a deterministic function of the labels"
            )
    elif job.privacy.mechanism != "labels":
        notes.append(
            "labels are differentially private against every client: epsilon is that of the label used most, "
            "for all replies together and a client that knows everything else"
        )
    return notes


def label_notes(job: Job) -> list[str]:
    """What holds where labels are made private before training."""
    if job.privacy.mechanism != "labels":
        return []
    return [
        "labels were randomised before training: no label that anybody works out tells more about the true "
        "one than epsilon allows; train_loss is that of randomised labels"
    ]


def _prepared(dealt: Deal) -> Setting:
    train, test = {}, {}
    for party, hand in dealt.hands.items():
        _, train[party], tested = hand.prepare()
        if tested is not None:
            test[party] = tested
    return Setting(dealt.dataset, train, test or None, dealt.active)


def conclude(job: Job, setting: Setting, start: Callable[[float | None], dict[str, Share]]) -> Run:
    pooled = POOLED[preset_of(job).conversation](job, setting)
    target = pooled.optimum + job.train.target if job.train.target is not None else None
    shares = start(target)
    return Run(job, _result(job, setting, shares, pooled), shares)


def _pooled_linear(job: Job, setting: Setting) -> Pooled:
    """The linear model at its pooled optimum."""
    loss, regularizer = LOSSES[job.train.loss or ""], REGULARIZERS[job.train.regularizer]
    first = setting.active[0]
    y = setting.train[first].y
    assert y is not None  # noqa: S101  an active party holds the label
    X = pool([table.X for table in setting.train.values()])
    fit = fit_pooled(X, y, loss, regularizer, job.train.l2, classes=job.train.classes)
    metrics = {"train_loss": fit.loss}
    if setting.test is not None and (y_test := setting.test[first].y) is not None:
        X_test = pool([table.X for table in setting.test.values()])
        metrics = fit.metrics(loss, X_test, y_test, job.train.l2 * regularizer.value(fit.w))
    return Pooled(fit.loss, metrics)


def _pooled_cascade(job: Job, setting: Setting) -> Pooled:
    """The optimum where there is one to compute, else the same models trained side by side."""
    models, given = job.model, bool(setting.models) or setting.server_model is not None
    kinds = {models.kind, *(model.kind for model in models.parties.values())}
    if kinds == {"linear"} and models.server.kind == "sum" and job.train.loss != "softmax" and not given:
        return _pooled_linear(job, setting)
    from colonnade.baselines.pooled_cascade import pooled_cascade

    found = pooled_cascade(
        job, setting.train, setting.test, setting.active[0], setting.models, setting.server_model
    )
    return Pooled(*found)


def _pooled_kernel(job: Job, setting: Setting) -> Pooled:
    """Doubly stochastic gradients on pooled data, in the same blocks and with the same cap."""
    loss, first = LOSSES[job.train.loss or ""], setting.active[0]
    X, y = pool([table.X for table in setting.train.values()]), setting.train[first].y
    assert y is not None  # noqa: S101  an active party holds the label
    features = plan_of(job, len(y), setting.active).features
    fit = fit_dsg(X, y, loss, job.kernel, job.train, features=features, seed=job.seed)
    train_loss = float(loss.value(fit.scores(X), y).mean()) + fit.penalty
    metrics = {"train_loss": train_loss}
    if setting.test is not None and (y_test := setting.test[first].y) is not None:
        X_test = pool([table.X for table in setting.test.values()])
        metrics |= metrics_of(loss, fit.scores(X_test), y_test, fit.penalty)
    return Pooled(train_loss, metrics)


def _pooled_svc(job: Job, setting: Setting) -> Pooled:
    """scikit-learn's SVC on pooled data."""
    loss, first = LOSSES[job.train.loss or ""], setting.active[0]
    X, y = pool([table.X for table in setting.train.values()]), setting.train[first].y
    assert y is not None  # noqa: S101  an active party holds the label
    check_memory(len(y))
    sigma = job.kernel.sigma
    sigma = median_bandwidth(X, y, job.kernel.fraction, job.seed) if sigma == "median" else sigma
    fit = fit_svc(X, y, sigma=sigma, C=trade_off(len(y), job.train.l2))
    train_loss = float(loss.value(fit.decision_function(X), y).mean())
    metrics = {"train_loss": train_loss}
    if setting.test is not None and (y_test := setting.test[first].y) is not None:
        X_test = pool([table.X for table in setting.test.values()])
        metrics |= metrics_of(loss, fit.decision_function(X_test), y_test, 0.0)
    return Pooled(train_loss, metrics)


POOLED: dict[str, Callable[[Job, Setting], Pooled]] = {
    "backward": _pooled_linear,
    "pull": _pooled_linear,
    "kernel": _pooled_kernel,
    "gram": _pooled_svc,
    "cascade": _pooled_cascade,
}


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
            notes=[*privacy_notes(job, len(shares)), *label_notes(job)],
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
