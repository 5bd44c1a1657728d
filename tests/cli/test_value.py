"""`colonnade value`: what parties are worth, of a job, of a run's folder, and before anything is trained."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from colonnade.cli import main

JOB = """
algorithm = "lbfgs"
compare = false
[data]
train = "breast-cancer"
parties = 3
"""


def colonnade(*words: str) -> Result:
    return CliRunner().invoke(main, ["value", *words])


def test_a_job_and_the_folder_of_its_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("job.toml").write_text(JOB)
    done = colonnade("job.toml")
    assert done.exit_code == 0, done.stderr
    assert "exact, from all coalitions: 7 trainings" in done.stdout
    lines = [line.split() for line in done.stdout.splitlines() if line.startswith("party-")]
    assert sorted(line[0] for line in lines) == ["party-0", "party-1", "party-2"]
    aucs = [float(line[1]) for line in lines]
    assert aucs == sorted(aucs, reverse=True)
    again = colonnade("runs/job-value", "--json", "--out", "runs/again")
    assert again.exit_code == 0, again.stderr
    values = json.loads(again.stdout)["values"]
    assert values[lines[0][0]]["test_auc"][0] == pytest.approx(aucs[0], abs=1e-4)
    assert Path("runs/again/result.json").is_file()


def test_before_anything_is_trained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("job.toml").write_text(JOB)
    done = colonnade("job.toml", "--before", "--json")
    assert done.exit_code == 0, done.stderr
    found = {each["party"]: each for each in json.loads(done.stdout)}
    for each in found.values():
        assert 0 < each["best_iv"] <= each["iv"]
        assert 0.5 < each["best_auc_at_most"] <= each["auc_at_most"] <= 1
    assert "AUC at most" in colonnade("job.toml", "--before").stdout
    assert not Path("runs").exists()


def test_bad_input_is_one_line(tmp_path: Path) -> None:
    gone = colonnade(str(tmp_path / "none.toml"))
    assert gone.exit_code == 2
    assert "there is no such job file" in gone.stderr
    (tmp_path / "few.toml").write_text(JOB.replace("parties = 3", "parties = 3\ntest_fraction = 0.0"))
    assert colonnade(str(tmp_path / "few.toml"), "--out", str(tmp_path / "out")).exit_code == 2
