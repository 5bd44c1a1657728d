"""Where a page says networks, a job that says nothing of models has them; every other job is as it was."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
from sklearn.datasets import make_moons

from colonnade import VerticalClassifier, job_from
from colonnade.job.presets import NETWORKS, PRESETS
from colonnade.job.writing import as_toml
from colonnade.models.blackbox import Linear

DATA = {"train": "a9a", "parties": 2}
PRIVATE = {"epsilon": 8.0}
NAMES = sorted(name for name, preset in PRESETS.items() if preset.networks and not preset.literal)


@pytest.mark.parametrize("name", NAMES)
def test_a_job_that_says_nothing_of_models_has_small_networks(name: str) -> None:
    terms = {"algorithm": name, "data": DATA, **({"privacy": PRIVATE} if PRESETS[name].private else {})}
    job = job_from(terms)
    assert (job.model.kind, job.model.server.kind) == ("mlp", "mlp")
    assert list(job.model.hidden) == NETWORKS["model"]["hidden"]
    assert job.cascade.optimizer == "adam"
    assert job_from({**terms, "model": {"device": "auto"}}).model.kind == "mlp"


@pytest.mark.parametrize(
    "said",
    [
        {"model": {"kind": "linear"}},
        {"model": {"outputs": 2, "server": {"kind": "linear"}}},
        {"train": {"step": 0.1}},
        {"cascade": {"optimizer": "sgd"}},
    ],
)
def test_a_job_that_says_something_of_them_means_what_it_meant(said: dict[str, Any]) -> None:
    job = job_from({"algorithm": "vafl", "data": DATA, **said})
    assert job.model.kind == "linear"
    assert job.cascade.optimizer == "sgd"
    assert job.train.epochs == 10


@pytest.mark.parametrize("said", [{}, {"model": {"kind": "linear"}}, {"train": {"epochs": 10}}])
@pytest.mark.parametrize("name", ["vafl", "czofo", "vafl-dp"])
def test_a_job_that_is_written_is_the_same_job_again(name: str, said: dict[str, Any]) -> None:
    private = {"privacy": PRIVATE} if PRESETS[name].private else {}
    job = job_from({"algorithm": name, "data": DATA, **private, **said})
    again = job_from(tomllib.loads(as_toml(job)))
    assert again.digest() == job.digest()


def test_a_model_given_as_an_object_brings_no_network_along() -> None:
    X, y = make_moons(200, noise=0.2, random_state=0)
    columns = {"one": [0], "two": [1]}
    models = {party: Linear(1, 1) for party in columns}
    fitted = VerticalClassifier("vafl", columns=columns, model=models, epochs=2, tolerance=0.0).fit(X, y)
    assert len(fitted.predict(X)) == 200
