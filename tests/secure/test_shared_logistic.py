"""The logistic function of shared numbers: near enough, whatever the shares; what is opened is uniform."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from scipy import stats

from colonnade.arrays import Floats, Words
from colonnade.errors import TagReused
from colonnade.secure import shared_logistic
from colonnade.secure.streams import PairStreams, Roles

ROLES = Roles("a", "b", "t")
BITS, SINES = 58, 13


def streams_of(me: str) -> PairStreams:
    peers = [party for party in ROLES if party != me]
    return PairStreams(me, {p: hashlib.sha256(repr(sorted((me, p))).encode()).digest() for p in peers})


def shared(z: Floats, bits: int, seed: int = 0) -> tuple[Words, Words]:
    words = np.array([int(value * 2.0**bits) % 2**64 for value in z], dtype=np.uint64)
    second = np.random.default_rng(seed).integers(0, 2**64, len(z), dtype=np.uint64)
    return words - second, second


def evaluated(z: Floats, tag: int = 0) -> tuple[Floats, shared_logistic.Phases]:
    """The sum of both parts, as numbers, and the phases that both see."""
    first, second = shared(z, BITS)
    a, b = (shared_logistic.LogisticHolder(streams_of(me), ROLES) for me in "ab")
    dealt = shared_logistic.LogisticDealer(streams_of("t"), ROLES).deal(tag, len(z), SINES)
    opened: shared_logistic.Phases = (shared_logistic.phases_of(first, BITS) - a.phases(tag, len(z))) + (
        shared_logistic.phases_of(second, BITS) - b.phases(tag, len(z))
    )
    parts = [shared_logistic.combined(opened, words, 2.0**15) for words in (a.dealt(tag, len(z)), dealt)]
    total: Words = parts[0] + parts[1]
    return total.view(np.int64).astype(np.float64) * 2.0 ** -(15 + SINES), opened


def test_two_parts_add_up_to_the_logistic_function() -> None:
    z = np.linspace(-shared_logistic.REACH, shared_logistic.REACH, 3001)
    found, _ = evaluated(z)
    np.testing.assert_allclose(found, 1 / (1 + np.exp(-z)) - 0.5, atol=2.5e-3)
    assert (
        abs(np.mean(found - shared_logistic.logistic_of(z))) < 2e-5
    )  # cutting words off does not push to one side


def test_the_factors_are_a_least_squares_fit() -> None:
    z = np.linspace(0, shared_logistic.REACH, 4001)
    sines = np.sin(np.outer(z, shared_logistic.MULTIPLES) * (2 * np.pi / shared_logistic.PERIOD))
    fit = np.linalg.lstsq(sines, 1 / (1 + np.exp(-z)) - 0.5, rcond=None)[0]
    np.testing.assert_allclose(shared_logistic.FACTORS, fit, atol=2e-5)


def test_what_is_opened_does_not_depend_on_the_numbers() -> None:
    for z in (np.zeros(60_000), np.full(60_000, 9.3)):
        _, opened = evaluated(z)
        assert stats.chisquare(np.bincount(opened >> 8, minlength=256)).pvalue > 1e-6


def test_no_sine_of_the_table_is_near_a_half() -> None:
    """So every machine rounds it alike, and both parties multiply by the same whole numbers."""
    exact = (
        np.sin(np.arange(shared_logistic.PHASES) * (2 * np.pi / shared_logistic.PHASES))
        * 2.0**shared_logistic.TABLE_BITS
    )
    assert np.abs(exact % 1 - 0.5).min() > 1e-6


def test_words_are_dealt_once() -> None:
    dealer = shared_logistic.LogisticDealer(streams_of("t"), ROLES)
    dealer.deal(3, 5, SINES)
    with pytest.raises(TagReused):
        dealer.deal(3, 5, SINES)
