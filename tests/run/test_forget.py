"""A model that forgets rows is the one that training without them makes, however it began."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from colonnade.cli import main
from colonnade.cli.folder import store_run
from colonnade.errors import DataError
from colonnade.job import Job, job_from
from colonnade.run.federate import Finished, conclude, federate, order_of, read_and_choose
from colonnade.run.forget import forget, to_the_end, without
from colonnade.run.resolve import compose
from colonnade.run.run_shares import KeptModel

ROWS = 600


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of two companies, and the ids of forty people who want to be forgotten, in another spelling."""
    root = tmp_path_factory.mktemp("forget")
    rng = np.random.default_rng(1)
    X = rng.normal(size=(ROWS, 4))
    y = (X @ [1.0, -1.0, 0.5, 0.2] + rng.normal(size=ROWS) > 0).astype(int)
    ids = np.arange(ROWS)
    np.savetxt(root / "bank.csv", np.c_[ids, X[:, :2], y], "%.8g", ",", header="id,a,b,y", comments="")
    np.savetxt(root / "shop.csv", np.c_[ids[::-1], X[::-1, 2:]], "%.8g", ",", header="id,c,d", comments="")
    (root / "ids.csv").write_text("id\n" + "\n".join(f" {k} " for k in range(0, 400, 10)) + "\n")
    (root / "few.csv").write_text("id\n3\n4\n5\n")
    return root


def job(root: Path, algorithm: str = "lbfgs", **more: Any) -> Job:
    files = {name: str(root / f"{name}.csv") for name in ("bank", "shop")}
    data = {"files": files, "label": "y", "id": "id", "active": ["bank"]}
    return job_from({"algorithm": algorithm, "data": data, "train": {"l2": 1e-3}, **more})


def kept(root: Path, made: Job, name: str) -> Path:
    store_run(root / name, federate(made), plot=False)
    return root / name


def again(root: Path, made: Job) -> Finished:
    """Training without these rows from the beginning, that is without any model that has seen them."""
    composition = compose(to_the_end(made))
    left, _, _ = without(read_and_choose(composition), made, root / "ids.csv")
    return conclude(composition.job, *order_of(composition, left))


@pytest.mark.parametrize("world", ["local", "network"])
def test_it_goes_on_from_the_optimum_to_that_of_the_rows_that_are_left(folder: Path, world: str) -> None:
    made = job(folder, world=world)
    run = kept(folder, made, f"run-{world}")
    done = forget(made, run, folder / "ids.csv")
    assert done.result.forgot is not None
    assert done.result.forgot.start == "optimum"
    assert 10 < done.result.forgot.rows <= 40
    assert done.rows == federate(made).rows - done.result.forgot.rows
    other = again(folder, made)
    assert done.result.metrics["suboptimality"] < 1e-6
    assert done.result.metrics["objective"] == pytest.approx(other.result.metrics["objective"], abs=1e-6)
    for party in ("bank", "shop"):
        np.testing.assert_allclose(
            done.shares[party].weights["w"], other.shares[party].weights["w"], atol=1e-3
        )
    far = [each.result.history[1].loss - other.result.metrics["objective"] for each in (done, other)]
    assert far[0] < far[1] / 5  # the first step leads to where the model was, which is nearer


def test_nothing_of_the_rows_stays_in_scales(folder: Path) -> None:
    made = job(folder)
    done, other = forget(made, kept(folder, made, "run-s"), folder / "ids.csv"), again(folder, made)
    for party in ("bank", "shop"):
        assert done.shares[party].preparation == other.shares[party].preparation


@pytest.mark.parametrize(
    ("algorithm", "more"),
    [
        ("secureboost", {"secure": {"labels": "clear"}, "train": {"epochs": 3}}),
        ("vfb2-svrg", {"train": {"epochs": 3}}),
    ],
)
def test_what_cannot_go_on_is_trained_from_the_beginning(folder: Path, algorithm: str, more: Any) -> None:
    made = job(folder, algorithm, **more)
    done, other = (
        forget(made, kept(folder, made, f"run-{algorithm}"), folder / "ids.csv"),
        again(folder, made),
    )
    assert done.result.forgot is not None
    assert done.result.forgot.start == "beginning"
    assert done.result.metrics["objective"] == pytest.approx(other.result.metrics["objective"], rel=1e-3)


def test_with_noise_it_is_training_without_them_within_the_error_of_noise(folder: Path) -> None:
    made = job(folder, secure={"labels": "blind", "few_rows": True}, compare=False)
    run = kept(folder, made, "run-blind")
    done = forget(made, run, folder / "ids.csv")
    clear = again(folder, job(folder, compare=False))
    rows = done.rows
    for party in ("bank", "shop"):
        w, exact = done.shares[party].weights["w"], clear.shares[party].weights["w"]
        # of a weight of a standardised column: 1 / root of the rows' curvature, a quarter at the most
        error = np.sqrt(1 / (0.1 * rows))
        assert np.abs(np.asarray(w) - np.asarray(exact)).max() < 3 * error


def test_few_rows_are_refused_and_ids_are_needed(folder: Path) -> None:
    made = job(folder)
    run = kept(folder, made, "run-few")
    with pytest.raises(DataError, match="at least 10 are forgotten at once"):
        forget(made, run, folder / "few.csv")
    data = {"train": "breast-cancer", "parties": 2}
    nameless = job_from({"algorithm": "lbfgs", "data": data})
    with pytest.raises(DataError, match="names none"):
        forget(nameless, run, folder / "ids.csv")


def test_the_command_keeps_a_record(folder: Path) -> None:
    made = job(folder)
    run = kept(folder, made, "run-cli")
    done = CliRunner().invoke(main, ["forget", str(run), str(folder / "ids.csv")])
    assert done.exit_code == 0, done.stderr
    assert "still has a model of these" in done.stdout
    result = json.loads((folder / "run-cli-forgot" / "result.json").read_text())
    assert result["forgot"]["of"] == str(run)
    assert len(result["forgot"]["ids"]) == 64
    assert set(KeptModel.read(folder / "run-cli-forgot").shares) == {"bank", "shop"}
    few = CliRunner().invoke(main, ["forget", str(run), str(folder / "few.csv"), "--out", str(folder / "no")])
    assert few.exit_code == 2
    assert not (folder / "no").exists()
    assert CliRunner().invoke(main, ["forget", "nowhere", str(folder / "few.csv")]).exit_code == 2
