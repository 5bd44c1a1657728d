"""From a job to its result: read the data, resolve the job, launch the parties, gather what they report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from colonnade import __version__
from colonnade.conversations.context import GivenModels
from colonnade.conversations.pooling import AllColumns, Pooled
from colonnade.data.assign import Assigned, assign, label_holders
from colonnade.data.described import described, with_parties
from colonnade.data.labels import Labels, check_labels
from colonnade.data.party_data import PartyData
from colonnade.data.table import Table, as_numbers
from colonnade.errors import DataError, JobError
from colonnade.job import MEMORY, Job, memory_of
from colonnade.job.plan import Facts, Plan, Task
from colonnade.losses import LOSSES
from colonnade.models.blackbox import Model
from colonnade.privacy.labels import delta_of
from colonnade.result import Cost, Described, Moment, Privacy, Result, Staleness
from colonnade.run.evidence import weigh_all, with_evidence
from colonnade.run.launch import IN_PROCESS, launch
from colonnade.run.notes import WOE_NOTE, leaks, notes
from colonnade.run.party import Progress, Share
from colonnade.run.registry import CONVERSATIONS
from colonnade.run.resolve import Composition, compose, resolve
from colonnade.run.weigh import Weighing, WeighingTerms
from colonnade.run.world import Launch, WireTap, untapped
from colonnade.test_scores import TestScores
from colonnade.timeline import Timeline


@dataclass(frozen=True)
class Finished:
    """A finished run: its job, the plan made of it, its result, and every party's share of the model.

    `labels` says how labels became numbers, where they were read from a file; `test` has the scores of the
    test rows, where there are any.
    """

    job: Job
    plan: Plan[Any]
    result: Result
    shares: dict[str, Share]
    labels: Labels | None = None
    rows: int = 0  # to train on
    test: TestScores | None = None

    @property
    def timeline(self) -> Timeline | None:
        """When every party computed and sent; None if the run was not recorded."""
        found = {party: s.timeline for party, s in self.shares.items() if s.timeline is not None}
        return Timeline(virtual=self.plan.world == "simulated", parties=found) if found else None


@dataclass(frozen=True, eq=False)
class Tables:
    """Every party's prepared columns, for a run in this process.

    `models` and `head` are models given as Python objects, where the job does not describe them.
    """

    dataset: str
    train: dict[str, Table]
    test: dict[str, Table] | None
    active: tuple[str, ...]
    models: Mapping[str, Model] = field(default_factory=dict)
    head: Model | None = None


def federate(
    job: Job | Composition,
    *,
    progress: Progress = lambda moment: None,
    out: Path | None = None,
    tell: Callable[[str], None] = lambda words: None,
    timeline: bool = False,
    resume: bool = False,
) -> Finished:
    """Run the job from its files to its result; `tell` hears what is done before training, in words.

    With `timeline` every party's share says when it computed and sent. With `resume` the run goes on from the
    checkpoints in `out`.
    """
    composition = job if isinstance(job, Composition) else compose(job)
    tell("reading the data")
    source, order = prepare(composition)
    order = replace(order, progress=progress, out=out, timeline=timeline, resume=resume)
    return conclude(composition.job, source, order, tell)


@dataclass(frozen=True)
class Source:
    """The name of a run's data, and what is known of it before the parties prepare their columns."""

    name: str
    known: Described = field(default_factory=Described)


def read(composition: Composition) -> Assigned:
    """Read a job's files and give every party its data."""
    job = composition.job
    names = job.data.party_names
    return assign(
        job.data,
        label_holders=composition.label_holders(names, label_holders(names, job.data.active)),
        task=composition.given_task,
        intercept=composition.intercept,
        seed=job.seed,
        class_weight=job.train.class_weight,
        gaps=composition.has("takes-gaps"),
        helper=job.secure.helper,
        fits=partial(composition.conversation.fits, job),
    )


def prepare(composition: Composition) -> tuple[Source, Launch]:
    """Read a job's files; returns what is known of them and the run to launch."""
    return order_of(composition, read(composition))


def order_of(composition: Composition, assigned: Assigned) -> tuple[Source, Launch]:
    """What is known of every party's data, and the run on it to launch."""
    job = composition.job
    if job.data.woe:
        assigned = replace(assigned, parties=with_evidence(assigned.parties, weigh_job(job, assigned)))
    first = assigned.parties[assigned.label_holders[0]]
    facts = Facts(
        columns={party: data.columns for party, data in assigned.parties.items()},
        label_holders=assigned.label_holders,
        rows=next(iter(assigned.parties.values())).rows,
        task=assigned.labels.task,
        classes=len(assigned.labels.classes),
        weighted=first.train.weight is not None,
    )
    plan = resolve(composition, facts)
    for raw in (first.train, first.test):
        if raw is not None and raw.y is not None:
            check_labels(LOSSES[plan.objective.loss], as_numbers(raw.y), raw.name, raw.origin)
    source = Source(assigned.dataset, described(assigned))
    memory = memory_of(job.data.memory) or MEMORY
    return source, Launch(
        plan, assigned.parties, labels=assigned.labels, memory=memory, large=assigned.large, engine=job.engine
    )


