"""The guide to adding an algorithm is followed to the letter: its code is read from the page and run."""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.svm import LinearSVC
from tests.oracles.tables import pooled, random_tables, run, weights

from colonnade import VerticalClassifier
from colonnade.errors import JobError
from colonnade.job.presets import PRESETS, Preset
from colonnade.losses import LOSSES, Loss, UsualLoss
from colonnade.optim.estimators import ESTIMATORS, Coefficients, Estimator
from colonnade.run.registry import CONVERSATIONS

PAGE = Path(__file__).parents[1] / "docs" / "adding-an-algorithm.md"


def shown(name: str) -> Any:
    """What the page's code block that defines `name` makes of it."""
    blocks = re.findall(r"(?:^(?:    .*)?\n)+", PAGE.read_text("utf-8"), re.MULTILINE)
    (block,) = [block for block in blocks if re.search(rf"^    (?:class )?{name}\b", block, re.M)]
    space: dict[str, Any] = {
        "np": np,
        "Coefficients": Coefficients,
        "Estimator": Estimator,
        "UsualLoss": UsualLoss,
        "dataclass": dataclass,
    }
    exec(textwrap.dedent(block), space)  # noqa: S102  our own documentation
    return space[name]


def test_a_new_row_is_an_algorithm(monkeypatch: pytest.MonkeyPatch) -> None:
    row = Preset("mine", "a new row", "none", "backward", "sync", "saga")
    monkeypatch.setitem(PRESETS, "mine", row)
    setting = random_tables()
    np.testing.assert_array_equal(weights(run(setting, "mine")), weights(run(setting, "vfb-saga")))


@pytest.fixture
def squared_hinge(monkeypatch: pytest.MonkeyPatch) -> Loss:
    """The page's loss, in the table."""
    loss: Loss = shown("SquaredHinge")()
    monkeypatch.setitem(LOSSES, loss.name, loss)
    return loss


@pytest.mark.parametrize(
    ("algorithm", "labels", "train", "within"),
    [
        ("lbfgs", None, {"epochs": 200}, 1e-4),
        ("vfb2-svrg", "clear", {"epochs": 60, "step": "auto"}, 1e-3),
        ("vfb2-svrg", "blind", {"epochs": 60, "step": "auto"}, 1e-3),
    ],
)
def test_a_new_loss_is_one_class(
    squared_hinge: Loss, algorithm: str, labels: str | None, train: dict[str, Any], within: float
) -> None:
    setting, l2 = random_tables(parties=3, active=1, rows=240, test_rows=60), 0.1
    secure = {} if labels is None else {"labels": labels}
    given = {**train, "loss": squared_hinge.name, "l2": l2, "tolerance": 0.0}
    done = run(setting, algorithm, train=given, secure=secure)
    X, y = pooled(setting)
    svc = LinearSVC(loss="squared_hinge", C=1 / (l2 * len(y)), fit_intercept=False, tol=1e-9, max_iter=10**5)
    np.testing.assert_allclose(weights(done), svc.fit(X, y).coef_[0], atol=within)
    assert {"test_accuracy", "test_auc"} <= done.result.metrics.keys()
    assert labels == "blind" or any(squared_hinge.theta_tells in note for note in done.result.privacy.notes)


def test_results_of_a_new_loss_know_what_is_predicted(squared_hinge: Loss) -> None:
    X, y = pooled(random_tables())
    classifier = VerticalClassifier(loss=squared_hinge.name).fit(X, y)
    assert classifier.result_.data.task == "binary"
    assert classifier.score(X, y) > 0.9
    assert not hasattr(classifier, "predict_proba")


def test_who_cannot_train_a_new_loss_says_why(squared_hinge: Loss) -> None:
    setting, train = random_tables(parties=3, active=1), {"loss": squared_hinge.name}
    with pytest.raises(JobError, match="its second derivative is 0 on most rows"):
        run(setting, "secureboost", train=train)
    with pytest.raises(JobError, match=r"train\.loss = 'squared_hinge': use 'logistic' or 'squared'"):
        run(setting, "vfb-sgd", train=train, secure={"labels": "blind", "scores": "hidden"})
    with pytest.raises(JobError, match=r"is not one of 'logistic', .*, 'squared_hinge'$"):
        run(setting, "lbfgs", train={"loss": "cubed_hinge"})


def test_networks_train_a_new_loss_and_no_other(squared_hinge: Loss) -> None:
    torch = pytest.importorskip("torch")
    from colonnade.models.backend import losses_of

    z, y = np.linspace(-3, 3, 14).reshape(2, 7, 1), np.where(np.arange(7) % 2, 1.0, -1.0)
    found = losses_of(squared_hinge, torch.from_numpy(z), torch.from_numpy(y))
    np.testing.assert_allclose(found.numpy(), np.maximum(0, 1 - y * z[..., 0]) ** 2)
    models = {"kind": "mlp", "hidden": [8], "outputs": 4, "server": {"kind": "mlp", "hidden": [8]}}
    done = run(
        random_tables(active=1), "czofo", model=models, train={"loss": squared_hinge.name, "epochs": 3}
    )
    assert done.result.history[-1].loss < done.result.history[0].loss


@pytest.mark.parametrize("secure", [{"labels": "clear"}, {"labels": "blind"}], ids=["clear", "blind"])
def test_a_new_estimator_is_one_method_and_one_row(
    monkeypatch: pytest.MonkeyPatch, secure: dict[str, str]
) -> None:
    assert '`"clipped": Clipped`' in PAGE.read_text("utf-8")
    setting = random_tables(parties=3, regression=True)
    train = {"batch": 120, "epochs": 4, "step": 0.5, "l2": 0.0, "loss": "squared", "estimator": "clipped"}
    with pytest.raises(JobError, match=r"train\.estimator: there is no 'clipped'"):
        run(setting, "vfb-sgd", train=train, secure=secure)
    monkeypatch.setitem(ESTIMATORS, "clipped", shown("Clipped"))
    X, y = pooled(setting)
    w = np.zeros(X.shape[1])
    for _ in range(4):
        theta = X @ w - y
        assert np.abs(theta).max() > 0.5
        w -= 0.5 * X.T @ np.clip(theta, -0.5, 0.5) / len(y)
    np.testing.assert_allclose(weights(run(setting, "vfb-sgd", train=train, secure=secure)), w, atol=1e-5)


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
