"""Deals a job's data to its parties: every column to its holder, the label to the active parties.

What one party gets is a `Hand`: its own raw columns and how to prepare them. Preparation is left to the
party, so that in a real deployment the same code runs where the columns are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from colonnade.arrays import Floats
from colonnade.data.datasets import DatasetFiles, read
from colonnade.data.formats import suggest
from colonnade.data.labels import Labels, Task
from colonnade.data.prepare import Preparation
from colonnade.data.split import (
    Split,
    check_holders,
    load_party_files,
    split_by_count,
    split_by_name,
    train_test_rows,
)
from colonnade.data.table import RawTable, Table
from colonnade.errors import DataError
from colonnade.job import SERVER, Data


@dataclass(frozen=True)
class Recipe:
    """How a party prepares its own columns."""

    scale: str | float = "none"
    categorical: tuple[str, ...] = ()
    missing: str = "error"
    intercept: bool = False


@dataclass(frozen=True, eq=False)
class Hand:
    """One party's raw columns, training and test rows, and the label if it holds it."""

    party: str
    train: RawTable
    test: RawTable | None
    y_train: Floats | None
    y_test: Floats | None
    recipe: Recipe

    def prepare(self) -> tuple[Preparation, Table, Table | None]:
        """The party's own columns as numbers; statistics come from its training rows alone."""
        preparation = Preparation.fit(
            self.train,
            scale=self.recipe.scale,  # type: ignore[arg-type]
            categorical=[c for c in self.recipe.categorical if c in self.train.columns],
            missing=self.recipe.missing,  # type: ignore[arg-type]
            intercept=self.recipe.intercept,
        )
        test = None if self.test is None else preparation.transform(self.test, self.y_test)
        return preparation, preparation.transform(self.train, self.y_train), test


@dataclass(frozen=True, eq=False)
class Deal:
    dataset: str
    hands: dict[str, Hand]
    active: tuple[str, ...]
    labels: Labels

    def __post_init__(self) -> None:
        check_holders({party: len(hand.train.columns) for party, hand in self.hands.items()}, self.active[0])


def deal(data: Data, *, task: Task | None, seed: int) -> Deal:
    """Read the job's files and hand every party its columns."""
    if data.files is not None:
        return _deal_files(data, task, seed)
    assert data.train is not None  # noqa: S101  the job was checked
    files = read(
        data.train, data.test, label=data.label, id=data.id, categorical=tuple(data.categorical or ())
    )
    train, test = _without(files.train, data.drop), files.test and _without(files.test, data.drop)
    if test is None:
        kept, tested = train_test_rows(train.rows, data.test_fraction, seed)
        train, test = train.take(kept), train.take(tested)
    if train.y is None:
        raise DataError(f"{files.name}: no label; name its column with data.label")
    labels, y_train, y_test = _labels(train, test, task or _task(data, files, train), data, files)
    split = _split(train.columns, data, seed)
    active = _active(list(split), data.active)
    recipe = _recipe(data, files)
    blank_train, blank_test = replace(train, y=None), replace(test, y=None)
    hands = {
        party: Hand(
            party,
            blank_train.select(columns),
            blank_test.select(columns),
            y_train if party in active else None,
            y_test if party in active else None,
            replace(recipe, intercept=_intercept(data, recipe, labels.task) and party == active[0]),
        )
        for party, columns in split.items()
    }
    return Deal(files.name, hands, active, labels)


def _split(columns: Sequence[str], data: Data, seed: int) -> Split:
    if data.columns is not None:
        return split_by_name(columns, data.columns)
    server: Split = {SERVER: ()} if data.server == "apart" else {}
    return server | split_by_count(columns, data.parties or 1, seed)


