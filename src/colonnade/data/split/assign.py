"""Gives every party of a job its data: every column to its holder, the label to the label holders.

A job says who holds what in one of two ways: one table whose columns are split over the parties, or one
file per party. Either way the outcome is the same: a raw table per party, of the same rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from colonnade.arrays import Floats
from colonnade.data.datasets.catalogue import Defaults
from colonnade.data.datasets.loading import known_dataset, read
from colonnade.data.large.big_file import is_large
from colonnade.data.prepare import learn
from colonnade.data.prepare.labels import Labels, Task, guessed_task
from colonnade.data.prepare.party_data import PartyData, Recipe, RowLengths
from colonnade.data.prepare.prepare import Missing
from colonnade.data.prepare.scaling import Scale, Tails
from colonnade.data.prepare.suspects import like_counts, odd_labels
from colonnade.data.prepare.weights import take_exposure, take_weights, training_weights
from colonnade.data.read.dialect import described
from colonnade.data.read.formats import name_of, plain_name
from colonnade.data.split.assign_large import SplitRequest, deal
from colonnade.data.split.split import (
    Split,
    check_holders,
    load_party_files,
    split_by_count,
    split_by_name,
    train_test_rows,
)
from colonnade.data.table import Column, RawTable
from colonnade.errors import DataError, suggest
from colonnade.job import MEMORY, SERVER, Data, memory_of
from colonnade.job.sections import ClassWeight
from colonnade.job.source import source_of

PartyTables = dict[str, RawTable]  # every party's raw columns, of the same rows


@dataclass(frozen=True, eq=False)
class Assigned:
    """Every party's data, who holds the label, and how labels became numbers."""

    dataset: str
    parties: dict[str, PartyData]
    label_holders: tuple[str, ...]
    labels: Labels
    guessed: bool = False  # what the labels are, nobody said
    helper: str | None = None  # may hold no columns
    large: bool = False  # columns lie prepared in files, since they do not fit the memory
    chosen: str | None = None  # what was found out by trying, in words
    digests: dict[str, str] = field(default_factory=dict)  # by party, a hash of what was read

    def __post_init__(self) -> None:
        widths = {party: data.columns for party, data in self.parties.items()}
        check_holders(widths, self.label_holders[0], self.helper)


def assign(
    data: Data,
    *,
    label_holders: tuple[str, ...],
    task: Task | None,
    intercept: bool,
    seed: int,
    class_weight: ClassWeight = None,
    gaps: bool = False,
    tails: Callable[[Task], Tails] = lambda task: "cap",
    helper: str | None = None,
    fits: Callable[[RowLengths], None] = lambda rows: None,
) -> Assigned:
    """Read the job's files and give every party its data.

    `fits` refuses rows that cannot be trained on, where there are too many to prepare quickly.
    `helper` may hold no columns (`check_holders`).
    `gaps` says that the model takes columns as they are, unless the job wants them scaled or filled, and
    `tails` what becomes of their outliers with such labels.
    `task` None is found out from the data. `intercept` says whether one party gets a column of ones: the
    first label holder, or the first other party where that has no columns.
    """
    paths = list((data.files or {}).values()) or ([data.train] if data.train else [])
    sources = [source_of(path) for path in paths]
    if sources and is_large(sources, memory_of(data.memory) or MEMORY, described(data)):
        if class_weight is not None:
            raise DataError("train.class_weight: is not for data that is read in stretches; leave it out")
        asked = SplitRequest(label_holders, task, intercept, seed, _recipe(data, None, gaps=gaps))
        parties, labels, digests = deal(data, asked, tails, fits)
        dataset = "+".join(sorted(data.files)) if data.files else name_of(sources[0])
        guessed = task is None and data.positive is None
        return Assigned(dataset, parties, label_holders, labels, guessed, helper, large=True, digests=digests)
    defaults = _defaults(data)
    asked = SplitRequest(label_holders, task, intercept, seed, _recipe(data, defaults, gaps=gaps))
    return _held_in_memory(data, asked, defaults, class_weight, tails, helper)


