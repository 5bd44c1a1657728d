"""Proposals that wait for an operator: approved, refused, out of time, withdrawn, or possible no longer."""

from __future__ import annotations

import asyncio
import json
import stat
from pathlib import Path
from typing import Any

import pytest
from tests.deploy.companies import ADA, job, lay_out, read_decisions, settled, together
from tests.patience import until

from colonnade.deploy.books.journal import Decision, Journal
from colonnade.deploy.daemon import operators, proposal_views, verbs
from colonnade.deploy.daemon.daemon import Daemon
from colonnade.deploy.session.session import Event
from colonnade.errors import JobError, Refused

ACCEPT = 'accept = ["labels", "scores", "two-parties", "similarity", "outputs"]\nmin_rows = 20\n'
ASK = ACCEPT + 'approval = "ask"\n'


async def waiting(daemon: Daemon) -> proposal_views.ProposalView:
    await until(lambda: bool(daemon.approvals.held))
    return proposal_views.proposals(daemon)[0]


def heard(daemon: Daemon, terms: Any, told: list[str]) -> asyncio.Task[Any]:
    def tell(event: Event) -> None:
        told.append(event.what)

    return asyncio.ensure_future(daemon.train(terms, tell))


def test_an_approved_proposal_is_run_and_written_down(tmp_path: Path) -> None:
    consortium = lay_out(tmp_path, shop=ASK)

    async def program(daemons: dict[str, Daemon]) -> tuple[proposal_views.ProposalView, Any, list[str]]:
        told: list[str] = []
        train = heard(daemons["bank"], job(), told)
        shop = daemons["shop"]
        seen = await waiting(shop)
        await until(lambda: any("approval" in each for each in told))
        assert not train.done()
        assert verbs.status(shop)["waiting"] == [seen.run]
        with pytest.raises(JobError, match="is not the one that was shown"):
            await operators.approve(shop, seen.run, ADA, digest="0" * 64)
        with pytest.raises(JobError, match="no proposal 12345678 waits here"):
            await operators.approve(shop, "12345678", ADA)
        await operators.approve(shop, seen.run, ADA, digest=seen.digest)
        manifest = await train
        await settled(shop)
        return seen, manifest, told

    seen, manifest, told = together(consortium, program)
    assert "waiting for shop's approval, for 60 min at most" in told
    assert (seen.job, seen.proposer, seen.columns, seen.data) == ("repaid", "bank", ("visits",), "customers")
    assert seen.leaks["labels"] == "every party can work out the label of every training row"
    assert f"visits of customers ({seen.rows} rows) are trained on" in seen.gives_away[0]
    assert "bank and telecom learn that shop brings" in seen.gives_away[1]
    assert json.loads(seen.terms)["name"] == "repaid"
    path = tmp_path / "shop" / "runs" / "journal.jsonl"
    (decision,) = read_decisions(path)
    assert (decision.what, decision.who, decision.digest) == ("approved", "ada (command)", manifest.digest)
    assert decision.run == manifest.run
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    (other,) = read_decisions(tmp_path / "telecom" / "runs" / "journal.jsonl")
    assert (other.what, other.who, other.proposer) == ("accepted", "policy", "bank")


def test_a_refusal_has_the_operators_words_and_ends_the_wait_for_others(tmp_path: Path) -> None:
    consortium = lay_out(tmp_path, shop=ASK, telecom=ASK)

    async def program(daemons: dict[str, Daemon]) -> str:
        train = heard(daemons["bank"], job(), [])
        seen = await waiting(daemons["shop"])
        await waiting(daemons["telecom"])
        await operators.refuse(daemons["shop"], seen.run, ADA, "not\nbefore\tJune")
        with pytest.raises(Refused) as told:
            await train
        # the other operator is not asked any longer
        await until(lambda: not daemons["telecom"].approvals.held)
        assert not daemons["bank"].runs
        return str(told.value)

    assert together(consortium, program) == "shop refused: its operator declined: not before June"
    (decision,) = read_decisions(tmp_path / "shop" / "runs" / "journal.jsonl")
    assert (decision.what, decision.who, "June" in decision.reason) == ("refused", "ada (command)", True)
    assert not read_decisions(tmp_path / "telecom" / "runs" / "journal.jsonl")


