"""Search for the settings of a job on training rows that are held back, with Optuna.

The job as it is comes first, then other settings: all of them where they are few, else those that Optuna's
tree of Parzen estimators proposes. Settings that make the same job are trained once. What was measured is
written to a journal at once, so a search that was stopped goes on where it was; one about another job, space
or other training rows begins again.

A trial is no look at a table: each of its folds is a whole training among the parties, with all that a
training gives away. `Tuning` counts them, and adds up epsilon where labels are private.

Optuna is the extra `tune`, imported on use.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from colonnade.errors import Diverged, FixedPointOverflow, JobError
from colonnade.job import Job, Tune
from colonnade.job.writing import value_text
from colonnade.result import Result
from colonnade.run.families import opens
from colonnade.run.held_back import HeldBack, value_of
from colonnade.run.resolve import compose
from colonnade.run.search_space import ALGORITHM, ListedValues, Settings, Space, changed
from colonnade.search import HIGHER, Search, Stop, Trial

if TYPE_CHECKING:
    import optuna

Heard = Callable[[Trial, Trial | None, int], None]
"""Hears of every trial that is over, of the best so far, and how many trials there will be."""

STARTERS = 5  # trials that are never left: what is worse than most is not known before
WARM_FOLDS = 1  # after the first fold nobody is left yet


@dataclass
class Tuning:
    """A search for settings: asks Optuna for some, trains and measures them, writes them down."""

    job: Job
    space: Space
    rows: HeldBack
    study: optuna.Study
    planned: int  # settings to try, the job as it is among them
    most: int  # trainings of one trial in which a row takes part
    heard: Heard
    began: float = field(default_factory=time.monotonic)

    @staticmethod
    def of(job: Job, journal: Path, heard: Heard = lambda trial, best, of: None) -> Tuning:
        """Return the search that a job describes; its journal is made, or goes on if it is about the same."""
        if job.train.target is not None:
            raise JobError("train.target: it is counted from the pooled optimum, which a search does not fit")
        _optuna()
        space, rows = Space.of(job), HeldBack(job)
        _check_metric(job, space, rows)
        planned, most = 1 + int(min(job.tune.trials, space.size)), max(1, len(rows.folds) - 1)
        _check_budget(job, planned * most + 1)
        return Tuning(job, space, rows, _study(job, space, rows, journal), planned, most, heard)

    def run(self) -> Search:
        """Try settings until all are tried or the search is stopped; returns what was found."""
        stopped: Stop = ""
        try:
            for settings in self._ahead():
                if stopped := self._enough():
                    break
                self._try(settings)
        except KeyboardInterrupt:
            stopped = "user"
        return self.search(stopped)

    def search(self, stopped: Stop = "") -> Search:
        """Return all that was found so far."""
        tune = self.job.tune
        found = Search(
            metric=tune.metric,
            folds=len(self.rows.folds),
            held_back=tune.held_back,
            rows=self.rows.rows,
            seed=self.job.seed,
            space=self.space.plain(),
            opens={
                name: list(opens(compose(changed(self.job, {ALGORITHM: name})))) for name in self._compared()
            },
            left_out=self.space.left_out,
            trials=[_trial(each) for each in self.study.get_trials(deepcopy=False)],
            stopped=stopped,
            epsilon=_epsilon(self.job, self._told() + 1),
        )
        return msgspec.structs.replace(found, notes=_notes(found, self.job))

    def _compared(self) -> list[str]:
        """Return the algorithms that are compared, the job's own first; none where it is the only one."""
        names = self.space.algorithms
        return list(dict.fromkeys([self.job.algorithm, *names])) if names else []

    def _told(self) -> int:
        """Return in how many trainings of this search a row took part, at most."""
        begun = [each.user_attrs.get("begun", 0) for each in self.study.get_trials(deepcopy=False)]
        return sum(min(each, self.most) for each in begun)

    def _enough(self) -> Stop:
        """Return what is used up, if anything is: the time, or what may be told about a label."""
        limit, next_one = self.job.tune.timeout_s, _epsilon(self.job, self._told() + self.most + 1)
        if limit is not None and time.monotonic() - self.began > limit:
            return "time"
        return "epsilon" if next_one is not None and next_one > (self.job.tune.epsilon or 0.0) else ""

    def _ahead(self) -> Iterator[Settings | None]:
        """Yield the settings that were not tried yet, the job as it is first; None: Optuna is asked."""
        over = [_trial(each) for each in self.study.get_trials(deepcopy=False) if _is_over(each)]
        tried = [trial.settings for trial in over]
        if {} not in tried:
            yield {}
        if self.space.size <= self.job.tune.trials:
            yield from (settings for settings in self.space.grid() if settings not in tried)
        else:
            yield from [None] * (self.planned - 1 - sum(settings != {} for settings in tried))

    def _try(self, settings: Settings | None) -> None:
        """Train and measure one setting, and write down what came of it."""
        from optuna.trial import TrialState

        if settings:
            self.study.enqueue_trial({key: value_text(value) for key, value in settings.items()})
        trial = self.study.ask()
        chosen = {} if settings == {} else _suggested(trial, self.space)
        trial.set_user_attr("settings", chosen)
        began, state, value = time.perf_counter(), TrialState.FAIL, None
        try:
            value = self._measure(trial, changed(self.job, chosen))
            state = TrialState.PRUNED if value is None else TrialState.COMPLETE
        finally:
            trial.set_user_attr("seconds", time.perf_counter() - began)
            self.study.tell(trial, value, state)
        over = _trial(self.study.get_trials(deepcopy=False)[trial.number])
        self.heard(over, self.search().leader, self.planned)

    def _measure(self, trial: optuna.Trial, job: Job) -> float | None:
        """Return the mean over all folds; None if the setting was left on the way, or cannot be trained."""
        for other in self.study.get_trials(deepcopy=False):
            if _is_over(other) and other.user_attrs.get("job") == job.digest():
                trial.set_user_attr("folds", other.user_attrs["folds"])
                trial.set_user_attr("remark", f"the same as trial {other.number}")
                return other.value if other.state.name == "COMPLETE" else None
        trial.set_user_attr("job", job.digest())
        values: list[float] = []
        for number, fold in enumerate(self.rows.folds):
            trial.set_user_attr("begun", number + 1)  # however it ends, it tells the parties something
            try:
                values.append(value_of(self.rows.measure(job, fold), self.job.tune.metric))
            except (Diverged, FixedPointOverflow) as error:
                trial.set_user_attr("fault", str(error))
                return None
            finally:
                trial.set_user_attr("folds", values)
            if not isfinite(values[-1]):
                trial.set_user_attr("fault", f"{self.job.tune.metric} is {values[-1]}")
                return None
            trial.report(float(np.mean(values)), number)
            if len(values) < len(self.rows.folds) and trial.should_prune():
                return None
        return float(np.mean(values))


