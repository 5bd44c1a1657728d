"""`colonnade audit`: from a job or a folder to audit.json and its page."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from colonnade.cli import main
from colonnade.findings import read_findings


def colonnade(*words: str) -> Result:
    return CliRunner().invoke(main, list(words))


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    assert colonnade("example").exit_code == 0
    made = colonnade("new", "bank.csv", "shop.csv", "--label", "default", "--id", "customer", "--clear")
    assert made.exit_code == 0
    return Path("job.toml")


def test_a_job_is_run_attacked_and_reported(job: Path) -> None:
    done = colonnade("audit", str(job), "--out", "first", "--report")
    assert done.exit_code == 0, done.stderr
    assert "100.0% of the labels" in done.stdout
    assert "proves nothing" in " ".join(done.stdout.split())
    assert "no proof of harmlessness" in " ".join(done.stdout.split())
    told = [
        each
        for each in json.loads(Path("first/result.json").read_text())["opened"]
        if (each["hearer"], each["about"]) == ("shop", "labels")
    ]
    assert told
    for each in told:
        assert f"{each['numbers']:,}" in done.stdout
    by = {each.by: each for each in read_findings(Path("first/audit.json"))}
    assert by["shop"].found
    page = Path("first/report.html").read_text()
    assert "labels from theta" in page
    assert "say what a run gives away at least" in page
    # a folder is audited again; a new run in its place has no audit yet
    Path("first/audit.json").unlink()
    assert colonnade("audit", "first", "--strict").exit_code == 1
    assert Path("first/audit.json").is_file()
    assert colonnade("run", str(job), "--out", "first", "--no-pooled").exit_code == 0
    assert not Path("first/audit.json").exists()


def test_mistakes_are_one_line(job: Path) -> None:
    Path("empty").mkdir()
    for words, text in (
        (["none.toml"], "there is no such job file"),
        (["empty"], "is not the folder of a run"),
        ([str(job), "--out", "bank.csv"], "this is a file"),
    ):
        done = colonnade("audit", *words)
        assert (done.exit_code, done.stderr.count("\n"), text in done.stderr) == (2, 1, True), done.stderr


def test_an_audit_says_who_must_put_their_heads_together(tmp_path: Path) -> None:
    job, out = tmp_path / "job.toml", tmp_path / "out"
    job.write_text(
        'algorithm = "vfb2-sgd"\nworld = "local"\n[train]\nepochs = 1\n'
        '[secure]\nlabels = "blind"\n'
        '[data]\ntrain = "breast-cancer"\nparties = 3\nactive = 1\n'
    )
    done = colonnade("audit", str(job), "--out", str(out))
    assert done.exit_code == 0, done.stderr
    rows = {each.attack: each for each in read_findings(out / "audit.json")}
    assert rows["more than the total of a sum, together"].success == "nothing"
    assert rows["labels from products, together"].by == "party-1 and party-2"
    assert rows["columns from products, together"].success == "all columns of a third party"
