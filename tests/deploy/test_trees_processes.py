"""Four daemons as processes: align, grow blind trees, and score a thousand new customers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.deploy.joined import ids_of
from tests.deploy.test_processes import KEPT, LABEL, daemons_with
from tests.deploy.test_trees import scores_in_one_process

from colonnade.deploy.terms.contract import read_terms

JOB = """name = "trees"
algorithm = "secureboost"
[parties]
bank = { data = "customers", label = true }
insurer = { data = "customers" }
shop = { data = "customers" }
telecom = { data = "customers" }
[data]
keys = [{ kind = "integer" }]
[train]
epochs = 10
"""


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_a_thousand_scores_are_those_of_one_process(tmp_path: Path, real_data: Path) -> None:
    consortium = daemons_with(tmp_path, real_data, tuple(KEPT), 4000)
    bank = consortium.folder("bank")
    (bank / "job.toml").write_text(JOB)
    try:
        consortium.wait_connected()
        trained = consortium.run("bank", "train", "job.toml")
        assert trained.returncode == 0, trained.stderr
        scored = consortium.run(
            "bank", "predict", "trees", "new.csv", "--data", "applicants", "-o", "scores.parquet"
        )
        assert "1000 of 1000 ids scored" in scored.stdout, scored.stderr
    finally:
        consortium.stop()
    import pyarrow.parquet

    table = pyarrow.parquet.read_table(bank / "scores.parquet")
    wanted = ids_of(bank / "new.csv", "ID")
    assert [str(each) for each in table["ID"].to_pylist()] == wanted
    found = scores_in_one_process(tmp_path, read_terms(bank / "job.toml"), wanted, "ID", LABEL)
    assert np.ptp(found) > 1
    np.testing.assert_allclose(table["score"].to_numpy(), found, rtol=0, atol=1e-9)
