"""A search chooses what a plain loop over all settings chooses, on training rows alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.preprocessing import StandardScaler

from colonnade.errors import Diverged, JobError
from colonnade.job import Job, Tune, job_from
from colonnade.job.files import with_algorithm
from colonnade.privacy.noise import Noise
from colonnade.run.federate import federate
from colonnade.run.held_back import HeldBack
from colonnade.run.party import Progress
from colonnade.run.search_space import ListedValues, Space, changed, settings_text
from colonnade.run.tune import Tuning, best_job, with_search
from colonnade.search import Search, Trial

pytest.importorskip("optuna", reason="the extra tune is not installed")

ROWS = 240


def table(rng: np.random.Generator, rows: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Two columns that matter and eight that do not, so that a strong penalty is better than none."""
    X = rng.normal(size=(rows, 10))
    return X, (X[:, 0] - X[:, 1] + 2 * rng.normal(size=rows) > 0).astype(int)


def write(path: Path, X: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> None:
    head = ",".join([*(f"x{j}" for j in range(X.shape[1])), "y"])
    lines = [",".join([*(repr(float(v)) for v in row), str(label)]) for row, label in zip(X, y, strict=True)]
    path.write_text("\n".join([head, *lines]) + "\n")


@pytest.fixture
def files(tmp_path: Path) -> Path:
    rng = np.random.default_rng(3)
    write(tmp_path / "train.csv", *table(rng, ROWS))
    write(tmp_path / "test.csv", *table(rng, 60))
    return tmp_path


L2S = [1e-4, 1e-2, 0.1, 1.0]


def job_of(folder: Path, tune: dict[str, Any], **more: Any) -> Job:
    data = {
        "train": str(folder / "train.csv"),
        "test": str(folder / "test.csv"),
        "label": "y",
        "parties": 2,
        "scale": "zscore",
    }
    return job_from({"algorithm": "lbfgs", "data": data, "tune": tune, **more})


def searched(job: Job, folder: Path) -> Tuning:
    tuning = Tuning.of(job, folder / "trials.journal")
    tuning.run()
    return tuning


def test_the_choice_is_that_of_a_plain_loop_of_scikit_learn(files: Path) -> None:
    tuning = searched(job_of(files, {"folds": 4, "space": {"train.l2": L2S}}), files)
    search = tuning.search()
    X, y = _read(files / "train.csv")
    losses = {l2: np.mean([_sklearn(X, y, kept, held, l2) for kept, held in tuning.rows.folds]) for l2 in L2S}
    found = {trial.settings["train.l2"]: trial.value for trial in search.trials if trial.settings}
    assert found == pytest.approx(losses, rel=1e-3)
    assert search.leader is not None
    assert search.leader.settings == {"train.l2": min(losses, key=lambda l2: losses[l2])}
    assert search.trainings == 4 * (len(L2S) + 1)
    assert search.trials[0].settings == {}


def _read(path: Path) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    both = np.loadtxt(path, delimiter=",", skiprows=1)
    return both[:, :-1], both[:, -1]


def _sklearn(X: Any, y: Any, kept: Any, held: Any, l2: float) -> float:
    """The loss of held-back rows: scales are learnt from the rows that are kept."""
    scaler = StandardScaler().fit(X[kept])
    model = LogisticRegression(C=1 / (l2 * len(kept)), tol=1e-10, max_iter=1000)
    model.fit(scaler.transform(X[kept]), y[kept])
    return float(log_loss(y[held], model.predict_proba(scaler.transform(X[held]))[:, 1]))


def test_test_rows_have_no_part_in_the_choice(files: Path) -> None:
    job = job_of(files, {"folds": 2, "space": {"train.l2": L2S}})
    before = searched(job, files).search()
    X, y = _read(files / "test.csv")
    write(files / "test.csv", 100 * X, 1 - y.astype(int))
    after = Tuning.of(job, files / "other.journal").run()
    assert [trial.folds for trial in after.trials] == [trial.folds for trial in before.trials]
    assert after.best is not None
    assert federate(best_job(job, after)).result.metrics["test_accuracy"] < 0.5


def test_a_search_that_was_stopped_goes_on_where_it_was(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = job_of(files, {"folds": 2, "space": {"train.l2": L2S}})
    real, calls = HeldBack.measure, [0]

    def interrupted(
        self: HeldBack, job: Job, fold: Any, progress: Progress = lambda moment: None
    ) -> dict[str, float]:
        calls[0] += 1
        if calls[0] == 6:
            raise KeyboardInterrupt
        return real(self, job, fold, progress)

    with monkeypatch.context() as patch:
        patch.setattr(HeldBack, "measure", interrupted)
        first = Tuning.of(job, files / "trials.journal").run()
    assert first.stopped == "user"
    assert [trial.state for trial in first.trials] == ["done", "done", "stopped"]
    assert first.best is not None
    assert first.trainings == 6  # the one that was cut off has told something, too
    second = Tuning.of(job, files / "trials.journal").run()
    assert second.stopped == ""
    assert sorted(t.settings["train.l2"] for t in second.trials if t.value is not None and t.settings) == L2S
    assert second.trainings == 6 + 2 * 3
    other = Tuning.of(changed(job, {"train.epochs": 7}), files / "trials.journal").search()
    assert other.trials == []


def test_optuna_proposes_where_there_are_ranges_and_the_same_seed_proposes_the_same(files: Path) -> None:
    space = {"train": {"l2": {"low": 1e-4, "high": 1.0, "log": True}, "epochs": {"low": 3, "high": 5}}}
    job = job_of(files, {"trials": 4, "held_back": 0.25, "metric": "auc", "space": space})
    one = Tuning.of(job, files / "one.journal").run()
    two = Tuning.of(job, files / "two.journal").run()
    assert [t.settings for t in one.trials] == [t.settings for t in two.trials]
    assert [t.value for t in one.trials] == [t.value for t in two.trials]
    assert len(one.trials) == 5
    assert one.best is not None
    assert one.best.value == max(trial.value or 0.0 for trial in one.trials)
    for trial in one.trials[1:]:
        assert 1e-4 <= trial.settings["train.l2"] <= 1
        assert isinstance(trial.settings["train.epochs"], int)
        assert trial.trainings == 1


def test_settings_that_make_the_same_job_are_trained_once(files: Path) -> None:
    job = job_of(files, {"folds": 2, "space": {"train.l2": [0.1, 1.0]}}, train={"l2": 0.1})
    search = searched(job, files).search()
    assert [trial.trainings for trial in search.trials] == [2, 0, 2]
    assert search.trials[1].value == search.trials[0].value
    assert search.trials[1].why == "the same as trial 0"


def test_a_setting_that_cannot_be_trained_is_no_end_of_the_search(
    files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = HeldBack.measure

    def astray(self: HeldBack, job: Job, fold: Any) -> dict[str, float]:
        if job.train.l2 == 1.0:
            raise Diverged("the loss is nan")
        return real(self, job, fold)

    monkeypatch.setattr(HeldBack, "measure", astray)
    search = searched(job_of(files, {"folds": 2, "space": {"train.l2": [0.1, 1.0]}}), files).search()
    assert [trial.state for trial in search.trials] == ["done", "done", "failed"]
    assert search.trials[2].why == "the loss is nan"


def test_a_setting_that_is_worse_than_most_after_two_folds_is_left(files: Path) -> None:
    l2s = [0.05, 0.08, 0.1, 0.12, 0.15, 1e-7, 100.0]
    search = searched(job_of(files, {"folds": 4, "space": {"train.l2": l2s}}), files).search()
    last = search.trials[-1]
    assert (last.settings["train.l2"], last.state, last.trainings) == (100.0, "left", 2)
    assert last.value is None
    kept = job_of(files, {"folds": 4, "prune": False, "space": {"train.l2": l2s}})
    assert all(trial.state == "done" for trial in searched(kept, files).search().trials)


def test_class_weights_count_in_training_and_not_in_what_is_measured(files: Path) -> None:
    job = job_of(files, {"folds": 2, "space": {"train.class_weight": [{"1": 5.0}]}})
    rows = HeldBack(job)
    weighted = changed(job, {"train.class_weight": {"1": 5.0}})
    even, leaning = (rows.measure(each, rows.folds[0]) for each in (job, weighted))
    assert leaning["test_loss"] > even["test_loss"] + 0.05
    assert leaning["test_auc"] == pytest.approx(even["test_auc"], abs=0.05)


def test_epsilon_adds_up_and_more_than_was_accepted_is_refused(
    files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # the noise is not what is tested, and with unlucky labels a training may fail
    monkeypatch.setattr(Noise, "response", lambda self, codes, *others: codes)
    privacy = {"mechanism": "labels", "epsilon": 2.0}
    tune: dict[str, Any] = {"folds": 3, "space": {"train.l2": [0.1, 1.0]}}
    with pytest.raises(JobError, match=r"up to 7 of them; set tune.epsilon = 14 to accept"):
        Tuning.of(job_of(files, tune, privacy=privacy), files / "trials.journal")
    assert not (files / "trials.journal").exists()
    job = job_of(files, {**tune, "epsilon": 14.0}, privacy=privacy)
    search = Tuning.of(job, files / "trials.journal").run()
    assert search.epsilon == 14.0  # three settings in two of three folds each, and the model
    result = with_search(federate(best_job(job, search)).result, search)
    assert any("epsilon adds up" in note and "14" in note for note in result.privacy.notes)
    assert any("9 trainings" in note for note in result.privacy.notes)


def test_no_trial_begins_after_the_time_is_up(files: Path) -> None:
    job = job_of(files, {"folds": 2, "timeout_s": 1e-9, "space": {"train.l2": L2S}})
    search = Tuning.of(job, files / "trials.journal").run()
    assert (search.stopped, search.best) == ("time", None)
    with pytest.raises(JobError, match="nothing was found"):
        best_job(job, search)


@pytest.mark.parametrize(
    ("space", "words"),
    [
        ({"train.l2": []}, "train.l2 needs"),
        ({"train.l2": {"low": 1.0, "high": 0.1}}, "give low < high"),
        ({"train.l2": {"low": 0.0, "high": 0.1, "log": True}}, "above 0 if log"),
        ({"train.epoch": [1]}, "unknown key train.epoch; did you mean train.epochs"),
        ({"train.l2": [-1.0]}, "train.l2: -1.0 is not"),
        ({"train.batch": [64]}, "train.batch: lbfgs steps from all rows"),
        ({"train.loss": ["squared"]}, "losses of different kinds"),
        ({"data.train": ["other.csv"]}, "data.train is not searched for"),
        ({"data.test_fraction": [0.1]}, "is not searched for"),
        ({"privacy.epsilon": [1.0]}, "is not searched for"),
        ({"train.l2.x": [1.0]}, "has no key train.l2.x"),
    ],
)
def test_a_space_that_cannot_be_searched_is_refused_before_anything_runs(
    files: Path, space: dict[str, Any], words: str
) -> None:
    with pytest.raises(JobError, match=words):
        Space.of(job_of(files, {"space": space}))


def test_a_metric_that_these_rows_do_not_have_is_refused(files: Path) -> None:
    job = job_of(files, {"metric": "r2", "space": {"train.l2": L2S}})
    with pytest.raises(JobError, match="no r2, but loss, accuracy, auc"):
        Tuning.of(job, files / "trials.journal").run()


@pytest.mark.parametrize(
    ("algorithm", "more", "keys"),
    [
        ("lbfgs", {}, {"train.l2"}),
        ("vfb2-saga", {}, {"train.l2", "train.l1"}),
        ("vfb2-sgd", {}, {"train.l2", "train.l1", "train.batch"}),
        ("asysqn-saga", {}, {"train.l2"}),
        ("fdskl", {}, {"train.l2", "kernel.fraction"}),
        ("fdskl", {"kernel": {"sigma": 3.0}}, {"train.l2", "kernel.sigma"}),
        ("pp-svmv", {}, {"train.l2", "kernel.fraction"}),
        ("asyrevel-gau", {}, {"train.l2", "train.batch", "train.step"}),
        (
            "vafl",
            {"model": {"kind": "mlp", "outputs": 4, "server": {"kind": "mlp"}}},
            {"train.l2", "train.batch", "train.step", "model.hidden", "model.server.hidden"},
        ),
    ],
)
def test_every_kind_of_algorithm_has_a_space_of_its_own(
    files: Path, algorithm: str, more: dict[str, Any], keys: set[str]
) -> None:
    assert set(Space.of(_as(files, algorithm, more)).axes) == keys


def _as(files: Path, algorithm: str, more: dict[str, Any]) -> Job:
    data = {"train": str(files / "train.csv"), "label": "y", "parties": 2}
    return job_from({"algorithm": algorithm, "data": data, **more})


def test_a_space_reads_alike_with_dots_and_as_tables(files: Path) -> None:
    dotted = {"train.l2": [0.1], "model.hidden": [[8], [8, 8]]}
    nested = {"train": {"l2": [0.1]}, "model": {"hidden": [[8], [8, 8]]}}
    job = _as(files, "vafl", {"model": {"kind": "mlp"}})
    one, two = (Space.of(msgspec.structs.replace(job, tune=Tune(space=space))) for space in (dotted, nested))
    assert (
        one == two == Space({"train.l2": ListedValues((0.1,)), "model.hidden": ListedValues(([8], [8, 8]))})
    )
    assert list(one.grid()) == [
        {"train.l2": 0.1, "model.hidden": [8]},
        {"train.l2": 0.1, "model.hidden": [8, 8]},
    ]
    assert settings_text({}) == "the job as it is"


def _search(*values: list[float]) -> Search:
    trials = []
    for number, folds in enumerate(values):
        settings = {"train.l2": float(number)} if number else {}
        mean = float(np.mean(folds))
        trials.append(Trial(number=number, settings=settings, state="done", value=mean, folds=folds))
    known = {"metric": "loss", "folds": 3, "held_back": None, "rows": 90, "seed": 0, "space": {}}
    return msgspec.convert({**known, "trials": trials, "stopped": "", "epsilon": None}, Search)


def test_a_setting_is_chosen_only_beyond_the_noise_of_the_folds() -> None:
    unsure = _search([0.5, 0.6, 0.7], [0.49, 0.63, 0.66])
    assert unsure.leader is unsure.trials[1]
    assert unsure.best is unsure.trials[0]
    assert "beyond chance" in unsure.verdict()
    sure = _search([0.5, 0.6, 0.7], [0.45, 0.56, 0.64])
    assert sure.best is sure.trials[1]
    gains = np.array([0.05, 0.04, 0.06])
    assert sure.gain == pytest.approx(gains.mean())
    assert sure.noise == pytest.approx(gains.std(ddof=1) / 3**0.5)
    assert sure.verdict().startswith("better than the job as it is by 0.05 in loss")
    assert "so it stays" in _search([0.5, 0.6, 0.7], [0.6, 0.7, 0.8]).verdict()


def _crossed(path: Path, rows: int, rng: np.random.Generator) -> None:
    X = rng.normal(size=(rows, 4))
    write(path, X, (X[:, 0] * X[:, 2] > 0).astype(int))


CLEAR = {"labels": "clear"}


def test_algorithms_are_compared_on_held_back_rows_with_what_each_opens(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    for name in ("train.csv", "test.csv"):
        _crossed(tmp_path / name, 300, rng)
    tune = {"folds": 3, "metric": "auc", "space": {"algorithm": ["lbfgs", "secureboost"]}}
    search = searched(job_of(tmp_path, tune, secure=CLEAR), tmp_path).search()
    assert [trial.settings for trial in search.trials] == [{}, {"algorithm": "secureboost"}]
    assert search.best is search.trials[1]  # no linear model knows the sign of a product
    assert list(search.opens) == ["lbfgs", "secureboost"]
    assert set(search.opens["secureboost"]) - set(search.opens["lbfgs"]) == {"nodes"}
    chosen = best_job(job_of(tmp_path, tune, secure=CLEAR), search)
    assert chosen.algorithm == "secureboost"
    trees = job_of(tmp_path, {"folds": 3, "metric": "auc"}, secure=CLEAR)
    trees = with_algorithm(trees, "secureboost")
    alone = [HeldBack(trees).measure(trees, fold)["test_auc"] for fold in HeldBack(trees).folds]
    assert search.trials[1].folds == pytest.approx(alone)


def test_algorithms_that_open_more_than_is_accepted_are_left_out(files: Path) -> None:
    space = {"algorithm": ["secureboost", "vfb2-svrg"]}
    accept = ["labels", "scores", "two-parties"]
    found = Space.of(job_of(files, {"accept": accept, "space": space}, secure=CLEAR))
    assert found.algorithms == ("vfb2-svrg",)
    assert found.left_out == {"secureboost": "it would open nodes"}
    with pytest.raises(JobError, match="nothing to compare lbfgs with; secureboost: it would open nodes"):
        Space.of(job_of(files, {"accept": accept, "space": {"algorithm": ["secureboost"]}}, secure=CLEAR))
    with pytest.raises(JobError, match="a run opens no 'label'"):
        Space.of(job_of(files, {"accept": ["label"], "space": space}, secure=CLEAR))
    with pytest.raises(JobError, match="there is no 'lbfgz'"):
        Space.of(job_of(files, {"space": {"algorithm": ["lbfgz"]}}))


def test_losses_of_different_kinds_are_not_compared(files: Path) -> None:
    tune: dict[str, Any] = {"space": {"algorithm": ["fdskl"]}}
    with pytest.raises(JobError, match='metric = "auc"'):
        Tuning.of(job_of(files, tune, secure=CLEAR), files / "trials.journal")