def weigh_columns_of(job: Job) -> dict[str, Weighing]:
    """The weight of evidence of every party's columns, from the job's files, in its world."""
    return weigh_job(job, read(compose(job)))


def weigh_job(job: Job, assigned: Assigned) -> dict[str, Weighing]:
    """Every party's columns with their weight of evidence, found in the job's world."""
    if assigned.labels.task != "binary":
        raise DataError("data.woe: weight of evidence needs two classes; name the bad one in data.positive")
    terms = WeighingTerms(
        label_holder=assigned.label_holders[0],
        woe=job.woe,
        network=job.network,
        world=job.world,
        seed=job.seed,
    )
    return weigh_all(terms, assigned.parties)


def run_tables(
    job: Job,
    tables: Tables,
    *,
    progress: Progress = lambda moment: None,
    tap: WireTap = untapped,
) -> Finished:
    """Run a job on tables that are prepared already, in this process."""
    plan, data = plan_for(job, tables)
    models = {}
    if tables.models or tables.head is not None:
        models = {party: GivenModels(tables.models.get(party), tables.head) for party in tables.train}
    order = Launch(plan, data, models, progress=progress, tap=tap, engine=job.engine)
    return conclude(job, Source(tables.dataset), order)


def plan_for(job: Job, tables: Tables) -> tuple[Plan[Any], dict[str, PartyData]]:
    """The plan of a job on prepared tables, and every party's data; only label holders have the label."""
    composition = compose(job)
    if job.train.class_weight is not None:
        raise JobError("train.class_weight: tables that are prepared have their weights, see Table.weight")
    holders = composition.label_holders(tuple(tables.train), tables.active)
    data = {
        party: PartyData.of(
            party,
            _labelled(party, tables.train, tables.active[0], holders),
            _labelled(party, tables.test, tables.active[0], holders) if tables.test else None,
        )
        for party in tables.train
    }
    plan = resolve(composition, _facts(composition, tables, holders))
    for party, table in tables.train.items():
        if table.y is not None:
            check_labels(LOSSES[plan.objective.loss], table.y, party)
    return plan, data


def _labelled(party: str, tables: Mapping[str, Table], first: str, holders: tuple[str, ...]) -> Table:
    """A party's table, with the label if the party is one of its holders and without it if not."""
    table, known = tables[party], tables[first]
    if party not in holders:
        return replace(table, y=None, weight=None)
    return table if table.y is not None else replace(table, y=known.y, weight=known.weight)


def _facts(composition: Composition, tables: Tables, holders: tuple[str, ...]) -> Facts:
    """What the plan needs to know of the tables; without a loss the kind of label is guessed."""
    y = tables.train[tables.active[0]].y
    if y is None:
        raise DataError(f"{tables.active[0]} is active and holds no label")
    guess: Task = "binary" if set(np.unique(y)) <= {-1.0, 1.0} else "regression"
    task = composition.given_task or guess
    counted = task == "multiclass" and composition.has("counts-classes")
    return Facts(
        columns={party: table.width for party, table in tables.train.items()},
        label_holders=holders,
        rows=len(y),
        task=task,
        classes=int(y.max()) + 1 if counted else 0,
        weighted=tables.train[tables.active[0]].weight is not None,
    )


def conclude(
    job: Job, source: Source, order: Launch, tell: Callable[[str], None] = lambda words: None
) -> Finished:
    """Fit the pooled model (unless `compare = false`), run the parties, and put the result together."""
    if order.plan.world in IN_PROCESS:
        tell("preparing the columns")
        order = order.ready()  # once, for the parties and for the comparison
    target = job.train.target
    pooled = None
    if order.large and target is not None:
        raise JobError("train.target: is measured from the pooled optimum, and so much data is not pooled")
    if order.large:
        tell("no pooled comparison: all columns together do not fit the memory (data.memory)")
    elif job.compare:
        tell("fitting the pooled model, to compare with")
        pooled = compare(order)
    if pooled is not None and target is not None:
        order = replace(order, target_loss=pooled.optimum + target)
    tell(f"starting {len(order.data)} parties")
    shares = launch(order)
    result = result_of(source, order.plan, shares, pooled)
    if job.data.woe:
        told = result.privacy
        privacy = msgspec.structs.replace(
            told, notes=[*told.notes, WOE_NOTE], leaks=[*told.leaks, "evidence"]
        )
        result = msgspec.structs.replace(result, privacy=privacy)
    rows = order.data[order.plan.evaluator].rows
    return Finished(job, order.plan, result, shares, order.labels, rows, _test_scores(order, shares))


