"""The guide to adding an algorithm is followed to the letter: its code is read from the page and run."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.oracles.tables import pooled, random_tables, run, weights

from colonnade.errors import JobError
from colonnade.job.presets import PRESETS, Preset
from colonnade.losses import LOSSES
from colonnade.optim.estimators import ESTIMATORS, Remembered
from colonnade.run.registry import CONVERSATIONS

PAGE = Path(__file__).parents[1] / "docs" / "adding-an-algorithm.md"


def shown(name: str) -> Any:
    """What the page's code block that defines `name` makes of it."""
    blocks = re.findall(r"(?:^(?:    .*)?\n)+", PAGE.read_text("utf-8"), re.MULTILINE)
    (block,) = [block for block in blocks if re.search(rf"^    (?:class )?{name}\b", block, re.M)]
    space: dict[str, Any] = {"np": np, "Remembered": Remembered}
    exec(textwrap.dedent(block), space)  # noqa: S102  our own documentation
    return space[name]


def test_a_new_row_is_an_algorithm(monkeypatch: pytest.MonkeyPatch) -> None:
    row = Preset("mine", "a new row", "none", "backward", "sync", "saga")
    monkeypatch.setitem(PRESETS, "mine", row)
    setting = random_tables()
    np.testing.assert_array_equal(weights(run(setting, "mine")), weights(run(setting, "vfb-saga")))


def test_a_new_estimator_is_three_methods(monkeypatch: pytest.MonkeyPatch) -> None:
    setting, train = random_tables(), {"batch": 120, "epochs": 1, "step": 0.5, "l2": 0.0}
    clipped_sgd = shown("Clipped")
    monkeypatch.setitem(ESTIMATORS, "sgd", lambda rows, weights: clipped_sgd())
    X, y = pooled(setting)
    clipped = np.clip(LOSSES["squared"].dz(np.zeros(len(y)), y), -0.5, 0.5)
    done = run(setting, "vfb-sgd", train={**train, "loss": "squared"})
    np.testing.assert_allclose(weights(done), -0.5 * X.T @ clipped / len(y), atol=1e-7)


@pytest.mark.parametrize("world", ["simulated", "local"])
def test_a_new_conversation_is_one_file_and_two_rows(monkeypatch: pytest.MonkeyPatch, world: str) -> None:
    row = Preset("mine", "gradient descent", "none", "descent", "sync")
    assert 'Preset("mine", "gradient descent", "none", "descent", "sync")' in PAGE.read_text("utf-8")
    monkeypatch.setitem(PRESETS, "mine", row)
    monkeypatch.setitem(CONVERSATIONS, "descent", shown("DESCENT"))
    setting = random_tables(test_rows=60)
    with pytest.raises(JobError, match="mine finds no step of its own"):
        run(setting, "mine", world=world, train={"step": "auto"})
    done = run(setting, "mine", world=world, train={"epochs": 50, "step": 1.0, "l2": 0.01})
    X, y = pooled(setting)
    w = np.zeros(X.shape[1])
    for _ in range(50):
        w -= X.T @ LOSSES["logistic"].dz(X @ w, y) / len(y) + 0.01 * w
    np.testing.assert_allclose(weights(done), w, atol=1e-6)
    assert done.result.metrics["test_accuracy"] > 0.9
    assert done.result.cost.bytes_by_kind.keys() >= {"piece", "announce"}
