"""The record of a conversation: everything that the rest of the program knows of one kind of algorithm.

`run.registry` has a row for each. A new conversation is a folder with its code and its record, and that row;
nothing outside asks which conversation it has.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Literal

from colonnade.conversations.context import Context, Outcome
from colonnade.conversations.pooling import AllColumns, Pooled
from colonnade.conversations.predict import ShareKind
from colonnade.data.prepare.party_data import RowLengths
from colonnade.job import Job, LossName, PrivacyTerms
from colonnade.job.plan import C, Facts, Pace, Plan, Task
from colonnade.job.presets import Preset
from colonnade.job.sections import USUAL_BATCH
from colonnade.losses import USUAL
from colonnade.openings.leaks import Leak
from colonnade.openings.opening import Extent, Opening

Trait = Literal[
    "labels-everywhere",  # all parties hold the label, or the first `train.labels_at`; only these train
    "server",  # the first label holder may hold no columns
    "no-sum",  # nothing is summed securely
    "counts-classes",  # how many classes there are may be counted, where the job does not say
    "blind-labels",  # can be trained so that only the label holder learns what labels follow from
    "blind-by-itself",  # and is where the job does not say otherwise
    "weights-apart",  # can be trained, and score rows, so that nobody ever learns a weight
    "encrypts-sums",  # two parties alone can be blind, as what one adds up is encrypted
    "encrypts",  # two parties alone can be blind, as products are encrypted
    "takes-gaps",  # columns need no scale, a gap may stay a gap, and categories are numbered
    "few-rounds",  # a training is so short that some more may be spent on a choice
    "waits-a-round",  # a batch takes a word to all and its answer: fewer and larger ones cross slow lines
    "quick-alone",  # a party trains the same on its own columns at once, to compare with
    "starts-anywhere",  # it goes to the optimum from any weights to begin with
    "no-share",  # nobody ends up with a share that could score new rows
]


@dataclass(frozen=True)
class Rehearsal:
    """How much of a run shows what all of it will cost: these rows and passes, and half of each.

    With `passes` None the run is rehearsed to its own end.
    """

    rows: int = 6000
    passes: int | None = 6  # snapshots of SVRG come with every third


Space = Mapping[str, list[Any] | dict[str, Any]]
"""Settings to search among, as `[tune.space]` of a job has them: key -> [choices] or {low, high, log}."""


def _nothing(job: Job, preset: Preset) -> None:
    """Refuse no combination."""


def _all_used(job: Job, preset: Preset) -> Mapping[str, str]:
    """Return no key: all that a job gives is used."""
    return {}


def _any_rows(job: Job, rows: RowLengths) -> None:
    """Refuse no rows."""


def _no_intercept(job: Job) -> bool:
    return False


def _usual_batch(job: Job, preset: Preset, rows: int) -> int:
    return USUAL_BATCH


def _never(job: Job, preset: Preset) -> bool:
    return False


def penalty(job: Job, preset: Preset) -> Space:
    """Return how strong the penalty is: the one setting that every model has."""
    return {"train.l2": {"low": 1e-6, "high": 1.0, "log": True}}


def _one_at_a_time(job: Job, preset: Preset, label_holders: int) -> int:
    return job.train.ahead or 1


@dataclass(frozen=True, kw_only=True)
class Conversation(Generic[C]):
    """Everything that the program knows of one kind of algorithm. The defaults are right for most.

    What it does:
    - `converse` is the program of one party, from the first message to its outcome;
    - `pooled` trains the same model on pooled columns, to compare with;
    - `share` says what a party keeps of a trained model, and how rows are scored with it.

    What a plan says of it:
    - `settings` is the type of its own settings, and `choose` makes them from a job;
    - `losses` are its losses for each kind of label, where the job names none;
    - `usual_batch` is the batch for a number of rows, where the job names none;
    - `fades` says whether steps fall to nothing over all epochs, so that a run makes them all;
    - `ahead` is how many batches are in flight, for a number of label holders;
    - `rehearsal` is how much of a run is tried on made-up rows, to see what it would cost;
    - `intercept` is whether one party gets a column of ones, where the job does not say;
    - `space` are the settings that a search tries, where the job does not say.

    What a job may say, and what a run gives away:
    - `check` refuses a job whose choices it cannot combine;
    - `fits` refuses rows of a job that it cannot train on, before they are prepared, where they are many;
    - `idle` names keys that this job gives in vain, and why;
    - `understands` are the keys of `run.rules.ONLY_SOME` that mean something to it;
    - `traits` are facts that the rest of the program asks for;
    - `openings` declare every number that a run tells somebody: a party opens nothing else;
    - `notes` say in words what a run gives away, `leaks` as parties' policies name it.
    """

    name: str
    converse: Callable[[Context[C]], Awaitable[Outcome]]
    settings: type[C]
    choose: Callable[[Job, Preset, Facts, Pace], C]
    pooled: Callable[[Plan[C], AllColumns], Pooled]
    share: ShareKind
    notes: Callable[[Plan[C]], list[str]]
    leaks: Callable[[PrivacyTerms], tuple[Leak, ...]]
    openings: Callable[[Plan[C], Extent], list[Opening]]
    losses: Mapping[Task, LossName] = field(default_factory=lambda: USUAL)
    check: Callable[[Job, Preset], None] = _nothing
    idle: Callable[[Job, Preset], Mapping[str, str]] = _all_used
    fits: Callable[[Job, RowLengths], None] = _any_rows
    understands: frozenset[str] = frozenset()
    usual_batch: Callable[[Job, Preset, int], int] = _usual_batch
    ahead: Callable[[Job, Preset, int], int] = _one_at_a_time
    fades: Callable[[Job, Preset], bool] = _never
    intercept: Callable[[Job], bool] = _no_intercept
    space: Callable[[Job, Preset], Space] = penalty
    rehearsal: Rehearsal = Rehearsal()
    traits: frozenset[Trait] = frozenset()
