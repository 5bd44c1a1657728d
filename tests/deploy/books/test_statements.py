"""What parties say of runs is signed, kept by their peers, and can be checked by somebody else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from click.testing import CliRunner
from tests.deploy import companies
from tests.patience import until

from colonnade.cli.journal import journal as command
from colonnade.deploy.books.audit import exported, verified
from colonnade.deploy.books.hash_chain import append, read_chain
from colonnade.deploy.books.journal import Comparison, Decision, Ended, Journal, SettingsChanged, read_journal
from colonnade.deploy.books.scored import ScoredLine
from colonnade.deploy.books.statements import Statement
from colonnade.deploy.models import stored_shares
from colonnade.deploy.runs import signing
from colonnade.errors import Refused, ShareError

BRIEF: dict[str, Any] = {"train": {"epochs": 2, "batch": 32, "l2": 1e-3}}


STRICT = 'accept = ["labels", "scores", "two-parties"]\nmin_rows = 20\nalgorithms = ["vfb2-svrg"]'


def books(consortium: Any, name: str) -> Path:
    return Path(consortium.folder(name)) / "runs" / "journal.jsonl"


def of(kind: Any, path: Path) -> list[Any]:
    return [each for each in read_journal(path)[0] if isinstance(each, kind)]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Three companies that have trained, scored and refused."""
    consortium = companies.lay_out(tmp_path_factory.mktemp("books"), bank=STRICT)

    async def program(daemons: Any) -> None:
        manifest = await daemons["bank"].train(companies.job(**BRIEF))
        share = daemons["bank"].serving.find(manifest.model)
        held = stored_shares.load(daemons["bank"].serving.models, share.model)

        async def use(ready: Any) -> int:
            await ready.session.ask(np.arange(5))
            return len(ready.ids)

        await daemons["bank"].score(held, None, use)
        for daemon in daemons.values():
            await companies.settled(daemon)
        with pytest.raises(Refused):
            await daemons["shop"].train(companies.job(name="again", algorithm="vfb2-sgd", **BRIEF))
        await until(lambda: all(len(of(Statement, books(consortium, n))) >= 2 for n in companies.NAMES))

    companies.together(consortium, program)
    return consortium


def test_both_sides_hold_what_the_other_has_signed(trained: Any) -> None:
    shop = of(Statement, books(trained, "shop"))
    bank = of(Statement, books(trained, "bank"))
    proposed = next(each for each in shop if each.peer == "bank" and each.what == "proposes")
    accepted = next(each for each in bank if each.peer == "shop" and each.what == "accepts")
    assert proposed.digest == accepted.digest == companies.job(**BRIEF).digest()
    assert all(each.fits() for each in [*shop, *bank])
    assert not msgspec.structs.replace(proposed, digest="0" * 64).fits()


def test_refusals_outcomes_scored_rows_shares_and_settings_are_in_the_books(trained: Any) -> None:
    bank, shop = books(trained, "bank"), books(trained, "shop")
    assert any(each.what == "refused" and "vfb2-sgd" in each.reason for each in of(Decision, bank))
    assert any(each.state == "refused" for each in of(Ended, shop))
    done = next(each for each in of(Ended, shop) if each.state == "done" and each.model)
    manifest = json.loads((shop.parent / "models" / done.model / "manifest.json").read_text())
    assert done.share == manifest["weights"]
    for path in (bank, shop):
        (scored,) = of(ScoredLine, path)
        assert (scored.asker, scored.model, scored.rows) == ("bank", done.model, 5)
        assert len(of(SettingsChanged, path)) == 1


def test_a_refusal_says_which_job_it_is_about(trained: Any) -> None:
    """Both in the books of the bank, which its policy refused, and in what it signed for the shop."""
    digest = companies.job(name="again", algorithm="vfb2-sgd", **BRIEF).digest()
    assert [each.digest for each in of(Decision, books(trained, "bank")) if each.what == "refused"] == [
        digest
    ]
    signed = [each for each in of(Statement, books(trained, "shop")) if each.what == "refuses"]
    assert [(each.peer, each.digest) for each in signed] == [("bank", digest)]