def best_job(job: Job, search: Search) -> Job:
    """Return the job with the best settings that were found, and no search in it; JobError if none was."""
    best = search.best
    if best is None:
        why = next((trial.why for trial in search.trials if trial.why), "no trial came to its end")
        raise JobError(f"tune: nothing was found: {why}")
    return msgspec.structs.replace(changed(job, best.settings), tune=Tune())


def with_search(result: Result, search: Search) -> Result:
    """Return the result of the chosen model, with what the search has told the parties before."""
    privacy = msgspec.structs.replace(result.privacy, notes=[*result.privacy.notes, *search.notes])
    return msgspec.structs.replace(result, privacy=privacy)


def _epsilon(job: Job, trainings: int) -> float | None:
    """Return what this many trainings may tell about a label; None if nothing bounds what one tells."""
    return None if job.privacy.mechanism == "none" else trainings * (job.privacy.epsilon or 0.0)


def _check_budget(job: Job, trainings: int) -> None:
    """Refuse a search that may tell more about a label than was agreed to."""
    epsilon = _epsilon(job, trainings)
    if epsilon is not None and epsilon > (job.tune.epsilon or 0.0):
        raise JobError(
            f"tune.epsilon: each training may tell epsilon = {job.privacy.epsilon} about a label, and a row "
            f"takes part in up to {trainings} of them; set tune.epsilon = {epsilon:g} to accept what they "
            "tell together, or give fewer trials, or held_back = 0.2"
        )


