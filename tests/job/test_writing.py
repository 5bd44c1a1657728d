"""Limits of single keys that were open, and a job as TOML text."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest

from colonnade.errors import JobError
from colonnade.job import job_from
from colonnade.job.presets import PRESETS
from colonnade.job.writing import as_toml


def plain(**sections: Any) -> dict[str, Any]:
    return {"algorithm": "vfb2-sgd", "data": {"train": "a9a", "parties": 2}, **sections}


def test_stale_rounds_are_not_negative() -> None:
    with pytest.raises(JobError, match=r"train\.stale: -1"):
        job_from(plain(train={"stale": -1}))


def test_a_party_called_model_hides_no_check() -> None:
    with pytest.raises(JobError, match=r"job: model: kind = 'function' needs path"):
        job_from(plain(model={"kind": "function", "parties": {"model": {"kind": "linear"}}}))
    with pytest.raises(JobError, match=r"job: model\.parties\.model: kind = 'program' needs command"):
        job_from(plain(model={"parties": {"model": {"kind": "program"}}}))


@pytest.mark.parametrize("name", ["", ".", "../bank", "a/b", "a\\b"])
def test_a_party_has_a_name_of_which_a_folder_can_be_made(name: str) -> None:
    with pytest.raises(JobError, match="cannot be a party's name"):
        job_from(plain(data={"files": {name: "bank.csv"}, "id": "i", "label": "y"}))


@pytest.mark.parametrize("algorithm", [name for name, preset in PRESETS.items() if not preset.private])
def test_a_job_as_toml_is_the_same_job(algorithm: str) -> None:
    job = job_from(
        {
            "algorithm": algorithm,
            "world": "simulated",
            "data": {"files": {"a b": 'x"\\', "ü": "y\n"}, "id": "i", "label": "y", "active": ["ü"]},
            "train": {"epochs": 10, "l2": 1e-7},
            "cascade": {"directions": 4},
            "model": {"outputs": 3, "parties": {"ü": {"kind": "mlp", "hidden": [3]}}},
            "network": {"faults": {"crash": {"ü": 1.0}}},
        }
    )
    assert job_from(tomllib.loads(as_toml(job))) == job
