"""Which algorithm: advice for each, names of other libraries, and several on one split."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from sklearn.datasets import load_diabetes

from colonnade import compare
from colonnade.cli import main
from colonnade.errors import DataError, JobError
from colonnade.job import job_from
from colonnade.job.advice import ELSEWHERE, FAMILIES, USE_IT_WHEN
from colonnade.job.files import with_algorithm
from colonnade.job.presets import PRESETS
from colonnade.result import read_result
from colonnade.run.families import each_of
from colonnade.run.resolve import compose
from colonnade.run.search_space import changed

JOB = """
algorithm = "lbfgs"
world = "local"
[data]
train = "breast-cancer"
parties = 3
[secure]
labels = "clear"
[train]
epochs = 3
"""


def colonnade(*words: str) -> Result:
    return CliRunner().invoke(main, list(words))


def test_every_algorithm_says_when_to_use_it() -> None:
    assert set(USE_IT_WHEN) == set(PRESETS)
    assert {*FAMILIES, *ELSEWHERE.values()} <= set(PRESETS)
    assert not set(ELSEWHERE) & set(PRESETS)
    page = Path(__file__).parents[2].joinpath("docs/choose.md").read_text("utf-8")
    shown = colonnade("algorithms").stdout
    for name, words in USE_IT_WHEN.items():
        assert f"| `{name}` | {words} |" in page
        assert name in shown
    assert "you begin, or want a linear model" in shown
    assert "paper" in colonnade("algorithms", "--long").stdout


@pytest.mark.parametrize(
    ("name", "meant"),
    [("xgboost", "secureboost"), ("LightGBM", "secureboost"), ("logistic_regression", "lbfgs")],
)
def test_another_librarys_name_proposes_what_trains_such_a_model(name: str, meant: str) -> None:
    said = f"there is no '{name}' here; '{meant}' trains such models: use it when"
    with pytest.raises(JobError, match=said):
        compose(job_from({"algorithm": name, "data": {"train": "wine", "parties": 2}}))


def test_several_on_one_split_and_what_each_would_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("job.toml").write_text(JOB)
    done = colonnade("compare", "job.toml", "--algorithms", "lbfgs,secureboost", "--json")
    assert done.exit_code == 0, done.stderr
    runs = json.loads(done.stdout)["runs"]
    assert list(runs) == ["lbfgs", "secureboost"]
    for name, result in runs.items():
        folder = Path("runs/job-compared", name)
        assert read_result(folder / "result.json").metrics == result["metrics"]
        assert result["data"]["rows"] == runs["lbfgs"]["data"]["rows"]
    one, other = (Path("runs/job-compared", name, "test_scores.csv").read_text() for name in runs)
    labels = [[line.split(",")[0] for line in text.splitlines()] for text in (one, other)]
    assert labels[0] == labels[1]  # the same test rows
    assert "2 runs" in Path("runs/job-compared/report.html").read_text()
    done = colonnade("compare", "job.toml", "--algorithms", "lbfgs,secureboost", "--accept", "scores,labels")
    assert "secureboost is left out: it would open nodes" in done.stderr
    assert "would open between companies" in done.stdout
    assert "to compare the others, change what these notes name" in done.stderr
    assert colonnade("compare", "job.toml", "--algorithms", "lbfgz").exit_code == 2


def test_a_job_that_hides_labels_takes_what_can_hide_them() -> None:
    data = {"train": "breast-cancer", "parties": 3}
    job = job_from({"algorithm": "vfb2-sgd", "data": data, "secure": {"labels": "blind"}})
    found = dict(each_of(job, ["vfb2-sgd", "secureboost", "split"]))
    assert not isinstance(found["vfb2-sgd"], str)
    assert isinstance(found["split"], str)


@pytest.mark.parametrize("own", ["lbfgs", "vafl", "secureboost", "fdskl"])
@pytest.mark.parametrize("other", ["secureboost", "vfb2-saga", "split", "lbfgs"])
def test_another_algorithm_has_its_own_defaults_and_the_job_s_own_keys(own: str, other: str) -> None:
    said = {
        "data": {"train": "breast-cancer", "parties": 3},
        "train": {"epochs": 7},
        "trees": {"max_depth": 2},
    }
    job = job_from({"algorithm": own, **said})
    assert with_algorithm(job, other) == job_from({"algorithm": other, **said})
    assert changed(job, {"algorithm": other, "train.l2": 0.5}) == job_from(
        {"algorithm": other, **said, "train": {"epochs": 7, "l2": 0.5}}
    )


def test_from_python() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    y = np.where(X[:, 0] * X[:, 2] > 0, "yes", "no")
    clear = {"secure": {"labels": "clear"}}
    columns = {"bank": [0, 1], "shop": [2, 3]}
    rows = compare(X, y, ["lbfgs", "secureboost", "zzz"], columns=columns, job=clear)
    assert [row["algorithm"] for row in rows] == ["secureboost", "lbfgs", "zzz"]
    assert rows[0]["test_auc"] > 0.8 > rows[1]["test_auc"]
    assert rows[0]["test_auc"] > rows[0]["alone"] + 0.2
    assert rows[0]["model"].score(X, y) > 0.8
    assert "labels" in rows[0]["opens"]
    assert "there is no 'zzz'" in rows[2]["why"]
    X, number = load_diabetes(return_X_y=True)
    (row,) = compare(X, number, ["lbfgs"], parties=2, job=clear)
    assert 0.3 < row["r2"] < 0.7
    with pytest.raises(DataError, match="zzz"):
        compare(X, number, ["zzz"], parties=2)
