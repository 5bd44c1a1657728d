"""Proposals wait for people, who take longer than daemons stand: restarts, two people, scores, terms."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.deploy.companies import ADA, connected, job, lay_out, read_decisions, settle, settled, together
from tests.deploy.negotiate.test_approvals import ACCEPT, ASK, heard, waiting
from tests.patience import until

from colonnade.deploy.agreed import today
from colonnade.deploy.daemon import commands, operators, proposal_views, verbs
from colonnade.deploy.daemon.daemon import Daemon
from colonnade.deploy.daemon.views import RunView
from colonnade.deploy.negotiate import approvals
from colonnade.deploy.people_settings import Person
from colonnade.deploy.settings import read_settings
from colonnade.errors import JobError, NotAllowed, Refused

PEOPLE = """[people.ada]
account = "ada@shop.example"
roles = ["approver"]
[people.ben]
account = "ben@shop.example"
roles = ["approver", "viewer"]
"""
KNOWN = {
    name: Person(name, "account", frozenset({"approver", "viewer"}), known=True) for name in ("ada", "ben")
}


def files(root: Path, folder: str) -> list[Path]:
    """What lies in a folder of a party."""
    return list((root / folder).glob("*.json"))


def operator_is_asked(proposer: Daemon) -> bool:
    """Whether a proposer knows that somebody's operator is asked."""
    return any(run.agreement is not None and bool(run.agreement.asked) for run in proposer.runs.values())


async def started_again(daemons: dict[str, Daemon], name: str) -> Daemon:
    """End a daemon and start it again, as after an upgrade of its machine."""
    await daemons[name].close()
    daemons[name] = again = Daemon(read_settings(Path(daemons[name].settings.folder) / "party.toml"))
    await again.open()
    return again


@pytest.mark.parametrize("name", ["shop", "bank", "telecom"])
def test_a_proposal_that_waits_outlives_every_daemon(tmp_path: Path, name: str) -> None:
    """The approver, the proposer, or somebody else is started again; then it is approved, and trained."""
    consortium = lay_out(tmp_path, shop=ASK)

    async def program(daemons: dict[str, Daemon]) -> None:
        begun = await verbs.act(
            daemons["bank"], commands.TrainRequest(job(), detach=True), lambda event: None, ADA
        )
        seen = await waiting(daemons["shop"])
        assert isinstance(begun, RunView)
        await until(lambda: bool(files(tmp_path, "bank/runs/proposed")))
        await started_again(daemons, name)
        await connected(daemons)
        shop, bank = daemons["shop"], daemons["bank"]
        await until(lambda: operator_is_asked(bank))
        (held,) = shop.approvals.held.values()
        assert (held.number, held.digest) == (seen.run, seen.digest)
        done = asyncio.ensure_future(
            verbs.act(bank, commands.WaitRequest(begun.run), lambda event: None, ADA)
        )
        await operators.approve(shop, seen.run, ADA, digest=seen.digest)
        trained: Any = await done
        assert trained["run"] == seen.run
        for daemon in daemons.values():
            await settled(daemon)
        for folder in ("bank/runs/proposed", "shop/runs/waiting"):
            assert not files(tmp_path, folder)

    together(consortium, program)


@pytest.mark.parametrize("approve", [True, False])
def test_it_is_decided_while_the_proposer_is_away(tmp_path: Path, approve: bool) -> None:
    consortium = lay_out(tmp_path, shop=ASK)

    async def program(daemons: dict[str, Daemon]) -> None:
        train = heard(daemons["bank"], job(), [])
        seen = await waiting(daemons["shop"])
        await until(lambda: bool(files(tmp_path, "bank/runs/proposed")))
        await daemons["bank"].close()
        await asyncio.gather(train, return_exceptions=True)
        shop = daemons["shop"]
        await until(lambda: "bank" not in shop.peers.controls)
        if approve:
            said = await operators.approve(shop, seen.run, ADA)
            assert "it begins when all are there" in said.reason
        else:
            await operators.refuse(shop, seen.run, ADA, "not before June")
        daemons["bank"] = bank = Daemon(read_settings(consortium.config("bank")))
        await bank.open()
        wait = verbs.act(bank, commands.WaitRequest(seen.run), lambda event: None, ADA)
        if approve:
            trained: Any = await wait
            assert trained["run"] == seen.run
        else:
            with pytest.raises(Refused, match="shop refused: its operator declined: not before June"):
                await wait
        await settled(shop)

    together(consortium, program)


def test_what_its_proposer_does_not_know_any_more_is_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(approvals, "ASK_AGAIN_S", 0.2)
    consortium = lay_out(tmp_path, shop=ASK)

    async def program(daemons: dict[str, Daemon]) -> None:
        train = heard(daemons["bank"], job(), [])
        await waiting(daemons["shop"])
        await until(lambda: bool(files(tmp_path, "bank/runs/proposed")))
        await daemons["bank"].close()
        await asyncio.gather(train, return_exceptions=True)
        for file in files(tmp_path, "bank/runs/proposed"):
            file.unlink()
        assert daemons["shop"].approvals.held
        daemons["bank"] = Daemon(read_settings(consortium.config("bank")))
        await daemons["bank"].open()
        await until(lambda: not daemons["shop"].approvals.held)

    together(consortium, program)