def _check_metric(job: Job, space: Space, rows: HeldBack) -> None:
    """Refuse to compare losses of different kinds, as several algorithms may minimise."""
    jobs = [job, *(changed(job, {ALGORITHM: name}) for name in space.algorithms)]
    losses = {each.algorithm: compose(each).loss(rows.task) for each in jobs}
    if job.tune.metric == "loss" and len(set(losses.values())) > 1:
        said = ", ".join(f"{name} {loss}" for name, loss in losses.items())
        better = {"regression": "r2", "binary": "auc"}.get(rows.task, "accuracy")
        raise JobError(
            f"tune.metric: these algorithms minimise different losses ({said}), which cannot be compared; "
            f'give metric = "{better}"'
        )


def _notes(search: Search, job: Job) -> list[str]:
    """Return what a search tells the parties, in words."""
    done = search.trainings
    found = [
        f"the settings were searched for in {done} trainings on the training rows before that of the model: "
        "all that one training gives away was given away in each of them, under other weights"
    ]
    if len(job.data.party_names) > 1:
        found.append(
            "a party that sees scores (or outputs) of rows saw them again in every training: each is one "
            "more equation about the others' columns"
        )
    if search.epsilon is not None:
        found.append(
            f"epsilon adds up: all trainings together may tell epsilon = {search.epsilon:g} about a label, "
            f"{job.privacy.epsilon:g} each"
        )
    return found


def _study(job: Job, space: Space, rows: HeldBack, journal: Path) -> optuna.Study:
    """Return the study in a journal, which goes on if it is about the same job, space and rows."""
    import optuna
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    journal.parent.mkdir(parents=True, exist_ok=True)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    same = msgspec.structs.replace(job.tune, trials=1, timeout_s=None, epsilon=None, space={})
    about = (msgspec.structs.replace(job, tune=same).digest(), repr(space.plain()), rows.digest)
    pruner: optuna.pruners.BasePruner = optuna.pruners.NopPruner()
    if job.tune.prune:
        pruner = optuna.pruners.MedianPruner(n_startup_trials=STARTERS, n_warmup_steps=WARM_FOLDS)
    study = optuna.create_study(
        storage=JournalStorage(JournalFileBackend(str(journal))),
        study_name=hashlib.sha256(repr(about).encode()).hexdigest()[:16],
        direction="maximize" if job.tune.metric in HIGHER else "minimize",
        pruner=pruner,
        load_if_exists=True,
    )
    # a search that goes on must not draw again what it drew before
    study.sampler = optuna.samplers.TPESampler(seed=job.seed + len(study.trials))
    return study


def _suggested(trial: optuna.Trial, space: Space) -> Settings:
    """Return the settings that Optuna proposes, or that were put in its queue."""
    found: Settings = {}
    for key, axis in space.axes.items():
        if isinstance(axis, ListedValues):
            found[key] = axis.named[trial.suggest_categorical(key, list(axis.named))]
        elif axis.whole:
            found[key] = trial.suggest_int(key, int(axis.low), int(axis.high), log=axis.log)
        else:
            found[key] = trial.suggest_float(key, axis.low, axis.high, log=axis.log)
    return found


def _is_over(trial: optuna.trial.FrozenTrial) -> bool:
    """Return whether a trial was measured, left or failed by itself, and was not cut off."""
    return trial.state.name in ("COMPLETE", "PRUNED")


def _trial(trial: optuna.trial.FrozenTrial) -> Trial:
    """Return a trial as it is reported."""
    known: dict[str, Any] = trial.user_attrs
    fault, done = known.get("fault"), trial.state.name == "COMPLETE"
    return Trial(
        number=trial.number,
        settings=known.get("settings", {}),
        state="stopped" if not _is_over(trial) else "done" if done else "failed" if fault else "left",
        value=trial.value if done else None,  # Optuna gives a trial that was left the mean of some folds
        folds=known.get("folds", []),
        seconds=known.get("seconds", 0.0),
        trainings=known.get("begun", 0),
        why=fault or known.get("remark", ""),
    )


def _optuna() -> None:
    """Refuse to search where Optuna is not installed."""
    try:
        import optuna  # noqa: F401
    except ModuleNotFoundError:
        raise JobError("tune: Optuna is not installed; pip install 'colonnade[tune]'") from None
