"""A model that forgets some rows: trained on without them, from where it was where that is the same model.

A linear model of `lbfgs` in clear begins at its own weights and goes on to the optimum of the rows that are
left, which is where training without the others ends, from anywhere. Everything else is trained from the
beginning: trees, as the first of them changes with the mean label; runs with noise, whose noise must be new;
algorithms of the first order, whose steps forget their start slowly. Columns are prepared from the rows that
are left alone, so nothing of the others stays in scales and categories either.

Who has the model before and the model after knows how they differ. Of one row that is nearly the row itself,
so at least `LEAST` rows are forgotten at once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np

from colonnade.arrays import Floats, Rows
from colonnade.data.prepare.party_data import PartyData
from colonnade.data.read.dialect import described
from colonnade.data.read.files import load
from colonnade.data.split.assign import Assigned
from colonnade.data.table import RawTable, count
from colonnade.errors import DataError
from colonnade.job import Job
from colonnade.job.source import Source
from colonnade.result import Forgot
from colonnade.run.federate import Finished, conclude, order_of, read_and_choose, with_comparison
from colonnade.run.resolve import Composition, compose
from colonnade.run.run_shares import KeptModel
from colonnade.run.world import Launch

LEAST = 10
"""Rows that are forgotten at once."""

NOTHING_LEFT = 1e-9  # the relative fall of the loss a step that counts as none


def forget(
    job: Job,
    run: Path,
    ids: Source,
    tell: Callable[[str], None] = lambda words: None,
    out: Path | None = None,
) -> Finished:
    """Return the run of a job without the rows of these ids, begun at the model that a run kept."""
    composition = compose(to_the_end(job))
    tell("reading the data")
    assigned = read_and_choose(composition)
    if assigned.large:
        raise DataError("forget: is for data that fits the memory; take the rows out of it and train again")
    left, gone, digest = without(assigned, job, ids)
    if gone < LEAST:
        raise DataError(
            f"{ids}: {count(gone, 'row')} to train on; at least {LEAST} are forgotten at once, as a model "
            "before and after fewer tells these rows; wait for more"
        )
    job = composition.job
    source, order = order_of(composition, left)
    order = replace(order.ready(), out=out)
    start = started_at(composition, order, run)
    tell(f"forgetting {count(gone, 'row')}, from {'the optimum' if start else 'the beginning'}")
    done = with_comparison(conclude(job, source, replace(order, start=start), tell), order)
    told = Forgot(rows=gone, ids=digest, of=str(run), start="optimum" if start else "beginning")
    return replace(done, result=msgspec.structs.replace(done.result, forgot=told))


def to_the_end(job: Job) -> Job:
    """Return a job that ends where nothing is left to gain, if it may begin anywhere and does not say."""
    if job.train.tolerance is not None or not compose(job).has("starts-anywhere"):
        return job
    return msgspec.structs.replace(job, train=msgspec.structs.replace(job.train, tolerance=NOTHING_LEFT))


def without(assigned: Assigned, job: Job, ids: Source) -> tuple[Assigned, int, str]:
    """Return all data but the rows of these ids, how many training rows these are, and a digest of the
    ids."""
    first = assigned.label_holders[0]
    names = job.data.id_at(first)
    if not names or assigned.parties[first].train.ids is None:
        raise DataError("forget: rows are found by their ids, and the job names none (data.id)")
    given = load(ids, id=names, keys=job.data.keys or None, bare=True, dialect=described(job.data)).ids
    unwanted = np.asarray([] if given is None else given)
    rows = {name: _left(assigned.parties[first], name, unwanted) for name in ("train", "test")}
    parties = {
        party: replace(data, train=data.train.take(rows["train"]), test=_taken(data.test, rows["test"]))
        for party, data in assigned.parties.items()
    }
    gone = assigned.parties[first].rows - len(rows["train"])
    digest = hashlib.sha256("\n".join(sorted(unwanted.tolist())).encode()).hexdigest()
    return replace(assigned, parties=parties), gone, digest


def _left(data: PartyData, name: str, unwanted: np.ndarray[tuple[int], np.dtype[np.str_]]) -> Rows:
    table = data.train if name == "train" else data.test
    if table is None or table.ids is None:
        return np.arange(0 if table is None else table.rows)
    return np.flatnonzero(~np.isin(table.ids, unwanted))


def _taken(table: RawTable | None, rows: Rows) -> RawTable | None:
    return None if table is None else table.take(rows)


def started_at(composition: Composition, order: Launch, run: Path) -> dict[str, Floats]:
    """Return every party's weights to begin with; none where a run is trained from the beginning."""
    if not composition.has("starts-anywhere") or order.plan.blind is not None:
        return {}
    kept = KeptModel.read(run)
    return {
        party: np.asarray(share.arrays["w"]) for party, share in kept.shares.items() if "w" in share.arrays
    }
