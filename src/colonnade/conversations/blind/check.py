"""What a blind run of a linear model cannot do, and why."""

from __future__ import annotations

from colonnade.errors import JobError
from colonnade.job import Job
from colonnade.job.plan import Facts
from colonnade.job.presets import Preset

LARGEST = 2**33  # bytes of veiled columns at the label holder


def check_blind(job: Job, preset: Preset) -> None:
    """Refuse a job whose steps need weights that nobody has."""
    clear = "or set secure.labels = 'clear'"
    if preset.schedule == "async":
        raise JobError(
            f"secure.labels = 'blind': {preset.name} is asynchronous, and blind runs go round by round; use "
            f"{preset.name.replace('vfb2', 'vfb')}, {clear}"
        )
    if (job.train.direction or preset.direction) != "plain":
        raise JobError(
            f"secure.labels = 'blind': a quasi-Newton direction needs products of weights; "
            f"set train.direction = 'plain', {clear}"
        )
    if job.train.l1:
        raise JobError(
            f"train.l1 = {job.train.l1}: weights are set to zero one by one, and in a blind run nobody knows "
            f"one; drop train.l1, {clear}"
        )
    if job.train.regularizer != "l2":
        raise JobError(
            f"train.regularizer = {job.train.regularizer!r}: its gradient needs every weight, and in a blind "
            f"run nobody knows one; use 'l2', {clear}"
        )


def check_size(facts: Facts) -> None:
    """Refuse columns that are too many to be veiled."""
    columns = sum(facts.columns.values()) - facts.columns[facts.label_holders[0]]
    if (size := 8 * facts.rows * columns) > LARGEST:
        raise JobError(
            f"secure.labels = 'blind': {columns:,} columns of {facts.rows:,} rows are {size / 2**30:.0f} GiB "
            "when they are veiled, as every number is, also zeros; use fewer columns, or labels = 'clear'"
        )
