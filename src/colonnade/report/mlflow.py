"""A finished run as a run of MLflow: the job's keys, the loss by epoch, the final metrics, the files.

It is read from the run's folder, so a run can be logged when it ends or a year later. The folder's
`models/` is left out unless it is asked for: shares of several parties together are the whole model, and a
tracking server is usually read by more people than a run's folder.

MLflow is the extra `mlflow`, imported on use.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from colonnade.errors import JobError
from colonnade.result import Result, read_result

EXPERIMENT = "colonnade"
FILES = ("result.json", "job.toml", "test_scores.csv", "timeline.json", "search.json")
ARTEFACTS = (*FILES, "report.html", "model-card.md")
LONGEST = 500  # characters of a parameter; MLflow's databases refuse longer ones


def log_run(folder: Path, uri: str | None, experiment: str, *, with_models: bool = False) -> str:
    """Log the run in a folder to a tracking server (None: MLflow's own setting); returns MLflow's run id."""
    result = read_result(folder / "result.json")
    client, where = _experiment(uri, experiment)
    run = client.create_run(where, run_name=folder.name, tags=_tags(result)).info.run_id
    for name, value in parameters(result, folder):
        client.log_param(run, name, value[:LONGEST])
    for moment in result.history:
        for name, number in (
            ("loss", moment.shown),
            ("objective_by_epoch", moment.loss),
            ("bytes", moment.bytes),
            *moment.test.items(),
        ):
            client.log_metric(run, name, number, step=moment.epoch)
    for name, number in final_metrics(result).items():
        client.log_metric(run, name, number)
    for name in (*ARTEFACTS, *(["models"] if with_models else [])):
        path = folder / name
        if path.is_dir():
            client.log_artifacts(run, str(path), artifact_path=name)
        elif path.exists():
            client.log_artifact(run, str(path))
    client.set_terminated(run)
    return str(run)


def parameters(result: Result, folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the job's keys as `section.key`, or what the result says of them where the job is not kept."""
    yield from {
        "algorithm": result.algorithm,
        "dataset": result.dataset,
        "parties": ", ".join(result.parties),
        "active": ", ".join(result.active),
        "world": result.world,
        "seed": str(result.seed),
    }.items()
    job = folder / "job.toml"
    if job.is_file():
        for name, value in _flat(tomllib.loads(job.read_text("utf-8"))):
            if "." in name:  # the keys without a section are those above
                yield name, value


def final_metrics(result: Result) -> dict[str, float]:
    """Return metrics of the model and of its pooled twin, and the cost."""
    cost = result.cost
    found = {f"final_{name}": value for name, value in result.metrics.items()}
    found |= {f"pooled_{name}": value for name, value in result.pooled.items()}
    found |= {"seconds": cost.seconds, "rounds": cost.rounds, "bytes_sent": cost.bytes_sent}
    if cost.virtual_seconds is not None:
        found["virtual_seconds"] = cost.virtual_seconds
    if result.privacy.epsilon is not None:
        found["epsilon"] = result.privacy.epsilon
    return found


def _flat(table: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", str(value)


def _tags(result: Result) -> dict[str, str]:
    tags = {"colonnade.version": result.version, "colonnade.secure_sum": result.privacy.secure_sum}
    if result.converged is not None:
        tags["colonnade.converged"] = str(result.converged).lower()
    return tags


def check_mlflow(uri: str) -> None:
    """Refuse to log where MLflow is not installed, or cannot be reached at this address."""
    _experiment(uri, EXPERIMENT)


def _experiment(uri: str | None, name: str) -> tuple[Any, str]:
    """Return a client of the tracking server, and the number of the experiment, which is made if it is not
    there."""
    # MLflow tries seven times more by default, which takes minutes where the address is wrong
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "2")
    try:
        from mlflow import MlflowClient
        from mlflow.exceptions import MlflowException
    except ModuleNotFoundError:
        raise JobError("MLflow is not installed; pip install 'colonnade[mlflow]'") from None
    try:
        client = MlflowClient(tracking_uri=uri)
        known = client.get_experiment_by_name(name)
        return client, str(known.experiment_id if known is not None else client.create_experiment(name))
    except MlflowException as error:
        text = re.sub(r"://[^/@\s]*@", "://", str(error))  # an address may have a password in it
        raise JobError(f"MLflow cannot be used: {text}") from None
