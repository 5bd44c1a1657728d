"""All that is wrong with a job and its files, found before anything runs.

A run stops at the first thing that is wrong. Here every part is looked at by itself, so that one list names
them all, each with the line to paste that puts it right where there is one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib.util import find_spec

from msgspec import structs

from colonnade.data.datasets.loading import known_dataset
from colonnade.data.large.big_file import is_large, some_rows
from colonnade.data.prepare.categories import gaps_in
from colonnade.data.prepare.party_data import PartyData
from colonnade.data.prepare.prepare import Preparation, refuse_nothing
from colonnade.data.prepare.survey import Survey
from colonnade.data.problems import Problem
from colonnade.data.read.dialect import described
from colonnade.data.read.files import load
from colonnade.data.read.source import is_stream
from colonnade.data.split.assign import label_holders
from colonnade.data.table import RawTable, count
from colonnade.errors import ColonnadeError, suggest
from colonnade.job import MEMORY, Data, Job, memory_of
from colonnade.job.source import Address, source_of
from colonnade.job.writing import value_text
from colonnade.run import rules
from colonnade.run.blind import settled
from colonnade.run.federate import read
from colonnade.run.resolve import Composition, looked_up
from colonnade.run.search_space import Space

NETWORKS = {"cnn", "torch"}  # what only torch computes
OPTIMIZERS = {"sgd", "adam"}  # what needs no torch


def examine(job: Job) -> list[Problem]:
    """Return every problem of a job and its files; empty if there is none."""
    try:
        composition = looked_up(job)
    except ColonnadeError as error:
        return [_from(error), *_extras(job)]
    job = settled(job, composition.preset, composition.conversation)
    found = [_from(fault) for fault in rules.faults(job, composition.preset, composition.conversation)]
    found += [
        Problem(key, f"has no effect: {why}", remedy=f"# delete {key}", stops=False)
        for key, why in composition.unused().items()
    ]
    found += [*_extras(job), *_search(job)]
    tables, faults = _tables(composition)
    found += faults
    found += [Problem(raw.name, text, stops=False) for raw in tables for text in raw.reading.warned]
    if faults:
        return found
    found += list(_described(job, tables))
    absent, data = _absent(job.data, tables)
    told = {problem.what for problem in found}  # reading a file again would say it again
    columns = _columns(replace(composition, job=structs.replace(job, data=data)))
    return [*found, *absent, *(problem for problem in columns if problem.what not in told)]


def _tables(composition: Composition) -> tuple[list[RawTable], list[Problem]]:
    """Return every file of the job, and all that is wrong with any of them by itself."""
    data = composition.job.data
    try:
        names = data.party_names
        holders = composition.label_holders(names, label_holders(names, data.active))
    except ColonnadeError as error:
        return [], [_from(error)]
    tables, faults = [], []
    for key, path in _sources(composition.job).items():
        party = None if data.files is None else key.rpartition(".")[2]
        label = data.label if party is None or party in holders else None
        own = structs.replace(data, id=list(data.id_at(party)) or None)
        try:
            tables.append(_load(path, own, label))
        except ColonnadeError as error:
            faults += _faults(path, own, label, error)
    return tables, faults


def _described(job: Job, tables: list[RawTable]) -> Iterator[Problem]:
    """Tell what is in every source that is no file, and what reading it costs."""
    for path, raw in zip(_sources(job).values(), tables, strict=True):
        source = source_of(path)
        if isinstance(source, Address) or is_stream(source):
            yield Problem(str(source), "; ".join(Survey(source, raw).found()), stops=False)


def _from(error: Exception, stops: bool = True) -> Problem:
    """Return a problem from an error text, which begins with where it is."""
    where, colon, what = str(error).partition(": ")
    return Problem(where if colon else "", what if colon else where, stops=stops)


def _search(job: Job) -> Iterator[Problem]:
    """Yield what is wrong with the settings that the job asks `colonnade tune` to try."""
    try:
        if job.tune.space:
            Space.of(job)
    except ColonnadeError as error:
        yield _from(error, stops=False)


def _extras(job: Job) -> Iterator[Problem]:
    """Yield packages that the job needs and that are not installed."""
    models = job.model
    kinds = {models.kind, models.server.kind, *(model.kind for model in models.parties.values())}
    paths = [*(job.data.files or {}).values(), *(job.data.test_files or {}).values()]
    paths += [path for path in (job.data.train, job.data.test) if path is not None]
    needs: Mapping[str, tuple[bool, str, str]] = {
        "torch": (bool(kinds & NETWORKS) or job.cascade.optimizer not in OPTIMIZERS, "[model]", "torch"),
        "dp_accounting": (job.privacy.mechanism in ("scalar", "gradient"), "[privacy]", "privacy"),
        "openpyxl": (any(path.endswith((".xlsx", ".xlsm")) for path in paths), "[data]", "excel"),
        "mpi4py": (job.world == "mpi", "world", "mpi"),
    }
    for module, (needed, where, extra) in needs.items():
        if needed and find_spec(module) is None:
            remedy = f"pip install 'colonnade[{extra}]'"
            yield Problem(where, f"needs {module}, which is not installed", remedy=remedy)


def _absent(data: Data, tables: list[RawTable]) -> tuple[list[Problem], Data]:
    """Return columns that the job names and no file has, and [data] without them."""
    held = {column for raw in tables for column in raw.columns}
    found, right = [], data
    for key in ("categorical", "drop", "na_values") if tables else ():
        wanted = getattr(data, key) or []
        if key == "na_values" and not isinstance(wanted, dict):
            continue  # of every column
        absent = [column for column in wanted if column not in {*held, data.label}]
        if absent:
            left = [column for column in wanted if column not in absent]
            rest = {column: wanted[column] for column in left} if isinstance(wanted, dict) else left
            what = f"no file has {', '.join(map(repr, absent))}"
            found.append(Problem(f"data.{key}", what, len(absent), f"{key} = {value_text(rest)}"))
            right = structs.replace(right, **{key: rest})
    return found, right


def _sources(job: Job) -> dict[str, str]:
    """Return the job's files by the key that names them; data sets of the catalogue are known to be right."""
    data = job.data
    one = {"data.train": data.train, "data.test": data.test}
    found = {key: path for key, path in one.items() if path and known_dataset(path) is None}
    found |= {f"data.files.{party}": path for party, path in (data.files or {}).items()}
    return found | {f"data.test_files.{party}": path for party, path in (data.test_files or {}).items()}


