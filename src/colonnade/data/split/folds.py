"""Training rows in parts, to train on some and measure on the others.

Which part a row belongs to is known to all parties, as they are the same rows everywhere. So chance alone
decides it: if every part were to have as many rows of each class, a row's part would tell its label to
at every party.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from colonnade.arrays import Rows
from colonnade.data.prepare.party_data import PartyData
from colonnade.data.prepare.weights import normalised
from colonnade.data.split.split import train_test_rows
from colonnade.errors import DataError


class Fold(NamedTuple):
    """Rows to train on and rows that are held back, each in file order."""

    kept: Rows
    held: Rows


def folds_of(rows: int, folds: int, seed: int) -> tuple[Fold, ...]:
    """Return this many folds; every row is held back in exactly one of them.

    >>> [fold.held.tolist() for fold in folds_of(5, 2, seed=0)]
    [[1, 2, 4], [0, 3]]
    """
    if rows < 2 * folds:
        raise DataError(f"{rows} training rows are too few for {folds} folds; give fewer folds")
    parts = np.array_split(np.random.default_rng([seed, folds]).permutation(rows), folds)
    everything = np.arange(rows)
    return tuple(Fold(np.setdiff1d(everything, part), np.sort(part)) for part in parts)


def in_fold(data: PartyData, fold: Fold, measured: PartyData | None = None) -> PartyData:
    """Return a party's data with the rows of a fold: those held back, of `measured` if given, are its test
    rows."""
    train = data.train.take(fold.kept)
    if train.weight is not None:
        train = replace(train, weight=normalised(train.weight, train.name))
    return replace(data, train=train, test=(measured or data).train.take(fold.held))


def one_fold(rows: int, held_back: float, seed: int) -> tuple[Fold, ...]:
    """Return one fold, in which a part of the rows is held back."""
    return (Fold(*train_test_rows(rows, held_back, seed)),)