def test_time_runs_out(tmp_path: Path) -> None:
    consortium = lay_out(tmp_path, shop=ASK + "approval_s = 1.0\n")

    async def program(daemons: dict[str, Daemon]) -> str:
        with pytest.raises(Refused) as told:
            await daemons["bank"].train(job())
        return str(told.value)

    assert "shop refused: its operator did not approve it before" in together(consortium, program)
    (decision,) = read_decisions(tmp_path / "shop" / "runs" / "journal.jsonl")
    assert (decision.what, decision.who) == ("refused", "deadline")


def test_a_proposal_that_is_withdrawn_waits_no_more(tmp_path: Path) -> None:
    consortium = lay_out(tmp_path, shop=ASK)

    async def program(daemons: dict[str, Daemon]) -> list[str]:
        train = heard(daemons["bank"], job(), [])
        await waiting(daemons["shop"])
        train.cancel()
        await until(lambda: not daemons["shop"].approvals.held)
        assert not list((tmp_path / "shop" / "runs" / "waiting").glob("*"))
        assert not list((tmp_path / "bank" / "runs" / "proposed").glob("*"))
        return daemons["shop"].journal.latest

    assert any("withdrawn by bank" in each for each in together(consortium, program))


def test_everything_is_looked_at_again_when_it_is_approved(tmp_path: Path) -> None:
    consortium = lay_out(tmp_path, shop=ASK)

    async def program(daemons: dict[str, Daemon]) -> tuple[str, str]:
        train = heard(daemons["bank"], job(), [])
        seen = await waiting(daemons["shop"])
        (tmp_path / "shop" / "customers.csv").unlink()
        with pytest.raises(Refused) as here:
            await operators.approve(daemons["shop"], seen.run, ADA)
        with pytest.raises(Refused) as there:
            await train
        return str(here.value), str(there.value)

    here, there = together(consortium, program)
    assert "was approved and cannot be run any more" in here
    assert there == "shop refused: its data cannot be used as the job asks; its operator sees why"


def test_the_policy_comes_first_and_the_rule_of_a_peer_counts(tmp_path: Path) -> None:
    """What the policy forbids never waits; only the peer whose rule says so is asked about."""
    rule = f"{ACCEPT}[policy.peers.bank]\n{ASK}algorithms = ['vfb2-svrg']\n"
    consortium = lay_out(tmp_path, shop=rule)

    async def program(daemons: dict[str, Daemon]) -> str:
        with pytest.raises(Refused) as told:
            await daemons["bank"].train(job(algorithm="vfb2-sgd"))
        assert not daemons["shop"].approvals.held
        train = heard(daemons["bank"], job(), [])
        seen = await waiting(daemons["shop"])
        await operators.approve(daemons["shop"], seen.run, ADA)
        await train
        await settled(daemons["shop"])
        manifest = await daemons["telecom"].train(job())  # the general rule: nobody is asked
        assert manifest.party == "telecom"
        return str(told.value)

    assert "algorithm vfb2-sgd is not allowed here" in together(consortium, program)


def test_one_peer_cannot_fill_the_list(tmp_path: Path) -> None:
    consortium = lay_out(tmp_path, shop=ASK)

    async def program(daemons: dict[str, Daemon]) -> str:
        waits = [heard(daemons["bank"], job(seed=k), []) for k in range(4)]
        await until(lambda: len(daemons["shop"].approvals.held) == 4)
        with pytest.raises(Refused) as told:
            await daemons["bank"].train(job(seed=9))
        for each in waits:
            each.cancel()
        await asyncio.gather(*waits, return_exceptions=True)
        return str(told.value)

    assert "4 proposals of bank wait for this party's operator already" in together(consortium, program)


def test_the_journal_survives_a_line_that_was_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    journal = Journal(path)
    journal.decide(Decision(when="2026-01-01", what="approved", who="ada", about="x"))
    with path.open("a") as file:
        file.write('{"hash": "2026')
    assert [each.who for each in read_decisions(path)] == ["ada"]
    again = Journal(path)
    assert again.decisions[0].line() == "approved by ada: x"
    again.decide(again.decisions[0])
    assert len(read_decisions(path)) == 2
