"""What many noisy draws say of a label: Bayes' rule, bounded, and from nothing but the draws."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from colonnade.arrays import Numbers, Rows
from colonnade.losses import LOSSES
from colonnade.privacy.label_noise import NoisyLabels, label_points
from colonnade.privacy.posterior import Posterior

SIGMA = 2.5


class Noted:
    """A generator of noise that remembers what it gave."""

    def __init__(self) -> None:
        self.rng, self.given = np.random.default_rng(3), list[Numbers]()

    def __call__(self, rows: Rows, draws: Rows, width: int) -> Numbers:
        normal: Numbers = self.rng.standard_normal((len(rows), width))
        self.given.append(normal if width > 1 else normal[:, 0])
        return self.given[-1]


def bayes(draws: Numbers, candidates: Numbers) -> Numbers:
    """The mean of equally likely candidates, by their densities: draws [times, rows, ...]."""
    found = []
    for row in range(draws.shape[1]):
        likely = np.array([norm.pdf(draws[:, row], loc=c, scale=SIGMA).prod() for c in candidates])
        found.append(np.tensordot(likely / likely.sum(), candidates, axes=1))
    return np.array(found)


@pytest.mark.parametrize("task", ["softmax", "logistic"])
def test_it_is_the_mean_of_the_labels_by_bayes_rule(task: str) -> None:
    y = np.array([0.0, 2.0, 1.0]) if task == "softmax" else np.array([1.0, -1.0, 1.0])
    points, _ = label_points(y, LOSSES[task], 1.0, 3)
    noise = Noted()
    believed = Posterior(NoisyLabels(points, SIGMA, noise), LOSSES[task], 1.0)
    rows = np.arange(3)
    said = [believed(rows) for _ in range(4)]
    candidates = np.eye(3) if task == "softmax" else np.array([1.0, -1.0])
    for times, mean in enumerate(said, start=1):
        draws = np.array([points + SIGMA * each for each in noise.given[:times]])
        np.testing.assert_allclose(mean, bayes(draws, candidates), atol=1e-12)
        assert np.abs(mean).max() <= 1


def test_numbers_are_averaged_and_stay_within_the_clip() -> None:
    points, _ = label_points(np.array([-9.0, 0.3]), LOSSES["squared"], 2.0)
    noise = Noted()
    believed = Posterior(NoisyLabels(points, SIGMA, noise), LOSSES["squared"], 2.0)
    for times in range(1, 30):
        mean = believed(np.arange(2))
        np.testing.assert_allclose(
            mean, np.clip(points + SIGMA * np.mean(noise.given[:times], axis=0), -2, 2), atol=1e-12
        )


def test_rows_are_apart_and_every_call_is_one_draw_of_each_row() -> None:
    noise = Noted()
    believed = Posterior(NoisyLabels(np.eye(3), SIGMA, noise), LOSSES["softmax"], 1.0)
    first = believed(np.array([0]))
    believed(np.array([1, 2]))
    assert [given.shape for given in noise.given] == [(1, 3), (2, 3)]
    again = believed(np.array([0]))
    draws = np.array([np.eye(3)[:1] + SIGMA * noise.given[0], np.eye(3)[:1] + SIGMA * noise.given[2]])
    np.testing.assert_allclose(again, bayes(draws, np.eye(3)), atol=1e-12)
    assert not np.allclose(first, again)
