"""Private replies: the budget is kept, reported and enforced; what cannot be private is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from msgspec import structs
from tests.oracles.tables import random_job, random_tables, run

from colonnade.errors import Diverged, JobError
from colonnade.losses import Logistic
from colonnade.models.blackbox import Linear
from colonnade.optim.replies import Head
from colonnade.privacy import accountant
from colonnade.privacy.accountant import Budget
from colonnade.privacy.label_noise import NoisyLabels
from colonnade.privacy.noise import Noise
from colonnade.privacy.posterior import Posterior
from colonnade.run.federate import run_tables

TERMS = {"mechanism": "scalar", "epsilon": 2.0, "delta": 1e-5, "clip": 1.0}


@pytest.mark.parametrize("algorithm", ["asyrevel-gau", "synrevel-uni"])
def test_epsilon_is_spent_and_reported_and_never_exceeded(algorithm: str) -> None:
    setting = random_tables(parties=3, active=1, rows=400, test_rows=100)
    train = {"epochs": 10, "batch": 100, "step": 0.2}
    done = run(setting, algorithm, train=train, privacy=TERMS, cascade={"directions": 2})
    spent = done.result.privacy
    assert (spent.mechanism, spent.delta) == ("scalar", 1e-5)
    assert spent.epsilon is not None
    assert 1.7 < spent.epsilon <= 2.0 + 1e-3
    assert done.result.cost.rounds == 10 * 4 * 3
    assert any("differentially private" in note for note in done.result.privacy.notes)


def test_training_stops_before_the_budget_would_be_exceeded(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = Budget.plan

    def stingy(epsilon: float, delta: float, allowed: int, rows: int) -> Budget:
        return plan(epsilon, delta, 4, rows)  # the run has 3 parties and 10 epochs: 30 replies a row

    monkeypatch.setattr(accountant.Budget, "plan", staticmethod(stingy))
    setting = random_tables(parties=3, active=1, rows=400)
    done = run(setting, "synrevel-gau", train={"epochs": 10, "batch": 100}, privacy=TERMS)
    # one epoch is three replies a row; a second one would need three more, and only one is left
    assert done.result.cost.rounds == 4 * 3
    assert done.result.privacy.epsilon is not None
    assert done.result.privacy.epsilon < 2.0


def test_noise_is_what_makes_two_runs_of_one_seed_differ() -> None:
    setting = random_tables(parties=2, active=1, rows=200)
    losses = {
        name: [
            run(setting, "synrevel-gau", train={"epochs": 2, "batch": 50}, privacy=terms)
            .result.metrics["objective"]
            for _ in range(2)
        ]
        for name, terms in (("exact", {}), ("private", TERMS))
    }  # fmt: skip
    assert losses["exact"][0] == losses["exact"][1]
    assert losses["private"][0] != losses["private"][1]


def test_more_epsilon_is_a_better_model() -> None:
    setting = random_tables(parties=2, active=1, rows=2000)
    train = {"epochs": 10, "batch": 500, "step": 0.5}
    found = [
        run(setting, "synrevel-gau", train=train, privacy={**TERMS, "epsilon": epsilon}).result.metrics
        for epsilon in (0.02, 8.0)  # far enough apart for chance to make no difference
    ]
    assert found[1]["train_loss"] < 0.8 * found[0]["train_loss"]


GRADIENT = {"mechanism": "gradient", "epsilon": 2.0}
LABELS = {"mechanism": "labels", "epsilon": 2.0}
NETWORK = {"outputs": 2, "server": {"kind": "linear"}}


@pytest.mark.parametrize("algorithm", ["vafl-dp", "split"])
def test_noisy_gradients_spend_what_was_planned_and_no_more(algorithm: str) -> None:
    setting = random_tables(parties=3, active=1, rows=400, test_rows=100)
    train = {"epochs": 10, "batch": 100, "step": 0.01}
    done = run(setting, algorithm, train=train, privacy=GRADIENT, model=NETWORK)
    spent = done.result.privacy
    assert (spent.mechanism, spent.delta) == ("gradient", 1e-5)
    assert spent.epsilon is not None
    # everybody is equally quick here, and one of 32 draws was planned for clients that are not
    least = 1.8 if algorithm == "vafl-dp" else 2.0 - 1e-3
    assert least < spent.epsilon <= 2.0 + 1e-3
    assert done.result.cost.rounds == 10 * 4 * 3


def test_a_synchronous_wave_is_one_draw_for_all_clients_and_the_servers_own_step(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drawn: list[Any] = []
    believed: list[Any] = []

    def noted(kind: Any, log: list[Any]) -> None:
        real = kind.__call__

        def call(self: Any, rows: Any) -> Any:
            log.append(real(self, rows))
            return log[-1]

        monkeypatch.setattr(kind, "__call__", call)

    noted(NoisyLabels, drawn)
    noted(Posterior, believed)
    used: list[Any] = []
    dz = Head.dz

    def told(self: Head, C: Any, y: Any) -> Any:
        if self.soft:  # and not the pooled model that a run is compared with
            used.append(y)
        return dz(self, C, y)

    monkeypatch.setattr(Head, "dz", told)
    setting = random_tables(parties=3, active=1, rows=100)
    run(setting, "split", train={"epochs": 2, "batch": 50, "step": 0.01}, privacy=GRADIENT, model=NETWORK)
    assert len(drawn) == len(believed) == 2 * 2
    # three replies and one step of the server's own, all from the same noisy labels and from nothing else
    assert [id(y) for y in used] == [id(y) for y in believed for _ in range(3 + 1)]


def test_noisy_gradients_stop_before_the_budget_would_be_exceeded(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = Budget.plan
    monkeypatch.setattr(
        accountant.Budget,
        "plan",
        staticmethod(lambda epsilon, delta, allowed, rows: plan(epsilon, delta, 2, rows)),
    )
    setting = random_tables(parties=3, active=1, rows=400)
    train = {"epochs": 10, "batch": 100, "step": 0.01}
    done = run(setting, "split", train=train, privacy=GRADIENT, model=NETWORK)
    assert done.result.cost.rounds == 2 * 4 * 3  # two epochs of the ten
    assert done.result.privacy.epsilon == pytest.approx(2.0, rel=1e-3)


@pytest.mark.parametrize(
    "algorithm",
    [
        "czofo",
        "czofo-coord",
        "c-vfl",
        "split",
        "zoo-vfl",
        "vfb2-svrg",
        "afsvrg-vp",
        "fdskl-capped",
        "pp-svmv",
    ],
)
def test_every_algorithm_trains_on_randomised_labels(algorithm: str) -> None:
    setting = random_tables(parties=3, active=1, rows=400, test_rows=200)
    # hardly regularised, a kernel would learn the noise by heart
    train: dict[str, Any] = {"epochs": 20, "batch": 50, "step": "auto", "l2": 1e-3}
    if algorithm == "afsvrg-vp":
        train["labels_at"] = 1
    done = run(setting, algorithm, train=train, privacy={"mechanism": "labels", "epsilon": 3.0})
    spent = done.result.privacy
    assert (spent.mechanism, spent.epsilon, spent.delta) == ("labels", 3.0, 0.0)
    assert any("randomised before training" in note for note in spent.notes)
    # a label holder that trains its own block alone has a third of the columns
    found = done.result.metrics
    assert found["test_accuracy"] > (0.7 if algorithm == "afsvrg-vp" else 0.8)
    assert found["test_auc"] > (0.8 if algorithm == "afsvrg-vp" else 0.95)
    assert found["test_loss"] < 0.8 * np.log(2)  # the direction alone would do for the two above


def test_a_run_never_computes_with_true_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    setting = random_tables(parties=2, active=1, rows=200)
    train = {"epochs": 2, "batch": 50}
    job = random_job(setting, "vafl", train=train, privacy=LABELS, model=NETWORK)
    seen: list[Any] = []
    real = Logistic.dz

    def noted(self: Logistic, z: Any, y: Any) -> Any:
        seen.append(y.copy())
        return real(self, z, y)

    monkeypatch.setattr(Logistic, "dz", noted)
    monkeypatch.setattr(Noise, "response", lambda self, codes, classes, epsilon: 0 * codes)
    run_tables(structs.replace(job, compare=False, world="local"), setting)
    assert seen
    assert all((y == -1).all() for y in seen)


@pytest.mark.parametrize(
    ("algorithm", "sections", "said"),
    [
        ("tig", {}, "sends a gradient per row"),
        ("czofo", {"privacy": GRADIENT}, "czofo replies with deltas; use 'labels'"),
        ("asyrevel-gau", {"privacy": GRADIENT}, "replies with values; use 'labels'"),
        ("vfb2-sgd", {"privacy": GRADIENT}, "vfb2-sgd has no private replies"),
        ("vafl-dp", {"privacy": {"mechanism": "none"}}, "nothing without one"),
        ("vafl-dp", {"privacy": {}}, "needs a positive epsilon"),
        ("vafl-dp", {"privacy": {"epsilon": 1.0}, "train": {"target": 0.1}}, "drop train.target"),
        ("vafl", {"privacy": LABELS, "train": {"target": 0.1}}, "drop train.target"),
        ("afsvrg-vp", {"privacy": LABELS}, "set train.labels_at = 1"),
        ("asyrevel-gau", {"model": {"server": {"kind": "linear"}}}, "own weights would carry labels"),
        ("asyrevel-gau", {"train": {"target": 0.1}}, "drop train.target"),
        ("vfb2-sgd", {}, "has no private replies"),
        ("asyrevel-gau", {"privacy": {**TERMS, "epsilon": None}}, "needs a positive epsilon"),
        ("asyrevel-gau", {"privacy": {**TERMS, "clip": 0.0}}, "clip must be > 0"),
    ],
)
def test_what_cannot_be_private_is_refused(algorithm: str, sections: dict[str, Any], said: str) -> None:
    setting = random_tables(parties=2, active=1)
    with pytest.raises(JobError, match=said):
        run(setting, algorithm, **{"privacy": TERMS, **sections})


def test_two_holders_of_the_label_would_tell_twice() -> None:
    with pytest.raises(JobError, match=r"set data\.active = 1"):
        run(random_tables(parties=3, active=2), "vfb2-sgd", privacy=LABELS)


def test_a_private_run_does_not_end_because_of_a_loss_that_a_client_can_make_depend_on_a_label() -> None:
    setting = random_tables(parties=2, active=1, rows=100)

    class Loud(Linear):
        """Once trained, claims a huge output for its first row: the loss explodes if its label is -1."""

        def forward(self, W: Any, X: Any) -> Any:
            outputs = super().forward(W, X).copy()
            if len(W) == 1 and W.any():
                outputs[:, 0] = 1e12
            return outputs

    width = setting.train["party1"].X.shape[1]
    loud = replace(setting, models={"party1": Loud(width)})
    train = {"epochs": 1, "batch": 50}
    y = setting.train["party0"].y
    assert y is not None
    y[0] = -1.0
    with pytest.raises(Diverged):
        run(loud, "synrevel-gau", train=train)
    assert run(loud, "synrevel-gau", train=train, privacy=TERMS).result.cost.rounds == 4


def test_an_f0_with_weights_given_as_an_object_is_refused_as_well() -> None:
    setting = replace(random_tables(parties=2, active=1), head=Linear(2, 1))
    with pytest.raises(JobError, match="own weights would carry labels"):
        run(setting, "asyrevel-gau", privacy=TERMS)
