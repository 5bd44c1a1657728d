"""Daemons whose files are beyond their memory train the model that they would train in memory."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.deploy.companies import NAMES, job, lay_out, settled, together
from tests.deploy.consortium import Consortium

from colonnade.data.large import big_file, csv_to_parquet
from colonnade.deploy.daemon.daemon import Daemon
from colonnade.deploy.models import stored_shares
from colonnade.deploy.models.stored_shares import Manifest
from colonnade.deploy.rows.large_rows import fresh_folder
from colonnade.deploy.terms.terms import Terms
from colonnade.errors import DataError


def trained(consortium: Consortium, terms: Terms) -> Manifest:
    async def program(daemons: dict[str, Daemon]) -> Any:
        manifest = await daemons["bank"].train(terms, lambda event: None)
        for name in ("shop", "telecom"):
            await settled(daemons[name])
        return manifest

    manifest: Manifest = together(consortium, program)
    return manifest


def as_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of some kilobytes are large, and are read in many stretches."""
    monkeypatch.setattr(big_file, "PART", 10**8)
    monkeypatch.setattr(big_file, "LEAST", 0)
    monkeypatch.setattr(big_file, "STRETCH", 64)
    monkeypatch.setattr(csv_to_parquet, "BLOCK", 2**12)


def test_it_is_the_model_of_data_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows without a label or an id are left out of both; every party finds its rows in the common order."""
    consortium = lay_out(tmp_path)
    file = tmp_path / "bank" / "customers.csv"
    head, *lines = file.read_text().splitlines()
    lines[::50] = [line.rpartition(",")[0] + "," for line in lines[::50]]  # no label
    lines[1::70] = ["," + line.partition(",")[2] for line in lines[1::70]]  # no id
    file.write_text("\n".join([head, *lines]) + "\n")
    terms = job(algorithm="vfb-sgd", train={"epochs": 2, "batch": 32}, split={"test": 0.2, "validation": 0.2})
    small = trained(consortium, terms)
    weights = {n: stored_shares.load(tmp_path / n / "runs" / "models", "repaid").arrays["w"] for n in NAMES}
    as_large(monkeypatch)
    found = trained(consortium, terms)
    assert (found.rows, found.alignment) == (small.rows, small.alignment)
    assert found.metrics == pytest.approx(small.metrics, rel=1e-9)
    for name in NAMES:
        share = stored_shares.load(tmp_path / name / "runs" / "models", "repaid")
        np.testing.assert_allclose(share.arrays["w"], weights[name], rtol=1e-9)
        left = sorted(path.suffix for path in (tmp_path / name / "runs" / "columns").iterdir())
        assert left == [".parquet"]  # what CSV was converted to; prepared columns are gone


def test_what_needs_all_rows_at_once_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    as_large(monkeypatch)
    terms = job(train={"epochs": 2, "batch": 32, "class_weight": "balanced"})
    with pytest.raises(DataError, match=r"data.customers: .* train.class_weight .* more memory"):
        trained(lay_out(tmp_path), terms)


def test_columns_of_a_process_that_was_killed_are_removed(tmp_path: Path) -> None:
    dead, mine = tmp_path / "4194304-0000000a", fresh_folder(tmp_path, 1)  # no process has such a number
    dead.mkdir()
    (tmp_path / "kept.parquet").touch()
    assert fresh_folder(tmp_path, 2).name == f"{os.getpid()}-00000002"
    assert not dead.exists()
    assert mine.exists()
