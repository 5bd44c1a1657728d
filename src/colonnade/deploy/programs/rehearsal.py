"""A rehearsal of a job for an estimate: `python -m colonnade.deploy.programs.rehearsal`, by JSON on its
standard input and output.

A process of its own, so that the daemon goes on answering, with the limits of a training.
"""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
from msgspec import structs
from threadpoolctl import threadpool_limits

from colonnade.data.table import Table
from colonnade.deploy.process.estimating import Estimate, EstimateRequest
from colonnade.deploy.process.logs import log_to_stderr
from colonnade.deploy.process.resource_limits import confine
from colonnade.deploy.session.prepared import labels_for, preparation_for, read_rows
from colonnade.deploy.terms.contract import Contract, check_terms
from colonnade.deploy.terms.terms import Proposal
from colonnade.errors import ColonnadeError, JobError
from colonnade.job.plan import Facts, Plan
from colonnade.run.rehearse import Given, TripLine, passes_until_settled, rehearse, rehearse_alignment
from colonnade.run.resolve import resolve

SAMPLE = 6000  # rows on which the number of passes is tried
CLOSING_TRIPS = 12  # round trips of asking, agreeing on keys, storing and leaving


def main() -> None:
    """Read a request, rehearse the job and write the estimate, or why there is none."""
    starting_s = time.process_time()  # what a training's process takes as well, before it can do anything
    request = msgspec.json.decode(sys.stdin.buffer.read(), type=EstimateRequest)
    log_to_stderr()
    confine(request.settings.limits)
    with threadpool_limits(1):
        try:
            said: Estimate | str = _estimate(request, starting_s)
        except ColonnadeError as error:
            said = str(error)
    sys.stdout.buffer.write(msgspec.json.encode(said))


def _estimate(request: EstimateRequest, starting_s: float) -> Estimate:
    """Return what the job will cost.

    A machine with other work gives a rehearsal less than a processor, and so it will the training.
    """
    began, began_cpu = time.perf_counter(), time.process_time()
    terms = msgspec.json.decode(request.terms, type=Proposal).train
    if terms is None:
        raise JobError("only trainings are rehearsed")
    if named := [terms.model.of(party).name for party in terms.parties if terms.model.of(party).name]:
        raise JobError(f"model {named[0]} is code of a party, which only that party can run")
    contract, line = check_terms(terms, "job"), TripLine(request.round_trip_s, request.mbps)
    tests = max(1, int(request.rows * terms.split.test))
    rows = max(1, request.rows - tests - int(request.rows * terms.split.validation))
    plan, most = _plan(contract, request, rows), terms.train.epochs
    given = Given(request.columns)
    if plan.pace.open and contract.conversation.rehearsal.passes is not None:
        passes = _passes(contract, request, _with_own(contract, request), min(rows, SAMPLE))
        plan = structs.replace(plan, pace=structs.replace(plan.pace, epochs=passes))
    taken = rehearse(plan, given, rows, tests, line)
    found = rehearse_alignment(dict.fromkeys(plan.parties, request.rows), terms.align.method, line)
    whole = taken.plus(found)
    waiting = whole.waiting_s + CLOSING_TRIPS * line.round_trip_s
    computing = whole.computing_s + starting_s
    slower = (time.perf_counter() - began) / max(1e-3, time.process_time() - began_cpu)
    return Estimate(
        rows=request.rows,
        columns=request.columns,
        passes=round(taken.passes) or plan.pace.epochs,
        most_passes=most,
        rounds=round(whole.rounds),
        bytes=round(whole.sent),
        seconds=waiting + max(1.0, slower) * computing,
        waiting_s=waiting,
        computing_s=computing,
        round_trip_s=line.round_trip_s,
        mbps=line.mbps,
    )


def _plan(contract: Contract, request: EstimateRequest, rows: int) -> Plan[Any]:
    """Return the plan of the job for this number of rows."""
    facts = Facts(
        columns={party: request.columns[party] for party in sorted(contract.terms.parties)},
        label_holders=contract.terms.active,
        rows=rows,
        task=contract.loss.task,
        classes=contract.terms.train.classes or 0,
        weighted=contract.terms.weighted,
    )
    return resolve(contract.composition, facts)


def _passes(contract: Contract, request: EstimateRequest, given: Given, rows: int) -> int:
    """Return how many passes the run will make until the loss stops falling, by a run over fewer rows."""
    return passes_until_settled(_plan(contract, request, rows), given, rows)


def _with_own(contract: Contract, request: EstimateRequest) -> Given:
    """Return sizes with rows of this party's, where it holds the label: what they say of it decides how long
    a run goes on."""
    me = request.settings.name
    if me not in contract.terms.active:
        return Given(request.columns)
    own = read_rows(request.settings, contract).table
    some = own.take(np.arange(min(own.rows, SAMPLE)))
    labels = labels_for(some, contract)
    made = preparation_for(some, contract, intercept=me == contract.intercept_at)
    y = None if some.y is None else labels.transform(some.y, name=some.name, origin=some.origin)
    table: Table = made.transform(replace(some, y=None, ids=None), y)
    return Given({**request.columns, me: table.width}, me, table)


if __name__ == "__main__":
    main()