def test_two_people_approve_each_by_an_account_of_their_own(tmp_path: Path) -> None:
    consortium = lay_out(tmp_path)
    settle(consortium, "shop", f"{ASK}approvals = 2\n{PEOPLE}")

    async def program(daemons: dict[str, Daemon]) -> None:
        train = heard(daemons["bank"], job(), [])
        seen = await waiting(daemons["shop"])
        with pytest.raises(NotAllowed, match="2 people have to approve, each by an account of their own"):
            await operators.approve(daemons["shop"], seen.run, ADA)  # a name that was only typed in
        only_looks = Person("eve", "account", frozenset({"viewer"}), known=True)
        with pytest.raises(NotAllowed, match="it takes the role approver"):
            await operators.approve(daemons["shop"], seen.run, only_looks)
        first = await operators.approve(daemons["shop"], seen.run, KNOWN["ada"])
        assert (first.more, first.line()) == (
            1,
            "approved by ada (account): repaid of bank, 1 more to approve",
        )
        with pytest.raises(JobError, match="ada has approved repaid already"):
            await operators.approve(daemons["shop"], seen.run, KNOWN["ada"])
        await started_again(daemons, "shop")
        await connected(daemons)
        shown = await waiting(daemons["shop"])
        assert (shown.needs, shown.people) == (2, ("ada",))
        await until(
            lambda: any(run.agreement and run.agreement.asked for run in daemons["bank"].runs.values())
        )
        await operators.approve(daemons["shop"], seen.run, KNOWN["ben"])
        await train
        await settled(daemons["shop"])

    together(consortium, program)
    decisions = read_decisions(tmp_path / "shop" / "runs" / "journal.jsonl")
    assert [(each.what, each.people) for each in decisions] == [
        ("approved", ("ada",)),
        ("approved", ("ada", "ben")),
    ]


def test_scores_wait_for_an_approval_which_counts_until_it_is_revoked(tmp_path: Path) -> None:
    consortium = lay_out(tmp_path)
    settle(consortium, "shop", f'{ACCEPT}predict_approval = "ask"\n')

    async def program(daemons: dict[str, Daemon]) -> None:
        bank, shop = daemons["bank"], daemons["shop"]
        manifest = await bank.train(job())
        ids = ["C00401", "C00402"]

        def predict() -> asyncio.Task[Any]:
            request = commands.PredictRequest("repaid", [ids], "applicants")
            return asyncio.ensure_future(verbs.act(bank, request, lambda event: None, ADA))

        asked = predict()
        seen = await waiting(shop)
        assert (seen.kind, seen.job) == ("score", f"scores of {manifest.model} on applicants")
        assert "bank learns the total score of every row of applicants" in seen.gives_away[0]
        await operators.approve(shop, seen.run, ADA)
        assert len((await asked)["rows"]) == 2
        assert (await predict())["model"] == manifest.model  # nobody is asked again
        operators.revoke(shop, seen.run, ADA)
        asked = predict()
        again = await waiting(shop)
        await operators.refuse(shop, again.run, ADA, "the trial is over")
        for task in (asked, predict()):  # a refusal counts as well
            with pytest.raises(Refused, match="the trial is over"):
                await task
        operators.revoke(shop, again.run, ADA)
        asked = predict()
        await waiting(shop)
        asked.cancel()
        await until(lambda: not shop.approvals.held)

    together(consortium, program)
    decisions = read_decisions(tmp_path / "shop" / "runs" / "journal.jsonl")
    assert [each.what for each in decisions if each.what != "accepted"] == [
        *("approved", "revoked", "refused", "refused", "revoked")
    ]
    assert sum(each.who.startswith("approval of run") for each in decisions) == 1


def test_one_approval_counts_for_as_many_runs_as_the_job_says(tmp_path: Path) -> None:
    consortium = lay_out(tmp_path, shop=ASK)
    terms = job(runs_of_a_job=2)

    async def program(daemons: dict[str, Daemon]) -> list[str]:
        train = heard(daemons["bank"], terms, [])
        seen = await waiting(daemons["shop"])
        assert (seen.runs_of_a_job, seen.runs_before) == (2, 0)
        await operators.approve(daemons["shop"], seen.run, ADA)
        await train
        await daemons["bank"].train(terms)  # in the second night nobody is asked
        told = []
        for again in (terms, job(runs_of_a_job=3)):  # other terms under the same name are no way around
            train = heard(daemons["bank"], again, [])
            if again is terms:
                with pytest.raises(Refused) as error:
                    await train
                told.append(str(error.value))
            else:
                shown = await waiting(daemons["shop"])
                assert shown.runs_before == 2
                train.cancel()
                await until(lambda: not daemons["shop"].approvals.held)
        return told

    assert together(consortium, program) == ["repaid was run 2 times, runs_of_a_job = 2"]