def _held_in_memory(
    data: Data,
    asked: SplitRequest,
    defaults: Defaults | None,
    class_weight: ClassWeight,
    tails: Callable[[Task], Tails],
    helper: str | None,
) -> Assigned:
    """Give every party its data, where all columns fit the memory."""
    holders = asked.label_holders
    if data.files is not None:
        train, test = _from_party_files(data, data.files, holders)
        dataset = "+".join(sorted(data.files))
    elif data.train is not None:
        train, test = _from_one_table(data, data.train, asked)
        dataset = name_of(source_of(data.train))
    else:
        raise DataError("data.train: name a file or a data set, or give every party its file in data.files")
    first = holders[0]
    # of all rows where one file has them all: chance may put a rare class into the test rows alone
    labels = _labels(train[first], asked.task, data, defaults)
    guessed = asked.task is None and defaults is None and data.positive is None
    train[first] = train[first].warned(odd_labels(labels, _raw_labels(train[first])))
    if guessed:
        train[first] = train[first].warned(like_counts(labels, _raw_labels(train[first])))
    if test is None:
        train, test = _train_test(train, data.test_fraction, asked.seed)
    _check_columns(data, train)
    y, y_test = _coded(labels, train[first]), _coded(labels, test[first])
    recipe = replace(asked.recipe, tails=tails(labels.task))
    weight = training_weights(train[first], labels, class_weight)
    ones = next((party for party in (first, *train) if train[party].columns), first)
    parties = {
        party: PartyData(
            party,
            _held(train[party], party in holders, y, weight),
            _held(test[party], party in holders, y_test, test[first].weight),
            replace(recipe, intercept=asked.intercept and party == ones),
        )
        for party in train
    }
    digests = {party: digest for party, raw in train.items() if (digest := raw.reading.digest)}
    return Assigned(dataset, parties, holders, labels, guessed, helper, digests=digests)


def label_holders(parties: Sequence[str], active: int | list[str]) -> tuple[str, ...]:
    """Return the names of the parties that hold the label: the first `active` ones, or those that it names.

    >>> label_holders(["bank", "shop", "post"], 2)
    ('bank', 'shop')
    """
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


# --- who holds which columns ------------------------------------------------------------------------


def _from_one_table(data: Data, source: str, asked: SplitRequest) -> tuple[PartyTables, PartyTables | None]:
    """Return every party's training and test rows, from one table whose columns are split over the
    parties."""
    train, test = read(
        source,
        data.test,
        label=data.label,
        id=data.id_at() or None,
        keys=data.keys,
        categorical=tuple(data.categorical or ()),
        dialect=described(data),
    )
    train, test = _weighted(train, data), None if test is None else _weighted(test, data)
    train = _without(train, data.drop)
    split = _split(train, data, asked)
    return _columns(train, split), None if test is None else _columns(_without(test, data.drop), split)


def _split(train: RawTable, data: Data, asked: SplitRequest) -> Split:
    """Return who holds which columns of one table: as the job names them, or about as many each by chance."""
    if data.columns is not None:
        return split_by_name(train.columns, data.columns)
    server: Split = {SERVER: ()} if data.server == "apart" else {}
    widths = None
    if data.train is not None and not data.woe:  # the weight of evidence of a column is one column
        widths = learn.widths(train, asked.recipe.categorical, asked.recipe.rare)
    return server | split_by_count(train.columns, data.parties or 1, asked.seed, widths)


def _columns(raw: RawTable, split: Split) -> PartyTables:
    """Return every party's columns of one table."""
    return {party: raw.select(columns) for party, columns in split.items()}


def _without(raw: RawTable, drop: Sequence[str] | None) -> RawTable:
    """Return the table without the columns to drop, all of which it must have."""
    if not drop:
        return raw
    raw.positions(drop)  # an error that names a column which is not there
    return raw.select([column for column in raw.columns if column not in set(drop)])


def _from_party_files(
    data: Data, files: Mapping[str, str], label_holders: tuple[str, ...]
) -> tuple[PartyTables, PartyTables | None]:
    """Return every party's training and test rows, from one file per party."""
    label = data.label
    if data.id is None or label is None:
        raise DataError("data.files: name the id column (data.id) and the label column (data.label)")
    if data.test_files is not None and set(data.test_files) != set(files):
        raise DataError("data.test_files: give one test file for every party of data.files")

    def load(paths: Mapping[str, str], dates: dict[str, str] | None = None) -> PartyTables:
        tables = load_party_files(
            paths,
            id={party: data.id_at(party) for party in paths},
            keys=data.keys,
            label=label,
            label_at=label_holders,
            categorical=tuple(data.categorical or ()),
            dialect=replace(described(data), dates=dates),
        )
        for party in label_holders:  # the first must have the weights, others may
            named = {data.weight, data.exposure} - {None}
            if party == label_holders[0] or named <= set(tables[party].columns):
                tables[party] = _weighted(tables[party], data)
        return _without_in_any(tables, data.drop or ())

    train = load(files)
    if data.test_files is None:
        return train, None
    return train, load(
        data.test_files, {c: how for raw in train.values() for c, how in raw.reading.dates.items()}
    )


