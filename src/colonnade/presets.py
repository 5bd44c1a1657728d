"""The one table: an algorithm's name -> the choices it is made of.

An algorithm of a paper is a conversation plus orthogonal choices. What is not in the table does not
exist; what does not go together is refused when the job is read, with the reason.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import Literal

from colonnade.config import Job
from colonnade.errors import JobError


@dataclass(frozen=True)
class Preset:
    """One algorithm: a conversation and the choices that plug into it."""

    name: str
    summary: str
    paper: str
    conversation: Literal["backward", "pull", "kernel", "cascade"]
    schedule: Literal["async", "sync"]
    estimator: Literal["sgd", "svrg", "saga"] = "sgd"


_TABLE = (
    Preset(
        "vfb2-sgd",
        "asynchronous SGD: label holders send theta back, every party updates its block",
        "VFB2",
        "backward",
        "async",
    ),
    Preset(
        "vfb-sgd",
        "the synchronous twin of vfb2-sgd: mini-batch SGD exactly as on pooled data",
        "VFB2",
        "backward",
        "sync",
    ),
)
PRESETS = {preset.name: preset for preset in _TABLE}


def preset_of(job: Job) -> Preset:
    """The job's algorithm, if its other choices go together with it."""
    preset = PRESETS.get(job.algorithm)
    if preset is None:
        near = difflib.get_close_matches(job.algorithm, PRESETS, n=1)
        hint = f"did you mean {near[0]}?" if near else "`colonnade algorithms` lists them"
        raise JobError(f"algorithm: there is no {job.algorithm!r}; {hint}")
    if preset.schedule == "sync" and job.train.ahead not in (None, 1):
        raise JobError(
            f"train.ahead: {preset.name} is synchronous, one batch at a time; "
            "drop ahead or use an asynchronous algorithm"
        )
    return preset


def batches_in_flight(job: Job, active: int) -> int:
    """How many batches may be under way at once.

    Unless the job says otherwise every dominator has one under way, as in the paper. Thetas of different
    dominators may overtake each other, so k batches in flight bound the delay by 2 (k - 1) updates.
    """
    if preset_of(job).schedule == "sync":
        return 1
    ahead = job.train.ahead or active
    bound = 2 * (ahead - 1)
    if job.train.max_delay is not None and bound > job.train.max_delay:
        raise JobError(
            f"train: ahead = {ahead} batches in flight can be {bound} updates late, over max_delay = "
            f"{job.train.max_delay}; set ahead = {job.train.max_delay // 2 + 1} or max_delay = {bound}"
        )
    return ahead
