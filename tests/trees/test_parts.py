"""The parts that trees are made of: bins, words, histograms, frontiers, and how rows find their leaves."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from colonnade.job import Trees
from colonnade.losses import LOSSES, with_weights
from colonnade.trees.bins import Cuts
from colonnade.trees.boosting import Sampling
from colonnade.trees.frontier import Frontier, HistogramRows
from colonnade.trees.gradients import G_MOST, H_MOST, derivatives, joined, packed, parted, quantised, unpacked
from colonnade.trees.histogram import Histogrammer
from colonnade.trees.tree import Forest, Splits, Tree, leaves

numbers = st.integers(0, 2**32 - 1)


@given(seed=numbers, most=st.integers(2, 255), values=st.integers(1, 400), gaps=st.booleans())
def test_a_value_is_at_most_the_edge_of_its_bin_and_above_the_one_before(
    seed: int, most: int, values: int, gaps: bool
) -> None:
    rng = np.random.default_rng(seed)
    X = rng.integers(0, values, (300, 3)) / 7
    if gaps:
        X[rng.random(X.shape) < 0.3] = np.nan
    cuts = Cuts.of(X, most)
    codes = cuts.codes(X)
    for j, edges in enumerate(cuts.edges):
        assert len(edges) < most
        gap = np.isnan(X[:, j])
        around = np.concatenate([[-np.inf], edges, [np.inf]])
        known = codes[j, ~gap].astype(int)
        assert (X[~gap, j] <= around[known + 1]).all()
        assert (X[~gap, j] > around[known]).all()
        assert (codes[j, gap] == len(edges) + 1).all()
        assert cuts.gaps[j] == gap.any()
        if len(np.unique(X[~gap, j])) <= most:  # few values have a bin each
            assert len(edges) == max(len(np.unique(X[~gap, j])) - 1, 0)


def test_bins_of_many_values_have_about_as_many_rows_each() -> None:
    X = np.random.default_rng(0).standard_normal((10_000, 1))
    counts = np.bincount(Cuts.of(X, 32).codes(X)[0])
    assert len(counts) == 32
    assert counts.min() > 300
    assert counts.max() < 325


def test_neighbours_among_floats_are_told_apart() -> None:
    low = 1.0
    X = np.array([[low], [np.nextafter(low, 2)]])
    assert Cuts.of(X, 8).codes(X)[0].tolist() == [0, 1]


def test_sparse_columns_have_the_bins_of_dense_ones() -> None:
    rng = np.random.default_rng(1)
    X = rng.standard_normal((200, 5)) * (rng.random((200, 5)) < 0.3)
    dense, sparse = Cuts.of(X, 16), Cuts.of(csr_array(X), 16)
    np.testing.assert_array_equal(dense.codes(X), sparse.codes(csr_array(X)))


@given(
    rows=st.lists(st.tuples(st.integers(-G_MOST, G_MOST), st.integers(0, H_MOST)), min_size=1, max_size=50)
)
def test_sums_of_words_are_words_of_sums(rows: list[tuple[int, int]]) -> None:
    g, h = (np.array(part) for part in zip(*rows, strict=True))
    words = joined(g, h)
    total_g, total_h = parted(np.array([words.sum(dtype=np.uint64)]))
    assert (int(total_g[0]), int(total_h[0])) == (g.sum(), h.sum())
    np.testing.assert_array_equal(unpacked(packed(words)), words)


@pytest.mark.parametrize("rows", [1, 1000, 300_000])
def test_rounding_by_chance_is_right_on_average_and_never_overflows(rows: int) -> None:
    rng = np.random.default_rng(2)
    g, h = rng.standard_normal(rows), rng.random(rows)
    words, units = quantised(g, h, rng)
    whole_g, whole_h = parted(words)
    assert np.abs(whole_g * units.g - g).max() <= units.g * (1 + 1e-9)
    assert np.abs(whole_h * units.h - h).max() <= units.h * (1 + 1e-9)
    assert abs(whole_g.sum() * units.g - g.sum()) <= 5 * units.g * rows**0.5
    total_g, total_h = parted(np.array([words.sum(dtype=np.uint64)]))
    assert (int(total_g[0]), int(total_h[0])) == (whole_g.sum(), whole_h.sum())


@pytest.mark.parametrize("name", ["logistic", "squared", "softmax", "poisson", "gamma"])
def test_derivatives_are_those_of_the_loss_times_the_weights(name: str) -> None:
    rng, loss, step = np.random.default_rng(3), LOSSES[name], 1e-5
    y = {"logistic": np.array([-1.0, 1.0]), "softmax": np.arange(3.0)}.get(name, np.array([0.5, 1.0, 4.0]))
    labels, weight = rng.choice(y, 20), rng.random(20)
    z = rng.standard_normal((20, 3) if name == "softmax" else 20)
    g, h = derivatives(loss, z, with_weights(labels, weight))
    for k in range(3 if name == "softmax" else 1):
        nudge = step * np.eye(3)[k] if name == "softmax" else step
        up, down = loss.value(z + nudge, labels), loss.value(z - nudge, labels)
        found_g, found_h = (g[:, k], h[:, k]) if name == "softmax" else (g, h)
        np.testing.assert_allclose(found_g, weight * (up - down) / (2 * step), atol=1e-6)
        bent = weight * (up - 2 * loss.value(z, labels) + down) / step**2
        np.testing.assert_allclose(found_h, bent, atol=1e-4)


@settings(max_examples=40, deadline=None)
@given(seed=numbers, rows=st.integers(1, 5000), columns=st.integers(0, 60), slots=st.integers(1, 9))
def test_histograms_are_sums_modulo_2_to_the_64(seed: int, rows: int, columns: int, slots: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 6, (rows, columns)).astype(float)
    cuts = Cuts.of(X, 8)
    words = rng.integers(0, 2**64, rows, dtype=np.uint64)
    slot = np.sort(rng.integers(0, slots, rows))
    asked = HistogramRows(rng.permutation(rows), np.bincount(slot, minlength=slots))
    grid, codes = cuts.grid, cuts.codes(X)
    wanted = np.zeros((slots, grid.total), dtype=np.uint64)
    for j in range(columns):
        np.add.at(wanted, (slot, grid.start[j] + codes[j, asked.rows]), words[asked.rows])
    np.testing.assert_array_equal(Histogrammer(codes, grid).sums(words, asked), wanted)


@settings(max_examples=60, deadline=None)
@given(seed=numbers, rows=st.integers(1, 200), part=st.sampled_from([0.8, 1.1]))
def test_open_nodes_have_their_own_histograms_whichever_sibling_is_summed(
    seed: int, rows: int, part: float
) -> None:
    rng = np.random.default_rng(seed)
    words = rng.integers(0, 2**64, rows, dtype=np.uint64)
    frontier = Frontier(rng.random(rows) < part)
    histograms, node = np.zeros((0, 1), dtype=np.uint64), np.zeros(rows, dtype=np.int64)
    for _ in range(4):
        asked = frontier.asked
        sums = np.zeros((asked.slots, 1), dtype=np.uint64)
        np.add.at(sums[:, 0], np.repeat(np.arange(asked.slots), asked.counts), words[asked.rows])
        histograms = frontier.whole(histograms, sums)
        for k in range(frontier.open):
            here = (node == k) & frontier.sampled
            assert histograms[k, 0] == words[here].sum(dtype=np.uint64)
        if not frontier.open:
            break
        split, side = rng.random(frontier.open) < 0.7, rng.random(rows) < 0.4
        stays = rng.random(2 * int(split.sum())) < 0.8
        # the same, row by row
        rank = {int(k): place for place, k in enumerate(np.flatnonzero(split))}
        child = [
            rank[k] + (0 if side[i] else len(rank)) if k in rank else -1 for i, k in enumerate(node.tolist())
        ]
        number = {int(k): place for place, k in enumerate(np.flatnonzero(stays))}
        node = np.array([number.get(k, -1) for k in child])
        frontier.divide(split, side[frontier.rows], stays)


def test_rows_follow_thresholds_and_gaps_to_their_leaves() -> None:
    splits = Splits(np.array([1, 0]), np.array([0.5, 2.0]), np.array([True, False]))
    X = np.array([[1.0, 0.5], [3.0, np.nan], [np.nan, 0.0], [1.0, 0.6]])
    none = np.array([-1] * 5)
    tree = Tree(
        party=np.array([0, 0, -1, -1, -1]),
        split=np.array([0, 1, -1, -1, -1]),
        left=np.array([1, 3, -1, -1, -1]),
        right=np.array([2, 4, -1, -1, -1]),
        value=np.array([0.0, 0.0, 10.0, 20.0, 30.0]),
        gain=none * 0.0,
        cover=none * 0.0,
    )
    left = {0: splits.left(X)}
    assert leaves(tree, left, 4).tolist() == [3, 4, 4, 2]
    forest = Forest(np.array([1.0]), (tree, tree), np.array([0, 0]))
    assert forest.scores(left, 4)[:, 0].tolist() == [41.0, 61.0, 61.0, 21.0]
    sparse = Splits.from_arrays(splits.arrays()).left(csr_array(X[[0, 3]]))
    np.testing.assert_array_equal(sparse, left[0][:, [0, 3]])
    assert Forest.from_arrays(forest.arrays()).scores(left, 4).tolist() == forest.scores(left, 4).tolist()


def test_samples_are_the_same_for_everybody_and_new_for_every_tree() -> None:
    rules = Trees(subsample=0.5, colsample_bytree=0.5, early_stopping_rounds=2, validation_fraction=0.25)
    one, other = Sampling(rules, 7, 4000), Sampling(rules, 7, 4000)
    np.testing.assert_array_equal(one.rows_of(3), other.rows_of(3))
    assert not (one.rows_of(3) & one.held_back).any()
    assert (one.rows_of(3) != one.rows_of(4)).any()
    assert one.rows_of(3).mean() == pytest.approx(0.375, abs=0.03)
    assert len(one.columns_of(3, 0, 9)) == 4
    assert len(one.columns_of(3, 0, 1)) == 1
    assert {tuple(one.columns_of(t, 0, 9)) for t in range(9)} != {tuple(one.columns_of(0, 0, 9))}
