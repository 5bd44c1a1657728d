"""A run in MLflow has the job's keys, the loss by epoch, the metrics and the files of the run's folder."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from colonnade.cli import main
from colonnade.report.mlflow import final_metrics
from colonnade.result import read_result

mlflow = pytest.importorskip("mlflow", reason="the extra mlflow is not installed")

JOB = """
algorithm = "vfb2-saga"
[data]
train = "breast-cancer"
parties = 2
[train]
epochs = 3
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "first.toml").write_text(JOB)
    done = CliRunner().invoke(main, ["run", "first.toml", "--json"])
    assert done.exit_code == 0, done.output
    run = tmp_path / "runs" / "first"
    (run / "job.toml").write_text(JOB)
    return run


@pytest.mark.filterwarnings("default")  # MLflow has some of its own
def test_a_run_is_found_in_mlflow_as_it_was(folder: Path, tmp_path: Path) -> None:
    uri = f"sqlite:///{tmp_path}/m.db"
    done = CliRunner().invoke(main, ["track", str(folder), "--uri", uri, "--json"])
    assert done.exit_code == 0, done.output
    client, result = mlflow.MlflowClient(tracking_uri=uri), read_result(folder / "result.json")
    (run,) = client.search_runs([client.get_experiment_by_name("colonnade").experiment_id])
    assert run.info.status == "FINISHED"
    assert run.data.params["train.epochs"] == "3"
    assert run.data.params["algorithm"] == "vfb2-saga"
    losses = client.get_metric_history(run.info.run_id, "loss")
    assert [(m.step, m.value) for m in losses] == [(m.epoch, m.loss) for m in result.history]
    assert final_metrics(result).items() <= run.data.metrics.items()
    assert {file.path for file in client.list_artifacts(run.info.run_id)} >= {"result.json", "job.toml"}


def test_a_folder_without_a_run_is_refused(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["track", str(tmp_path)])
    assert done.exit_code == 2
    assert "no result.json" in done.stderr
