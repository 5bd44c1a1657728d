"""A share is deleted for good with all that was kept beside it, and never one that is in use."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.deploy import companies

from colonnade.deploy.books.journal import Journal
from colonnade.deploy.daemon import commands, operators, verbs
from colonnade.deploy.models import stored_shares
from colonnade.deploy.people_settings import Person
from colonnade.errors import JobError, ShareError
from colonnade.shares import now

ADA = Person("ada", "test")


def left(daemon: Any, model: str) -> list[str]:
    """Return the files that are about a model."""
    state = daemon.settings.state
    found = [*state.glob(f"models/*{model}*"), *state.glob(f"books/{model}*")]
    return sorted(path.name for path in found)


def test_models_are_deleted_unless_they_are_in_use(tmp_path: Path) -> None:
    consortium = companies.lay_out(tmp_path)
    job = companies.job(train={"epochs": 2, "batch": 32})

    async def program(daemons: Any) -> None:
        bank, shop = daemons["bank"], daemons["shop"]
        first = (await bank.train(job)).model
        second = (await bank.train(job)).model
        for daemon in daemons.values():
            await companies.settled(daemon)
        await operators.promote(bank, second, ADA)
        with pytest.raises(JobError, match="is in use for repaid"):
            await operators.delete(bank, second, str(ADA))
        with pytest.raises(ShareError, match="there is no model"):
            await operators.delete(bank, "repaid-00000000", str(ADA))
        assert len(left(bank, first)) >= 3  # the share, what it cost, scores of test rows
        said = await operators.delete(bank, first, str(ADA), "asked for")
        assert not left(bank, first)
        assert left(bank, second)
        assert left(shop, first)
        assert (said.what, said.about, said.reason) == ("deleted", first, "asked for")
        # nothing is older than a day
        shop.settings = msgspec.structs.replace(shop.settings, retention_days=1)
        assert await operators.delete_old(shop) == []
        bank.settings = msgspec.structs.replace(bank.settings, retention_days=-1)
        assert await operators.delete_old(bank) == []  # the one in use stays
        shop.settings = msgspec.structs.replace(shop.settings, retention_days=-1)
        assert sorted(await operators.delete_old(shop)) == sorted([first, second])
        assert shop.journal.decisions[-1].who == "retention"

    companies.together(consortium, program)
    kept = companies.read_decisions(consortium.folder("bank") / "runs" / "journal.jsonl")
    assert [each.what for each in kept][-1] == "deleted"


def test_what_a_partner_still_has_scored_is_not_too_old(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The shop promotes nothing itself: what it knows is that the bank asked for scores."""
    consortium = companies.lay_out(tmp_path)
    job = companies.job(train={"epochs": 2, "batch": 32})

    async def program(daemons: Any) -> None:
        bank, shop = daemons["bank"], daemons["shop"]
        models = [(await bank.train(job)).model for _ in range(2)]
        shop.settings = msgspec.structs.replace(shop.settings, retention_days=30)
        later = now(40 * 86400.0)
        with monkeypatch.context() as patch:  # 40 days later the bank has scores of the first
            for module in ("deploy.books.scored", "deploy.books.journal", "deploy.runs.run"):
                patch.setattr(f"colonnade.{module}.now", lambda seconds=0.0: later)
            request = commands.PredictRequest(models[0], [["C00401"]], "applicants")
            await verbs.act(bank, request, lambda event: None, ADA)
            for daemon in daemons.values():
                await companies.settled(daemon)
        monkeypatch.setattr(stored_shares, "now", lambda seconds=0.0: now(60 * 86400.0 + seconds))
        shop.journal = Journal(shop.journal.path)  # as after a restart
        assert await operators.delete_old(shop) == [models[1]]

    companies.together(consortium, program)


@pytest.mark.parametrize("more", ["", 'test_scores = "keep"\n'])
def test_scores_of_test_rows_are_stored_only_where_the_settings_say_so(tmp_path: Path, more: str) -> None:
    consortium = companies.lay_out(tmp_path)
    companies.settle(consortium, "bank", more=more)

    async def program(daemons: Any) -> None:
        model = (await daemons["bank"].train(companies.job(train={"epochs": 2, "batch": 32}))).model
        await companies.settled(daemons["bank"])
        assert any("scores" in name for name in left(daemons["bank"], model)) == bool(more)

    companies.together(consortium, program)
