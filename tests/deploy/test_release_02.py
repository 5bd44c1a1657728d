"""A company with release 0.2.0 beside companies with this one: they train, score, and refuse by name.

And a company that installs this release goes on with what 0.2.0 wrote: settings, shares, journal and ledger.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.deploy import companies, release_02
from tests.deploy.consortium import Consortium, write_csv
from tests.deploy.joined import ids_of, join, pooled

from colonnade.deploy.books.journal import Comparison, SettingsChanged, read_journal
from colonnade.deploy.terms.contract import read_terms

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

EXACT = "[limits]\ntrees_exact = true\n"  # as 0.2.0 is told histograms
JOB = """name = "{name}"
algorithm = "{algorithm}"
[parties]
bank = {{ data = "customers", label = true }}
shop = {{ data = "customers" }}
telecom = {{ data = "customers" }}
[train]
epochs = {epochs}
[network]
deadline_s = 60.0
[checkpoint]
wait_s = 0.0
[secure]
labels = "{labels}"
{more}
"""
TREES = '[trees]\nbits = 0\ncategories = "numbers"\n'  # this release's words for what 0.2.0 has no words for
JOBS = (
    ("vfb2-svrg", 6, "clear"),
    ("vfb2-svrg", 2, "blind"),
    ("lbfgs", 30, "clear"),
    ("secureboost", 5, "clear"),
)


@pytest.fixture
def old(tmp_path: Path) -> str:
    """Where the package of 0.2.0 lies."""
    return release_02.unpack(tmp_path / "old")


@pytest.fixture
def consortium(tmp_path: Path) -> Iterator[Consortium]:
    """Three companies that are not started yet, with files of ids to score."""
    found = companies.lay_out(tmp_path)
    bank = found.folder("bank")
    write_csv(bank / "new.csv", ids_of(bank / "applicants.csv", "id"), {})
    try:
        yield found
    finally:
        found.stop()


def start(consortium: Consortium, **more: str) -> None:
    """Start all; those of this release tell trees what 0.2.0 is told, unless `more` says otherwise."""
    for name in consortium.names:
        if name not in consortium.sources:
            companies.settle(consortium, name, more=more.get(name, EXACT))
        consortium.start(name)
    consortium.wait_connected()


def write_job(consortium: Consortium, algorithm: str, epochs: int, labels: str, more: str = "") -> Path:
    name = f"{algorithm}-{labels}"
    path = consortium.folder("bank") / f"{name}.toml"
    path.write_text(JOB.format(name=name, algorithm=algorithm, epochs=epochs, labels=labels, more=more))
    return path


def train(consortium: Consortium, job: Path) -> dict[str, Any]:
    trained = consortium.run("bank", "train", job.name, "--json")
    assert trained.returncode == 0, trained.stderr + consortium.log("shop")[-3000:]
    found: dict[str, Any] = json.loads(trained.stdout)
    return found


def scores(consortium: Consortium, model: str) -> dict[str, float]:
    words = ("predict", model, "new.csv", "--data", "applicants", "-o", f"{model}.csv")
    scored = consortium.run("bank", *words)
    assert scored.returncode == 0, scored.stderr
    with (consortium.folder("bank") / f"{model}.csv").open() as file:
        return {row["id"]: float(row["score"]) for row in csv.DictReader(file)}


@pytest.mark.parametrize("who", ["bank", "shop"], ids=["proposes", "answers"])
def test_train_and_score(consortium: Consortium, old: str, who: str) -> None:
    consortium.sources[who] = old
    start(consortium)
    for algorithm, epochs, labels in JOBS:
        says = algorithm == "secureboost" and who != "bank"  # else 0.2.0 proposes, which knows no other trees
        job = write_job(consortium, algorithm, epochs, labels, TREES if says else "")
        found = train(consortium, job)
        assert found["metrics"]["test_auc"] > (0.9 if algorithm == "secureboost" else 0.97)
        assert len(scores(consortium, job.stem)) == companies.APPLICANTS
        if algorithm == "lbfgs":
            _is_that_of_the_join(consortium, job, found)


def _is_that_of_the_join(consortium: Consortium, job: Path, found: dict[str, Any]) -> None:
    files = {name: consortium.folder(name) / "customers.csv" for name in consortium.names}
    terms = read_terms(job)
    joined = join(files, "id", terms)
    reference, _ = pooled(files, "id", ("bank", "repaid"), terms, joined)
    told = found["metrics"]
    assert found["rows"]["common"] == len(joined.ids)
    assert told["test_auc"] == pytest.approx(reference["test_auc"], abs=0.01)
    # what 0.2.0 called train_loss has the penalty
    assert told.get("objective", told["train_loss"]) == pytest.approx(reference["objective"], abs=1e-6)


REFUSED = [
    ("lbfgs", "blind", "", "secure.labels = 'blind'"),
    ("lbfgs", "blind", 'products = "encrypted"', "`products`"),
    ("secureboost", "clear", "", "`bits`"),
    ("secureboost", "clear", "[trees]\nbits = 0", "`categories`"),
]


def test_what_it_does_not_know_is_refused_by_name(tmp_path: Path, old: str) -> None:
    pair = companies.lay_out(tmp_path, ("bank", "shop"))
    pair.sources["shop"] = old
    try:
        start(pair)
        for algorithm, labels, more, word in REFUSED:
            job = write_job(pair, algorithm, 3, labels, more)
            job.write_text("\n".join(line for line in job.read_text().splitlines() if "telecom" not in line))
            refused = pair.run("bank", "train", job.name)
            assert refused.returncode == 3
            assert "shop refused: " in refused.stderr
            assert word in refused.stderr
    finally:
        pair.stop()
    for name in pair.names:  # before anything of the data
        written, _ = read_journal(pair.folder(name) / "runs" / "journal.jsonl")
        assert not [each for each in written if isinstance(each, Comparison)]


def test_exact_histograms_for_it_are_for_an_operator_to_allow(consortium: Consortium, old: str) -> None:
    consortium.sources["bank"] = old
    start(consortium, shop="")
    job = write_job(consortium, "secureboost", 3, "clear")
    refused = consortium.run("bank", "train", job.name)
    assert refused.returncode == 2  # as 0.2.0 says it
    assert "shop refused: trees.bits = 0" in refused.stderr
    assert "limits.trees_exact" in refused.stderr


def test_what_it_wrote_is_gone_on_with(consortium: Consortium, old: str) -> None:
    consortium.sources = dict.fromkeys(consortium.names, old)
    start(consortium)
    before = {}
    for algorithm, epochs, labels in JOBS:
        job = write_job(consortium, algorithm, epochs, labels)
        train(consortium, job)
        before[job.stem] = scores(consortium, job.stem)
    budget = consortium.run("bank", "budget").stdout
    listed = consortium.run("shop", "models", "list").stdout
    lines = _journal(consortium)
    consortium.stop()

    consortium.sources, consortium.processes = {}, {}
    for name in consortium.names:
        (consortium.folder(name) / "log.txt").unlink()
        consortium.start(name)  # with the same party.toml
    consortium.wait_connected()
    assert _journal(consortium)[: len(lines)] == lines
    added, _ = read_journal(consortium.folder("shop") / "runs" / "journal.jsonl")
    assert isinstance(added[-1], SettingsChanged)  # 0.2.0 wrote none: those of the first start are news
    assert len(_journal(consortium)) <= len(lines) + 2
    assert consortium.run("bank", "budget").stdout.endswith(budget)  # behind what peers heard since
    assert consortium.run("shop", "models", "list").stdout == listed
    assert all(model in listed for model in before)
    checked = consortium.run("shop", "party", "--check")
    assert checked.returncode == 0, checked.stderr
    for model, told in before.items():
        again = scores(consortium, model)
        assert again.keys() == told.keys()
        np.testing.assert_allclose([again[i] for i in told], list(told.values()), rtol=1e-9, atol=1e-9)
    assert len(_journal(consortium)) > len(lines)


def _journal(consortium: Consortium) -> list[str]:
    path = consortium.folder("shop") / "runs" / "journal.jsonl"
    assert read_journal(path)[0]
    return path.read_text().splitlines()
