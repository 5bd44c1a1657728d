"""A server that holds labels and no columns, from a job: by count, by names and by files."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from colonnade.errors import ColonnadeError, DataError, JobError
from colonnade.job import job_from
from colonnade.report.page import page
from colonnade.run.federate import Finished, federate

ROWS = 240
COLUMNS = ("a", "b", "c", "d")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Rows of which every column tells something of the label."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((ROWS, len(COLUMNS)))
    y = np.where(X.sum(axis=1) + 0.3 * rng.standard_normal(ROWS) > 0, "yes", "no")
    lines = [",".join(("id", *COLUMNS, "y"))]
    lines += [",".join([f"r{i}", *(f"{v:.6f}" for v in X[i]), str(y[i])]) for i in range(ROWS)]
    path = tmp_path / "all.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def pieces(table: Path, holders: dict[str, list[str]]) -> dict[str, str]:
    """One file per party with these columns and the id."""
    rows = [line.split(",") for line in table.read_text().splitlines()]
    files = {}
    for party, columns in holders.items():
        where = [rows[0].index(column) for column in ("id", *columns)]
        path = table.with_name(f"{party}.csv")
        path.write_text("\n".join(",".join(row[j] for j in where) for row in rows) + "\n")
        files[party] = str(path)
    return files


def run(
    data: dict[str, Any], algorithm: str = "asyrevel-gau", world: str = "simulated", **more: Any
) -> Finished:
    plain = {
        "algorithm": algorithm,
        "world": world,
        "data": {"label": "y", "id": "id", **data},
        "train": {"epochs": 30, "batch": 32},
        "network": {"latency_ms": 1.0, "deadline_s": 20.0},
        **more,
    }
    return federate(job_from(plain))


def check(done: Finished, server: str, clients: set[str]) -> None:
    result = done.result
    assert set(result.parties) == {server, *clients}
    assert result.active == [server]
    assert set(done.shares[server].weights) == {"w0"}
    assert all(set(done.shares[client].weights) == {"w"} for client in clients)
    assert result.cost.updates_by_party[server] == 0
    assert all(result.cost.updates_by_party[client] > 0 for client in clients)
    # no block, no weights: it takes no steps, and all it sends are replies
    assert result.step[server] == 0.0
    assert set(result.cost.bytes_by_pair[server]) == clients
    assert result.metrics["test_accuracy"] > 0.9
    assert re.search(rf">{server}</t[hd]>.{{0,60}}yes", page(result)) is not None


@pytest.mark.parametrize("world", ["simulated", "local", "network"])
def test_one_more_than_the_counted_parties_is_the_server(table: Path, world: str) -> None:
    done = run({"train": str(table), "parties": 2, "server": "apart"}, world=world)
    check(done, "server", {"party-0", "party-1"})
    assert done.result.cost.rounds == 30 * 2 * -(-round(0.8 * ROWS) // 32)


def test_a_client_that_does_not_know_the_server_s_columns_declares_every_measurement(table: Path) -> None:
    # 5 batches a pass: a quarter of a pass is 2 answers of two clients (10 measurements) and 4 of three (8)
    data = {"train": str(table), "parties": 2, "server": "apart"}
    done = run(data, world="network", train={"epochs": 2, "batch": 39, "evaluate_every": 0.25})
    assert len(done.result.history) == 10


def test_a_server_named_among_the_parties_has_an_empty_list(table: Path) -> None:
    columns = {"left": ["a", "b"], "right": ["d", "c"], "hub": []}
    done = run({"train": str(table), "columns": columns, "active": ["hub"]})
    check(done, "hub", {"left", "right"})


@pytest.mark.parametrize("world", ["simulated", "network"])
def test_a_server_may_have_a_file_with_nothing_but_id_and_label(table: Path, world: str) -> None:
    files = pieces(table, {"hub": ["y"], "left": ["a", "b"], "right": ["c", "d"]})
    check(run({"files": files}, world=world), "hub", {"left", "right"})


def test_the_server_s_own_weights_and_step_are_its_share(table: Path) -> None:
    model = {"outputs": 2, "server": {"kind": "linear"}}
    data = {"train": str(table), "parties": 2, "server": "apart"}
    done = run(data, "czofo", model=model, cascade={"directions": 20})
    assert set(done.shares["server"].weights) == {"w0"}
    assert done.result.step["server"] > 0
    assert done.result.metrics["test_accuracy"] > 0.85


def test_speeds_begin_with_the_server(table: Path) -> None:
    data = {"train": str(table), "parties": 2, "server": "apart"}
    network = {"speeds": [1.0, 1.0, 0.1], "us_per_call": 1000.0}
    updates = run(data, network=network).result.cost.updates_by_party
    assert updates["party-1"] < 0.5 * updates["party-0"]
    with pytest.raises(JobError, match="one positive speed for each of the 3 parties"):
        run(data, network={"speeds": [1.0, 1.0]})


@pytest.mark.parametrize("algorithm", ["vfb2-svrg", "asysqn-svrg", "fdskl-capped"])
def test_an_algorithm_without_a_server_says_so(table: Path, algorithm: str) -> None:
    with pytest.raises(JobError, match=f"server holds no columns, and {algorithm} has no server"):
        run({"train": str(table), "parties": 2, "server": "apart"}, algorithm)


def test_only_the_server_may_hold_nothing(table: Path) -> None:
    columns = {"left": list(COLUMNS), "right": []}
    with pytest.raises(
        DataError, match=r"party 'right' has no columns; only the first active party \('left'\)"
    ):
        run({"train": str(table), "columns": columns, "active": ["left"]})
    files = pieces(table, {"left": [*COLUMNS, "y"], "right": []})
    with pytest.raises(DataError, match="party 'right' has no columns"):
        run({"files": files})
    with pytest.raises(DataError, match="no party has any columns"):
        run({"files": pieces(table, {"hub": ["y"]})})


def test_names_of_parties_that_do_not_exist_are_refused(table: Path) -> None:
    data = {"train": str(table), "parties": 2, "server": "apart"}
    for more, text in (
        (
            {"network": {"faults": {"crash": {"party1": 1.0}}}},
            "network.faults.crash: there is no party 'party1'; did you mean 'party-1'",
        ),
        (
            {"network": {"faults": {"partitions": [{"start": 0.0, "end": 1.0, "side": ["zoo"]}]}}},
            "network.faults.partitions: there is no party 'zoo'; there is server, party-0",
        ),
        (
            {"model": {"parties": {"party_0": {"outputs": 1}}}},
            "model.parties: there is no party 'party_0'; did you mean 'party-0'",
        ),
    ):
        with pytest.raises(ColonnadeError, match=text):
            run(data, **more)


def test_a_label_holder_is_named_once(table: Path) -> None:
    with pytest.raises(DataError, match=r"data\.active: 'party-0' is there twice"):
        run({"train": str(table), "parties": 2, "active": ["party-0", "party-1", "party-0"]})


def test_a_server_apart_goes_with_counted_parties(table: Path) -> None:
    with pytest.raises(JobError, match=r"data.server: goes with parties = N; .* columns = \{server = \[\]"):
        run({"train": str(table), "columns": {"left": list(COLUMNS)}, "server": "apart"})
