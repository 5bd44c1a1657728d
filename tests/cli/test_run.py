"""`colonnade run`: what it prints, what it writes, and what it refuses in one line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from colonnade.cli import main
from colonnade.cli.folder import claimed
from colonnade.result import read_result

JOB = """
algorithm = "vfb2-sgd"
[data]
train = "breast-cancer"
parties = 3
active = 2
[train]
epochs = 2
batch = 64
"""
CSV_JOB = """
algorithm = "vfb2-sgd"
[data]
train = "people.csv"
label = "buys"
columns = { bank = ["income"], shop = ["visits"] }
[train]
epochs = 2
"""
PEOPLE = "income,visits,buys\n" + "".join(f"{k % 7},{k % 5},{'yes' if k % 3 else 'no'}\n" for k in range(40))

KEPT = ("sheet.html", "result.json", "job.toml", "models", "test_scores.csv")


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(*arguments: str, job: str = JOB) -> Result:
    Path("job.toml").write_text(job)
    return CliRunner().invoke(main, ["run", "job.toml", *arguments])


def names(folder: str) -> set[str]:
    return {path.name for path in Path(folder).iterdir()}


def test_a_run_prints_a_summary_and_writes_the_result() -> None:
    done = run()
    assert done.exit_code == 0, done.stderr
    for word in (
        "together",
        "alone",
        "base rate",
        "pooled",
        "test accuracy",
        "age of weights",
        "bytes sent",
        "masked sum",
    ):
        assert word in done.stdout
    assert "note" in done.stdout
    assert "gives away the label" in done.stdout
    stored = read_result(Path("runs/job/result.json"))
    assert stored.algorithm == "vfb2-sgd"
    assert stored.cost.epochs == 2
    assert names("runs/job") == {*KEPT}


def test_progress_off_a_terminal_is_the_first_and_the_last_evaluation_of_a_quick_run() -> None:
    lines = run(job=JOB.replace("epochs = 2", "epochs = 4")).stderr.splitlines()
    assert [line.split()[:2] for line in lines] == [["epoch", "1/4"], ["epoch", "4/4"]]


def test_json_is_all_there_is_on_stdout() -> None:
    done = run("--json", "--out", "here")
    assert json.loads(done.stdout) == json.loads(Path("here/result.json").read_text())
    assert done.stderr == ""


def test_world_and_seed_override_the_job() -> None:
    found = json.loads(run("--json", "--world", "simulated", "--seed", "7").stdout)
    assert (found["world"], found["seed"]) == ("simulated", 7)
    assert found["cost"]["virtual_seconds"] > 0


def test_the_simulated_world_repeats_itself() -> None:
    first, second = (json.loads(run("--json", "--world", "simulated").stdout) for _ in range(2))
    assert first["metrics"] == second["metrics"]
    assert first["cost"]["bytes_sent"] == second["cost"]["bytes_sent"]


def test_plot_draws_and_a_later_run_without_it_leaves_no_stale_figure() -> None:
    assert run("--plot").exit_code == 0
    assert names("runs/job") == {*KEPT, "loss.svg"}
    assert run().exit_code == 0
    assert names("runs/job") == {*KEPT}


def test_positive_labels_make_two_classes_of_several() -> None:
    done = run("--json", job=JOB.replace('"breast-cancer"', '"iris"\npositive = [0]'))
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["metrics"]["test_auc"] == 1.0


@pytest.mark.parametrize(
    ("job", "says"),
    [
        ("algorithm = ", ["job.toml", "not valid TOML"]),
        (JOB.replace("batch", "bach"), ["unknown key train.bach", "did you mean train.batch?"]),
        (JOB.replace("64", '"many"'), ["train.batch", "a whole number"]),
        (JOB.replace("vfb2-sgd", "vfb2-sdg"), ["no 'vfb2-sdg'", "did you mean vfb2-sgd?"]),
        (JOB.replace("vfb2-sgd", "vfb-sgd") + "ahead = 4\n", ["train.ahead", "synchronous"]),
        (JOB.replace("active = 2", "active = 4"), ["data.active", "1 to 3"]),
        (JOB.replace("breast-cancer", "breast-cancr"), ["breast-cancr", "breast-cancer"]),
        (JOB.replace('"breast-cancer"', '"nowhere.csv"'), ["nowhere.csv", "no such file"]),
        (CSV_JOB.replace('"visits"', '"vists"'), ["no column 'vists'", "visits"]),
        (CSV_JOB.replace('"buys"', '"bought"'), ["people.csv", "bought"]),
    ],
)
def test_bad_input_is_one_line_and_exit_2(job: str, says: list[str]) -> None:
    Path("people.csv").write_text(PEOPLE)
    assert_refused(run("--json", job=job), says)


def test_a_gap_is_named_by_column_and_row() -> None:
    lines = PEOPLE.splitlines()
    lines[5] = ",1,yes"
    Path("people.csv").write_text("\n".join(lines) + "\n")
    job = CSV_JOB.replace('label = "buys"', 'label = "buys"\nmissing = "error"')
    assert_refused(run(job=job), ["people.csv", "column 'income'", "row 5"])


def test_a_missing_job_file() -> None:
    assert_refused(CliRunner().invoke(main, ["run", "absent.toml"]), ["absent.toml", "no such job file"])


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["run", "--wrold", "local"], ["--wrold"]),
        (["run", "job.toml", "--world", "moon"], ["moon", "simulated"]),
        (["run", "job.toml", "--seed", "-1"], ["--seed"]),
        (["rnu"], ["rnu"]),
    ],
)
def test_a_mistake_on_the_command_line(arguments: list[str], says: list[str]) -> None:
    assert_refused(CliRunner().invoke(main, arguments), says)


def test_somebody_elses_folder_is_not_touched() -> None:
    Path("mine").mkdir()
    Path("mine/thesis.txt").write_text("years of work")
    assert_refused(run("--out", "mine"), ["mine", "not an earlier run"])
    assert [path.name for path in Path("mine").iterdir()] == ["thesis.txt"]
    assert_refused(run("--out", "mine/thesis.txt"), ["this is a file"])
    if Path("/proc").is_dir():  # where nobody can write, not even root
        assert_refused(run("--out", "/proc/here"), ["/proc/here", "cannot be written"])


def test_a_result_that_is_not_ours_is_not_an_earlier_run() -> None:
    Path("other").mkdir()
    Path("other/result.json").write_text('{"winner": "me"}')
    assert_refused(run("--out", "other"), ["not an earlier run"])


def test_an_earlier_run_and_an_empty_folder_are_welcome() -> None:
    Path("empty").mkdir()
    for _ in range(2):
        assert run("--out", "empty").exit_code == 0


def assert_refused(done: Result, says: list[str]) -> None:
    assert done.exit_code == 2, (done.stdout, done.stderr)
    (line,) = done.stderr.splitlines()
    assert line.startswith("colonnade: ")
    for word in says:
        assert word in line
    if done.stdout:  # what a program is told
        assert json.loads(done.stdout) == {
            "error": line.removeprefix("colonnade: "),
            "kind": "usage",
            "code": 2,
        }
    assert not Path("runs").exists()


def test_two_runs_are_not_written_into_one_folder() -> None:
    with claimed(Path("runs/job")):
        second = run()
        assert second.exit_code == 2
        assert second.stderr.splitlines()[-1].endswith(
            "another run is writing there; wait, or choose another --out"
        )
        assert run("--out", "other").exit_code == 0
    assert not Path("runs").exists(), "what was made for a run that wrote nothing is gone again"
    assert run().exit_code == 0
    assert run().exit_code == 0
