"""Counts of many columns are equations in the labels; noise that grows with their number hides them."""

from __future__ import annotations

import numpy as np
import pytest

from colonnade.arrays import Floats, Rows
from colonnade.conversations import woe as conversation
from colonnade.data.prepare.woe import Counts
from colonnade.job import Woe
from colonnade.privacy.counts import CountNoise

ROWS = 400
TERMS = Woe(bins=8, most=8, least=20, cases=5)


def labels_and_bins(columns: int, seed: int) -> tuple[Rows, list[Rows]]:
    """Labels of which a third are bad, and columns that are random orders of all rows in eight bins."""
    rng = np.random.default_rng(seed)
    bad = (rng.random(ROWS) < 1 / 3).astype(np.int64)
    return bad, [rng.permutation(ROWS) * 8 // ROWS for _ in range(columns)]


def told(bad: Rows, bins: list[Rows], noise: CountNoise) -> list[list[tuple[Rows, float]]]:
    """What the owner hears: for every column its joined bins, as rows, with their WOE."""
    counts = []
    for codes in bins:
        rows, bads = np.bincount(codes, minlength=8), np.bincount(codes[bad > 0], minlength=8)
        counts.append(Counts(8, False, tuple(rows.tolist()), tuple(bads.tolist())))
    evidence = conversation._answer(conversation._noisy(counts, noise), TERMS)
    heard = []
    for k, codes in enumerate(bins):
        group, values = (each[8 * k : 8 * k + 8] for each in (evidence.group, evidence.woe))
        heard.append([(group[codes] == g, float(values[group == g][0])) for g in sorted(set(group.tolist()))])
    return heard


def guessed(heard: list[list[tuple[Rows, float]]]) -> Rows:
    """Least squares with a guessed base rate: bads of a bin are rows / (1 + e^WOE goods / bads)."""
    best: tuple[float, Floats] = (np.inf, np.zeros(ROWS))
    inside = np.array([rows for column in heard for rows, _ in column], dtype=float)
    woe = np.array([value for column in heard for _, value in column])
    for bads in range(ROWS // 4, ROWS // 2):
        share = inside.sum(axis=1) / (1 + np.exp(woe) * (ROWS - bads) / bads)
        ragged = float(np.abs(share - np.rint(share)).sum())
        if ragged < best[0]:
            best = ragged, share
    found, *_ = np.linalg.lstsq(inside, best[1], rcond=None)
    labels: Rows = (found > 0.5).astype(np.int64)
    return labels


def test_exact_counts_of_enough_columns_give_away_every_label() -> None:
    bad, bins = labels_and_bins(80, seed=1)
    assert (guessed(told(bad, bins, CountNoise())) == bad).all()


@pytest.mark.parametrize("columns", [80, 320])
def test_noise_hides_labels_from_any_number_of_columns(columns: int) -> None:
    bad, bins = labels_and_bins(columns, seed=2)
    right = float((guessed(told(bad, bins, CountNoise(2.0, b"k" * 32))) == bad).mean())
    base = max(bad.mean(), 1 - bad.mean())
    assert right < base + 0.07


def test_the_same_counts_get_the_same_noise_and_any_others_get_other_noise() -> None:
    noise, many = CountNoise(2.0, b"k" * 32), np.full(500, 100)
    first = noise.told(many, 2 * many, 4)
    assert (first == noise.told(many, 2 * many, 4)).all()
    changed = many.copy()
    changed[0] += 1
    assert np.mean(first[1:] == noise.told(changed, 2 * many, 4)[1:]) < 0.2
    assert np.mean(first == CountNoise(2.0, b"l" * 32).told(many, 2 * many, 4)) < 0.2


def test_noise_has_the_deviation_that_was_asked_for_and_stays_among_the_rows() -> None:
    many = np.full(20_000, 500)
    noise = CountNoise(2.0, b"k" * 32).told(many, 2 * many, 9) - many
    assert abs(noise.mean()) < 0.2  # a false alarm once in a million: 4.9 deviations of the mean
    assert noise.std() == pytest.approx(6.0, rel=0.025)
    few = CountNoise(2.0, b"k" * 32).told(np.zeros(1000, dtype=np.int64), np.full(1000, 3), 9)
    assert set(few.tolist()) == {0, 1, 2, 3}
    assert (CountNoise().told(many, 2 * many, 9) == many).all()
