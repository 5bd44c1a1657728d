"""From a job to its result: read the data, resolve the job, launch the parties, gather what they report."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from colonnade.arrays import Floats
from colonnade.conversations.context import GivenModels
from colonnade.conversations.pooling import AllColumns, Pooled
from colonnade.data.prepare.labels import Labels, check_labels
from colonnade.data.prepare.party_data import PartyData
from colonnade.data.prepare.prepare import refuse_nothing
from colonnade.data.split.assign import Assigned, assign, label_holders
from colonnade.data.split.copies import copies_of_the_label
from colonnade.data.split.described import described
from colonnade.data.split.outliers import choose, with_tails
from colonnade.data.table import Table, as_numbers
from colonnade.errors import DataError, JobError
from colonnade.job import MEMORY, Job, memory_of
from colonnade.job.plan import Facts, Plan, Task
from colonnade.losses import LOSSES
from colonnade.models.blackbox import Model
from colonnade.result import Result
from colonnade.run.blind import hides_counts
from colonnade.run.coalitions import game_of
from colonnade.run.compared import compared
from colonnade.run.gather_result import DataFacts, result_of
from colonnade.run.launch import IN_PROCESS, launch
from colonnade.run.notes import with_woe
from colonnade.run.party import Progress, Share
from colonnade.run.registry import CONVERSATIONS
from colonnade.run.resolve import Composition, compose, resolve
from colonnade.run.woe import weigh_all, with_evidence
from colonnade.run.woe_party import Weighing, WeighingTerms
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
    pooled: Pooled | None = None

    def squared_errors(self) -> Floats:
        """Return the squared error of every test row, where a number is predicted."""
        if self.test is None:
            raise DataError("there are no scores of test rows")
        predicted = LOSSES[self.plan.objective.loss].predict(self.test.z)
        squares: Floats = (predicted - self.test.y) ** 2
        return squares

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
    source, order = prepare(composition, tell)
    order = replace(order, progress=progress, out=out, timeline=timeline, resume=resume)
    if order.plan.world in IN_PROCESS:
        tell("preparing the columns")
        order = order.ready()  # once, for the parties and for all comparisons
    done = conclude(composition.job, source, order, tell)
    # without a comparison, columns that are not in this process are prepared by their party alone
    here = order.plan.world in IN_PROCESS or composition.job.compare
    return with_comparison(done, order) if here else done


def with_comparison(done: Finished, order: Launch) -> Finished:
    """Return the run with its intervals, and with what its label holder reaches alone.

    Not where columns lie in files; and without a comparison nobody but a party's own process prepares its
    columns, so that nobody here knows what they reach.
    """
    if order.large or done.test is None:
        return done
    own = order.data[order.plan.evaluator]
    if order.plan.world in IN_PROCESS or done.job.compare:
        _, train, test = own.prepare()
        found = compared(order.plan, train, test, done.test.z, done.pooled)
    else:
        weight = None if own.test is None else own.test.weight
        test = Table("test", (), np.empty((len(done.test.y), 0)), done.test.y, weight=weight)
        found = compared(order.plan, None, test, done.test.z, None)
    return replace(done, result=msgspec.structs.replace(done.result, compared=found))


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
        tails=composition.tails,
        helper=job.secure.helper,
        fits=partial(composition.conversation.fits, job),
    )


def read_and_choose(composition: Composition, tell: Callable[[str], None] = lambda words: None) -> Assigned:
    """Read a job's files; what becomes of outliers is chosen on training rows, where that is cheap."""
    assigned = read(composition)
    if assigned.large or not composition.tries_tails:
        return assigned
    job = msgspec.structs.replace(
        composition.job, compare=False, train=msgspec.structs.replace(composition.job.train, target=None)
    )

    def errors(parties: Mapping[str, PartyData]) -> Floats:
        held_back = replace(assigned, parties=dict(parties))
        return conclude(job, *order_of(replace(composition, job=job), held_back)).squared_errors()

    found = choose(assigned.parties, errors, job.seed, tell)
    if found is None:
        return assigned
    return replace(assigned, parties=with_tails(assigned.parties, found.tails), chosen=found.said())


def prepare(
    composition: Composition, tell: Callable[[str], None] = lambda words: None
) -> tuple[DataFacts, Launch]:
    """Read a job's files; returns what is known of them and the run to launch."""
    assigned = read_and_choose(composition, tell)
    source, order = order_of(composition, assigned)
    if assigned.large:
        return source, order
    copies = list(copies_of_the_label(assigned.parties, assigned.label_holders[0]))
    return replace(source, known=msgspec.structs.replace(source.known, warnings=copies)), order


