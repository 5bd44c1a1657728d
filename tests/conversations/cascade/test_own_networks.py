"""Networks that users bring, by path and as objects, of different sizes, for every framework and task."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.oracles.modules import Residual, top
from tests.oracles.tables import random_tables, run

from colonnade.conversations.cascade.record import CASCADE, EXCHANGE
from colonnade.conversations.pooling import Pooled
from colonnade.models.network import Layered, NeuralNetwork, network_of
from colonnade.run.federate import Tables
from colonnade.run.registry import CONVERSATIONS

FRAMEWORKS = (
    "czofo", "czofo-central", "czofo-coord", "syn-czofo", "split", "vafl", "c-vfl", "zoo-vfl", "syn-zoo-vfl",
)  # fmt: skip
TASKS = {"logistic": {}, "softmax": {"classes": 3}, "squared": {"regression": True}}
BROUGHT: dict[str, Any] = {
    "kind": "torch",
    "path": "tests.oracles.modules:Residual",
    "outputs": 3,
    "parties": {"party1": {"kind": "mlp", "hidden": [5], "outputs": 4}},
    "server": {"kind": "torch", "path": "tests.oracles.modules:top"},
}


@pytest.fixture(autouse=True)
def without_pooled_training(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skip the pooled comparison: Adam on all columns takes seconds, and these tests do not look at it."""
    for record in (CASCADE, EXCHANGE):
        unpooled = replace(record, pooled=lambda plan, columns: Pooled(0.0, {}))
        monkeypatch.setitem(CONVERSATIONS, record.name, unpooled)


def trained(setting: Tables, algorithm: str, loss: str, model: dict[str, Any]) -> Any:
    step = 0.02 if algorithm == "c-vfl" or "zoo" in algorithm else 0.05
    train = {"loss": loss, "epochs": 4, "batch": 32, "step": step, "evaluate_every": 1}
    cascade: dict[str, Any] = {"directions": 10, "server_step": 0.05}
    if "zoo" in algorithm:
        cascade["server"] = "first"
    return run(setting, algorithm, train=train, model=model, cascade=cascade)


@pytest.mark.parametrize("loss", TASKS)
@pytest.mark.parametrize("algorithm", FRAMEWORKS)
def test_modules_by_path_train_under_every_framework(algorithm: str, loss: str) -> None:
    setting = random_tables(parties=3, active=1, rows=320, **TASKS[loss])  # type: ignore[arg-type]
    done = trained(setting, algorithm, loss, BROUGHT)
    sizes = {party: share.weights["w"].size for party, share in done.shares.items()}
    assert sizes == {"party0": 20 + 15, "party1": 25 + 24, "party2": 20 + 15}
    outputs = 3 if loss == "softmax" else 1
    assert done.shares["party0"].weights["w0"].size == 11 * 12 + 24 + 13 * outputs
    history = [moment.loss for moment in done.result.history]
    assert history[-1] < 0.97 * history[0]


@pytest.mark.parametrize("algorithm", ["czofo", "split"])
def test_modules_as_objects_are_the_modules_by_path(algorithm: str) -> None:
    setting = random_tables(parties=2, active=1, rows=160)
    model = {"kind": "torch", "path": BROUGHT["path"], "outputs": 3, "server": BROUGHT["server"]}
    columns = {party: table.X.shape[1] for party, table in setting.train.items()}
    objects = replace(
        setting,
        models={party: NeuralNetwork(Residual(width, 3)) for party, width in columns.items()},
        head=network_of(top(6, 1)),
    )
    assert isinstance(objects.head, Layered)
    named, given = (
        trained(setting, algorithm, "logistic", model),
        trained(objects, algorithm, "logistic", {}),
    )
    for party, share in named.shares.items():
        for name, w in share.weights.items():
            np.testing.assert_array_equal(given.shares[party].weights[name], w)
