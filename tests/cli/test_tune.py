"""`colonnade tune`: what it prints and writes, how it goes on, and what it refuses in one line."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from colonnade.cli import main
from colonnade.job import read_job
from colonnade.job.writing import as_toml
from colonnade.result import read_result
from colonnade.run.held_back import HeldBack
from colonnade.run.resolve import compose

pytest.importorskip("optuna", reason="the extra tune is not installed")

JOB = """
algorithm = "lbfgs"
[data]
train = "breast-cancer"
parties = 3
[tune]
folds = 2
[tune.space]
train.l2 = [1e-3, 1.0]
"""


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def tune(*arguments: str, job: str = JOB) -> Result:
    Path("job.toml").write_text(job)
    return CliRunner().invoke(main, ["tune", "job.toml", *arguments])


def test_the_best_setting_is_trained_measured_and_kept_as_a_run_is() -> None:
    done = tune()
    assert done.exit_code == 0, done.stderr
    folder = Path("runs/job-tuned")
    of_a_run = {"result.json", "job.toml", "models", "sheet.html", "test_scores.csv"}
    assert {path.name for path in folder.iterdir()} == of_a_run | {
        "search.json",
        "best.toml",
        "trials.journal",
    }
    search = json.loads((folder / "search.json").read_text())
    assert (search["trainings"], len(search["trials"])) == (6, 3)
    best = read_job(folder / "best.toml")
    assert as_toml(compose(best).job) == as_toml(read_job(folder / "job.toml"))
    chosen = search["trials"][search["best"]]["settings"]
    assert all(best.train.l2 == l2 for l2 in chosen.values())
    stored = read_result(folder / "result.json")
    assert "in 6 trainings on the training rows" in " ".join(stored.privacy.notes)
    assert "the best of 3 settings" in done.stdout
    assert [line.split()[0] for line in done.stderr.splitlines()[1:4]] == ["1/3", "2/3", "3/3"]
    again = CliRunner().invoke(main, ["run", str(folder / "best.toml"), "--json"])
    assert json.loads(again.stdout)["metrics"] == stored.metrics


def test_a_later_run_in_the_folder_leaves_nothing_of_the_search_beside_it() -> None:
    tune()
    done = CliRunner().invoke(main, ["run", "job.toml", "--out", "runs/job-tuned", "--no-pooled"])
    assert done.exit_code == 0, done.stderr
    left = {path.name for path in Path("runs/job-tuned").iterdir()}
    assert not left & {"search.json", "best.toml"}


def test_json_is_all_there_is_on_stdout_and_the_command_line_has_the_last_word() -> None:
    found = json.loads(tune("--json", "--folds", "3", "--metric", "auc", "--no-pooled", "--out", "o").stdout)
    assert (found["search"]["folds"], found["search"]["metric"]) == (3, "auc")
    assert found["result"]["pooled"] == {}


def test_ctrl_c_keeps_what_was_found_and_the_same_command_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    real, calls = HeldBack.measure, [0]

    def interrupted(self: HeldBack, job: Any, fold: Any) -> dict[str, float]:
        calls[0] += 1
        if calls[0] == 4:
            raise KeyboardInterrupt
        return real(self, job, fold)

    monkeypatch.setattr(HeldBack, "measure", interrupted)
    done = tune()
    assert done.exit_code == 130
    assert "the best so far is in runs/job-tuned/best.toml" in done.stderr
    assert {path.name for path in Path("runs/job-tuned").iterdir()} == {
        "search.json", "best.toml", "trials.journal",
    }  # fmt: skip
    done = tune()
    assert done.exit_code == 0, done.stderr
    assert "going on after 2 trials of before" in done.stderr
    assert json.loads(Path("runs/job-tuned/search.json").read_text())["trainings"] == 4 + 4


@pytest.mark.parametrize(
    ("job", "words"),
    [
        (JOB.replace("train.l2", "train.l3"), "tune.space: unknown key train.l3"),
        (JOB.replace("folds = 2", "folds = 1"), "tune.folds: 1 leaves nothing to hold back"),
        (JOB.replace("folds = 2", "folds = 2\nheld_back = 0.2"), "either folds = N or held_back"),
        (JOB.replace("folds = 2", "folds = 400"), "too few for 400 folds"),
        (JOB + "[train]\ntarget = 0.1\n", "train.target: it is counted from the pooled optimum"),
        (JOB + '[privacy]\nmechanism = "labels"\nepsilon = 1.0\n', "set tune.epsilon = 4 to accept"),
    ],
)
def test_what_cannot_be_searched_is_refused_in_one_line_and_leaves_nothing(job: str, words: str) -> None:
    done = tune(job=job)
    assert done.exit_code == 2, done.output
    assert words in done.stderr
    assert not Path("runs").exists()


def test_without_optuna_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    done = tune()
    assert done.exit_code == 2
    assert "pip install 'colonnade[tune]'" in done.stderr


def test_algorithms_are_compared_in_a_table_with_what_each_would_open() -> None:
    job = JOB + '[secure]\nlabels = "clear"\n'
    done = tune("--algorithms", "lbfgs,secureboost,boosted-sum", "--accept", "labels,scores,nodes", job=job)
    assert done.exit_code == 0, done.stderr
    assert "would open between companies" in done.stdout
    assert "secureboost: scores, labels, nodes" in " ".join(done.stdout.split())
    assert "train.l2" not in done.stdout
    search = json.loads(Path("runs/job-tuned/search.json").read_text())
    assert set(search["opens"]) >= {"lbfgs", "secureboost"}
    assert read_job(Path("runs/job-tuned/best.toml")).algorithm in search["opens"]
