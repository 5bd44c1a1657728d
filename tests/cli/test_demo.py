"""The demonstration does what it says: daemons, four files, a model as good as the pooled one, scores."""

from __future__ import annotations

import csv
from pathlib import Path

from click.testing import CliRunner

from colonnade.cli import main
from colonnade.demo.departments import MEASURES
from colonnade.result import read_result


def test_demo(tmp_path: Path) -> None:
    out = tmp_path / "demo"
    done = CliRunner().invoke(main, ["demo", "--out", str(out)])
    assert done.exit_code == 0, done.stderr
    result = read_result(out / "result.json")
    assert result.world == "network"
    assert abs(result.metrics["test_auc"] - result.pooled["test_auc"]) < 0.01
    assert abs(result.metrics["test_accuracy"] - result.pooled["test_accuracy"]) < 0.03
    assert result.converged
    assert result.metrics["suboptimality"] < 1e-4
    assert result.data.columns == {"radiology": 9, "pathology": 9, "laboratory": 6, "clinic": 7}
    page = (out / "report.html").read_text()
    for said in ("ROC curve", "nobody learns the weights", "benign, malignant"):  # scores, shares, labels
        assert said in page
    for party in MEASURES:
        assert (out / "parties" / party / "certificates" / f"{party}.key").is_file()
        assert list((out / "parties" / party / "runs" / "models").glob("diagnosis-*/weights.npz"))
        assert f"{party}/patients.csv" in done.stdout
    for name in ("report.html", "loss.svg"):
        assert (out / name).stat().st_size > 5000
    for said in ("labels are blind", "clinic alone", "no weight and no diagnosis", "try next", "40 new"):
        assert said in done.stdout

    ids = {}
    for party in MEASURES:
        with (out / "parties" / party / "patients.csv").open() as file:
            ids[party] = [row["patient"].strip().upper() for row in csv.DictReader(file)]
    common = set.intersection(*(set(each) for each in ids.values()))
    assert f"{len(common)} patients are common to all four files" in done.stdout
    assert all(len(each) > len(common) for each in ids.values())  # each has patients of its own
    assert len({tuple(i for i in each if i in common) for each in ids.values()}) == 4  # in its own order


def test_demo_leaves_other_folders_alone(tmp_path: Path) -> None:
    (tmp_path / "job.toml").write_text("# mine")
    done = CliRunner().invoke(main, ["demo", "--out", str(tmp_path)])
    assert done.exit_code == 2
    assert (tmp_path / "job.toml").read_text() == "# mine"
    assert len(list(tmp_path.iterdir())) == 1
