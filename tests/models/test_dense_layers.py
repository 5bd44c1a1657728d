"""Networks without torch are the same function, with the same gradients; Adam is torch's."""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np
import pytest
from tests.oracles.tables import random_tables, run

from colonnade.job import ModelSpec
from colonnade.losses import LOSSES
from colonnade.models import build
from colonnade.models.blackbox import Differentiable, Perturbations, Perturbing, Replacing
from colonnade.models.dense_layers import DenseLayers
from colonnade.models.network import mlp
from colonnade.optim.adam import Adam
from colonnade.optim.torch_optimizer import TorchOptimizer

WIDTHS = (6, 9, 40, 3)


@pytest.fixture
def without_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Models are built as on a machine on which torch is not installed."""
    found = importlib.util.find_spec
    there = lambda name, *more: None if name == "torch" else found(name, *more)  # noqa: E731
    monkeypatch.setattr(importlib.util, "find_spec", there)


def test_layers_are_those_of_torch() -> None:
    rng = np.random.default_rng(0)
    ours, theirs = DenseLayers(WIDTHS, "float64"), mlp(6, WIDTHS[1:-1], 3, precision="float64")
    assert ours.layout == theirs.layout
    assert ours.parameters == theirs.parameters
    assert isinstance(ours, Differentiable)
    assert isinstance(ours, Replacing)
    assert isinstance(ours, Perturbing)
    W, X = rng.standard_normal((4, ours.parameters)), rng.standard_normal((7, 6))
    d_out, outputs = rng.standard_normal((7, 3)), rng.standard_normal((5, 7, 2))
    np.testing.assert_allclose(ours.forward(W, X), theirs.forward(W, X), atol=1e-12)
    for method in ("gradient", "input_gradient"):
        found, due = (getattr(model, method)(W[0], X, d_out) for model in (ours, theirs))
        np.testing.assert_allclose(found, due, atol=1e-12)
    args = W[0], X, slice(2, 4), outputs
    np.testing.assert_allclose(ours.forward_replaced(*args), theirs.forward_replaced(*args), atol=1e-12)


@pytest.mark.parametrize("shared", [True, False])
def test_losses_along_directions_are_those_of_torch(shared: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("colonnade.models.dense_layers.STRETCH", 100)  # several stretches
    rng = np.random.default_rng(1)
    ours, theirs = DenseLayers(WIDTHS, "float64"), mlp(6, WIDTHS[1:-1], 3, precision="float64")
    w, C, y = rng.standard_normal(ours.parameters), rng.standard_normal((7, 6)), rng.integers(0, 3, 7)
    points = Perturbations(rng.standard_normal((8, 1 if shared else 7, 2)), rng.standard_normal((8, 7)))
    args: Any = (w, C, slice(1, 3), points, LOSSES["softmax"], y.astype(float))
    np.testing.assert_allclose(ours.losses_perturbed(*args), theirs.losses_perturbed(*args), atol=1e-12)


def test_layers_start_as_those_of_torch_do() -> None:
    ours, theirs = DenseLayers((50, 80, 40)), mlp(50, (80,), 40)
    first, second = (model.initial(np.random.default_rng(0)) for model in (ours, theirs))
    assert first.dtype == second.dtype == np.float32
    for at, end in ((0, 4000), (4000, 4080), (4080, 7280)):
        np.testing.assert_allclose(np.abs(first[at:end]).max(), np.abs(second[at:end]).max(), rtol=0.05)
        np.testing.assert_allclose(first[at:end].std(), second[at:end].std(), rtol=0.15)


@pytest.mark.parametrize(("kind", "close"), [(np.float64, 1e-12), (np.float32, 1e-6)])
def test_adam_is_that_of_torch_and_goes_on_from_it(kind: type, close: float) -> None:
    rng = np.random.default_rng(2)
    ours, theirs = Adam(), TorchOptimizer("adam", {})
    assert ours.rate == theirs.rate
    w: Any = rng.standard_normal(20).astype(kind)
    v: Any = w
    state, other = ours.init(w), theirs.init(v)
    assert ours.plain(state) == theirs.plain(other) == {}
    for step in range(60):
        g = rng.standard_normal(20) * 10.0 ** rng.integers(-3, 3)
        w, v = ours.step(state, w, g, 0.1 / (step + 1)), theirs.step(other, v, g, 0.1 / (step + 1))
        if step == 30:  # from here on each goes on from what the other remembers
            kept, told = ours.plain(state), theirs.plain(other)
            assert kept.keys() == told.keys()
            ours.restore(state := ours.init(w), told)
            theirs.restore(other, kept)
    assert w.dtype == kind
    np.testing.assert_allclose(w, v, atol=close)


@pytest.mark.usefixtures("without_torch")
@pytest.mark.parametrize("algorithm", ["vafl", "czofo", "czofo-coord", "c-vfl"])
def test_networks_are_the_default_and_train_without_torch(algorithm: str) -> None:
    assert isinstance(build._named(ModelSpec(kind="mlp"), 3, 2, "cpu"), DenseLayers)
    setting = random_tables(parties=2, active=1, rows=300, test_rows=200)
    done = run(setting, algorithm, train={"epochs": 12, "step": "auto"})
    assert done.job.model.kind == done.job.model.server.kind == "mlp"
    assert done.result.metrics["test_accuracy"] > 0.8
