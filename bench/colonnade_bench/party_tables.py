"""Every party's prepared columns, which most benches train on. All data sets here have test rows.

Columns are dealt as in the papers: after one-hot, at random, as many to each party as to any other, or one
more. A job's `data.parties` deals columns before they are prepared, since a company has whole columns, and
can only bring blocks near the same width.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import msgspec
import numpy as np
from scipy.sparse import issparse

from colonnade.arrays import Floats
from colonnade.data.prepare.labels import Task
from colonnade.data.split.assign import Assigned, assign, label_holders
from colonnade.data.split.split import split_by_count
from colonnade.data.table import Table
from colonnade.errors import DataError
from colonnade.job import Data
from colonnade.run.federate import Tables


def read_tables(data: Data, *, task: Task | None = None, seed: int = 0) -> Tables:
    """Read a data set, prepare its columns, and deal them; an intercept only if asked."""
    names = tuple(data.party_names)
    alone = msgspec.structs.replace(data, parties=1, active=1)
    holder = label_holders(alone.party_names, 1)
    whole = prepared(
        assign(alone, label_holders=holder, task=task, intercept=bool(data.intercept), seed=seed)
    )
    holders = label_holders(names, data.active)
    train, test = (
        deal(part[holder[0]], len(names), holders, seed) for part in (whole.train, held_out(whole))
    )
    return Tables(whole.dataset, train, test, holders)


def deal(table: Table, parties: int, holders: tuple[str, ...], seed: int) -> dict[str, Table]:
    """The columns of one table over parties; label holders have the label, the first also the intercept."""
    free = table.free
    places = [j for j in range(table.width) if j not in free]
    split = split_by_count([table.columns[j] for j in places], parties, seed)
    dealt = {}
    for party, part in split.items():
        held = [places[j] for j in part] + (list(free) if party == holders[0] else [])
        X = table.X[:, held]
        X = X if issparse(X) else np.ascontiguousarray(X)
        y = table.y if party in holders else None
        dealt[party] = replace(table, name=party, columns=tuple(table.columns[j] for j in held), X=X, y=y)
    return dealt


def prepared(assigned: Assigned) -> Tables:
    """Every party's columns, as the party itself prepares them."""
    ready = {party: data.prepare() for party, data in assigned.parties.items()}
    train = {party: each.train for party, each in ready.items()}
    test = {party: each.test for party, each in ready.items() if each.test is not None}
    return Tables(assigned.dataset, train, test or None, assigned.label_holders)


def held_out(tables: Tables) -> dict[str, Table]:
    """The test rows of every party."""
    if tables.test is None:
        raise DataError(f"{tables.dataset}: there are no test rows")
    return tables.test


def label_of(tables: Mapping[str, Table], holder: str) -> Floats:
    """The label of all rows, from a party that holds it."""
    y = tables[holder].y
    if y is None:
        raise DataError(f"{holder} holds no label")
    return y


def first_rows(tables: Mapping[str, Table], rows: int) -> dict[str, Table]:
    """The first so many rows at every party, or all where there are fewer."""
    return {party: table.take(np.arange(min(rows, table.rows))) for party, table in tables.items()}
