"""An estimator's parameters as a job: what is wrong with them is refused as in a job file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from msgspec import structs

from colonnade.errors import JobError
from colonnade.job import Job, job_from
from colonnade.job.plan import Task
from colonnade.losses import LOSSES
from colonnade.run.resolve import compose

TRAIN_KEYS = ("epochs", "batch", "step", "tolerance", "l2", "l1", "loss")


def read(given: Mapping[str, Any], job: Mapping[str, Any], where: str) -> Job:
    """Return the job of an estimator's own parameters and, for all else, of its parameter `job`."""
    if "data" in job:
        own = "columns, scale, missing, categorical, rare"
        raise JobError(f"{where}: job has a section 'data', but the data is X; use {own}")
    plain: dict[str, Any] = {"compare": False, **given}
    for key, value in job.items():
        plain[key] = {**plain[key], **value} if isinstance(plain.get(key), dict) else value
    plain["train"] = {key: _plain(value) for key, value in plain["train"].items()}
    if isinstance(plain["train"].get("step"), int):
        plain["train"]["step"] = float(plain["train"]["step"])
    return job_from(plain, where=where)


def for_labels(job: Job, task: Task, classes: int | None, tasks: tuple[str, ...], where: str) -> Job:
    """Return the job with the loss for such labels, and a score for every class where the loss has them."""
    composition = compose(job)
    loss = composition.loss(task, with_probabilities=True)
    if LOSSES[loss].task not in tasks:
        raise JobError(f"{where}: loss = {loss!r} is not for {' or '.join(tasks)} labels")
    if LOSSES[loss].task != "multiclass":
        return structs.replace(job, train=structs.replace(job.train, loss=loss))
    return structs.replace(job, train=structs.replace(job.train, loss=loss, classes=classes))


def _plain(value: Any) -> Any:
    """Return the value as a plain Python number, if it is one of NumPy's (as parameter grids have them)."""
    return value.item() if isinstance(value, np.generic) else value
