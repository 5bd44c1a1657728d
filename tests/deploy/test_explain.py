"""What a company's own columns did to scores: from its own disk, with nobody else there."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from tests.deploy.companies import NAMES, job, lay_out, settled, together

from colonnade.cli import main
from colonnade.deploy.daemon.daemon import Daemon
from colonnade.deploy.models import stored_shares


def test_each_company_explains_its_own_columns_alone(tmp_path: Path) -> None:
    consortium = lay_out(tmp_path, NAMES)

    async def program(daemons: dict[str, Daemon]) -> None:
        await daemons["bank"].train(job(algorithm="lbfgs", train={"l2": 1e-3, "epochs": 50}))
        await daemons["bank"].train(
            job(
                name="trees",
                algorithm="secureboost",
                train={"epochs": 2},
                secure={"labels": "clear"},
                trees={"bits": 6},
            )
        )
        for name in NAMES:
            await settled(daemons[name])

    together(consortium, program)  # and all daemons are gone
    folder = tmp_path / "shop"
    with (folder / "customers.csv").open() as file:
        rows = list(csv.DictReader(file))
    (tmp_path / "ids.csv").write_text("id\n" + "\n".join([*(row["id"] for row in rows[:5]), "nobody"]) + "\n")
    out = tmp_path / "explained.csv"
    words = ["--config", str(consortium.config("shop")), "--explain", "--reasons", "1", "--out", str(out)]
    done = CliRunner().invoke(main, ["predict", "repaid", str(tmp_path / "ids.csv"), *words])
    assert done.exit_code == 0, done.stderr
    assert "5 of 6 ids explained by 1 own columns" in done.stdout
    share = stored_shares.load(folder / "runs" / "models", "repaid")
    visits = np.array([float(row["visits"]) for row in rows])
    with out.open() as file:
        found = list(csv.DictReader(file))
    slope = [float(row["shap_visits"]) for row in found[:5]]
    (w,) = share.arrays["w"]
    assert share.preparation.columns == ("visits",)
    assert np.polyfit(visits[:5], slope, 1)[0] * (visits - visits.mean())[:5] == pytest.approx(
        slope, abs=1e-9
    )
    assert np.sign(np.polyfit(visits[:5], slope, 1)[0]) == np.sign(w)
    assert found[5]["shap_visits"] == ""
    assert [row["reason_1"] for row in found[:5]] == ["visits" if s > 0 else "" for s in slope]
    refused = CliRunner().invoke(main, ["predict", "trees", str(tmp_path / "ids.csv"), *words])
    assert refused.exit_code != 0
    assert "is not a sum over columns" in refused.stderr
