"""The settings that a search tries: keys of the job, each with choices or a range.

    [tune.space]
    train.l2 = { low = 1e-6, high = 1.0, log = true }
    train.batch = [64, 256]

The key `algorithm` compares several, each with what else the job says. Those that the job does not take, or
that would open more than `tune.accept`, are left out with the reason.

A range whose ends are whole numbers has whole numbers only. What would change the question instead of the
answer (rows, labels, who holds what, how private it is) cannot be searched for. Every end and every choice is
checked before anything runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from math import prod
from typing import Any, TypeAlias

import msgspec

from colonnade.errors import JobError, suggest
from colonnade.job import Job, job_from
from colonnade.job.files import with_algorithm
from colonnade.job.writing import value_text
from colonnade.run.families import each_of
from colonnade.run.resolve import compose, looked_up

Settings = dict[str, Any]  # key of the job -> value

ALGORITHM = "algorithm"

SECTIONS = ("train", "direction", "kernel", "trees", "cascade", "model", "woe")
PREPARING = ("data.scale", "data.missing", "data.rare", "data.woe", "data.intercept")
OTHER_QUESTIONS = {
    "train.loss": "losses of different kinds cannot be compared",
    "train.classes": "it is a fact of the labels",
    "train.labels_at": "it says who knows the labels",
    "train.target": "it is counted from the pooled optimum",
}


@dataclass(frozen=True)
class ListedValues:
    """A few values, of any kind."""

    values: tuple[Any, ...]

    @property
    def named(self) -> dict[str, Any]:
        """Every value by its text: what Optuna keeps has to be plain."""
        return {value_text(value): value for value in self.values}


@dataclass(frozen=True)
class Range:
    """All numbers between two, or all whole numbers; `log` deals them out by their logarithm."""

    low: float
    high: float
    log: bool = False

    @property
    def whole(self) -> bool:
        return isinstance(self.low, int) and isinstance(self.high, int)


Axis: TypeAlias = ListedValues | Range


@dataclass(frozen=True)
class Space:
    """All settings that there are."""

    axes: dict[str, Axis]
    left_out: dict[str, str] = field(default_factory=dict)  # algorithm -> why it is not tried

    @staticmethod
    def of(job: Job) -> Space:
        """Return the space of a job: what it says, or what suits its algorithm; checked from end to end."""
        known = looked_up(job)
        given = dict(_flat(job.tune.space)) or dict(known.conversation.space(job, known.preset))
        axes = {key: _axis(key, value) for key, value in given.items()}
        axes, left_out = _taken(job, axes)
        for algorithm in _algorithms(axes) or (job.algorithm,):
            for key, axis in axes.items():
                if key == ALGORITHM:
                    continue
                for value in axis.values if isinstance(axis, ListedValues) else (axis.low, axis.high):
                    compose(changed(job, {ALGORITHM: algorithm, key: value}))
        return Space(axes, left_out)

    @property
    def algorithms(self) -> tuple[str, ...]:
        """The algorithms that are tried, where several are."""
        return _algorithms(self.axes)

    @property
    def size(self) -> float:
        """How many different settings there are."""
        return prod(
            len(axis.values) if isinstance(axis, ListedValues) else float("inf")
            for axis in self.axes.values()
        )

    def grid(self) -> Iterator[Settings]:
        """Yield all settings one after another, where there are only choices."""
        values = [axis.values for axis in self.axes.values() if isinstance(axis, ListedValues)]
        for chosen in product(*values):
            yield dict(zip(self.axes, chosen, strict=True))

    def plain(self) -> dict[str, Any]:
        """Return the space as a job has it."""
        return {
            key: list(axis.values)
            if isinstance(axis, ListedValues)
            else {"low": axis.low, "high": axis.high, "log": axis.log}
            for key, axis in self.axes.items()
        }


def changed(job: Job, settings: Mapping[str, Any]) -> Job:
    """Return the job with other settings."""
    plain = msgspec.to_builtins(with_algorithm(job, str(settings.get(ALGORITHM, job.algorithm))))
    for key, value in settings.items():
        *path, last = key.split(".")
        table = plain
        for name in path:
            table = table.setdefault(name, {}) if isinstance(table, dict) else None
        if not isinstance(table, dict):
            raise JobError(f"tune.space: a job has no key {key}")
        table[last] = value
    return job_from(plain, where="tune.space")


def settings_text(settings: Mapping[str, Any]) -> str:
    """Return settings in one line.

    >>> settings_text({"train.l2": 0.001, "model.hidden": [64, 32]})
    'train.l2 = 0.001, model.hidden = [64, 32]'
    """
    shown = {key: float(f"{v:.4g}") if isinstance(v, float) else v for key, v in settings.items()}
    return ", ".join(f"{key} = {value_text(value)}" for key, value in shown.items()) or "the job as it is"


def _flat(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield keys with dots, whether they were written as one or as tables within tables."""
    for key, value in table.items():
        if isinstance(value, dict) and not {"low", "high"} & set(value):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _axis(key: str, given: object) -> Axis:
    """Return the choices or the range of one key."""
    _check_key(key)
    match given:
        case list() if given:
            return ListedValues(tuple(given))
        case {"low": int() | float() as low, "high": int() | float() as high, **rest} if set(rest) <= {"log"}:
            log = bool(rest.get("log", False))
            if low < high and (low > 0 or not log):
                return Range(low, high, log)
            raise JobError(f"tune.space: {key} from {low} to {high}; give low < high, above 0 if log = true")
    raise JobError(f"tune.space: {key} needs [choices] or {{low = ..., high = ..., log = true}}")


def _algorithms(axes: Mapping[str, Axis]) -> tuple[str, ...]:
    match axes.get(ALGORITHM):
        case ListedValues(values):
            return tuple(str(each) for each in values)
    return ()


def _taken(job: Job, axes: dict[str, Axis]) -> tuple[dict[str, Axis], dict[str, str]]:
    """Return the axes with those algorithms alone that the job takes, and why the others are left out."""
    if ALGORITHM not in axes:
        return axes, {}
    if not (names := _algorithms(axes)):
        raise JobError("tune.space: algorithm needs [choices], names that `colonnade algorithms` lists")
    found = dict(each_of(job, names, job.tune.accept))
    left_out = {name: made for name, made in found.items() if isinstance(made, str)}
    taken = tuple(name for name in found if name not in left_out)
    if not set(taken) - {job.algorithm}:
        why = "; ".join(f"{name}: {each}" for name, each in left_out.items()) or "it is the job's own"
        raise JobError(f"tune.space: algorithm: there is nothing to compare {job.algorithm} with; {why}")
    if len(axes) == 1:  # the job as it is comes first anyway
        taken = tuple(name for name in taken if name != job.algorithm)
    return {**axes, ALGORITHM: ListedValues(taken)}, left_out


def _check_key(key: str) -> None:
    """Refuse a key that must stay what it is."""
    if key in OTHER_QUESTIONS:
        raise JobError(f"tune.space: {key} cannot be searched for: {OTHER_QUESTIONS[key]}")
    if key == ALGORITHM or (key.partition(".")[0] in SECTIONS and "." in key):
        return
    if key not in PREPARING:
        near = suggest(key, [f"{section}.KEY" for section in SECTIONS] + list(PREPARING))
        raise JobError(f"tune.space: {key} is not searched for; {near}")
