"""Mistakes that are typical of a first day: each is one line, exit code 2, and leaves nothing behind."""

from __future__ import annotations

from contextlib import suppress
from math import inf, nan
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from colonnade.cli import main
from colonnade.cli.train import followed
from colonnade.credit.scorecard import Scaling
from colonnade.deploy.session.session import Event
from colonnade.disk import drafted
from colonnade.errors import DataError

ONE_MACHINE = 'algorithm = "lbfgs"\nworld = "local"\n[data]\nfiles = {bank = "bank.csv"}\n'
BETWEEN = 'name = "credit"\nalgorithm = "lbfgs"\n[parties]\nbank = { data = "customers", label = true }\n'


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("people.csv").write_text("age,income,buys\n" + "".join(f"{k},{k % 7},{k % 2}\n" for k in range(30)))
    Path("one.toml").write_text(ONE_MACHINE)
    Path("between.toml").write_text(BETWEEN)
    Path("latin.toml").write_bytes(b"algorithm = '\xe9'\n")
    Path("run").mkdir()
    Path("run/result.json").write_text('{"algorithm": ')


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("report nowhere", "nowhere: there is no result.json"),
        ("track run", "run/result.json: is not a result of this version"),
        ("credit card run --out no/card.md", "no/card.md: there is no folder no"),
        ("credit card run --out run", "run: this is a folder; name a file"),
        ("credit card run", "run/result.json: is not a result of this version"),
        ("credit export run no/model.onnx", "no/model.onnx: there is no folder no"),
        ("predict runs/job people.csv", "runs/job: there is no such folder of a run"),
        ("predict run people.csv --out /proc/x.csv", "/proc/x.csv: cannot be written, /proc does not allow"),
        ("new people.csv --label buys --parties 3", "people.csv has 2 columns for 3 parties; each needs one"),
        ("run between.toml", "this is a job between companies; `colonnade train` proposes it"),
        ("train one.toml", "this is a job for one machine; `colonnade run` runs it"),
        ("run latin.toml", "latin.toml: cannot be read: it is not UTF-8 text"),
        ("run .", ".: cannot be read: Is a directory"),
    ],
)
def test_a_mistake_is_one_line_that_names_it(words: str, told: str) -> None:
    before = sorted(Path().rglob("*"))
    done = CliRunner().invoke(main, words.split())
    assert (done.exit_code, told in done.stderr, done.stderr.count("\n")) == (2, True, 1), done.output
    assert sorted(Path().rglob("*")) == before


@pytest.mark.parametrize(
    ("pdo", "score", "odds"), [(0, 600, 50), (inf, 600, 50), (20, nan, 50), (20, 600, -1)]
)
def test_points_need_numbers_that_mean_something(pdo: float, score: float, odds: float) -> None:
    with pytest.raises(DataError, match="finite base score"):
        Scaling(pdo, score, odds)


def test_a_log_has_the_first_and_the_last_line_of_what_takes_many_steps(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with followed() as tell:
        for event in (Event("asking", 0, 1), *(Event("training", k, 50) for k in range(51)), Event("stored")):
            tell(event)
    assert capsys.readouterr().err.splitlines() == ["asking 0/1", "training 0/50", "training 50/50", "stored"]


def test_the_last_line_is_there_where_a_run_fails(capsys: pytest.CaptureFixture[str]) -> None:
    with suppress(DataError), followed() as tell:
        tell(Event("training", 1, 50))
        tell(Event("training", 7, 50))
        raise DataError("the run is over")
    assert capsys.readouterr().err.splitlines() == ["training 1/50", "training 7/50"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_full_disk_is_named_and_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "scores.csv"
    path.write_text("before")

    def write() -> None:
        with drafted(path) as draft:
            draft.symlink_to("/dev/full")
            draft.write_text("after")

    with pytest.raises(DataError, match=r"scores\.csv: cannot be written: No space left on device"):
        write()
    assert [each.name for each in tmp_path.glob("*scores*")] == ["scores.csv"]
    assert path.read_text() == "before"


def test_what_is_not_written_to_its_end_is_not_there(tmp_path: Path) -> None:
    path = tmp_path / "share.npz"
    with suppress(KeyboardInterrupt), drafted(path) as draft:
        np.savez(draft, w=np.zeros(3))
        assert draft.exists()
        raise KeyboardInterrupt
    assert not list(tmp_path.glob("*share*"))
    with drafted(path) as draft:
        np.savez(draft, w=np.zeros(3))
    assert [each.name for each in tmp_path.glob("*share*")] == ["share.npz"]
