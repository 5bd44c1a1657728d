"""A run in MLflow has the job's keys, the loss by epoch, the metrics and the files of the run's folder."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from colonnade.cli import main
from colonnade.report.mlflow import final_metrics
from colonnade.result import Result, read_result

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
    assert [(m.step, m.value) for m in losses] == [(m.epoch, m.train_loss) for m in result.history]
    assert final_metrics(result).items() <= run.data.metrics.items()
    assert {file.path for file in client.list_artifacts(run.info.run_id)} >= {"result.json", "job.toml"}


@pytest.mark.parametrize("uri", ["nonsense://ada:secret@x", "http://ada:secret@127.0.0.1:9"])
def test_an_address_that_cannot_be_used_is_named_before_a_run_and_without_its_password(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, uri: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    (tmp_path / "first.toml").write_text(JOB)
    done = CliRunner().invoke(main, ["run", "first.toml", "--mlflow", uri])
    assert (done.exit_code, "MLflow cannot be used: " in done.stderr) == (2, True), done.output
    assert "secret" not in done.stderr
    assert not (tmp_path / "runs").exists()


def test_a_folder_without_a_run_is_refused(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["track", str(tmp_path)])
    assert done.exit_code == 2
    assert "no result.json" in done.stderr


@pytest.mark.filterwarnings("default")
def test_a_run_is_logged_as_it_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "first.toml").write_text(JOB)
    uri = f"sqlite:///{tmp_path}/m.db"
    done = CliRunner().invoke(main, ["run", "first.toml", "--mlflow", uri, "--report", "--json"])
    assert done.exit_code == 0, done.output
    result = read_result(tmp_path / "runs" / "first" / "result.json")
    assert msgspec.json.decode(done.stdout, type=Result) == result
    client = mlflow.MlflowClient(tracking_uri=uri)
    (run,) = client.search_runs([client.get_experiment_by_name("colonnade").experiment_id])
    assert f"run {run.info.run_id} of experiment colonnade" in done.stderr
    assert final_metrics(result).items() <= run.data.metrics.items()
    assert "report.html" in {file.path for file in client.list_artifacts(run.info.run_id)}


def test_without_mlflow_nothing_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "mlflow", None)
    (tmp_path / "first.toml").write_text(JOB)
    done = CliRunner().invoke(main, ["run", "first.toml", "--mlflow", "sqlite:///m.db"])
    assert done.exit_code == 2
    assert "pip install 'colonnade[mlflow]'" in done.stderr
    assert not (tmp_path / "runs").exists()
