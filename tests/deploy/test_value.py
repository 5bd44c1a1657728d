"""What each company is worth, between daemons: under their policies, in their books, told to all of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.deploy.companies import NAMES, job, lay_out, settled, together

from colonnade.deploy.books.opened import OpenedBooks
from colonnade.deploy.daemon.daemon import Daemon
from colonnade.deploy.daemon.report_facts import party_facts
from colonnade.deploy.settings import read_settings
from colonnade.errors import Refused
from colonnade.report.page import page

VALUED = 'accept = ["scores", "few-rows", "values"]\nmin_rows = 20\n'
BLIND = {"labels": "blind", "few_rows": True}
NOT = 'accept = ["scores", "few-rows"]\nmin_rows = 20\n'


def test_companies_hear_what_each_is_worth(tmp_path: Path) -> None:
    consortium = lay_out(tmp_path, NAMES, bank=VALUED, shop=VALUED, telecom=VALUED)
    terms = {
        value: job(algorithm="lbfgs", train={"epochs": 50, "l2": 1e-3}, secure=BLIND, value=value)
        for value in (False, True)
    }

    async def program(daemons: dict[str, Daemon]) -> list[float]:
        bits = []
        for each in (terms[False], terms[True]):
            await daemons["bank"].train(each)
            for name in NAMES:
                await settled(daemons[name])
            books = OpenedBooks(daemons["bank"].settings.state).accounts()
            bits.append(next(one.bits for one in books if (one.peer, one.about) == ("shop", "labels")))
        return bits

    once, both = together(consortium, program)
    assert both - once > 7 * once  # seven trainings, and the values
    told: dict[str, Any] = {}
    for name in NAMES:
        settings = read_settings(consortium.config(name))
        facts = party_facts(settings, "repaid")
        told[name] = facts.result.worth
        assert "What every party is worth" in page(facts)
    assert len(told["bank"].coalitions) == 8
    assert not told["shop"].coalitions
    assert told["shop"] == told["telecom"]
    for party, metrics in told["bank"].values.items():
        _, low, high = metrics["test_auc"]
        assert low <= told["shop"].values[party]["test_auc"][0] <= high
    whole = {tuple(each.parties): each.metrics["test_auc"] for each in told["bank"].coalitions}
    added = sum(metrics["test_auc"][0] for metrics in told["bank"].values.values())
    assert added == pytest.approx(whole[NAMES] - 0.5)


def test_a_policy_may_not_have_it(tmp_path: Path) -> None:
    consortium = lay_out(tmp_path, NAMES, bank=VALUED, shop=NOT, telecom=VALUED)

    async def program(daemons: dict[str, Daemon]) -> None:
        with pytest.raises(Refused, match="leaks 'values'"):
            await daemons["bank"].train(job(algorithm="lbfgs", train={"l2": 1e-3}, secure=BLIND, value=True))

    together(consortium, program)
