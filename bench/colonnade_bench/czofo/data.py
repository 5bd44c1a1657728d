"""The data of VFL-CZOFO's experiments, split as the supplement says: a server without columns, and clients.

a9a: columns 1-62 and 63-123. GiveMeSomeCredit: rows with gaps dropped, the larger class down-sampled to
the smaller, 75/25, five columns each. MNIST: image rows from top to bottom. CIFAR-10: left and right half.
Settings were chosen on a tenth of the training rows (`validation`), never on test rows.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np

from colonnade.data.datasets.catalogue import DATASETS
from colonnade.data.datasets.loading import load_dataset
from colonnade.data.prepare.labels import Labels
from colonnade.data.prepare.party_data import PartyData, Recipe
from colonnade.data.prepare.scaling import Scale
from colonnade.data.split.assign import Assigned
from colonnade.data.split.split import train_test_rows
from colonnade.data.table import Column, RawTable
from colonnade.errors import DataError
from colonnade.job import SERVER, numbered_parties
from colonnade.run.federate import Tables
from colonnade_bench.party_tables import prepared

SEED = 0
# pixels of MNIST lie in 0..1; those of CIFAR-10 are centred, which convolutions need more
SCALES: dict[str, Scale | float] = {
    "a9a": "none", "givemesomecredit": "zscore", "mnist": 255.0, "cifar10": "zscore", "digits": 16.0,
}  # fmt: skip


def assigned(name: str, clients: int, *, rows: int | None = None, validation: bool = False) -> Assigned:
    """Every party's raw columns of the data set, of all training rows or of some picked by chance."""
    train, test = load_dataset(name)
    if name == "givemesomecredit":
        train = balanced(train)
    if test is None or validation:
        kept, tested = train_test_rows(train.rows, 0.1 if validation else 0.25, SEED)
        train, test = train.take(kept), train.take(tested)
    if rows is not None and rows < train.rows:
        train = train.take(np.sort(np.random.default_rng(SEED).permutation(train.rows)[:rows]))
    labels = Labels.fit(_labels(train), DATASETS[name].task, name=name)
    y, y_test = (labels.transform(_labels(raw), name=name) for raw in (train, test))
    labelled = replace(train.select([]), y=y), replace(test.select([]), y=y_test)
    parties = {SERVER: PartyData(SERVER, *labelled, Recipe(scale="none", missing="error"))}
    train, test = replace(train, y=None), replace(test, y=None)
    for party, columns in zip(
        numbered_parties(clients), blocks(name, len(train.columns), clients), strict=True
    ):
        recipe = Recipe(scale=SCALES[name], missing="error", rare=0)
        parties[party] = PartyData(party, train.select(columns), test.select(columns), recipe)
    return Assigned(name, parties, (SERVER,), labels)


def _labels(raw: RawTable) -> Column:
    if raw.y is None:
        raise DataError(f"{raw.name}: no label")
    return raw.y


@lru_cache(maxsize=1)  # the cases of a table follow each other
def experiment(name: str, clients: int, rows: int | None, validation: bool) -> tuple[Assigned, Tables]:
    """Everybody's columns, raw and prepared."""
    given = assigned(name, clients, rows=rows, validation=validation)
    return given, prepared(given)


def balanced(raw: RawTable) -> RawTable:
    """Rows without gaps, and of the larger class only as many as of the smaller."""
    y = np.asarray(raw.y, dtype=np.float64)
    whole = np.isfinite(np.asarray(raw.values, dtype=np.float64)).all(axis=1)
    rare, common = (np.flatnonzero(whole & (y == value)) for value in (1.0, 0.0))
    chosen = np.random.default_rng(SEED).permutation(common)[: len(rare)]
    return raw.take(np.sort(np.concatenate([rare, chosen])))


def blocks(name: str, columns: int, clients: int) -> list[list[int]]:
    """The columns of every client, by their numbers.

    >>> [len(block) for block in blocks("a9a", 123, 2)]
    [62, 61]
    >>> left, right = blocks("cifar10", 3072, 2)
    >>> left[14:18], right[:2]
    ([14, 15, 32, 33], [16, 17])
    """
    if name == "cifar10":
        strip = 32 // clients
        return [[j for j in range(columns) if j % 32 // strip == m] for m in range(clients)]
    return [part.tolist() for part in np.array_split(np.arange(columns), clients)]
