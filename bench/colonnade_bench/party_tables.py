"""Every party's prepared columns, which most benches train on. All data sets here have test rows."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from colonnade.arrays import Floats
from colonnade.data.assign import Assigned, assign, label_holders
from colonnade.data.labels import Task
from colonnade.data.table import Table
from colonnade.errors import DataError
from colonnade.job import Data
from colonnade.run.federate import Tables


def read_tables(data: Data, *, task: Task | None = None, seed: int = 0) -> Tables:
    """Read a data set, split its columns over the parties, and prepare them; an intercept only if asked."""
    holders = label_holders(data.party_names, data.active)
    return prepared(assign(data, label_holders=holders, task=task, intercept=bool(data.intercept), seed=seed))


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
