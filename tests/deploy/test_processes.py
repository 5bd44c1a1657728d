"""As a new user would: four folders, four CSV files of real customers, four daemons, and commands."""

from __future__ import annotations

import csv
import json
import lzma
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.deploy.consortium import SOURCE, Consortium, write_csv
from tests.deploy.joined import ids_of, join, pooled

from colonnade.deploy.models.stored_shares import find
from colonnade.deploy.terms.contract import read_terms

pytestmark = pytest.mark.timeout(400)  # a dozen processes, each of which begins with its imports

LABEL = "default.payment.next.month"
KEPT = {"bank": 0.95, "insurer": 0.85, "shop": 0.9, "telecom": 0.8}
JOB = """name = "credit"
algorithm = "vfb2-svrg"
[parties]
bank = { data = "customers", label = true }
insurer = { data = "customers" }
shop = { data = "customers" }
telecom = { data = "customers" }
[data]
keys = [{ kind = "integer" }]
categorical = ["SEX", "EDUCATION", "MARRIAGE"]
[train]
epochs = 40
batch = 64
l2 = 3e-2
[secure]
labels = "clear"
"""


def daemons_with(root: Path, real_data: Path, companies: tuple[str, ...], customers: int) -> Consortium:
    """23 columns of real customers at these companies; 1,000 applicants are in nobody's training file."""
    path = real_data / "tabular" / "UCI_Credit_Card.csv.xz"
    if not path.is_file():
        pytest.skip("the UCI credit set is not here")
    with lzma.open(path, "rt") as file:
        rows: list[dict[str, Any]] = list(csv.DictReader(file))
    columns = [c for c in rows[0] if c not in ("ID", LABEL)]
    assert len(columns) == 23
    shuffled = np.random.default_rng(0).permutation(len(rows))
    known, new = shuffled[1000 : 1000 + customers], shuffled[:1000]
    consortium = Consortium(root, companies)
    each = -(-len(columns) // len(companies))
    for k, party in enumerate(companies):
        rng = np.random.default_rng([1, k])
        held = {"customers": known[rng.random(len(known)) < KEPT[party]], "applicants": new}
        for entry, numbers in held.items():
            chosen = [rows[i] for i in rng.permutation(numbers)]
            mine = columns[k * each : (k + 1) * each]
            mine += [LABEL] if party == "bank" and entry == "customers" else []
            write_csv(
                consortium.folder(party) / f"{entry}.csv",
                [row["ID"] for row in chosen],
                {c: [row[c] for row in chosen] for c in mine},
                "ID",
            )
        label = f'label = "{LABEL}"' if party == "bank" else ""
        data = f'[data.customers]\nfile = "customers.csv"\nid = "ID"\n{label}\n'
        consortium.settle(party, data + '[data.applicants]\nfile = "applicants.csv"\nid = "ID"\n')
        consortium.start(party)
    write_csv(
        consortium.folder("bank") / "new.csv",
        ids_of(consortium.folder("bank") / "applicants.csv", "ID"),
        {},
        "ID",
    )
    return consortium


@pytest.fixture
def credit(tmp_path: Path, real_data: Path) -> Iterator[Consortium]:
    """Four companies, 6,000 customers."""
    consortium = daemons_with(tmp_path, real_data, tuple(KEPT), 6000)
    (consortium.folder("bank") / "job.toml").write_text(JOB)
    try:
        consortium.wait_connected()
        yield consortium
    finally:
        consortium.stop()


@pytest.fixture
def pair(tmp_path: Path, real_data: Path) -> Iterator[Consortium]:
    """Two of them, 1,500 customers."""
    consortium = daemons_with(tmp_path, real_data, ("bank", "shop"), 1500)
    try:
        consortium.wait_connected()
        yield consortium
    finally:
        consortium.stop()


def test_from_four_files_to_a_thousand_scores(credit: Consortium) -> None:
    bank = credit.folder("bank")
    trained = credit.run("bank", "train", "job.toml", "--json")
    assert trained.returncode == 0, trained.stderr
    found = json.loads(trained.stdout)
    terms = read_terms(bank / "job.toml")
    files = {party: credit.folder(party) / "customers.csv" for party in KEPT}
    joined = join(files, "ID", terms)
    assert found["rows"]["common"] == len(joined.ids) > 3000
    assert found["alignment"] == joined.digest
    reference, _ = pooled(files, "ID", ("bank", LABEL), terms, joined)
    assert abs(found["metrics"]["objective"] - reference["objective"]) < 1e-3
    two_rows = 2.5 / found["rows"]["test"]
    assert abs(found["metrics"]["test_accuracy"] - reference["test_accuracy"]) <= max(0.001, two_rows)
    assert find(credit.folder("shop") / "runs" / "models", "credit").alignment == joined.digest

    scored = credit.run(
        "bank", "predict", "credit", "new.csv", "--data", "applicants", "-o", "scores.parquet"
    )
    assert "1000 of 1000 ids scored" in scored.stdout, scored.stderr
    import pyarrow.parquet

    table = pyarrow.parquet.read_table(bank / "scores.parquet")
    assert table.column_names == ["ID", "score", "probability", "label"]
    assert table.num_rows == 1000
    assert "credit-" in credit.run("shop", "models", "list").stdout
    _interrupted(credit)


def _interrupted(credit: Consortium) -> None:
    """Ctrl-C at `colonnade train` ends the run everywhere, and everybody can train again."""
    bank = credit.folder("bank")
    (bank / "long.toml").write_text(JOB.replace("epochs = 40", "epochs = 5000").replace("credit", "long"))
    process = subprocess.Popen(
        [sys.executable, "-m", "colonnade", "train", "long.toml"],
        cwd=bank,
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        stderr=subprocess.PIPE,
        text=True,
        # whoever runs the tests in the background has interrupts ignored, and children inherit that
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("training "):
            break
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60) == 130
    process.stderr.close()
    until = time.monotonic() + 60
    while not all("bank was told to stop by its operator" in credit.log(party) for party in KEPT):
        assert time.monotonic() < until, {party: credit.log(party)[-300:] for party in KEPT}
        time.sleep(0.1)
    status = json.loads(credit.run("telecom", "party", "--status", "--json").stdout)
    assert status["runs"] == {}
    assert all(line["up"] for line in status["peers"].values())


@pytest.mark.slow
def test_private_models_from_files_to_scores(pair: Consortium) -> None:
    """Linear models that learn from function values, then networks; commands and processes as before."""
    bank = pair.folder("bank")
    lines = [line for line in JOB.splitlines() if not line.startswith(("insurer", "telecom"))]
    alone = "\n".join(lines).replace("l2 = 3e-2", "l2 = 1e-3") + "\n"
    networks = (
        '[model]\nkind = "mlp"\nhidden = [8]\noutputs = 2\n[model.server]\nkind = "mlp"\nhidden = [8]\n'
    )
    jobs = {"asyrevel-gau": "", "vafl": networks} if find_spec("torch") else {"asyrevel-gau": ""}
    for algorithm, model in jobs.items():
        text = alone.replace("vfb2-svrg", algorithm).replace('"credit"', f'"{algorithm}"')
        (bank / "cascade.toml").write_text(text.replace("epochs = 40", "epochs = 10") + model)
        trained = pair.run("bank", "train", "cascade.toml", "--json")
        assert trained.returncode == 0, trained.stderr
        assert json.loads(trained.stdout)["metrics"]["test_auc"] > 0.58
        scored = pair.run("bank", "predict", algorithm, "new.csv", "--data", "applicants")
        assert "1000 of 1000 ids scored" in scored.stdout, scored.stderr
        if model:
            told = pair.run("shop", "models", "export", algorithm, "vafl.safetensors").stdout
            assert "vafl.safetensors: model of the cascade share of vafl-" in told
    assert "runs without a bound" in pair.run("bank", "budget").stdout
