"""Reports of runs between daemons: each party's own, and nothing of anybody else's."""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.deploy.companies import job, lay_out, settle, settled, together

from colonnade.deploy.books.journal import Journal
from colonnade.deploy.daemon.daemon import Daemon
from colonnade.deploy.daemon.report_facts import party_facts
from colonnade.deploy.models import stored_shares
from colonnade.deploy.programs.training import describe
from colonnade.deploy.settings import read_settings
from colonnade.errors import ShareError
from colonnade.metrics import auc
from colonnade.report.page import page


def test_a_party_that_wants_it_sees_its_own_timeline_and_nobody_elses(tmp_path: Path) -> None:
    consortium = lay_out(tmp_path)
    telecom = tmp_path / "telecom" / "party.toml"
    telecom.write_text("timeline = true\n" + telecom.read_text())

    async def program(daemons: dict[str, Daemon]) -> None:
        await daemons["bank"].train(job(), timeline=True)
        for name in ("shop", "telecom"):
            await settled(daemons[name])

    together(consortium, program)
    bank, shop, telecoms = (
        party_facts(read_settings(tmp_path / name / "party.toml"), "repaid")
        for name in ("bank", "shop", "telecom")
    )
    assert shop.timeline is None
    assert "<h2>Timeline</h2>" not in page(shop)
    for one, peers in ((bank, {"shop", "telecom"}), (telecoms, {"bank", "shop"})):
        assert one.timeline is not None
        ((name, lane),) = one.timeline.parties.items()
        assert name == one.seen_by
        assert {to for _, to, _ in lane.sent} == {sender for _, sender, _ in lane.received} == peers
        assert 0 < lane.busy_seconds < lane.seconds
        assert 0 < sum(lane.waited.values()) < lane.seconds  # alignment, before it, is not counted
        assert set(lane.waited) <= peers
        assert all(0 <= begin <= end <= lane.seconds for begin, end in lane.busy)
        assert "no clocks are compared" in page(one)
        assert "Whose message ended a wait" in page(one)


def test_every_party_has_a_report_of_its_own(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "colonnade.party")
    consortium = lay_out(tmp_path)
    settle(consortium, "bank", more='test_scores = "keep"\n')

    async def program(daemons: dict[str, Daemon]) -> None:
        await daemons["bank"].train(job())
        for name in ("shop", "telecom"):
            await settled(daemons[name])

    together(consortium, program)
    bank, shop = (
        party_facts(read_settings(tmp_path / name / "party.toml"), "repaid") for name in ("bank", "shop")
    )
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", bank.made)
    assert "Loss against traffic" in page(bank)
    assert "sent by all parties" not in page(bank)  # it knows its own bytes
    assert bank.scores is not None
    assert len(bank.scores.y) == bank.result.data.rows["test"]
    assert auc(bank.scores.z, bank.scores.y > 0) == pytest.approx(bank.result.metrics["test_auc"])
    base, alone, together_ = (
        bank.result.compared
    )  # the label holder's own; nothing is pooled between companies
    assert (base.name, alone.parties, together_.name) == ("base rate", ["bank"], "together")
    assert together_.metrics["test_auc"] == pytest.approx(bank.result.metrics["test_auc"])
    assert "bank alone" in page(bank)
    assert shop.result.compared == []
    assert "alone:" not in page(shop)
    assert bank.result.history
    assert bank.result.data.positive
    assert 0 < (bank.result.data.base_rate or 0) < 1
    assert (shop.result.data.base_rate, shop.result.converged) == (None, bank.result.converged)
    for name, one in (("bank", bank), ("shop", shop)):  # each party's own sentences, in its log once
        (party, sentences), *others = one.result.data.done.items()
        assert (party, others) == (name, [])
        assert sentences
        for said in sentences:
            assert said in page(one)
            assert sum(record.getMessage().endswith(f": {said}") for record in caplog.records) >= 1
    assert (shop.scores, shop.result.metrics, shop.result.history) == (None, {}, [])
    assert (shop.result.data.classes, list(shop.result.cost.bytes_by_pair)) == ([], ["shop"])
    assert [part.party for part in shop.parts] == ["shop"]
    for one in (bank, shop):
        text = page(one)
        assert "as " + str(one.seen_by) + " sees it" in text
        assert "Who can read what" in text
        assert "[parties]" in one.job or "parties" in one.job
    assert "ROC curve" in page(bank)
    assert "ROC curve" not in page(shop)
    # nothing of the others' columns is on the page
    theirs = {column for part in bank.parts for column in part.columns}
    assert not any(f">{column}<" in page(shop) for column in theirs - {"(intercept)"})
    assert np.isfinite(bank.result.cost.seconds)
    (tmp_path / "shop" / "runs" / "books" / f"{dict(shop.further)['model']}.json").unlink()
    with pytest.raises(ShareError, match="books"):
        party_facts(read_settings(tmp_path / "shop" / "party.toml"), "repaid")


def test_a_party_without_the_label_reports_the_epochs_that_there_were(tmp_path: Path) -> None:
    """A run that ends early ends early at everybody, and what it cost is that of the whole run."""
    consortium = lay_out(tmp_path)
    terms = job(train={"epochs": 400, "batch": 32, "l2": 1e-1, "tolerance": 1e-2})

    async def program(daemons: dict[str, Daemon]) -> Any:
        done = await daemons["bank"].train(terms)
        for daemon in daemons.values():
            await settled(daemon)
        return done

    done = together(consortium, program)
    found = {
        name: party_facts(read_settings(consortium.config(name)), done.model).result.cost
        for name in consortium.names
    }
    assert found["bank"].epochs < 400
    assert {each.epochs for each in found.values()} == {found["bank"].epochs}
    for name in consortium.names:
        settings = read_settings(consortium.config(name))
        (ended,) = Journal(settings.state / "journal.jsonl").runs
        assert (ended.state, ended.model, ended.sessions) == ("done", done.model, 1)
        assert ended.epochs == found["bank"].epochs
        assert set(ended.sent) == set(ended.received) == set(consortium.names) - {name}
        shown = describe(settings.state, stored_shares.find(settings.state / "models", done.model))
        assert shown["bytes_sent"] == sum(sum(about.values()) for about in ended.sent.values())
        assert shown["run"] == done.run
        assert (shown["rounds"] or 0) > 0


def test_what_one_party_sent_is_what_the_other_received(tmp_path: Path) -> None:
    consortium = lay_out(tmp_path)

    async def program(daemons: dict[str, Daemon]) -> None:
        await daemons["bank"].train(job())
        for daemon in daemons.values():
            await settled(daemon)

    together(consortium, program)
    ended = {name: Journal(tmp_path / name / "runs" / "journal.jsonl").runs[-1] for name in consortium.names}
    for me, mine in ended.items():
        for peer, about in mine.sent.items():
            theirs = ended[peer].received[me]
            assert about["training"] == pytest.approx(theirs["training"], rel=0.01)  # last words may be lost
            assert about["common rows"] == pytest.approx(theirs["common rows"], rel=0.01)
