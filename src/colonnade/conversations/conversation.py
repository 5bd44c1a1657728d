"""The record of a conversation: everything that the rest of the program knows of one kind of algorithm.

`run.registry` has a row for each. A new conversation is a folder with its code and its record, and that row;
nothing outside asks which conversation it has.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Generic, Literal

from colonnade.conversations.context import Context, Outcome
from colonnade.conversations.pooling import AllColumns, Pooled
from colonnade.conversations.predict import ShareKind
from colonnade.job import Job, LossName
from colonnade.job.plan import C, Facts, Pace, Plan, Task
from colonnade.job.presets import Preset
from colonnade.job.sections import USUAL_BATCH

Leak = Literal["labels", "scores", "shares", "outputs", "similarity", "two-parties"]
"""What a run may give away, as parties' policies name it; `deploy.policy` has the words for each."""

Trait = Literal[
    "labels-everywhere",  # every party holds the label, or the first `train.labels_at`; blocks of others stay
    "intercept",  # a column of ones is added where the columns need one
    "no-intercept",  # a column of ones says nothing
    "server",  # the first label holder may hold no columns
    "no-sum",  # nothing is summed securely
    "counts-classes",  # how many classes there are may be counted, where the job does not say
    "no-share",  # nobody ends up with a share that could score new rows
]

LOSSES: Mapping[Task, LossName] = {"binary": "logistic", "regression": "squared", "multiclass": "softmax"}


def _nothing(job: Job, preset: Preset) -> None:
    """Every combination is allowed."""


def _usual_batch(job: Job, preset: Preset, rows: int) -> int:
    return USUAL_BATCH


def _one_at_a_time(job: Job, label_holders: int) -> int:
    return job.train.ahead or 1


@dataclass(frozen=True, kw_only=True)
class Conversation(Generic[C]):
    """One kind of algorithm. What a field leaves out is right for most."""

    name: str
    converse: Callable[[Context[C]], Awaitable[Outcome]]
    settings: type[C]
    choose: Callable[[Job, Preset, Facts, Pace], C]
    pooled: Callable[[Plan[C], AllColumns], Pooled]
    share: ShareKind
    notes: Callable[[Plan[C]], list[str]]
    leaks: Callable[[Job], tuple[Leak, ...]]
    losses: Mapping[Task, LossName] = field(default_factory=lambda: LOSSES)
    check: Callable[[Job, Preset], None] = _nothing
    understands: frozenset[str] = frozenset()  # keys of `run.rules.ONLY_SOME`
    usual_batch: Callable[[Job, Preset, int], int] = _usual_batch
    ahead: Callable[[Job, int], int] = _one_at_a_time
    traits: frozenset[Trait] = frozenset()
