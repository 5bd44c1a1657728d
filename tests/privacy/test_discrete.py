"""Discrete noise has its distribution, reaches every value for every label, and gives no label away by gaps.

Keys are fixed, so nothing fails by chance; a key that is drawn anew would fail once in 10^6 tests.
"""

from __future__ import annotations

from fractions import Fraction
from math import exp, factorial

import numpy as np
import pytest
from scipy.special import ndtr, ndtri
from scipy.stats import chisquare

from colonnade.arrays import Rows, Words
from colonnade.attacks.gaps import reached, read
from colonnade.losses import LOSSES
from colonnade.privacy import discrete
from colonnade.privacy.accountant import multiplier_for
from colonnade.privacy.discrete import SCALE, gaussian
from colonnade.privacy.label_noise import keep_probability, noisy_labels
from colonnade.privacy.noise import DRAWS, ROWS, Noise, Streams
from colonnade_bench.micro.noise import CANDIDATES, CLIP, in_doubles

UNLIKELY = 1e-6
MANY = 200_000


def streams(count: int, key: int = 0) -> Streams:
    rows = np.arange(count)
    return Streams(key.to_bytes(32, "big"), rows, 0 * rows, 1)


@pytest.mark.parametrize("bits", [0, 1, 3])
def test_frequencies_of_small_scales_are_those_of_the_definition(
    monkeypatch: pytest.MonkeyPatch, bits: int
) -> None:
    monkeypatch.setattr(discrete, "BITS", bits)
    found = gaussian(streams(MANY))
    reach = 3 * 2**bits + 1  # all beyond is counted as one
    n = np.arange(-400 * 2**bits, 400 * 2**bits + 1)
    weight = np.exp(-((np.abs(n) / 2**bits) ** 2) / 2)
    weight /= weight.sum()
    near = np.abs(n) <= reach
    expected = MANY * np.append(weight[near], weight[~near].sum())
    counted = [np.sum(found == each) for each in n[near]]
    assert chisquare([*counted, np.sum(np.abs(found) > reach)], expected).pvalue > UNLIKELY


def test_at_full_scale_high_and_low_digits_are_as_likely_as_they_should() -> None:
    found = gaussian(streams(MANY, key=1))
    edges = SCALE * ndtri(np.arange(1, 64) / 64)
    assert chisquare(np.bincount(np.searchsorted(edges, found), minlength=64)).pvalue > UNLIKELY
    for digits in (found & 63, found >> 12 & 63):
        assert chisquare(np.bincount(digits, minlength=64)).pvalue > UNLIKELY


@pytest.mark.parametrize(("classes", "epsilon"), [(2, 0.5), (10, 1.0), (10, 4.0), (3, 0.1)])
def test_responses_are_as_likely_as_they_should(classes: int, epsilon: float) -> None:
    told = Noise(bytes(32)).response(np.full(MANY, classes - 1), classes, epsilon)
    keep = keep_probability(epsilon, classes)
    expected = np.full(classes, (1 - keep) / (classes - 1))
    expected[-1] = keep
    assert keep / expected[0] == pytest.approx(exp(epsilon))  # this ratio is the guarantee
    assert chisquare(np.bincount(told, minlength=classes), MANY * expected).pvalue > UNLIKELY


def test_what_digits_decide_is_what_doubles_decide_where_these_are_sure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    quickly = gaussian(streams(60)), Noise(bytes(32)).response(np.arange(60) % 5, 5, 0.7)
    monkeypatch.setattr(discrete, "NEAR", 2.0)
    assert np.array_equal(gaussian(streams(60)), quickly[0])
    assert np.array_equal(Noise(bytes(32)).response(np.arange(60) % 5, 5, 0.7), quickly[1])


def digits_of(x: Fraction, bits: int) -> int:
    """The first binary digits of exp(-x), by its series: 60 terms are right to 200 bits for x up to 1."""
    return int(sum((-x) ** k / Fraction(factorial(k)) for k in range(60)) * 2**bits)