def _test_scores(order: Launch, shares: dict[str, Share]) -> TestScores | None:
    """The scores of the test rows beside their labels, as the party that evaluates the model has them."""
    evaluator = order.plan.evaluator
    z, test = shares[evaluator].test_scores, order.data[evaluator].test
    if z is None or test is None or test.y is None:
        return None
    y = np.asarray(test.y, dtype=np.float64)
    return TestScores(y, z, test.ids, order.plan.objective.loss == "logistic")


def compare(order: Launch) -> Pooled:
    """Train the same model on pooled columns. No party takes part in it."""
    prepared = {party: data.prepare() for party, data in order.data.items()}
    test = {party: each.test for party, each in prepared.items() if each.test is not None}
    given = {party: each.own for party, each in order.models.items() if each.own is not None}
    head = next((each.head for each in order.models.values() if each.head is not None), None)
    train = {party: each.train for party, each in prepared.items()}
    columns = AllColumns(train, test or None, order.plan.evaluator, given, head)
    return CONVERSATIONS[order.plan.conversation].pooled(order.plan, columns)


def result_of(source: Source, plan: Plan[Any], shares: dict[str, Share], pooled: Pooled | None) -> Result:
    """The result of a run, put together from all parties' shares."""
    evaluator = shares[plan.evaluator]
    train_loss = evaluator.metrics["train_loss"]
    beside = {"suboptimality": train_loss - pooled.optimum} if pooled is not None else {}
    others = {key: value for key, value in evaluator.metrics.items() if key != "train_loss"}
    conversation = CONVERSATIONS[plan.conversation]
    return Result(
        algorithm=plan.algorithm,
        dataset=source.name,
        parties=list(plan.parties),
        active=list(plan.label_holders),
        world=plan.world,
        seed=plan.seed,
        version=__version__,
        step={party: share.step for party, share in shares.items()},
        metrics={"train_loss": train_loss, **beside, **others},
        pooled=pooled.metrics if pooled is not None else {},
        cost=cost_of(shares, evaluator.history[-1]),
        staleness=staleness_of(shares),
        privacy=Privacy(
            secure_sum="none" if "no-sum" in conversation.traits else plan.secure_sum,
            mechanism=plan.privacy.mechanism,
            epsilon=evaluator.epsilon,
            delta=delta_of(plan.privacy, plan.objective.loss) if evaluator.epsilon is not None else None,
            notes=notes(plan),
            leaks=list(
                leaks(
                    conversation,
                    plan.privacy,
                    plan.secure_sum,
                    len(plan.parties),
                    blind=plan.blind is not None,
                )
            ),
        ),
        history=evaluator.history,
        converged=evaluator.converged,
        chosen=evaluator.chosen,
        data=with_parties(source.known, {party: share.preparation for party, share in shares.items()}),
    )


def cost_of(shares: dict[str, Share], last: Moment) -> Cost:
    """What these parties spent until the last moment of the run."""
    traffic = {party: share.traffic for party, share in shares.items()}
    kinds: Counter[str] = Counter()
    refused: Counter[str] = Counter()
    for each in traffic.values():
        kinds.update(each.bytes_by_kind)
        refused.update(each.refused)
    return Cost(
        seconds=last.seconds,
        virtual_seconds=last.virtual_seconds,
        epochs=last.epoch,
        rounds=last.rounds,
        messages=sum(each.messages for each in traffic.values()),
        bytes_sent=sum(each.bytes_sent for each in traffic.values()),
        payload_bytes=sum(sum(each.payload_by_kind.values()) for each in traffic.values()),
        sealed_bytes=sum(each.sealed_bytes for each in traffic.values()),
        bytes_by_kind=dict(sorted(kinds.items())),
        bytes_by_party={party: each.bytes_sent for party, each in traffic.items()},
        bytes_by_pair={party: each.bytes_by_peer for party, each in traffic.items()},
        evaluation_bytes=sum(each.evaluation_bytes for each in traffic.values()),
        updates_by_party={party: share.updates for party, share in shares.items()},
        launched_by_party={party: share.launched for party, share in shares.items() if share.launched},
        refused=dict(refused),
    )


def staleness_of(shares: dict[str, Share]) -> Staleness:
    """How late gradients were at these parties."""
    delays = sum((Counter(share.delays) for share in shares.values()), Counter[int]())
    if not delays:
        return Staleness(mean=0.0, p95=0, max=0)
    ages = np.array(sorted(delays))
    counts = np.array([delays[int(age)] for age in ages])
    at_most = np.cumsum(counts) / counts.sum()
    each = list(shares.values())
    return Staleness(
        mean=float((ages * counts).sum() / counts.sum()),
        p95=int(ages[np.searchsorted(at_most, 0.95)]),
        max=int(ages[-1]),
        bound=_largest(share.delay_bound for share in each),
        tau_1=_largest(share.tau_1 for share in each),
        tau_2=_largest(share.tau_2 for share in each),
    )


def _largest(values: Iterable[int | None]) -> int | None:
    """The largest of some numbers, if all are known."""
    known = list(values)
    return None if None in known else max((value for value in known if value is not None), default=None)