def _deal_files(data: Data, task: Task | None, seed: int) -> Deal:
    assert data.files is not None  # noqa: S101  the caller saw it
    if data.id is None or data.label is None:
        raise DataError("data.files: name the id column (data.id) and the label column (data.label)")
    active = _active(list(data.files), data.active)
    categorical = tuple(data.categorical or ())

    def load(files: dict[str, str]) -> dict[str, RawTable]:
        tables = load_party_files(
            files, id=data.id or "", label=data.label, label_at=active, categorical=categorical
        )
        held = [column for raw in tables.values() for column in raw.columns]
        for column in data.drop or ():
            if column not in held:
                raise DataError(f"data.drop: no party has a column {column!r}; {suggest(column, held)}")
        return {
            party: _without(raw, [c for c in data.drop or () if c in raw.columns])
            for party, raw in tables.items()
        }

    train = load(data.files)
    if data.test_files is not None:
        if set(data.test_files) != set(data.files):
            raise DataError("data.test_files: give one test file for every party of data.files")
        test = load(data.test_files)
    else:
        rows = next(iter(train.values())).rows
        kept, tested = train_test_rows(rows, data.test_fraction, seed)
        test = {party: raw.take(tested) for party, raw in train.items()}
        train = {party: raw.take(kept) for party, raw in train.items()}
    first = active[0]
    labels, y_train, y_test = _labels(
        train[first], test[first], task or _task(data, None, train[first]), data, None
    )
    recipe = _recipe(data, None)
    hands = {
        party: Hand(
            party,
            replace(train[party], y=None),
            replace(test[party], y=None),
            y_train if party in active else None,
            y_test if party in active else None,
            replace(recipe, intercept=_intercept(data, recipe, labels.task) and party == first),
        )
        for party in data.files
    }
    return Deal("+".join(sorted(data.files)), hands, active, labels)


def _without(raw: RawTable, drop: Sequence[str] | None) -> RawTable:
    if not drop:
        return raw
    raw.positions(drop)  # names a column that is not there
    return raw.select([column for column in raw.columns if column not in set(drop)])


def _labels(
    train: RawTable, test: RawTable, task: Task, data: Data, files: DatasetFiles | None
) -> tuple[Labels, Floats, Floats]:
    assert train.y is not None and test.y is not None  # noqa: S101, PT018  loaded with a label
    positive = data.positive
    if positive is None and files is not None and files.defaults is not None:
        positive = list(files.defaults.positive) if files.defaults.positive else None
    labels = Labels.fit(train.y, task, positive=positive, name=train.name, origin=train.origin)
    return (
        labels,
        labels.transform(train.y, name=train.name, origin=train.origin),
        labels.transform(test.y, name=test.name, origin=test.origin),
    )


def _task(data: Data, files: DatasetFiles | None, train: RawTable) -> Task:
    if data.positive is not None:
        return "binary"
    return files.defaults.task if files is not None and files.defaults is not None else _guess(train)


def _guess(train: RawTable) -> Task:
    """Two different labels are classes; otherwise the job has to say what is meant."""
    kinds = len(np.unique(np.asarray(train.y, dtype=str)))
    if kinds <= 2:
        return "binary"  # one alone is refused with the labels
    raise DataError(
        f"{train.name}: the label has {kinds} different values; say what is meant with train.loss "
        "(squared for a number, softmax for classes, logistic with data.positive = [...] for two of them)"
    )


def _recipe(data: Data, files: DatasetFiles | None) -> Recipe:
    """The job's wish, else what is sensible for a known data set."""
    known = files.defaults if files is not None else None
    return Recipe(
        scale=data.scale or (known.scale if known else "none"),
        categorical=tuple(data.categorical)
        if data.categorical is not None
        else (known.categorical if known else ()),
        missing=data.missing or (known.missing if known else "error"),
    )


def _intercept(data: Data, recipe: Recipe, task: Task) -> bool:
    """Centred columns cannot carry the label's mean, nor can a regression do without one."""
    if data.intercept is not None:
        return data.intercept
    return recipe.scale == "zscore" or task == "regression"


def _active(parties: list[str], active: int | list[str]) -> tuple[str, ...]:
    if isinstance(active, int):
        if not 1 <= active <= len(parties):
            raise DataError(f"data.active: {active} of {len(parties)} parties cannot be active")
        return tuple(parties[:active])
    for number, name in enumerate(active):
        if name in active[:number]:
            raise DataError(f"data.active: {name!r} is there twice; name every party once")
        if name not in parties:
            raise DataError(f"data.active: there is no party {name!r}; the parties are {', '.join(parties)}")
    if not active:
        raise DataError("data.active: at least one party must hold the label")
    return tuple(active)
