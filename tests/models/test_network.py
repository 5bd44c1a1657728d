"""Networks on torch: where they compute, what they are built from; every form is the same function."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from tests.oracles import split
from tests.oracles.tables import random_tables, run

from colonnade.conversations.cascade.record import CASCADE
from colonnade.conversations.pooling import Pooled
from colonnade.errors import JobError
from colonnade.losses import LOSSES
from colonnade.models import backend
from colonnade.models.network import Layered, cnn, mlp, network_of
from colonnade.run.registry import CONVERSATIONS


@pytest.fixture(autouse=True)
def without_pooled_training(monkeypatch: pytest.MonkeyPatch) -> None:
    """These runs are judged by other means, and Adam on all columns takes seconds."""
    unpooled = replace(CASCADE, pooled=lambda plan, columns: Pooled(0.0, {}))
    monkeypatch.setitem(CONVERSATIONS, "cascade", unpooled)


NETWORKS: dict[str, Any] = {
    "kind": "mlp",
    "hidden": [8],
    "outputs": 4,
    "server": {"kind": "mlp", "hidden": [8]},
}


@pytest.mark.parametrize("name", LOSSES)
def test_a_loss_of_tensors_is_the_loss_of_arrays(name: str) -> None:
    loss, rng = LOSSES[name], np.random.default_rng(0)
    classes = loss.task == "multiclass"
    z = 3 * rng.standard_normal((4, 9, 5 if classes else 1))
    y = rng.integers(0, 5, 9).astype(float) if classes else rng.choice([-1.0, 1.0], 9)
    y = np.abs(y) + rng.integers(0, 3, 9) if loss.label_range else y
    due = loss.value(z if classes else z[..., 0], y)
    found = backend.losses_of(loss, torch.from_numpy(z), torch.from_numpy(y))
    np.testing.assert_allclose(found.numpy(), due, rtol=1e-12)


def test_layers_of_any_name_and_without_a_bias_are_quick_too() -> None:
    rng = np.random.default_rng(1)
    named = torch.nn.Sequential()
    named.add_module("below", torch.nn.Linear(6, 5, bias=False))
    named.add_module("bend", torch.nn.Tanh())
    named.add_module("above", torch.nn.Linear(5, 2))
    model = network_of(named, precision="float64")
    assert isinstance(model, Layered)
    w, C, outputs = model.initial(rng), rng.standard_normal((7, 6)), rng.standard_normal((3, 7, 2))
    for one, found in zip(outputs, model.forward_replaced(w, C, slice(1, 3), outputs), strict=True):
        whole = C.copy()
        whole[:, 1:3] = one
        np.testing.assert_allclose(found, model.forward(w[None], whole)[0], atol=1e-12)
    assert not isinstance(network_of(torch.nn.Sequential(torch.nn.Tanh(), torch.nn.Linear(6, 1))), Layered)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
@pytest.mark.parametrize("model", [NETWORKS, {"server": {"kind": "mlp"}}], ids=["client", "server"])
def test_a_gpu_that_is_not_there_is_an_error_of_the_job(model: dict[str, Any]) -> None:
    with pytest.raises(JobError, match=r"model\.device = 'cuda': torch sees no CUDA device"):
        run(random_tables(parties=2, active=1), "vafl", model={**model, "device": "cuda"})


def test_a_device_without_a_network_is_refused() -> None:
    with pytest.raises(JobError, match=r"model\.device: no model of this job is a network"):
        run(random_tables(parties=2, active=1), "vafl", model={"device": "cuda"})


@pytest.mark.parametrize("algorithm", ["czofo", "vafl", "zoo-vfl"])
def test_every_device_trains_the_same_network(algorithm: str) -> None:
    setting = random_tables(parties=2, active=1, rows=200)
    train = {"epochs": 2, "batch": 32, "step": 0.1, "evaluate_every": 0}
    cascade = {"directions": 10, "forward_bits": 32, "backward_bits": 32}
    here, there = (
        run(setting, algorithm, train=train, cascade=cascade, model={**NETWORKS, "device": device})
        for device in ("cpu", "auto")
    )
    for party, share in here.shares.items():
        for name, w in share.weights.items():
            np.testing.assert_allclose(there.shares[party].weights[name], w, atol=1e-3)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_network_on_a_gpu_computes_what_it_computes_here() -> None:
    here, there = (mlp(6, (5,), 3, "float64", device) for device in ("cpu", "cuda"))
    w = here.initial(np.random.default_rng(0))
    np.testing.assert_array_equal(there.initial(np.random.default_rng(0)), w)
    X, d_out = np.random.default_rng(1).standard_normal((9, 6)), np.ones((9, 3))
    np.testing.assert_allclose(there.forward(w[None], X), here.forward(w[None], X), atol=1e-12)
    np.testing.assert_allclose(there.gradient(w, X, d_out), here.gradient(w, X, d_out), atol=1e-12)


IMAGES: dict[str, Any] = {"kind": "cnn", "shape": [1, 4, 4], "channels": [4, 6], "outputs": 3}


def test_a_convolutional_network_is_torchs_own() -> None:
    rng = np.random.default_rng(2)
    model, X = cnn((2, 8, 5), (3, 4), 6, "float64"), rng.standard_normal((7, 80))
    w, d_out = model.initial(rng), rng.standard_normal((7, 6))
    nn = torch.nn
    module = nn.Sequential(
        nn.Conv2d(2, 3, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(4 * 2 * 1, 6),
    ).double()  # fmt: skip
    split.load(module, w)
    out = module(torch.from_numpy(X).reshape(-1, 2, 8, 5))
    np.testing.assert_allclose(model.forward(w[None], X)[0], out.detach().numpy(), atol=1e-12)
    (out * torch.from_numpy(d_out)).sum().backward()
    due = np.concatenate([p.grad.numpy().ravel() for p in module.parameters() if p.grad is not None])
    np.testing.assert_allclose(model.gradient(w, X, d_out), due, atol=1e-12)
    # zeroth-order replies ask for many parameter vectors at once
    W = w + 0.1 * rng.standard_normal((3, len(w)))
    for one, found in zip(W, model.forward(W, X), strict=True):
        np.testing.assert_allclose(model.forward(one[None], X)[0], found, atol=1e-12)


@pytest.mark.parametrize("algorithm", ["czofo", "split", "zoo-vfl"])
def test_images_are_trained_by_name(algorithm: str) -> None:
    setting = random_tables(parties=2, active=1, rows=800, test_rows=400, columns=32)
    train = {"epochs": 15, "batch": 32, "step": 0.05 if algorithm == "zoo-vfl" else 0.2, "evaluate_every": 0}
    model = {**IMAGES, "channels": [12], "server": {"kind": "linear"}}
    done = run(setting, algorithm, train=train, model=model, cascade={"directions": 60})
    assert done.result.metrics["test_accuracy"] > 0.75


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ({**IMAGES, "shape": [1, 4, 5]}, "images of .1, 4, 5. have 20 numbers, and there are 16 columns"),
        ({**IMAGES, "channels": [4, 4, 4]}, "cannot be halved 3 times"),
        ({**IMAGES, "channels": []}, "give a positive number for every convolution"),
        ({"kind": "cnn"}, "goes with kind = 'cnn'"),
        ({"kind": "mlp", "shape": [1, 4, 4]}, "goes with kind = 'cnn'"),
    ],
    ids=["columns", "halves", "none", "no shape", "no cnn"],
)  # fmt: skip
def test_images_that_cannot_be_are_refused(model: dict[str, Any], said: str) -> None:
    with pytest.raises(JobError, match=said):
        run(random_tables(parties=2, active=1, columns=32), "split", model=model)
