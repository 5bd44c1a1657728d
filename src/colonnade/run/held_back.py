"""A job measured on training rows that are held back from it. Test rows have no part in this.

Every fold is a whole training among all parties on the rows that are kept: columns are prepared, and weights
of evidence found, from these alone. The rows that are held back take the place of test rows.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace

import msgspec
import numpy as np

from colonnade.data.prepare.party_data import PartyData
from colonnade.data.split.assign import Assigned
from colonnade.data.split.folds import Fold, folds_of, in_fold, one_fold
from colonnade.errors import DataError, JobError
from colonnade.job import Job
from colonnade.job.plan import Task
from colonnade.losses import LOSSES, with_weights
from colonnade.metrics import metrics_of
from colonnade.run.federate import Finished, conclude, order_of, read_and_choose
from colonnade.run.party import Progress
from colonnade.run.resolve import compose

FOLDS = 5  # where the job does not say


@dataclass
class HeldBack:
    """The training rows of a job in folds. Files are read once for all settings that read them alike."""

    job: Job
    _read: dict[str, Assigned] = field(default_factory=dict)

    def __post_init__(self) -> None:
        tune, rows, seed = self.job.tune, self.rows, self.job.seed
        if tune.held_back is not None:
            self.folds: tuple[Fold, ...] = one_fold(rows, tune.held_back, seed)
        else:
            self.folds = folds_of(rows, tune.folds or FOLDS, seed)

    @property
    def rows(self) -> int:
        """How many training rows there are."""
        return next(iter(self._data(self.job).parties.values())).rows

    @property
    def task(self) -> Task:
        """What kind of label the rows have."""
        return self._data(self.job).labels.task

    @property
    def digest(self) -> str:
        """A hash of the training rows' labels and of the columns' names, to know the same rows again."""
        assigned = self._data(self.job)
        found = hashlib.sha256(np.asarray(assigned.parties[assigned.label_holders[0]].train.y).tobytes())
        for party, data in assigned.parties.items():
            found.update(repr((party, data.train.columns)).encode())
        return found.hexdigest()

    def measure(self, job: Job, fold: Fold, progress: Progress = lambda moment: None) -> dict[str, float]:
        """Train a job on the rows that are kept; returns metrics of those that are held back.

        The loss is that of the rows alone, without penalties: these belong to the setting, not to the rows.
        """
        job = msgspec.structs.replace(job, compare=False)
        source, order = order_of(compose(job), self._fold(job, fold))
        done = conclude(job, source, replace(order, progress=progress))
        return _metrics(done, order.data[order.plan.evaluator])

    def _fold(self, job: Job, fold: Fold) -> Assigned:
        """Return every party's data with the rows of a fold for training and test rows."""
        assigned = self._data(job)
        # a class's weight is one of training: rows are measured with the weights that they have themselves
        even = self._data(
            msgspec.structs.replace(job, train=msgspec.structs.replace(job.train, class_weight=None))
        )
        parties = {
            party: in_fold(data, fold, even.parties[party]) for party, data in assigned.parties.items()
        }
        return replace(assigned, parties=parties)

    def _data(self, job: Job) -> Assigned:
        """Return all parties' data of a job; test rows are in it and are not used."""
        composition = compose(msgspec.structs.replace(job, compare=False))
        # some algorithms have columns prepared in a way of their own
        alike = (job.algorithm, job.data, job.train.class_weight, composition.intercept)
        key = hashlib.sha256(msgspec.json.encode(alike, order="deterministic")).hexdigest()
        if key not in self._read:
            self._read[key] = read_and_choose(composition)
        return self._read[key]


def value_of(metrics: dict[str, float], metric: str) -> float:
    """Return one metric by its name in a job; JobError if these rows have none."""
    known = {key.removeprefix("test_"): value for key, value in metrics.items()}
    if metric not in known:
        raise JobError(
            f"tune.metric: rows that were held back have no {metric}, but {', '.join(known)}; choose one of "
            "these, or hold back more rows if all were of one class"
        )
    return known[metric]


def _metrics(done: Finished, evaluator: PartyData) -> dict[str, float]:
    if done.test is None:
        raise DataError("the rows that were held back have no scores")
    weight = None if evaluator.test is None else evaluator.test.weight
    loss = LOSSES[done.plan.objective.loss]
    return metrics_of(loss, done.test.z, with_weights(done.test.y, weight))
