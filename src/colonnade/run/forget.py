"""A model that forgets some rows: trained on without them, from where it was where that is the same model.

A linear model of `lbfgs` in clear begins at its own weights and goes on to the optimum of the rows that are
left, which is where training without the others ends, from anywhere. Everything else is trained from the
beginning: trees, as the first of them changes with the mean label; runs with noise, whose noise must be new;
algorithms of the first order, whose steps forget their start slowly. Columns are prepared from the rows that
are left alone, so nothing of the others stays in scales and categories either.

Who has the model before and the model after knows how they differ. Of one row that is nearly the row itself,
so at least `LEAST` rows are forgotten at once. The same holds of two models that were made from one model
without different rows: `Forgotten` keeps hashes of the rows of every call, and refuses sets that are nearly
the same. A model that has forgotten rows does not see them again when it forgets more, though the job's files
may still hold them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np

from colonnade.arrays import Floats, Rows
from colonnade.data.read.dialect import described
from colonnade.data.read.files import load
from colonnade.data.split.assign import Assigned
from colonnade.data.table import RawTable, count
from colonnade.disk import drafted
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


FILE = "forgotten.json"


class Forgotten(msgspec.Struct, frozen=True, kw_only=True):
    """What a kept model has forgotten: hashes of ids of training rows.

    `before`: rows that it was trained without. `since`: rows of every model that was made from it.
    """

    before: list[str] = []
    since: list[list[str]] = []

    @staticmethod
    def of(run: Path) -> Forgotten:
        """Return what the model of a run has forgotten, nothing where there is no record."""
        try:
            return msgspec.json.decode((run / FILE).read_bytes(), type=Forgotten)
        except FileNotFoundError:
            return Forgotten()
        except msgspec.MsgspecError as error:
            raise DataError(f"{run / FILE}: is not a record of forgotten rows: {error}") from error

    def write(self, run: Path) -> None:
        """Write the record, whole or not at all, for nobody else to read."""
        with drafted(run / FILE) as draft:
            draft.write_bytes(msgspec.json.encode(self))
            draft.chmod(0o600)

    def check(self, rows: Iterable[str], run: Path, ids: Source) -> None:
        """Refuse rows that are too few, or that an earlier call for this model had but for a few."""
        asked = set(rows)
        if len(asked) < LEAST:
            raise DataError(
                f"{ids}: {count(len(asked), 'training row')}; at least {LEAST} are forgotten at once, as two "
                " models that differ by fewer reveal these rows; wait for more"
            )
        for earlier in self.since:
            apart = len(asked ^ set(earlier))
            if 0 < apart < LEAST:
                raise DataError(
                    f"{ids}: a model was made from {run} without almost the same rows; both together tell "
                    f"the {count(apart, 'row')} in which they differ. Forget the same rows as then, at least "
                    f"{LEAST} others, or these beside them from the model that was made then"
                )


def remember(run: Path, out: Path, rows: list[str]) -> None:
    """Write down in both folders that the model in `out` is that of `run` without these rows."""
    known = Forgotten.of(run)
    since = known.since if rows in known.since else [*known.since, rows]
    msgspec.structs.replace(known, since=since).write(run)
    Forgotten(before=[*known.before, *rows]).write(out)


def forget(
    job: Job,
    run: Path,
    ids: Source,
    tell: Callable[[str], None] = lambda words: None,
    out: Path | None = None,
) -> tuple[Finished, list[str]]:
    """Return the run of a job without the rows of these ids, begun at the model that a run kept.

    Beside it are hashes of the rows that it forgot, to be kept (`remember`).
    """
    known = Forgotten.of(run)
    composition = compose(to_the_end(job))
    tell("reading the data")
    assigned = read_and_choose(composition)
    if assigned.large:
        raise DataError("forget: is for data that fits the memory; take the rows out of it and train again")
    left, rows, digest = without(assigned, job, ids, known.before)
    known.check(rows, run, ids)
    job = composition.job
    source, order = order_of(composition, left)
    order = replace(order.ready(), out=out)
    start = started_at(composition, order, run)
    tell(f"forgetting {count(len(rows), 'row')}, from {'the optimum' if start else 'the beginning'}")
    done = with_comparison(conclude(job, source, replace(order, start=start), tell), order)
    told = Forgot(rows=len(rows), ids=digest, of=str(run), start="optimum" if start else "beginning")
    return replace(done, result=msgspec.structs.replace(done.result, forgot=told)), rows


def to_the_end(job: Job) -> Job:
    """Return a job that ends where nothing is left to gain, if it may begin anywhere and does not say."""
    if job.train.tolerance is not None or not compose(job).has("starts-anywhere"):
        return job
    return msgspec.structs.replace(job, train=msgspec.structs.replace(job.train, tolerance=NOTHING_LEFT))


def without(
    assigned: Assigned, job: Job, ids: Source, before: Iterable[str] = ()
) -> tuple[Assigned, list[str], str]:
    """Return all data but the rows of these ids, hashes of the training rows among them, and one of all ids.

    Rows with a hash in `before` are left out as well, and are none of those that are returned.
    """
    first = assigned.label_holders[0]
    names = job.data.id_at(first)
    if not names or assigned.parties[first].train.ids is None:
        raise DataError("forget: rows are found by their ids, and the job names none (data.id)")
    given = load(ids, id=names, keys=job.data.keys or None, bare=True, dialect=described(job.data)).ids
    unwanted = np.asarray([] if given is None else given)
    assigned, _ = _not_these(assigned, before)
    hashes = {_hash(each) for each in unwanted.tolist()}
    digest = hashlib.sha256("\n".join(sorted(unwanted.tolist())).encode()).hexdigest()
    left, gone = _not_these(assigned, hashes)
    return left, gone, digest


def _not_these(assigned: Assigned, hashes: Iterable[str]) -> tuple[Assigned, list[str]]:
    """Return all data but the rows whose ids have these hashes, and those of training rows among them."""
    first, unwanted = assigned.parties[assigned.label_holders[0]], set(hashes)
    if not unwanted:
        return assigned, []
    left, gone = _left(first.train, unwanted)
    left_test, _ = _left(first.test, unwanted)
    parties = {
        party: replace(data, train=data.train.take(left), test=_taken(data.test, left_test))
        for party, data in assigned.parties.items()
    }
    return replace(assigned, parties=parties), sorted(gone)


def _left(table: RawTable | None, unwanted: set[str]) -> tuple[Rows, list[str]]:
    """Return which rows of a table are none of these, and the hashes of those that are."""
    if table is None or table.ids is None:
        return np.arange(0 if table is None else table.rows), []
    hashes = [_hash(each) for each in table.ids.tolist()]
    left = np.flatnonzero([each not in unwanted for each in hashes])
    return left, [each for each in hashes if each in unwanted]


def _hash(normal: str) -> str:
    """Return the hash under which an id in its normal form is remembered."""
    return hashlib.sha256(normal.encode()).hexdigest()[:32]


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
