"""Weight of evidence between daemons: equal to that of the joined rows, and only where policies accept it."""

from __future__ import annotations

import csv
import logging
import re
from math import log
from pathlib import Path
from typing import Any

import pytest
from tests.deploy.companies import COLUMNS, NAMES, job, lay_out, settle, settled, together
from tests.deploy.joined import join

from colonnade.deploy.books.opened import OpenedBooks
from colonnade.deploy.daemon.daemon import Daemon
from colonnade.deploy.daemon.report_facts import party_facts
from colonnade.deploy.models import stored_shares
from colonnade.deploy.policy.cost_limits import check_floors
from colonnade.deploy.policy.policy import leaks
from colonnade.deploy.rows.rows import split_rows
from colonnade.deploy.settings import Limits
from colonnade.deploy.terms.contract import Contract
from colonnade.deploy.terms.terms import Terms
from colonnade.errors import JobError, Refused

ACCEPT = 'accept = ["labels", "scores", "evidence"]\n'
EXACT = "[limits]\nwoe_least = 10\nwoe_cases = 3\nwoe_noise = 1e-9\n"
WOE = {"bins": 8, "least": 10, "cases": 3, "most": 5}


def weighing(**changes: Any) -> Terms:
    return job(prepare={"woe": True}, woe=WOE, **changes)


def training_rows(root: Path, terms: Terms) -> tuple[dict[str, dict[str, dict[str, str]]], list[str]]:
    """Every company's file by id, and the ids of the common rows that are trained on."""
    files = {name: root / name / "customers.csv" for name in NAMES}
    joined = join(files, "id", terms)
    train, _, _ = split_rows(joined.digests, terms.split, terms.seed)
    read: dict[str, dict[str, dict[str, str]]] = {}
    for name, path in files.items():
        with path.open(newline="") as file:
            read[name] = {row["id"]: row for row in csv.DictReader(file)}
    return read, [joined.ids[k] for k in train]


def test_columns_are_weighed_as_on_the_joined_rows(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    consortium, terms = lay_out(tmp_path), weighing()
    for name in NAMES:
        settle(consortium, name, ACCEPT, EXACT)
    caplog.set_level(logging.INFO, "colonnade.party")

    async def program(daemons: dict[str, Daemon]) -> Any:
        manifest = await daemons["bank"].train(terms)
        for name in ("shop", "telecom"):
            await settled(daemons[name])
        return manifest, {name: party_facts(d.settings, "repaid") for name, d in daemons.items()}

    manifest, dossiers = together(consortium, program)
    files, ids = training_rows(tmp_path, terms)
    positive = set(dossiers["bank"].result.data.positive)
    bad = {each: files["bank"][each]["repaid"] in positive for each in ids}
    bads, goods = sum(bad.values()), len(ids) - sum(bad.values())
    for name in NAMES:
        weighed = stored_shares.load(tmp_path / name / "runs" / "models", "repaid").preparation.woe
        assert [each.bins.column for each in weighed] == list(COLUMNS[name])
        for each in weighed:
            values = {row: float(files[name][row][each.bins.column]) for row in ids}
            inside: dict[int, list[str]] = {}
            for row, value in values.items():
                code = sum(value > edge for edge in each.bins.edges)
                inside.setdefault(each.group[code], []).append(row)
            iv = 0.0
            for group, rows in inside.items():
                b = sum(bad[row] for row in rows)
                part = (len(rows) - b) / goods, b / bads
                assert each.woe[group] == pytest.approx(log(part[0] / part[1]), abs=1e-9)
                assert min(b, len(rows) - b) >= WOE["cases"]
                iv += (part[0] - part[1]) * log(part[0] / part[1])
            assert each.iv == pytest.approx(iv, abs=1e-9)
    assert manifest.metrics["test_auc"] > 0.75
    data = dossiers["bank"].result.data
    assert data.base_rate == pytest.approx(bads / len(ids))
    assert data.done["bank"][0] == "2 columns became the weight of evidence of bins"
    assert any("became the weight of evidence" in record.getMessage() for record in caplog.records)
    assert "evidence" in dossiers["shop"].result.privacy.leaks
    assert dossiers["shop"].result.data.base_rate is None


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"least": 10}, "woe.least = 10 is below limits.woe_least = 50"),
        ({"cases": 1}, "woe.cases = 1 is below limits.woe_cases = 10"),
        ({"noise": 0.5}, "woe.noise = 0.5 is below limits.woe_noise = 2"),
    ],
)
def test_no_job_lowers_what_a_party_demands_of_counts(asked: dict[str, Any], told: str) -> None:
    with pytest.raises(Refused, match=re.escape(told)):
        check_floors(Limits(), job(prepare={"woe": True}, woe=asked))
    check_floors(Limits(), job(prepare={"woe": True}, woe={"least": 100, "cases": 20, "noise": 3.0}))


