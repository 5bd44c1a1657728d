"""Every key of [data], [model], [privacy] and of a job's top changes the run or is named as without effect.

The other sections are in `test_keys_matter`. Here columns come from a file that has something of everything:
gaps, a number that stands for a gap, categories, rare ones, codes, values far away, weights, ids.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from colonnade.errors import ColonnadeError
from colonnade.job import job_from
from colonnade.job.data_section import Data
from colonnade.job.sections import Job, ModelSpecs, PrivacyTerms, ServerSpec
from colonnade.run.federate import federate
from colonnade.run.resolve import compose

ROWS = 160
DATA: dict[str, Any] = {
    "test_fraction": 0.4, "label": "other", "id": "id", "keys": [{"kind": "integer"}], "positive": ["no"],
    "parties": 3, "columns": {"one": ["amount", "far"], "two": ["town", "code"]}, "active": 2,
    "server": "apart", "separator": ";", "decimal": ",", "thousands": ".", "scale": "minmax",
    "categorical": ["code"], "rare": 30, "missing": "zero", "na_values": [-999],
    "drop": ["amount"], "woe": True, "intercept": (True, False),
    "weight": "w", "exposure": "w",
}  # fmt: skip
ELSEWHERE = {
    "train": "is the file itself",
    "test": "is a file, too: tests/data has it",
    "files": "takes the place of `train`, as `test_files` does",
    "test_files": "takes the place of `test`",
    "encoding": "is how names are read, which no weight shows",
    "memory": "is how much a party may use, whatever comes of it",
    "store": "is where columns lie that do not fit the memory",
}
MODEL: dict[str, Any] = {
    "kind": ("mlp", "linear"), "outputs": 3, "hidden": [5], "shape": [1, 2, 2], "channels": [3],
    "path": "math:sqrt", "command": ["true"], "parameters": 7, "parties": {"party-0": {"kind": "mlp"}},
    "server": {"kind": "linear"},
}  # fmt: skip
SERVER: dict[str, Any] = {
    "kind": "mlp", "hidden": [5], "path": "math:sqrt", "command": ["true"], "parameters": 7,
}  # fmt: skip
PRIVACY: dict[str, Any] = {"mechanism": "labels", "epsilon": 3.0, "delta": 1e-3, "clip": 0.3}
TOP: dict[str, Any] = {"seed": 5, "value": True, "compare": False, "world": "local", "algorithm": "vfb-sgd"}
SECTIONS_OF_THEIR_OWN = {
    "train", "direction", "secure", "network", "kernel", "trees", "cascade", "privacy", "woe", "data",
    "model", "tune", "checkpoint", "engine",
}  # fmt: skip


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with something of everything."""
    rng, file = np.random.default_rng(0), tmp_path_factory.mktemp("keys") / "rows.csv"
    towns = rng.choice(["north", "south", "east", "farm"], ROWS, p=[0.4, 0.3, 0.25, 0.05])
    amount, far, code = rng.normal(50, 9, ROWS), rng.standard_cauchy(ROWS), rng.integers(1, 5, ROWS)
    score = (amount - 50) / 9 + 0.3 * np.tanh(far) + 0.5 * (code == 2)
    with file.open("w", newline="") as stream:
        lines = csv.writer(stream)
        lines.writerow(["id", "amount", "far", "town", "code", "w", "y", "other"])
        for k in range(ROWS):
            value: Any = "" if k % 11 == 0 else -999 if k % 13 == 0 else f"{amount[k]:.3f}"
            said = ["no", "yes"][int(score[k] + rng.normal() > 0)]
            lines.writerow(
                [1000 + k, value, f"{far[k]:.3f}", towns[k], code[k], 1 + k % 3, said, ["a", "b"][k % 2]]
            )
    return file


def merged(plain: dict[str, Any], *more: dict[str, Any]) -> dict[str, Any]:
    """The sections of a job with others laid over them."""
    found = dict(plain)
    for each in more:
        for name, value in each.items():
            both = isinstance(value, dict) and isinstance(found.get(name), dict)
            found[name] = merged(found[name], value) if both else value
    return found


