"""Poisson and gamma losses, and weights beside labels: derivatives are derivatives, and bounds hold."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import (
    d2_tweedie_score,
    mean_gamma_deviance,
    mean_poisson_deviance,
    r2_score,
    roc_auc_score,
)

from colonnade.losses import LOSSES, Loss, Weighted, loss_for, mean_loss, with_weights
from colonnade.metrics import metrics_of

LOG_LINK = {name: LOSSES[name] for name in ("poisson", "gamma")}
every = pytest.mark.parametrize("loss", LOG_LINK.values(), ids=LOG_LINK.keys())
some = {"z": st.floats(-4, 4), "y": st.floats(0.01, 40), "weight": st.floats(0.0, 5.0)}


@every
@given(**some)
@settings(max_examples=50)
def test_derivatives_are_derivatives_with_and_without_a_weight(
    loss: Loss, z: float, y: float, weight: float
) -> None:
    h, at = 1e-5, np.array([z])
    weighted = Weighted(loss, 1.0)
    for each, label in ((loss, np.array([y])), (weighted, np.array([[y, weight]]))):
        slope = (each.value(at + h, label) - each.value(at - h, label)) / (2 * h)
        theta = each.dz(at, label)
        np.testing.assert_allclose(theta, slope, rtol=1e-4, atol=1e-4)
        bent = (each.dz(at + h, label) - each.dz(at - h, label)) / (2 * h)
        np.testing.assert_allclose(each.bend(theta, np.ones(1), label), bent, rtol=1e-4, atol=1e-4)
        assert each.curvature(theta, label) >= bent - 1e-4


@every
def test_the_value_is_half_of_scikit_learn_s_deviance_and_d2_its_own(loss: Loss) -> None:
    rng = np.random.default_rng(0)
    z, y, weight = rng.standard_normal(50), rng.gamma(2.0, 1.0, 50), rng.uniform(0, 2, 50)
    deviance, power = (mean_poisson_deviance, 1) if loss.name == "poisson" else (mean_gamma_deviance, 2)
    labels = with_weights(y, weight)
    assert 2 * mean_loss(loss, z, labels) == pytest.approx(deviance(y, np.exp(z), sample_weight=weight))
    found = metrics_of(loss, z, labels)
    expected = d2_tweedie_score(y, np.exp(z), sample_weight=weight, power=power)
    assert found["d2"] == pytest.approx(expected)


def test_poisson_takes_a_count_of_zero_and_needs_the_label_to_bend() -> None:
    loss = LOSSES["poisson"]
    assert loss.value(np.array([0.0]), np.array([0.0])).tolist() == [1.0]
    with pytest.raises(TypeError, match="needs the labels"):
        loss.bend(np.ones(1), np.ones(1))


def test_weighted_metrics_are_scikit_learn_s() -> None:
    rng = np.random.default_rng(1)
    z, y, weight = rng.standard_normal(60).round(1), rng.choice([-1.0, 1.0], 60), rng.uniform(0, 3, 60)
    found = metrics_of(LOSSES["logistic"], z, with_weights(y, weight))
    assert found["test_auc"] == pytest.approx(roc_auc_score(y, z, sample_weight=weight))
    assert found["test_accuracy"] == pytest.approx(np.average(np.where(z >= 0, 1, -1) == y, weights=weight))
    numbers = metrics_of(LOSSES["squared"], z, with_weights(y, weight))
    assert numbers["r2"] == pytest.approx(r2_score(y, z, sample_weight=weight))


def test_a_weighted_softmax_weighs_rows_and_not_classes() -> None:
    rng = np.random.default_rng(2)
    z, y, weight = rng.standard_normal((8, 3)), rng.integers(0, 3, 8).astype(float), rng.uniform(0, 2, 8)
    plain, labels = LOSSES["softmax"], with_weights(y, weight)
    loss = loss_for(plain, labels)
    np.testing.assert_allclose(loss.dz(z, labels), weight[:, None] * plain.dz(z, y))
    u = rng.standard_normal((8, 3))
    bent = weight[:, None] * plain.bend(plain.dz(z, y), u)
    np.testing.assert_allclose(loss.bend(loss.dz(z, labels), u, labels), bent, atol=1e-12)


def test_a_weight_of_next_to_nothing_is_no_division_by_zero() -> None:
    loss = Weighted(LOSSES["gamma"], 1.0)
    labels = np.array([[1.0, 5e-324]])
    assert loss.bend(loss.dz(np.zeros(1), labels), np.ones(1), labels).tolist() == [5e-324]
