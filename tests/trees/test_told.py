"""What owners tell of histograms: no bin of few rows, no node of few rows, and noise that is centred."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from colonnade.trees.bins import BinGrid
from colonnade.trees.estimate import Told, agreeing, all_told, of_open_nodes
from colonnade.trees.frontier import Frontier, HistogramRows
from colonnade.trees.gradients import joined, parted
from colonnade.trees.histogram import Histogrammer
from colonnade.trees.told import CoinNoise, Floors, added_up, mostly, standing, told_in

seeds = st.integers(0, 2**32 - 1)


def random_grid(rng: np.random.Generator) -> BinGrid:
    ordered = rng.integers(1, 9, int(rng.integers(1, 5)))
    return BinGrid(ordered, rng.random(len(ordered)) < 0.5, np.zeros_like(ordered))


def random_counts(rng: np.random.Generator, grid: BinGrid, slots: int) -> np.ndarray:
    """Rows of some nodes in every bin; every column has all rows of a node."""
    found = np.zeros((slots, grid.total), dtype=np.int64)
    for slot, rows in enumerate(rng.integers(0, 60, slots).tolist()):
        for start, width in zip(grid.start.tolist(), grid.width.tolist(), strict=True):
            found[slot, start : start + width] = rng.multinomial(rows, rng.dirichlet(np.ones(width) / 2))
    return found


@settings(deadline=None)
@given(seed=seeds, least=st.integers(0, 12), nodes=st.integers(0, 30))
def test_joined_bins_have_enough_rows_or_are_all_there_is(seed: int, least: int, nodes: int) -> None:
    rng = np.random.default_rng(seed)
    grid = random_grid(rng)
    counts = random_counts(rng, grid, 5)
    ends = standing(counts, grid, Floors(least, nodes, 0.0))
    place = told_in(ends, grid)
    told = added_up(counts.view(np.uint64), place).view(np.int64)
    for slot in range(5):
        for start, width, ordered in zip(grid.start, grid.width, grid.ordered, strict=True):
            column = slice(start, start + width)
            groups = np.unique(place[slot, column])
            assert ((groups >= start) & (groups < start + width)).all()
            assert told[slot, column].sum() == counts[slot, column].sum()
            assert (told[slot, column] == 0)[~np.isin(np.arange(start, start + width), groups)].all()
            assert (np.diff(place[slot, start : start + ordered]) >= 0).all()
            if len(groups) > 1:
                assert (told[slot, groups] >= least).all()
                assert counts[slot, column].sum() >= nodes


@settings(deadline=None)
@given(seed=seeds)
def test_without_floors_the_estimate_is_exact(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows, grid = 200, random_grid(rng)
    codes = np.array([rng.integers(0, width, rows) for width in grid.width], dtype=np.uint8)
    words = joined(rng.integers(-31, 32, rows), rng.integers(0, 32, rows))
    histogrammer, frontier = Histogrammer(codes, grid), Frontier(np.ones(rows, dtype=bool))
    before = None
    for _ in range(4):
        told = all_told(histogrammer.sums(words, frontier.asked))
        before = of_open_nodes(frontier, before or told, told, grid)
        wanted = histogrammer.sums(words, HistogramRows(frontier.rows, frontier.counts))
        np.testing.assert_array_equal(before.sums, wanted)
        split, left = rng.random(frontier.open) < 0.9, rng.random(len(frontier.rows)) < 0.4
        stays = np.ones(2 * int(split.sum()), dtype=bool)
        if not split.any():
            break
        frontier.divide(split, left, stays)


def test_a_larger_sibling_loses_what_the_smaller_one_has_in_all() -> None:
    grid = BinGrid(np.array([4]), np.array([False]), np.array([0]))
    parent = all_told(joined(np.array([[10, 20, 30, 40]]), np.array([[4, 0, 8, 8]])))
    frontier = Frontier(np.ones(10, dtype=bool))
    frontier.divide(np.array([True]), np.arange(10) < 3, np.array([True, True]))
    ends = np.array([[False, True, False, True]])
    sums = joined(np.array([[0, 6, 0, 10]]), np.array([[0, 2, 0, 8]]))
    most = np.array([[False, False, True, False]])  # the second joined bin has its rows in its first bin
    found = of_open_nodes(frontier, parent, Told(sums, ends, most), grid)
    g, h = parted(found.sums, signed=True)
    assert g[1].tolist() == [10 - 6, 20, 30 - 10, 40]
    assert h[1].tolist() == [4 - 2, 0, 8 - 8, 8]
    assert found.ends.tolist() == [ends[0].tolist(), [True] * 4]
    np.testing.assert_array_equal(found.sums[0], sums[0])


@settings(deadline=None)
@given(seed=seeds)
def test_histograms_add_up_to_what_is_known_of_their_nodes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    grid, nodes = random_grid(rng), 4
    g, h = rng.integers(-200, 200, (nodes, grid.total)), rng.integers(0, 300, (nodes, grid.total))
    ends = rng.random(g.shape) < 0.5
    ends[:, grid.start + grid.width - 1] = True
    totals = joined(rng.integers(-500, 500, nodes), rng.integers(0, 900, nodes))
    found = agreeing(Told(joined(g, h), ends, ends), totals, grid)
    sums = np.add.reduceat(found.sums, grid.start, axis=1, dtype=np.uint64)
    np.testing.assert_array_equal(sums, np.tile(totals[:, None], grid.columns))
    np.testing.assert_array_equal(
        found.sums[~ends], joined(g, h)[~ends]
    )  # these were told in another's place
    again = agreeing(found, totals, grid)
    np.testing.assert_array_equal(again.sums, found.sums)
    for before, now in zip((g, h), parted(found.sums, signed=True), strict=True):
        for start, width in zip(grid.start, grid.width, strict=True):
            here = slice(start, start + width)
            for node in range(nodes):  # every told bin moves by the same, but for rounding
                assert np.ptp((now - before)[node, here][ends[node, here]]) <= 2


def test_noise_of_sums_falls_towards_the_last_bin() -> None:
    bins, nodes, deviation = 16, 4000, 20
    grid = BinGrid(np.array([bins]), np.array([False]), np.array([0]))
    exact = np.full((nodes, bins), 50)
    noisy = exact + np.rint(np.random.default_rng(0).normal(0, deviation, exact.shape)).astype(np.int64)
    all_bins = np.ones(exact.shape, dtype=bool)
    totals = joined(exact.sum(axis=1), exact.sum(axis=1))
    found, _ = parted(
        agreeing(Told(joined(noisy, exact), all_bins, all_bins), totals, grid).sums, signed=True
    )
    k = np.arange(1, bins + 1)
    for sums, wanted in ((noisy, k), (found, k * (bins - k) / bins)):
        off = np.cumsum(sums - exact, axis=1).var(axis=0) / deviation**2
        np.testing.assert_allclose(off, wanted, rtol=0.1, atol=0.01)


def test_a_bin_with_nearly_all_rows_is_named() -> None:
    place = np.array([[2, 2, 2, 3]])
    assert mostly(np.array([[9, 1, 0, 5]]), place).tolist() == [[True, False, False, True]]
    assert mostly(np.array([[7, 3, 0, 0]]), place).tolist() == [[False] * 4]


def test_noise_is_that_of_coins_and_follows_from_the_columns() -> None:
    codes = np.random.default_rng(0).integers(0, 8, (3, 500)).astype(np.uint8)
    noise = CoinNoise(codes, 1, 12.0)
    g, h = parted(noise.words(0, 0, 20_000), signed=True)
    for each in (g, h):
        assert abs(each.mean()) < 5 * 12 / np.sqrt(20_000)
        assert each.std() == pytest.approx(12, rel=0.03)
    assert abs(np.corrcoef(g, h)[0, 1]) < 0.04
    np.testing.assert_array_equal(noise.words(2, 1, 50), CoinNoise(codes.copy(), 1, 12.0).words(2, 1, 50))
    other = codes.copy()
    other[2, 7] ^= 1
    for changed in (CoinNoise(other, 1, 12.0), CoinNoise(codes, 2, 12.0)):
        assert (noise.words(2, 1, 50) != changed.words(2, 1, 50)).any()
    assert (noise.words(2, 1, 50) != noise.words(2, 2, 50)).any()
    assert not CoinNoise(codes, 1, 0.0).words(0, 0, 9).any()
