"""What the columns of one party did in a forest: how often they split, and what that gained."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from colonnade.arrays import Floats
from colonnade.trees.bins import Counts
from colonnade.trees.tree import Forest, Splits


class Importance(NamedTuple):
    """Of every column: the gain of its splits, the second derivatives of their rows, and their number."""

    gain: Floats
    cover: Floats
    splits: Counts


def importance_of(forest: Forest, party: int, splits: Splits, columns: int) -> Importance:
    """Return the importance of one party's columns; gain and cover are sums over all trees."""
    gain, cover = np.zeros(columns), np.zeros(columns)
    for tree in forest.trees:
        mine = tree.party == party
        column = splits.column[tree.split[mine]]
        np.add.at(gain, column, tree.gain[mine])
        np.add.at(cover, column, tree.cover[mine])
    return Importance(gain, cover, np.bincount(splits.column, minlength=columns))
