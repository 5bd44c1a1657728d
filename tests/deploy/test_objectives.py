"""What is trained between daemons beside plain two classes: weights of rows and classes, and counts.

Each model is compared with scikit-learn's of the joined rows, without a penalty.
"""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, PoissonRegressor
from tests.deploy.companies import COLUMNS, NAMES, job, lay_out, settle, settled, together
from tests.deploy.http.test_service import HEADERS, TOKEN, ask
from tests.deploy.joined import ids_of, join
from tests.patience import until

from colonnade.arrays import Floats
from colonnade.deploy.daemon.daemon import Daemon
from colonnade.deploy.models.stored_shares import scores_file
from colonnade.deploy.rows.rows import split_rows
from colonnade.deploy.settings import Serve
from colonnade.deploy.terms.terms import Terms
from colonnade.net.stream.port import free_ports
from colonnade.test_scores import TestScores

aiohttp = pytest.importorskip("aiohttp")

TRAIN = {"epochs": 200, "batch": 64, "l2": 0.0, "tolerance": 1e-7}
Row = dict[str, str]


def rows_of(root: Path, name: str, entry: str = "customers") -> dict[str, Row]:
    with (root / name / f"{entry}.csv").open(newline="") as file:
        return {row["id"]: row for row in csv.DictReader(file)}


def rewrite(root: Path, change: Callable[[Row, dict[str, dict[str, Row]]], Row]) -> None:
    """Change every row of the bank's customers, knowing everybody's rows."""
    everybody = {name: rows_of(root, name) for name in NAMES}
    rows = [change(row, everybody) for row in everybody["bank"].values()]
    with (root / "bank" / "customers.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def matrix(root: Path, ids: list[str], entry: str = "customers") -> Floats:
    read = {name: rows_of(root, name, entry) for name in NAMES}
    columns = [(name, column) for name in NAMES for column in COLUMNS[name]]
    return np.array([[float(read[name][each][c]) for name, c in columns] for each in ids])


def split(root: Path, terms: Terms) -> tuple[list[str], list[str]]:
    """The ids that are trained and tested on."""
    joined = join({name: root / name / "customers.csv" for name in NAMES}, "id", terms)
    train, _, test = split_rows(joined.digests, terms.split, terms.seed)
    return [joined.ids[k] for k in train], [joined.ids[k] for k in test]


async def trained(daemons: dict[str, Daemon], terms: Terms) -> Any:
    manifest = await daemons["bank"].train(terms)
    for name in ("shop", "telecom"):
        await settled(daemons[name])
    return manifest


@pytest.mark.parametrize("balanced", [False, True], ids=["rows", "rows and classes"])
def test_weights_are_those_of_scikit_learn(tmp_path: Path, balanced: bool) -> None:
    consortium = lay_out(tmp_path)
    # noisy labels, so that the unpenalised optimum is finite, and fewer of one class
    rng = np.random.default_rng(4)
    rewrite(
        tmp_path,
        lambda row, _: {
            **row,
            "repaid": str(rng.choice(["no", "no", "yes"])) if rng.random() < 0.5 else row["repaid"],
            "exposure": str(1 + 4 * (float(row["age"]) > 0)),
        },
    )
    settle(consortium, "bank", more='test_scores = "keep"\n')
    config = consortium.config("bank")
    config.write_text(config.read_text().replace('label = "repaid"', 'label = "repaid"\nweight = "exposure"'))
    parties = {
        name: {"data": "customers", "label": name == "bank", "weight": name == "bank"} for name in NAMES
    }
    train = {**TRAIN, **({"class_weight": "balanced"} if balanced else {})}
    terms = job(parties=parties, train=train, prepare={"scale": "none", "positive": ["yes"]})

    async def program(daemons: dict[str, Daemon]) -> Any:
        return await trained(daemons, terms)

    manifest = together(consortium, program)
    kept = TestScores.read(scores_file(tmp_path / "bank" / "runs", manifest.model))
    known, test = split(tmp_path, terms)
    bank = rows_of(tmp_path, "bank")
    y = np.array([bank[each]["repaid"] == "yes" for each in known])
    weights = np.array([float(bank[each]["exposure"]) for each in known])
    if balanced:  # every class has the same sum of weights
        weights /= np.where(y, weights[y].sum(), weights[~y].sum())
        weights *= len(weights) / weights.sum()
    oracle = LogisticRegression(C=np.inf, tol=1e-8, max_iter=1000)
    oracle.fit(matrix(tmp_path, known), y, sample_weight=weights)
    expected = oracle.decision_function(matrix(tmp_path, test))
    assert np.abs(kept.z - expected).max() < 0.02
    plain = LogisticRegression(C=np.inf, tol=1e-8).fit(matrix(tmp_path, known), y)
    assert np.abs(plain.decision_function(matrix(tmp_path, test)) - expected).max() > 0.2


def test_counts_with_an_exposure_are_served_as_expected_rates(tmp_path: Path) -> None:
    from colonnade.deploy.http.service import Service

    consortium = lay_out(tmp_path)
    rng = np.random.default_rng(6)

    def claims(row: Row, everybody: dict[str, dict[str, Row]]) -> Row:
        visits = float(everybody["shop"].get(row["id"], {"visits": "0"})["visits"])
        years = rng.uniform(0.2, 2.0)
        claims = rng.poisson(years * np.exp(0.4 * float(row["age"]) + 0.3 * visits))
        return {**row, "repaid": str(claims), "years": f"{years:.3f}"}

    rewrite(tmp_path, claims)
    config = tmp_path / "bank" / "party.toml"
    config.write_text(config.read_text().replace('label = "repaid"', 'label = "repaid"\nexposure = "years"'))
    members = {
        name: {"data": "customers", "label": name == "bank", "exposure": name == "bank"} for name in NAMES
    }
    (tmp_path / "bank" / "token").write_text(TOKEN)
    (tmp_path / "bank" / "token").chmod(0o600)
    (port,) = free_ports(1)
    serve = Serve(listen=f"127.0.0.1:{port}", model="repaid", data="applicants", token_file="token")  # noqa: S106
    terms = job(parties=members, train={**TRAIN, "loss": "poisson"}, prepare={"scale": "none"})
    applicants = ids_of(tmp_path / "bank" / "applicants.csv", "id")[:10]

    async def program(daemons: dict[str, Daemon]) -> Any:
        await trained(daemons, terms)
        service = Service(daemons["bank"], serve)
        await service.open()
        try:
            await until(lambda: service.session.ready)
            async with aiohttp.ClientSession(headers=HEADERS) as session:
                return await ask(session, f"http://127.0.0.1:{port}", {"ids": applicants})
        finally:
            await service.close()

    status, found = together(consortium, program)
    assert status == 200
    known, _ = split(tmp_path, terms)
    bank = rows_of(tmp_path, "bank")
    oracle = PoissonRegressor(alpha=0, tol=1e-8, max_iter=1000)
    years = np.array([float(bank[each]["years"]) for each in known])
    rates = np.array([float(bank[each]["repaid"]) for each in known]) / years
    oracle.fit(matrix(tmp_path, known), rates, sample_weight=years)
    expected = oracle.predict(matrix(tmp_path, applicants, "applicants"))
    np.testing.assert_allclose([row["expected"] for row in found["scores"]], expected, rtol=0.02)
    np.testing.assert_allclose([row["score"] for row in found["scores"]], np.log(expected), atol=0.02)