def _load(path: str, data: Data, label: str | None) -> RawTable:
    """Return one file as a run would read it; of one that is too large to be held, some rows."""
    dialect = described(data)
    if is_large([source_of(path)], memory_of(data.memory) or MEMORY, dialect):
        return some_rows(source_of(path), label, data.id_at(), dialect)
    ids = data.id_at() or None
    return load(path, bare=True, dialect=dialect, id=ids, keys=data.keys, label=label)


def _faults(path: str, data: Data, label: str | None, error: ColonnadeError) -> list[Problem]:
    """Return why a file cannot be read: every column that it lacks, or the one thing that is wrong with
    it."""
    wanted = {"id": data.id_at(), "label": () if label is None else (label,)}
    try:
        table = _load(path, structs.replace(data, id=None, keys=None), None)
    except ColonnadeError as worse:
        return [_from(worse)]
    found = [
        Problem(table.name, f"no {role} column '{name}'; {suggest(name, table.columns)}")
        for role, names in wanted.items()
        for name in names
        if not table.sparse and name not in table.columns
    ]
    found += [Problem(table.name, text, stops=False) for text in table.reading.warned if found]
    return found or [_from(error)]


def _columns(composition: Composition) -> Iterator[Problem]:
    """Yield what is wrong with labels, ids and columns, once all files can be read."""
    job = composition.job
    try:
        assigned = read(composition)
    except ColonnadeError as error:
        yield _from(error)
        return
    drop: list[str] = []
    made: list[Preparation] = []
    for data in assigned.parties.values():
        for problem in _party(data, made):
            yield problem
            if (named := re.match(r"column '(.*?)'.*drop it", problem.what)) is not None:
                drop.append(named[1])
    if len(made) == len(assigned.parties):
        try:
            refuse_nothing(made)
        except ColonnadeError as error:
            yield _from(error)
    if drop:
        every = [*(job.data.drop or ()), *drop]
        remedy = f"drop = {value_text(every)}"
        yield Problem("data.drop", "leaves out the columns to look at above", len(drop), remedy, stops=False)


def _party(data: PartyData, made: list[Preparation]) -> Iterator[Problem]:
    """Yield what is wrong with one party's columns; how they are prepared is added to `made`."""
    raw = data.train
    if data.recipe.missing == "error" and not raw.sparse:
        tables = [raw] if data.test is None else [raw, data.test]
        gaps = {c: sum(int(gaps_in(table.column(c)).sum()) for table in tables) for c in raw.columns}
        for column, rows in gaps.items():
            if rows:
                what = f"column '{column}' is empty in {count(rows, 'row')}"
                yield Problem(raw.name, what, rows, 'missing = "auto"')
        if any(gaps.values()):
            return
    try:
        preparation = data.prepare().preparation
    except ColonnadeError as error:
        yield _from(error)
        return
    if preparation is None:
        return
    made.append(preparation)
    for text in preparation.warnings:
        yield Problem(data.party, text, stops=False)
