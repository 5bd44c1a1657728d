"""`colonnade report`: from folders of runs to one page."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.oracles.tables import random_tables, run

from colonnade.cli import main


def report(*words: str) -> Result:
    return CliRunner().invoke(main, ["report", *words])


@pytest.fixture
def runs(tmp_path: Path) -> list[Path]:
    folders = [tmp_path / name for name in ("first", "second")]
    for folder, algorithm in zip(folders, ("vfb2-sgd", "vfb2-saga"), strict=True):
        folder.mkdir()
        run(random_tables(test_rows=20), algorithm).result.write(folder / "result.json")
    return folders


def test_one_run_and_two(runs: list[Path], tmp_path: Path) -> None:
    done = report(str(runs[0]))
    assert (done.exit_code, done.stdout) == (0, f"written: {runs[0] / 'report.html'}\n")
    assert "vfb2-sgd on random" in (runs[0] / "report.html").read_text()
    both = tmp_path / "both.html"
    assert report(*map(str, runs), "--out", str(both)).exit_code == 0
    assert "2 runs" in both.read_text()
    assert report(*map(str, runs), "--out", str(tmp_path / "both.svg")).exit_code == 0


def test_mistakes_are_one_line_and_leave_nothing(runs: list[Path], tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / "result.json").write_text('{"algorithm": 3}')
    before = sorted(tmp_path.rglob("*"))
    for words, text in (
        ([str(tmp_path / "empty")], "there is no result.json; `colonnade run"),
        ([str(tmp_path / "none")], "there is no result.json; `colonnade run"),
        ([str(tmp_path / "odd")], "is not a result of this version of Colonnade"),
        ([str(each) for each in runs], "say with --out"),
        ([str(runs[0]), "--out", str(tmp_path / "x.docx")], "use .html or .svg"),
        ([str(runs[0]), "--out", str(tmp_path / "no" / "x.html")], "there is no folder"),
    ):
        done = report(*words)
        assert (done.exit_code, done.stderr.count("\n"), text in done.stderr) == (2, 1, True), done.stderr
    assert sorted(tmp_path.rglob("*")) == before
