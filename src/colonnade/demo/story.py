"""The demonstration itself: daemons align, train and score; then all its numbers, beside a pooled model."""

from __future__ import annotations

import asyncio
import csv
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import numpy as np

from colonnade.arrays import Floats, Rows
from colonnade.baselines.pooled import fit_pooled
from colonnade.data.table import RawTable, Table
from colonnade.demo.daemons import Tell, ask, daemons, wait_connected
from colonnade.demo.departments import HOLDER, MEASURES, lay_out
from colonnade.deploy.daemon import commands
from colonnade.deploy.daemon.report_facts import party_facts
from colonnade.deploy.models import stored_shares
from colonnade.deploy.programs.training import RunCost
from colonnade.deploy.rows.rows import load_rows, split_rows
from colonnade.deploy.session.session import Event
from colonnade.deploy.settings import Settings, read_settings
from colonnade.deploy.terms.contract import read_terms
from colonnade.deploy.terms.terms import Terms
from colonnade.errors import DataError
from colonnade.job import Job
from colonnade.losses import LOSSES, USUAL
from colonnade.regularizers import REGULARIZERS, Penalty
from colonnade.report.facts import ReportFacts
from colonnade.result import Result
from colonnade.run.federate import Finished, Tables, compare, plan_for
from colonnade.run.gather_result import DataFacts, result_of
from colonnade.run.world import Launch


@dataclass(frozen=True)
class Demo:
    """A finished demonstration: the run, each department's part in it, and how the clinic does alone."""

    run: Finished
    facts: ReportFacts
    columns: dict[str, int]
    held: dict[str, int]
    common: int
    align_bytes: int
    alone: dict[str, float]
    scores: list[tuple[str, float, str]]


def run_demo(folder: Path, tell: Tell = lambda event: None) -> Demo:
    """Run the whole demonstration in this folder and return its numbers."""
    lay_out(folder)
    settings = {party: read_settings(folder / "parties" / party / "party.toml") for party in MEASURES}
    terms = read_terms(folder / "job.toml")
    with daemons(settings):
        tell(Event("starting four daemons"))
        wait_connected(settings)
        asyncio.run(ask(settings[HOLDER], commands.TrainRequest(terms), tell))
        new = _ids(folder / "parties" / HOLDER / "new.csv")
        found = asyncio.run(ask(settings[HOLDER], commands.PredictRequest(terms.name, [new], "new"), tell))
    scores = [
        (name, row["probability"], row["label"]) for name, row in zip(new, found["rows"], strict=True) if row
    ]
    return _gather(settings, terms, scores)


def _gather(settings: dict[str, Settings], terms: Terms, scores: list[tuple[str, float, str]]) -> Demo:
    """Return the demonstration's numbers, from all folders and a pooled model: no department could do
    this."""
    stored = {
        party: stored_shares.load(each.state / "models", terms.name) for party, each in settings.items()
    }
    costs = {
        party: msgspec.json.decode(
            (each.state / "books" / f"{stored[party].manifest.model}.json").read_bytes(), type=RunCost
        )
        for party, each in settings.items()
    }
    train, test, held = _joined(settings, terms, stored)
    job: Job = terms.job()
    plan, data = plan_for(job, Tables("patients", train, test, terms.active))
    trained = {party: cost.train for party, cost in costs.items()}
    pooled = compare(Launch(plan, data))
    result = result_of(DataFacts("breast cancer, four departments"), plan, trained, pooled)
    facts = _put_together(result, {party: party_facts(each, terms.name) for party, each in settings.items()})
    return Demo(
        run=Finished(job, plan, facts.result, trained),
        facts=facts,
        columns={party: len(share.manifest.columns) for party, share in stored.items()},
        held=held,
        common=stored[HOLDER].manifest.rows["common"],
        align_bytes=sum(cost.align_bytes for cost in costs.values()),
        alone=_alone(train[HOLDER], test[HOLDER], job),
        scores=scores,
    )


def _put_together(result: Result, own: dict[str, ReportFacts]) -> ReportFacts:
    """Return what a report of the whole run needs, from what every department could report by itself."""
    holder = own[HOLDER]
    data = msgspec.structs.replace(
        holder.result.data,
        columns={party: n for each in own.values() for party, n in each.result.data.columns.items()},
        done={party: said for each in own.values() for party, said in each.result.data.done.items()},
    )
    return replace(
        holder,
        result=msgspec.structs.replace(result, data=data, converged=holder.result.converged),
        parts=tuple(part for each in own.values() for part in each.parts),
        further=tuple(fact for fact in holder.further if all(fact in each.further for each in own.values())),
        seen_by=None,
    )


def _joined(
    settings: dict[str, Settings], terms: Terms, stored: dict[str, stored_shares.StoredShare]
) -> tuple[dict[str, Table], dict[str, Table], dict[str, int]]:
    """Return every department's prepared rows, joined in clear: exactly those that alignment found."""
    own = {
        party: load_rows(each, "patients", terms.align.keys, label=party == HOLDER)
        for party, each in settings.items()
    }
    names = {party: [row.tobytes() for row in each.ids] for party, each in own.items()}
    common = sorted(set.intersection(*(set(each) for each in names.values())))
    packed = np.frombuffer(b"".join(common), dtype=np.uint8).reshape(-1, 32)
    kept, _, tested = split_rows(packed, terms.split, terms.seed)
    tables: dict[str, tuple[Table, Table]] = {}
    for party, each in own.items():
        place = {name: row for row, name in enumerate(names[party])}
        raw = each.table.take(np.array([place[name] for name in common]))
        tables[party] = _prepared(raw, kept, stored[party]), _prepared(raw, tested, stored[party])
    held = {party: len(each) for party, each in names.items()}
    return {p: t[0] for p, t in tables.items()}, {p: t[1] for p, t in tables.items()}, held


def _prepared(raw: RawTable, rows: Rows, share: stored_shares.StoredShare) -> Table:
    """Return these rows with labels and columns as they were in training."""
    part = raw.take(rows)
    y = share.labels.transform(part.y) if share.labels is not None and part.y is not None else None
    return share.preparation.transform(replace(part, y=None, ids=None), y)


def learnt(party: str) -> str:
    """Return what this run tells a department about the others' data, whether it looks or not."""
    if party == HOLDER:
        return "who is a patient of all four; each one's total score, so the sum of the other three's"
    return "who is a patient of all four; no weight and no diagnosis"


def _alone(train: Table, test: Table, job: Job) -> dict[str, float]:
    """Return the metrics of the clinic's own columns alone: the reason to federate."""
    loss, penalty = (
        LOSSES[USUAL["binary"]],
        Penalty(REGULARIZERS["l2"], job.train.l2_for(train.rows), free=train.free),
    )
    fit = fit_pooled(train.X, _labels(train), loss, penalty)
    return fit.metrics(loss, test.X, _labels(test))


def _labels(table: Table) -> Floats:
    """Return the labels of a table; DataError if it has none."""
    if table.y is None:
        raise DataError(f"{table.name} has no labels; the clinic's file should have the diagnosis")
    return table.y


def _ids(path: Path) -> list[str]:
    """Return the ids of the patients in a CSV file."""
    with path.open(newline="", encoding="utf-8") as file:
        return [row["patient"] for row in csv.DictReader(file)]