@pytest.mark.parametrize(("numerator", "shift"), [(1, 0), (1, 3), (3602879701896397, 55), (2**40 + 1, 49)])
@pytest.mark.parametrize("beyond", [-1, 1])
def test_a_word_that_decides_nothing_is_followed_by_another(numerator: int, shift: int, beyond: int) -> None:
    whole = digits_of(Fraction(numerator, 2**shift), 128) + beyond
    taken: list[int] = []

    class Given:
        def __len__(self) -> int:
            return 1

        def take(self, at: Rows) -> Words:
            taken.append(whole >> 64 * (1 - len(taken)) & 2**64 - 1)
            return np.array(taken[-1:], dtype=np.uint64)

    yes = discrete.below(Given(), np.array([0]), np.array([numerator]), shift)
    assert yes.tolist() == [beyond < 0]
    assert len(taken) == 2


def test_every_value_is_reached_for_every_label(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discrete, "BITS", 3)
    noise = Noise(bytes(32)).gaussian(np.arange(MANY), np.zeros(MANY, dtype=np.int64))[:, 0]
    values = set(range(-16, 17))
    for label in (-8, 0, 3, 8):  # up to three deviations away
        assert values <= set((label + noise).tolist())


def test_doubles_that_only_one_label_reaches_give_it_away_and_a_grid_has_none() -> None:
    rng, epsilon = np.random.default_rng(0), 0.5
    y, multiplier = rng.choice(CANDIDATES, 20_000), multiplier_for(epsilon, 1e-5, 1)
    allowed, chance = keep_probability(epsilon, 2), 5 * (0.25 / len(y)) ** 0.5
    deviation = multiplier * 2 * CLIP
    seen = in_doubles(y, deviation, rng)
    part, certain = read(seen, y, CANDIDATES, reached(seen, CANDIDATES, deviation))
    assert part > 0.9 > allowed  # 91.4%, where epsilon allows 62.2%
    assert certain > 0.8

    labels = noisy_labels(y, LOSSES["squared"], CLIP, multiplier, noise=Noise(bytes(32)))
    seen, grid = labels(np.arange(len(y))), labels.grid
    best = float(ndtr((CANDIDATES[1] - CANDIDATES[0]) / 2 / grid.deviation))  # of two normal distributions
    assert best + chance < allowed
    # the attacker knows the grid: a label can be what is seen if whole noise lies between them
    apart = seen * grid.steps / grid.bound - grid.whole(np.array(CANDIDATES))[:, None]
    can_be = np.abs(apart - np.rint(apart)) < 1e-6
    assert can_be.all()
    assert read(seen, y, CANDIDATES, can_be)[0] <= best + chance
    assert read(seen, y, CANDIDATES, reached(seen, CANDIDATES, deviation))[0] <= best + chance


def test_streams_are_of_one_key_row_draw_and_place_alone() -> None:
    noise, rows = Noise(bytes(32)), np.arange(50)
    drawn = np.concatenate([noise.gaussian(rows, np.full(50, draw), 5) for draw in range(4)])
    assert len(np.unique(drawn)) == drawn.size
    assert np.array_equal(noise.gaussian(rows[::-1], np.full(50, 2), 5), drawn[100:150][::-1])
    assert not np.isin(Noise().gaussian(rows, 0 * rows), drawn).any()
    # more classes than there were change nothing for the others
    assert np.array_equal(noise.gaussian(rows, 0 * rows, 2), drawn[:50, :2])


@pytest.mark.parametrize(("row", "draw"), [(ROWS, 0), (0, DRAWS)])
def test_what_a_block_has_no_room_for_is_refused(row: int, draw: int) -> None:
    with pytest.raises(ValueError, match="noise is for fewer"):
        Noise().gaussian(np.array([row]), np.array([draw]))


def test_continuous_noise_that_is_rounded_is_discrete_noise_up_to_what_the_accountant_says() -> None:
    for s in (16.0, 256.0):
        n = np.arange(-int(8 * s), int(8 * s) + 1)
        discretely = np.exp(-(n**2) / (2 * s**2))
        discretely /= np.exp(-(np.arange(-40 * s, 40 * s + 1) ** 2) / (2 * s**2)).sum()
        rounded = ndtr(-(np.abs(n) - 0.5) / s) - ndtr(-(np.abs(n) + 0.5) / s)  # of the left tail: more digits
        ratio, error = np.log(rounded / discretely), 1e-9
        assert (ratio >= -1 / (24 * s**2) - error).all()
        assert (ratio <= n**2 / (24 * s**4) + error).all()