def _check_columns(data: Data, tables: PartyTables) -> None:
    """Refuse categorical columns, and columns with gaps of their own, that no party has."""
    held = [column for raw in tables.values() for column in raw.columns]
    gaps = list(data.na_values) if isinstance(data.na_values, dict) else []
    for key, columns in {"categorical": data.categorical or [], "na_values": gaps}.items():
        for column in columns:
            if column not in (*held, data.label, data.weight, data.exposure):
                raise DataError(f"data.{key}: no party has a column {column!r}; {suggest(column, held)}")


def _without_in_any(tables: PartyTables, drop: Sequence[str]) -> PartyTables:
    """Return the tables without the columns to drop, each of which some party must have."""
    held = [column for raw in tables.values() for column in raw.columns]
    for column in drop:
        if column not in held:
            raise DataError(f"data.drop: no party has a column {column!r}; {suggest(column, held)}")
    return {party: _without(raw, [c for c in drop if c in raw.columns]) for party, raw in tables.items()}


def _train_test(tables: PartyTables, fraction: float, seed: int) -> tuple[PartyTables, PartyTables]:
    """Return the tables in two parts, training and test rows: the same rows at every party."""
    rows = next(iter(tables.values())).rows
    kept, tested = train_test_rows(rows, fraction, seed)
    return (
        {party: raw.take(kept) for party, raw in tables.items()},
        {party: raw.take(tested) for party, raw in tables.items()},
    )


def _weighted(raw: RawTable, data: Data) -> RawTable:
    """Return the table with weights and exposures apart from its features, if the job names columns of
    them."""
    raw = raw if data.weight is None else take_weights(raw, data.weight)
    return raw if data.exposure is None else take_exposure(raw, data.exposure)


def _held(raw: RawTable, holds_label: bool, y: Floats, weight: Floats | None) -> RawTable:
    """Return a party's table, with labels and weights only where it holds the label."""
    return replace(raw, y=y if holds_label else None, weight=weight if holds_label else None)


# --- labels and recipe ------------------------------------------------------------------------------


def _labels(train: RawTable, task: Task | None, data: Data, defaults: Defaults | None) -> Labels:
    """Return how the labels of the training rows become numbers."""
    y = _raw_labels(train)
    if task is None:
        task = _task(train, data, defaults)
    positive: Sequence[str | float] | None = data.positive
    if positive is None and defaults is not None:
        positive = defaults.positive
    return Labels.fit(y, task, positive=positive, name=train.name, origin=train.origin)


def _task(train: RawTable, data: Data, defaults: Defaults | None) -> Task:
    """Return what the label is, where the job does not say."""
    if data.positive is not None:
        return "binary"
    if defaults is not None:
        return defaults.task
    return guessed_task(_raw_labels(train), train.name)


def _coded(labels: Labels, raw: RawTable) -> Floats:
    """Return the labels of a table as numbers."""
    return labels.transform(_raw_labels(raw), name=raw.name, origin=raw.origin)


def _raw_labels(raw: RawTable) -> Column:
    """Return the labels of a table, which must have some."""
    if raw.y is None:
        raise DataError(f"{plain_name(Path(raw.name))}: no label; name its column with data.label")
    return raw.y


def as_they_are(scale: Scale | float | None, missing: Missing | None) -> bool:
    """Return whether nobody said how columns are scaled and gaps filled."""
    return scale in (None, "auto") and missing in (None, "auto")


def _defaults(data: Data) -> Defaults | None:
    """Return what is usual for the job's data set, if it is a known one."""
    known = known_dataset(data.train) if data.files is None and data.train is not None else None
    return None if known is None else known.defaults


def _recipe(data: Data, defaults: Defaults | None, *, gaps: bool) -> Recipe:
    """Return how parties prepare their columns: as the job says, else as is best for a known data set."""
    usual = Recipe()
    if defaults is not None:
        usual = Recipe(
            defaults.scale,
            categorical=defaults.categorical,
            missing=defaults.missing,
            rare=defaults.rare,
        )
    recipe = Recipe(
        scale=data.scale or ("none" if data.woe else usual.scale),
        categorical=usual.categorical if data.categorical is None else tuple(data.categorical),
        missing=data.missing or usual.missing,
        rare=usual.rare if data.rare is None else data.rare,
    )
    return recipe.with_gaps() if gaps and as_they_are(data.scale, data.missing) and not data.woe else recipe