def order_of(composition: Composition, assigned: Assigned) -> tuple[DataFacts, Launch]:
    """Return what is known of every party's data, and the run on it to launch."""
    job = composition.job
    if job.data.woe:
        assigned = replace(
            assigned, parties=with_evidence(assigned.parties, weigh_job(composition, assigned))
        )
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
    source = DataFacts(assigned.dataset, described(assigned))
    memory = memory_of(job.data.memory) or MEMORY
    return source, Launch(
        plan, assigned.parties, labels=assigned.labels, memory=memory, large=assigned.large, engine=job.engine
    )


def weigh_columns_of(job: Job) -> dict[str, Weighing]:
    """Return the weight of evidence of every party's columns, from the job's files, in its world."""
    composition = compose(job)
    return weigh_job(composition, read(composition))


def weigh_job(composition: Composition, assigned: Assigned) -> dict[str, Weighing]:
    """Return every party's columns with their weight of evidence, found in the job's world."""
    job = composition.job
    if assigned.labels.task != "binary":
        raise DataError("data.woe: weight of evidence needs two classes; name the bad one in data.positive")
    terms = WeighingTerms(
        label_holder=assigned.label_holders[0],
        woe=job.woe,
        network=job.network,
        world=job.world,
        seed=job.seed,
        blind=hides_counts(job, composition.conversation, len(assigned.parties)),
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
    return conclude(job, DataFacts(tables.dataset), order)


def plan_for(job: Job, tables: Tables) -> tuple[Plan[Any], dict[str, PartyData]]:
    """Return the plan of a job on prepared tables, and every party's data; only label holders have the
    label."""
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
    """Return a party's table, with the label if the party is one of its holders and without it if not."""
    table, known = tables[party], tables[first]
    if party not in holders:
        return replace(table, y=None, weight=None)
    return table if table.y is not None else replace(table, y=known.y, weight=known.weight)


def _facts(composition: Composition, tables: Tables, holders: tuple[str, ...]) -> Facts:
    """Return what the plan needs to know of the tables; without a loss the kind of label is guessed."""
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
    job: Job, source: DataFacts, order: Launch, tell: Callable[[str], None] = lambda words: None
) -> Finished:
    """Fit the pooled model (unless `compare = false`), run the parties, and put the result together."""
    if order.plan.world in IN_PROCESS:
        order = order.ready()
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
    trainings = f", for {len(game_of(order.plan).coalitions) - 1} trainings" if order.plan.value else ""
    tell(f"starting {len(order.data)} parties{trainings}")
    shares = launch(order)
    result = result_of(source, order.plan, shares, pooled)
    if job.data.woe:
        hidden = hides_counts(job, CONVERSATIONS[order.plan.conversation], len(order.data))
        result = msgspec.structs.replace(result, privacy=with_woe(result.privacy, hidden=hidden))
    rows = order.data[order.plan.evaluator].rows
    test = _test_scores(order, shares)
    return Finished(job, order.plan, result, shares, order.labels, rows, test, pooled)


def _test_scores(order: Launch, shares: dict[str, Share]) -> TestScores | None:
    """Return the scores of the test rows beside their labels, as the party that evaluates the model has
    them."""
    evaluator = order.plan.evaluator
    z, test = shares[evaluator].test_scores, order.data[evaluator].test
    if z is None or test is None or test.y is None:
        return None
    y = np.asarray(test.y, dtype=np.float64)
    return TestScores(y, z, test.ids, LOSSES[order.plan.objective.loss].link == "logit")


def compare(order: Launch) -> Pooled:
    """Train the same model on pooled columns. No party takes part in it."""
    prepared = {party: data.prepare() for party, data in order.data.items()}
    refuse_nothing(each.preparation for each in prepared.values())
    test = {party: each.test for party, each in prepared.items() if each.test is not None}
    given = {party: each.own for party, each in order.models.items() if each.own is not None}
    head = next((each.head for each in order.models.values() if each.head is not None), None)
    train = {party: each.train for party, each in prepared.items()}
    columns = AllColumns(train, test or None, order.plan.evaluator, given, head)
    return CONVERSATIONS[order.plan.conversation].pooled(order.plan, columns)