def test_who_does_not_accept_evidence_refuses(tmp_path: Path) -> None:
    consortium = lay_out(tmp_path)
    for name in ("bank", "shop"):
        settle(consortium, name, ACCEPT, EXACT)
    settle(consortium, "telecom", 'accept = ["labels", "scores"]\n', EXACT)

    async def program(daemons: dict[str, Daemon]) -> str:
        with pytest.raises(Refused) as told:
            await daemons["bank"].train(weighing())
        return str(told.value)

    assert "leaks 'evidence'" in together(consortium, program)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"train": {"loss": "squared"}}, "data.woe: weight of evidence needs two classes"),
        ({"privacy": {"mechanism": "labels", "epsilon": 1.0}}, "privacy.mechanism promises to hide"),
    ],
)
def test_what_does_not_go_with_evidence_is_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(JobError, match=said):
        weighing(**changes)


def test_two_companies_weigh_columns_that_nobody_sees_counts_of(tmp_path: Path) -> None:
    names, policy = ("bank", "shop"), 'accept = ["few-rows"]\nmin_rows = 20\n'
    consortium = lay_out(tmp_path, names)
    for name in names:
        settle(consortium, name, policy, EXACT)
    secure = {"labels": "blind", "few_rows": True}
    terms = job(names, algorithm="lbfgs", train={}, secure=secure, prepare={"woe": True}, woe=WOE)
    contract = Contract.of(terms)
    assert contract.hides_counts
    assert leaks(contract) == ("few-rows",)

    async def program(daemons: dict[str, Daemon]) -> Any:
        manifest = await daemons["bank"].train(terms)
        await settled(daemons["shop"])
        return manifest, {name: party_facts(d.settings, "repaid") for name, d in daemons.items()}

    manifest, dossiers = together(consortium, program)
    own = stored_shares.load(tmp_path / "shop" / "runs" / "models", "repaid").preparation.woe
    assert [each.bins.column for each in own] == list(COLUMNS["shop"])
    assert own[0].iv > 0.1
    assert manifest.metrics["test_auc"] > 0.6
    assert "evidence" not in dossiers["shop"].result.privacy.leaks
    assert any("labels were encrypted" in note for note in dossiers["shop"].result.privacy.notes)
    booked = OpenedBooks(tmp_path / "bank" / "runs").lines()
    (counts,) = [each for each in booked if "bin counts" in each.kinds]
    assert (counts.peer, counts.about) == ("shop", "labels")
    assert counts.numbers == own[0].bins.count
    assert not [
        each for each in OpenedBooks(tmp_path / "shop" / "runs").lines() if "bin counts" in each.kinds
    ]


@pytest.mark.parametrize(
    ("algorithm", "names", "named"),
    [("lbfgs", NAMES, False), ("vfb2-saga", NAMES, True), ("secureboost", NAMES[:2], False)],
)
def test_evidence_is_named_where_owners_are_told_nothing_else_of_labels(
    algorithm: str, names: tuple[str, ...], named: bool
) -> None:
    terms = job(names, algorithm=algorithm, train={}, secure={"labels": "blind"}, prepare={"woe": True})
    assert ("evidence" in leaks(Contract.of(terms))) is named
