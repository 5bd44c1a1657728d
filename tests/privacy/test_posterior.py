"""What many noisy draws say of a label: Bayes' rule, bounded, and from nothing but the draws."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from colonnade.arrays import Floats, Numbers, Rows
from colonnade.losses import LOSSES
from colonnade.privacy.label_noise import NoisyLabels, noisy_labels
from colonnade.privacy.noise import Noise
from colonnade.privacy.posterior import Posterior


class Noted(NoisyLabels):
    """Noisy labels that remember what they told."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.told: list[Floats] = []

    def __call__(self, rows: Rows) -> Floats:
        self.told.append(super().__call__(rows))
        return self.told[-1]


def noted(y: list[float], loss: str, clip: float = 1.0) -> Noted:
    labels = noisy_labels(np.array(y), LOSSES[loss], clip, 1.25, noise=Noise(bytes(32)))
    return Noted(labels.points, labels.grid, labels.draw)


def bayes(draws: Numbers, candidates: Numbers, deviation: float) -> Numbers:
    """The mean of equally likely candidates, by their densities: draws [times, rows, ...]."""
    found = []
    for row in range(draws.shape[1]):
        likely = np.array([norm.pdf(draws[:, row], loc=c, scale=deviation).prod() for c in candidates])
        found.append(np.tensordot(likely / likely.sum(), candidates, axes=1))
    return np.array(found)


@pytest.mark.parametrize("task", ["softmax", "logistic"])
def test_it_is_the_mean_of_the_labels_by_bayes_rule(task: str) -> None:
    labels = noted([0.0, 2.0, 1.0] if task == "softmax" else [1.0, -1.0, 1.0], task)
    believed = Posterior(labels, LOSSES[task], 1.0)
    said = [believed(np.arange(3)) for _ in range(4)]
    candidates = np.eye(3) if task == "softmax" else np.array([1.0, -1.0])
    for times, mean in enumerate(said, start=1):
        expected = bayes(np.array(labels.told[:times]), candidates, labels.grid.deviation)
        np.testing.assert_allclose(mean, expected, atol=1e-12)
        assert np.abs(mean).max() <= 1


def test_numbers_are_averaged_and_stay_within_the_clip() -> None:
    labels = noted([-9.0, 0.3], "squared", 2.0)
    believed = Posterior(labels, LOSSES["squared"], 2.0)
    for times in range(1, 30):
        mean = believed(np.arange(2))
        np.testing.assert_allclose(mean, np.clip(np.mean(labels.told[:times], axis=0), -2, 2), atol=1e-12)


def test_rows_are_apart_and_every_call_is_one_draw_of_each_row() -> None:
    labels = noted([0.0, 1.0, 2.0], "softmax")
    believed = Posterior(labels, LOSSES["softmax"], 1.0)
    first = believed(np.array([0]))
    believed(np.array([1, 2]))
    assert [told.shape for told in labels.told] == [(1, 3), (2, 3)]
    again = believed(np.array([0]))
    draws = np.array([labels.told[0], labels.told[2]])
    np.testing.assert_allclose(again, bayes(draws, np.eye(3), labels.grid.deviation), atol=1e-12)
    assert not np.allclose(first, again)
