"""Rows with weights: every kind of reply trains as on pooled rows that count so much, against oracles."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.oracles import split
from tests.oracles.tables import pooled, random_tables, run
from tests.oracles.zeroth import batches, zeroth_order

from colonnade.arrays import Floats
from colonnade.conversations.cascade.record import CASCADE
from colonnade.conversations.pooling import Pooled
from colonnade.losses import LOSSES
from colonnade.models.network import NeuralNetwork, mlp
from colonnade.regularizers import REGULARIZERS
from colonnade.run.federate import Finished, Tables
from colonnade.run.registry import CONVERSATIONS

EXACT: dict[str, Any] = {"precision": "float64", "decay": "none"}


@pytest.fixture(autouse=True)
def without_pooled_training(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skip the pooled comparison, which these tests do not look at."""
    unpooled = replace(CASCADE, pooled=lambda plan, columns: Pooled(0.0, {}))
    monkeypatch.setitem(CONVERSATIONS, "cascade", unpooled)


def weighted(setting: Tables) -> tuple[Tables, Floats]:
    """The same tables with weights of mean 1 at the label holder, some rows ten times as heavy as others."""
    weight = np.random.default_rng(7).uniform(0.2, 2.0, setting.train["party0"].rows)
    weight /= weight.mean()
    train = {name: replace(t, weight=weight) if t.y is not None else t for name, t in setting.train.items()}
    return replace(setting, train=train), weight


def same_weights(done: Finished, expected: list[Any], tolerance: float) -> None:
    for party, due in zip(sorted(done.shares), expected, strict=True):
        np.testing.assert_allclose(done.shares[party].weights["w"], due, atol=tolerance)


@pytest.mark.parametrize("smoothing", ["gau", "uni"])
def test_values_are_means_of_weighted_losses(smoothing: str) -> None:
    setting, weight = weighted(random_tables(parties=3, active=1))
    train = {"epochs": 2, "batch": 16, "step": 0.2, "l2": 1e-2}
    done = run(setting, f"synrevel-{smoothing}", train=train, cascade={**EXACT, "directions": 3, "mu": 1e-4})
    _, y = pooled(setting)
    blocks: list[Any] = [setting.train[party].X for party in sorted(setting.train)]
    expected = zeroth_order(
        blocks, y, LOSSES["logistic"], REGULARIZERS["l2"], batches(len(y), 16, 2, 0), l2=1e-2, step=0.2,
        K=3, mu=1e-4, sphere=smoothing == "uni", seed=0, weight=weight,
    )  # fmt: skip
    same_weights(done, expected, 1e-9)


@pytest.mark.parametrize("algorithm", ["split", "syntig"])
def test_gradients_are_those_of_weighted_losses(algorithm: str) -> None:
    setting, weight = weighted(split.networks())
    done = run(
        setting, algorithm, train={"epochs": 3, "batch": 16, "step": 0.3, "l2": 0.0},
        cascade={**EXACT, "server_step": 0.2},
    )  # fmt: skip
    bottoms, head = split.whole(setting)
    _, y = pooled(setting)
    blocks: list[Any] = [setting.train[party].X for party in sorted(setting.train)]
    split.local_steps(
        bottoms, head, blocks, y, batches(160, 16, 3, 0), steps=(0.3, 0.2), local=1, weight=weight
    )
    same_weights(done, [split.flat(module) for module in bottoms], 1e-10)
    np.testing.assert_allclose(done.shares["party0"].weights["w0"], split.flat(head), atol=1e-10)


def test_deltas_are_those_of_weighted_losses() -> None:
    # one client: the order in which several are heard depends on what an answer costs
    setting, weight = weighted(random_tables(parties=1, active=1, rows=160, columns=4))
    below: dict[str, Any] = {"party0": NeuralNetwork(split.bottom(), precision="float64")}
    setting = replace(setting, models=below, head=mlp(3, (8,), 1, "float64"))
    train = {"epochs": 2, "batch": 16, "step": 0.3}
    exact, near = (
        run(setting, name, train=train, cascade={**EXACT, "mu": 1e-4, **bits})
        for name, bits in (("vafl", {}), ("czofo-coord", {"forward_bits": 32, "backward_bits": 32}))
    )
    for name, w in exact.shares["party0"].weights.items():
        np.testing.assert_allclose(near.shares["party0"].weights[name], w, atol=1e-6)
    assert weight.std() > 0.3
