"""Rows that are known by their way alone have the sums of rows that are followed node by node."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from colonnade.trees import row_paths
from colonnade.trees.frontier import Frontier
from colonnade.trees.grow import Level
from colonnade.trees.row_paths import RowPaths
from colonnade.trees.tree import LEAF


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), few=st.sampled_from([1, 2**15]), bins=st.sampled_from([3, 200, 256]))
def test_sums_of_ways_are_those_of_nodes(seed: int, few: int, bins: int) -> None:
    rng = np.random.default_rng(seed)
    rows = int(rng.integers(1, 300))
    codes = rng.integers(0, bins, (2, rows)).astype(np.uint8)
    words = rng.integers(0, 2**64, (2, rows), dtype=np.uint64)
    orders = [rng.permutation(rows) for _ in codes]
    mixed = [each.take(order) for each, order in zip(codes, orders, strict=True)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_paths, "FEW", few)  # 1: ways that ended are forgotten on every level
        found = RowPaths(mixed, np.array([bins, bins]))
        frontier = Frontier(np.ones(rows, dtype=bool))
        for _ in range(10):
            asked = frontier.asked
            wanted = np.zeros((asked.slots, 2 * bins), dtype=np.uint64)
            slot = np.repeat(np.arange(asked.slots), asked.counts)
            for j in range(2):
                np.add.at(wanted, (slot, j * bins + codes[j, asked.rows].astype(int)), words[j, asked.rows])
            each = [words[j].take(order) for j, order in enumerate(orders)]
            np.testing.assert_array_equal(found.sums(each), wanted)
            split, left = rng.random(frontier.open) < 0.8, rng.random(rows) < 0.4
            stays = rng.random(2 * int(split.sum())) < 0.8
            if not stays.any():
                break
            level = Level(np.where(split, 0, LEAF), split * 0, split * 0, split, stays)
            side = np.zeros(rows, dtype=np.uint8)
            side[frontier.rows] = left[frontier.rows]
            frontier.divide(split, left[frontier.rows], stays)
            assert frontier.pairs is not None
            found.divide(level, frontier.pairs)
            found.turn([side.take(order) for order in orders])
