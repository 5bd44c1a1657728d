"""The demonstration does what it says: real processes, the four files, a model as good as the pooled one."""

from __future__ import annotations

import csv
from pathlib import Path

from click.testing import CliRunner

from colonnade.cli import main
from colonnade.demo import MEASURES
from colonnade.result import read_result


def test_demo(tmp_path: Path) -> None:
    out = tmp_path / "demo"
    done = CliRunner().invoke(main, ["demo", "--out", str(out)])
    assert done.exit_code == 0, done.stderr
    result = read_result(out / "result.json")
    assert result.world == "network"
    assert abs(result.metrics["test_auc"] - result.pooled["test_auc"]) < 0.01
    assert abs(result.metrics["test_accuracy"] - result.pooled["test_accuracy"]) < 0.03
    for party in MEASURES:
        assert (out / "parties" / party / "certificates" / f"{party}.key").is_file()
        assert f"{party}.csv" in done.stdout
    for name in ("report.html", "loss.png", "loss.svg"):
        assert (out / name).stat().st_size > 5000
    for said in ("gives away the label", "clinic alone", "so the diagnosis", "try next", "in clear"):
        assert said in done.stdout

    tables = {}
    for party in MEASURES:
        with (out / "data" / f"{party}.csv").open() as file:
            tables[party] = list(csv.DictReader(file))
    ids = {party: [row["patient"] for row in rows] for party, rows in tables.items()}
    assert len({frozenset(each) for each in ids.values()}) == 1  # the same patients
    assert len({tuple(each) for each in ids.values()}) == 4  # each in an order of its own
    assert [party for party, rows in tables.items() if "diagnosis" in rows[0]] == ["clinic"]


def test_demo_leaves_other_folders_alone(tmp_path: Path) -> None:
    (tmp_path / "job.toml").write_text("# mine")
    done = CliRunner().invoke(main, ["demo", "--out", str(tmp_path)])
    assert done.exit_code == 2
    assert (tmp_path / "job.toml").read_text() == "# mine"
    assert len(list(tmp_path.iterdir())) == 1