@pytest.mark.parametrize("who", ["bank", "shop"])
@pytest.mark.parametrize("other", [False, True])
def test_nothing_begins_that_is_not_signed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, who: str, other: bool
) -> None:
    """The proposer, or one that accepts, signs nothing, or another job than it proposes or accepts."""
    monkeypatch.setattr(signing, "STATED_S", 0.5)
    consortium = companies.lay_out(tmp_path)
    meant, signed = companies.job(**BRIEF).digest(), companies.job().digest()

    async def program(daemons: Any) -> str:
        books = daemons[who].books.signed
        say = books.say

        async def say_otherwise(peer: str, run: int, what: Any, digest: str) -> None:
            if other:
                await say(peer, run, what, signed if what != "refuses" else digest)

        monkeypatch.setattr(books, "say", say_otherwise)
        with pytest.raises(Refused) as told:
            await daemons["bank"].train(companies.job(**BRIEF))
        for daemon in daemons.values():
            await companies.settled(daemon)
            assert not of(Comparison, daemon.journal.path)
        return str(told.value)

    said = companies.together(consortium, program)
    what = {"bank": "proposes", "shop": "accepts"}[who]
    expected = f"{who} has not signed that it {what} run"
    if other:
        expected = f"read another job ({meant[:12]} against {signed[:12]}) than {who} has signed"
    assert f"shop refused: {expected}" in said


def test_a_journal_is_checked_with_what_its_peers_have_seen(trained: Any, tmp_path: Path) -> None:
    lines = list(exported("shop", books(trained, "shop")))
    found = verified("bank", books(trained, "bank"), lines)
    assert found["witnessed"] >= 1
    assert found["signed"]["shop"] >= 1
    # another journal with the same beginning: every hash fits, and the peers have seen other heads
    records, _ = read_chain(books(trained, "bank"))
    other, end = tmp_path / "journal.jsonl", Journal(tmp_path / "journal.jsonl").on_disk
    for record in [records[0].replace(b"since", b"until"), *records[1:]]:
        end = append(other, end, record)
    verified("bank", other)
    with pytest.raises(ShareError, match="another journal than bank had then"):
        verified("bank", other, lines)
    # a statement that nobody has signed
    forged = [record.replace(b'"accepts"', b'"refuses"', 1) for record in records]
    third, end = tmp_path / "third.jsonl", Journal(tmp_path / "third.jsonl").on_disk
    for record in forged:
        end = append(third, end, record)
    with pytest.raises(ShareError, match="not signed by its key"):
        verified("bank", third)


def test_a_journal_that_went_back_is_noticed_by_its_peers(tmp_path: Path, trained: Any) -> None:
    statement = of(Statement, books(trained, "shop"))[0]
    held = Journal(tmp_path / "journal.jsonl")
    held.witness(statement)
    later = msgspec.structs.replace(statement, run="00000010", count=statement.count - 1)
    held.witness(later)
    assert "ask its operator why" in of(Statement, held.path)[1].odd
    assert "the journal of bank had" in held.latest[-1]


def test_the_commands(trained: Any, tmp_path: Path) -> None:
    run = CliRunner()
    config = str(trained.config("shop"))
    out = run.invoke(command, ["export", "--config", config, "--kind", "statement"])
    assert out.exit_code == 0
    assert {json.loads(line)["type"] for line in out.output.splitlines()} == {"statement"}
    as_list = run.invoke(command, ["export", "--config", config, "--kind", "statement", "--json"])
    assert json.loads(as_list.stdout) == [json.loads(line) for line in out.output.splitlines()]
    seen = tmp_path / "shop.jsonl"
    seen.write_text(run.invoke(command, ["export", "--config", config]).output)
    checked = run.invoke(
        command, ["verify", "--config", str(trained.config("bank")), "--witness", str(seen), "--json"]
    )
    assert json.loads(checked.output)["witnessed"] >= 1