@pytest.mark.parametrize(
    ("policy", "said", "why"),
    [
        (
            'purpose = ["credit"]',
            {"purpose": "churn"},
            "purpose = 'churn' is not allowed here; allowed: 'cred",
        ),
        ('contract = ["A-7"]', {}, "contract = '' is not allowed here; allowed: 'A-7'"),
        ('expires = "{later}"', {}, "a job may last until {later} here, this one says no day"),
        (
            'expires = "{later}"',
            {"expires": "{latest}"},
            "this one lasts until {latest}; set expires",
        ),
        ('expires = "2020-01-01"', {}, "the policy here has expired: its last day was 2020-01-01"),
        ("runs_of_a_job = 1", {}, ""),
    ],
)
def test_policy_and_job_agree_on_purpose_contract_and_last_day(
    tmp_path: Path, policy: str, said: dict[str, str], why: str
) -> None:
    days = {"later": str(today() + timedelta(days=30)), "latest": str(today() + timedelta(days=31))}
    contact = 'contact = "anna@shop.example"\n'
    consortium = lay_out(tmp_path, shop=f"{ACCEPT}{contact}{policy.format(**days)}\n")
    given: dict[str, Any] = {key: value.format(**days) for key, value in said.items()}
    terms = job(**given)

    async def program(daemons: dict[str, Daemon]) -> None:
        if not why:  # one run is allowed, and not another
            await daemons["bank"].train(terms)
            await settled(daemons["shop"])
        with pytest.raises(Refused) as told:
            await daemons["bank"].train(terms)
        expected = why.format(**days) if why else "repaid was run 1 times, runs_of_a_job = 1"
        assert expected in str(told.value)
        assert str(told.value).endswith("; ask anna@shop.example")

    together(consortium, program)


def test_a_job_whose_last_day_is_over_is_not_trained_or_scored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    consortium = lay_out(tmp_path)
    terms = job(expires=str(today()))

    async def program(daemons: dict[str, Daemon]) -> None:
        bank = daemons["bank"]
        await bank.train(terms)
        tomorrow = today() + timedelta(days=1)
        monkeypatch.setattr("colonnade.deploy.agreed.today", lambda: tomorrow)
        with pytest.raises(Refused, match="repaid has expired: its last day was"):
            await bank.train(terms)
        request = commands.PredictRequest("repaid", [["C00401"]], "applicants")
        with pytest.raises(Refused, match="repaid has expired"):
            await verbs.act(bank, request, lambda event: None, ADA)

    together(consortium, program)


def test_the_operator_reads_before_what_the_report_says_after(tmp_path: Path) -> None:
    from colonnade.deploy.daemon.report_facts import party_facts
    from colonnade.report.privacy import learnt

    consortium = lay_out(tmp_path, shop=ASK)

    async def program(daemons: dict[str, Daemon]) -> None:
        train = heard(daemons["bank"], job(secure={"labels": "blind"}), [])
        seen = await waiting(daemons["shop"])
        await operators.approve(daemons["shop"], seen.run, ADA)
        manifest = await train
        await settled(daemons["shop"])
        result = party_facts(daemons["shop"].settings, manifest.model).result
        after = [f"{party} {words}." for party, said in learnt(result).items() for words in said]
        assert sorted(seen.reads) == sorted(after)
        assert seen.notes == result.privacy.notes
        assert any("an owner of fewer than six" in note for note in seen.notes)
        assert any(line.startswith("bank, about columns of") for line in seen.heard)

    together(consortium, program)


def test_names_that_look_alike_are_refused(tmp_path: Path) -> None:
    with pytest.raises(JobError, match=r"job: parties: .* mix the scripts CYRILLIC and LATIN"):
        job(("bank", "\u0455\u04bb\u043e\u0440"))
    with pytest.raises(JobError, match=r"job: name: .* mixes the scripts CYRILLIC and LATIN"):
        job(name="rep\u0430id")
    consortium = lay_out(tmp_path)
    settle(consortium, "shop", more="[people]\n")
    text = consortium.config("shop").read_text().replace('bank = "', '"b\u0430nk" = "')
    consortium.config("shop").write_text(text)
    with pytest.raises(JobError, match=r"name and peers: .* mixes the scripts"):
        read_settings(consortium.config("shop"))


def test_proposal_views_are_json(tmp_path: Path) -> None:
    """What commands and programs get of a proposal has every word that the page shows."""
    names = proposal_views.ProposalView.__struct_fields__
    assert {"purpose", "contract", "contact", "expires", "reads", "notes", "heard", "people"} <= set(names)
