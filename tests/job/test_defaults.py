"""Whoever names a data set and an algorithm and nothing else gets a model as good as the pooled one."""

from __future__ import annotations

from typing import Any

import pytest

from colonnade.job import Job, job_from
from colonnade.job.plan import Facts
from colonnade.job.presets import PRESETS
from colonnade.run.federate import federate
from colonnade.run.resolve import compose, resolve

LINEAR = sorted(
    name
    for name, preset in PRESETS.items()
    if preset.conversation in ("backward", "pull") and not preset.literal
)


def job(algorithm: str, dataset: str, **train: Any) -> Job:
    data = {"train": dataset, "parties": 3}
    return job_from({"algorithm": algorithm, "world": "local", "data": data, "train": train})


@pytest.mark.parametrize("name", LINEAR)
@pytest.mark.parametrize(("dataset", "metric"), [("breast-cancer", "test_accuracy"), ("diabetes", "r2")])
def test_defaults_are_enough(name: str, dataset: str, metric: str) -> None:
    result = federate(job(name, dataset)).result
    assert result.metrics[metric] > result.pooled[metric] - 0.02


@pytest.mark.parametrize("name", ["vfb2-svrg", "asysqn-svrg"])
def test_defaults_are_enough_for_several_classes(name: str) -> None:
    result = federate(job(name, "digits")).result
    assert result.metrics["test_accuracy"] > result.pooled["test_accuracy"] - 0.01


@pytest.mark.parametrize("name", LINEAR)
@pytest.mark.parametrize("batch", [352, 256, 177])
def test_no_batch_is_so_short_that_its_noise_spoils_the_automatic_step(name: str, batch: int) -> None:
    """352 of 353 rows: cut as they come, the second batch would be a single row with a whole step."""
    result = federate(job(name, "diabetes", batch=batch, epochs=60)).result
    losses = [moment.loss for moment in result.history]
    assert losses[-1] < 1.1 * result.pooled["objective"]
    assert losses[-1] < 1.05 * min(losses)


@pytest.mark.parametrize(
    ("name", "rows", "batch"),
    [
        ("vfb2-svrg", 100, 8),
        ("vfb2-svrg", 24_000, 60),
        ("vfb2-svrg", 10**6, 256),
        ("asysqn-svrg", 1_000, 10),
        ("asysqn-svrg", 24_000, 240),
        ("asysqn-sgd", 24_000, 60),  # as first order: each block's own H does not make up for fewer steps
        ("fdskl-capped", 100, 256),
        ("asyrevel-gau", 100, 16),
        ("split", 6_400, 64),
        ("c-vfl", 10**6, 256),
    ],
)
def test_the_usual_batch_suits_the_number_of_rows(name: str, rows: int, batch: int) -> None:
    names = ("party-0", "party-1", "party-2")
    facts = Facts(columns=dict.fromkeys(names, 10), label_holders=names, rows=rows, task="binary")
    assert resolve(compose(job(name, "breast-cancer")), facts).pace.batch == batch
    assert resolve(compose(job(name, "breast-cancer", batch=31)), facts).pace.batch == 31


def test_plain_sgd_with_one_h_over_all_blocks_has_larger_batches_than_with_one_for_each() -> None:
    facts = Facts(columns={"a": 10, "b": 10, "c": 10}, label_holders=("a", "b"), rows=24_000, task="binary")
    asked = {
        pairs: job_from(
            {
                "algorithm": "vfb2-sgd",
                "data": {"train": "breast-cancer", "parties": 3},
                "secure": {"labels": "clear"},
                "train": {"direction": "lbfgs"},
                "direction": {"pairs": pairs},
            }
        )
        for pairs in ("joint", "hvp", "batch", "paper")
    }
    batches = {pairs: resolve(compose(each), facts).pace.batch for pairs, each in asked.items()}
    assert batches == {"joint": 240, "hvp": 60, "batch": 60, "paper": 240}


def test_linear_models_have_more_passes_unless_told() -> None:
    assert job("vfb2-sgd", "breast-cancer").train.epochs == 30
    assert job("vfb2-sgd", "breast-cancer", epochs=3).train.epochs == 3
    assert job("asyrevel-gau", "breast-cancer").train.epochs == 10
