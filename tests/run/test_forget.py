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
from colonnade.run.forget import Forgotten, forget, to_the_end, without
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
    done, _ = forget(made, run, folder / "ids.csv")
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
    (done, _), other = forget(made, kept(folder, made, "run-s"), folder / "ids.csv"), again(folder, made)
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
    (done, _), other = (
        forget(made, kept(folder, made, f"run-{algorithm}"), folder / "ids.csv"),
        again(folder, made),
    )
    assert done.result.forgot is not None
    assert done.result.forgot.start == "beginning"
    assert done.result.metrics["objective"] == pytest.approx(other.result.metrics["objective"], rel=1e-3)


def poisoned(root: Path) -> tuple[Path, Path]:
    """Files with test rows of their own, in which 150 rows have the wrong label and are to be forgotten.

    Returned are the folder with all rows and one whose training files never had the wrong ones.
    """
    rng = np.random.default_rng(2)
    X = rng.normal(size=(ROWS, 4))
    X[:150, 0] += 50 * rng.normal(size=150)  # so that scales move as well
    y = (X @ [1.0, -1.0, 0.5, 0.2] + rng.normal(size=ROWS) > 0).astype(int)
    y[:150] = 1 - y[:150]
    folders = root / "all", root / "clean"
    for folder, first in zip(folders, (0, 150), strict=True):
        folder.mkdir(parents=True)
        for name, rows in (("train", np.arange(first, 500)), ("test", np.arange(500, ROWS))):
            bank, shop = np.c_[rows, X[rows, :2], y[rows]], np.c_[rows, X[rows, 2:]]
            np.savetxt(folder / f"bank-{name}.csv", bank, "%.8g", ",", header="id,a,b,y", comments="")
            np.savetxt(folder / f"shop-{name}.csv", shop, "%.8g", ",", header="id,c,d", comments="")
        (folder / "ids.csv").write_text("id\n" + "\n".join(map(str, range(150))) + "\n")
    return folders


def parted(root: Path, algorithm: str = "lbfgs", **more: Any) -> Job:
    train, test = (
        {name: str(root / f"{name}-{part}.csv") for name in ("bank", "shop")} for part in ("train", "test")
    )
    data = {"files": train, "test_files": test, "label": "y", "id": "id", "active": ["bank"]}
    return job_from({"algorithm": algorithm, "data": data, "train": {"l2": 1e-3}, **more})


@pytest.mark.parametrize("algorithm", ["lbfgs", "secureboost"])
def test_it_is_the_model_of_files_that_never_had_these_rows(tmp_path: Path, algorithm: str) -> None:
    dirty, clean = poisoned(tmp_path)
    more: dict[str, Any] = {"secure": {"labels": "clear"}}
    if algorithm == "secureboost":
        more["train"] = {"epochs": 5}
    made = parted(dirty, algorithm, **more)
    run = kept(tmp_path, made, "run")
    done, _ = forget(made, run, dirty / "ids.csv")
    other = federate(to_the_end(parted(clean, algorithm, **more)))
    before = federate(made).result.metrics
    for key in ("objective", "test_loss"):
        assert done.result.metrics[key] == pytest.approx(other.result.metrics[key], abs=1e-6)
        assert abs(before[key] - other.result.metrics[key]) > 1e-3  # these rows mattered


def test_with_noise_it_is_training_without_them_within_the_error_of_noise(tmp_path: Path) -> None:
    dirty, clean = poisoned(tmp_path)
    made = parted(dirty, secure={"labels": "blind", "few_rows": True}, compare=False)
    run = kept(tmp_path, made, "run")
    done, _ = forget(made, run, dirty / "ids.csv")
    exact = federate(parted(clean, secure={"labels": "clear"}, compare=False))
    dirty_one = federate(parted(dirty, secure={"labels": "clear"}, compare=False))
    X, w = _standard(clean), _stacked(exact)
    p = 1 / (1 + np.exp(-X @ w))
    information = (X * (p * (1 - p))[:, None]).T @ X + 1e-3 * len(X) * np.eye(5)
    errors = np.sqrt(np.diag(np.linalg.inv(information)))  # those that people have of rows anyway
    assert (np.abs(_stacked(done) - w) < 4 * errors).all()
    assert (np.abs(_stacked(dirty_one) - w) > 4 * errors).any()


def _stacked(done: Finished) -> Any:
    """All weights, in the order of the columns."""
    return np.concatenate([np.asarray(done.shares[party].weights["w"]) for party in ("bank", "shop")])


def _standard(root: Path) -> Any:
    """The training rows as a run has them, with ones where the intercept is."""
    bank, shop = (
        np.loadtxt(root / f"{name}-train.csv", delimiter=",", skiprows=1) for name in ("bank", "shop")
    )
    X = np.c_[bank[:, 1:3], shop[:, 1:3]]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return np.c_[X[:, :2], np.ones(len(X)), X[:, 2:]]


def test_sets_that_differ_in_a_few_rows_are_refused_over_calls(folder: Path) -> None:
    made = job(folder)
    run = kept(folder, made, "run-calls")
    command = ["forget", str(run), str(folder / "ids.csv"), "--out", str(folder / "first")]
    assert CliRunner().invoke(main, command).exit_code == 0
    known = Forgotten.of(run)
    assert len(known.since) == 1
    assert Forgotten.of(folder / "first").before == known.since[0]
    ids = (folder / "ids.csv").read_text()
    more = folder / "more.csv"
    more.write_text(ids + "1\n2\n3\n")
    again = CliRunner().invoke(main, ["forget", str(run), str(more), "--out", str(folder / "second")])
    assert again.exit_code == 2
    assert "without almost the same rows" in again.stderr
    same = CliRunner().invoke(main, [*command[:-1], str(folder / "third")])
    assert same.exit_code == 0, same.stderr
    assert len(Forgotten.of(run).since) == 1


def test_a_model_that_forgets_twice_has_seen_neither(tmp_path: Path) -> None:
    dirty, clean = poisoned(tmp_path)
    made = parted(dirty, secure={"labels": "clear"})
    run = kept(tmp_path, made, "run")
    for name, ids in (("one", range(70)), ("two", range(60, 150))):
        (tmp_path / f"{name}.csv").write_text("id\n" + "\n".join(map(str, ids)) + "\n")
    for source, name in ((run, "one"), (tmp_path / "one", "two")):
        words = ["forget", str(source), str(tmp_path / f"{name}.csv"), "--out", str(tmp_path / name)]
        done = CliRunner().invoke(main, words)
        assert done.exit_code == 0, done.stderr
    other = federate(to_the_end(parted(clean, secure={"labels": "clear"})))
    result = json.loads((tmp_path / "two" / "result.json").read_text())
    assert result["forgot"]["rows"] == 80  # ten of them it had forgotten before
    assert result["metrics"]["objective"] == pytest.approx(other.result.metrics["objective"], abs=1e-6)
    assert len(Forgotten.of(tmp_path / "two").before) == 150


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