def seen(job: Job) -> bytes:
    """Everything of a run that a user can see, as bytes."""
    done = federate(job)
    kept: list[Any] = [[moment.loss for moment in done.result.history], sorted(done.result.pooled)]
    kept += [done.result.cost.virtual_seconds is None, sorted(done.result.metrics), repr(done.result.worth)]
    kept.append([done.result.active, done.result.cost.bytes_sent])
    for party, share in sorted(done.shares.items()):
        arrays = {key: np.asarray(value).tobytes() for key, value in sorted(share.weights.items())}
        kept.append([party, arrays, share.updates])
    return msgspec.msgpack.encode(kept)


def without_effect(base: dict[str, Any], section: str, keys: dict[str, Any]) -> set[str]:
    """The keys of a section that are accepted, change nothing, and that nobody names."""
    before, found = seen(job_from(base)), set()
    for key, values in keys.items():
        path = f"{section}.{key}".lstrip(".")
        each = values if isinstance(values, tuple) else (values,)
        if all(idle(base, path, section, value, before) for value in each):
            found.add(path)
    return found


def idle(base: dict[str, Any], path: str, section: str, value: Any, before: bytes) -> bool:
    """Whether a value of a key is taken, changes nothing, and is not named."""
    said = value
    for part in reversed(path.split(".")):
        said = {part: said}
    try:
        job = job_from(merged(base, said))
        return not {path, section} & set(compose(job).unused()) and seen(job) == before
    except ColonnadeError:
        return False


def job_of(table: Path, algorithm: str, **sections: Any) -> dict[str, Any]:
    plain: dict[str, Any] = {
        "algorithm": algorithm,
        "world": "simulated",
        "data": {"train": str(table), "label": "y", "parties": 2, "drop": ["id", "other", "w"]},
        "train": {"epochs": 3},
    }
    return merged(plain, sections)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("algorithm", ["lbfgs", pytest.param("secureboost", marks=pytest.mark.slow)])
def test_every_key_of_data_changes_the_run_or_is_named(table: Path, algorithm: str) -> None:
    assert without_effect(job_of(table, algorithm), "data", DATA) == set()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("algorithm", "model"),
    [("vafl", {"kind": "linear"}), ("vafl", {"kind": "mlp", "hidden": [4]}), ("lbfgs", {})],
    ids=["linear", "mlp", "no models"],
)
def test_every_key_of_model_changes_the_run_or_is_named(
    table: Path, algorithm: str, model: dict[str, Any]
) -> None:
    base = job_of(table, algorithm, model=model)
    assert without_effect(base, "model", MODEL) == set()
    assert without_effect(base, "model.server", SERVER) == set()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("algorithm", "privacy"),
    [("vafl", {"mechanism": "gradient", "epsilon": 8.0}), ("vafl", {}), ("lbfgs", {}), ("fdskl", {})],
    ids=["noise", "networks", "linear", "kernel"],
)
def test_every_key_of_privacy_changes_the_run_or_is_named(
    table: Path, algorithm: str, privacy: dict[str, Any]
) -> None:
    base = job_of(table, algorithm, privacy=privacy, model={"kind": "linear"} if algorithm == "vafl" else {})
    assert without_effect(base, "privacy", PRIVACY) == set()


@pytest.mark.filterwarnings("ignore")
def test_every_key_of_the_top_changes_the_run(table: Path) -> None:
    assert without_effect(job_of(table, "vfb-saga", secure={"labels": "clear"}), "", TOP) == set()


def test_every_key_is_tried_or_has_a_reason_not_to_be() -> None:
    assert set(Data.__struct_fields__) == set(DATA) | set(ELSEWHERE)
    assert set(ModelSpecs.__struct_fields__) == set(MODEL) | {"device"}  # which is this machine's business
    assert set(ServerSpec.__struct_fields__) == set(SERVER)
    assert set(PrivacyTerms.__struct_fields__) == set(PRIVACY)
    assert set(Job.__struct_fields__) == set(TOP) | SECTIONS_OF_THEIR_OWN
