"""Small things that people meet every day: earlier runs, proposed commands, mistyped options, full disks."""

from __future__ import annotations

import errno
import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from colonnade.cli import main
from colonnade.report.summary import NAMES, metric
from colonnade.result import read_result

JOB = """
algorithm = "vfb2-sgd"
[data]
train = "breast-cancer"
parties = 2
[train]
epochs = 1
"""


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("job.toml").write_text(JOB)


def colonnade(*words: str) -> Result:
    return CliRunner().invoke(main, list(words))


def test_a_second_run_keeps_the_first_with_its_report_and_model() -> None:
    for _ in range(2):
        assert colonnade("run", "job.toml", "--report").exit_code == 0
    first = Path("runs/job/report.html").read_text()
    done = colonnade("run", "job.toml", "--seed", "7", "--no-pooled")
    assert "the run that was in runs/job is now in runs/job.2" in done.stderr
    assert not Path("runs/job/report.html").exists()
    assert Path("runs/job.2/report.html").read_text() == first
    for name in ("result.json", "job.toml", "models", "test_scores.csv"):
        assert Path("runs/job.1", name).exists()
    assert colonnade("report", "runs/job.2").exit_code == 0


def test_several_runs_show_the_measures_that_they_have() -> None:
    Path("number.toml").write_text(JOB.replace("breast-cancer", "diabetes"))
    for name in ("job", "number"):
        assert colonnade("run", f"{name}.toml", "--no-pooled").exit_code == 0
    assert colonnade("report", "runs/job", "runs/number", "--out", "both.html").exit_code == 0
    head, *found = _cells(Path("both.html").read_text())
    rows = {Path(row[0]).name: dict(zip(head, row, strict=True)) for row in found}
    results = {name: read_result(Path("runs", name, "result.json")).metrics for name in ("job", "number")}
    for name, keys in (("job", ("test_auc", "test_accuracy")), ("number", ("r2", "rmse"))):
        other = rows[{"job": "number", "number": "job"}[name]]
        for key in keys:
            assert rows[name][NAMES[key]] == metric(key, results[name][key])
            assert other[NAMES[key]] == ""  # the other kind of label has no such figure
    for name, metrics in results.items():
        assert rows[name]["test loss"] == metric("test_loss", metrics["test_loss"])


def _cells(page: str) -> list[list[str]]:
    """Return the rows of the table that has several runs beside each other, its head first."""
    table = next(each for each in re.findall(r"<table.*?</table>", page, flags=re.S) if "test AUC" in each)
    rows = re.findall(r"<tr>(.*?)</tr>", table, flags=re.S)
    return [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, flags=re.S) for row in rows]


def test_files_have_plain_ends_of_lines_and_commands_are_quoted() -> None:
    done = colonnade("example", "my files")
    assert b"\r" not in Path("my files/bank.csv").read_bytes()
    words = shlex.split(done.stdout.splitlines()[-1].removeprefix("next: "))
    made = colonnade(*words[1:], "--out", "my files/my job.toml")
    assert made.exit_code == 0, made.stderr
    command = shlex.split(made.stdout.splitlines()[-1])
    assert command == ["colonnade", "run", "my files/my job.toml", "--report"]
    assert colonnade(*command[1:], "--out", "my run").exit_code == 0
    assert b"\r" not in Path("my run/test_scores.csv").read_bytes()
    assert "colonnade run &#x27;my run/job.toml&#x27;" in Path("my run/report.html").read_text()


@pytest.mark.parametrize(
    ("word", "says"),
    [
        ("--epochs", "it is a key of the job file: [train] epochs = ..."),
        ("--reprot", "did you mean --report?"),
        ("--zzz", "No such option: --zzz;"),
    ],
)
def test_an_option_that_there_is_not(word: str, says: str) -> None:
    done = colonnade("run", "job.toml", word)
    assert done.exit_code == 2
    assert says in done.stderr
    assert done.stderr.count("did you mean") == (word == "--reprot")


def test_ids_that_never_meet_make_no_job() -> None:
    for name, first in (("a", 0), ("b", 500)):
        rows = "".join(f"{first + k},{k % 7}\n" for k in range(60))
        Path(f"{name}.csv").write_text(f"id,{name}\n{rows}")
    done = colonnade("new", "a.csv", "b.csv", "--label", "a", "--id", "id", "--out", "new.toml")
    assert done.exit_code == 2
    assert "no id is in all files: 'id' of a.csv (" in done.stderr
    assert not Path("new.toml").exists()


@pytest.mark.parametrize(("number", "code"), [("EACCES", 2), ("ENOSPC", 2), ("EROFS", 2), ("EIO", 1)])
def test_a_disk_that_does_not_let_us_is_the_users_to_change(
    number: str, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise OSError(getattr(errno, number), "what the system says", "some/file")

    monkeypatch.setattr(click, "echo", fails)
    monkeypatch.setattr("colonnade.cli._say", lambda text, **_: None)
    assert colonnade("algorithms", "--json").exit_code == code


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full here")
@pytest.mark.parametrize("words", [["algorithms"], ["algorithms", "--json"]])
def test_a_device_that_is_full_is_named_in_one_line(words: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "colonnade", *words], stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert done.returncode == 2
    assert "No space left on device" in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) == 1
