"""The privacy budget of labels: runs add up, a crash loses nothing, and what exceeds the limit is refused."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.deploy.companies import job, lay_out, settle, settled, together
from tests.patience import until

from colonnade.cli import main
from colonnade.deploy.books.ledger import Ledger, Spendable, Spending
from colonnade.deploy.daemon.daemon import Daemon
from colonnade.deploy.settings import Limits, Policy
from colonnade.deploy.terms.contract import Contract
from colonnade.errors import ColonnadeError, Refused, ShareError
from colonnade.privacy.counts import CountNoise

pytest.importorskip("dp_accounting")

ACCEPT = 'accept = ["labels", "scores", "outputs"]\nmin_rows = 20\n'
PRIVATE = {"mechanism": "scalar", "epsilon": 2.0, "clip": 1.0}


def private(**changes: Any) -> Any:
    train = {"epochs": 2, "batch": 64, "l2": 1e-3}
    return job(**{"algorithm": "asyrevel-gau", "train": train, "privacy": PRIVATE, **changes})


def spending(run: str, epsilon: float | None, **more: Any) -> Spending:
    return Spending(run, "repaid", "repaid", epsilon, more.get("delta", 1e-5), more.get("state", "spent"), "")


def test_spendings_add_up_and_what_is_left_is_named(tmp_path: Path) -> None:
    ledger, policy = Ledger(tmp_path), Policy(epsilon=3.0, delta=1e-4)
    ask = Spendable(1.0, 1e-5)
    ledger.check(policy, "repaid", ask)
    ledger.reserve(spending("10", 1.5))
    ledger.reserve(spending("20", 0.5, state="reserved"))
    ledger.check(policy, "repaid", ask)  # exactly what is left
    ledger.reserve(spending("30", 0.75))
    with pytest.raises(Refused, match=r"epsilon 1 would exceed .* labels repaid: 0.25 of 3 is left"):
        ledger.check(policy, "repaid", ask)
    ledger.check(policy, "churned", ask)  # another column has a budget of its own
    ledger.settle("20", 0.125)
    assert ledger.balance(policy, "repaid").epsilon == 1.5 + 0.125 + 0.75
    ledger.release("30")
    found = ledger.balance(policy, "repaid")
    assert (found.epsilon, found.reserved, found.left) == (1.625, 0.0, 1.375)
    with pytest.raises(Refused, match=r"delta 0.0001 would exceed .*: 8e-05 of 0.0001 is left"):
        ledger.check(policy, "repaid", Spendable(0.1, 1e-4))
    with pytest.raises(Refused, match="this job has no mechanism"):
        ledger.check(policy, "repaid", Spendable(None))
    ledger.check(Policy(), "repaid", Spendable(None))  # no budget, nothing to refuse
    assert Ledger(tmp_path).balance(policy, "repaid") == found  # it is on disk


def test_noise_beside_privacy_mechanisms_spends_too(tmp_path: Path) -> None:
    """An epsilon of gradients for every owner, and one of counts; without the first nothing is bounded."""
    blind = {"labels": "blind", "epsilon": 1.5}
    two, woe = ("bank", "shop"), {"prepare": {"woe": True}}
    counts = CountNoise(3.0).epsilon
    assert counts is not None

    def spent(names: tuple[str, ...], limits: Limits, **sections: Any) -> Spendable:
        return Spendable.of(Contract.of(job(names, algorithm="lbfgs", train={}, **sections)), limits)

    own = Limits(woe_noise=3.0)
    assert spent(two, own, secure=blind) == Spendable(1.5, 1e-5)
    assert spent((*two, "telecom"), own, secure=blind) == Spendable(3.0, 2e-5)  # they may lay it together
    assert spent(two, own, secure=blind, **woe) == Spendable(1.5 + counts, 2e-5)
    assert spent(two, own, secure={"labels": "blind"}, **woe).epsilon is None
    for vain in ({"labels": "clear", "epsilon": 0.1}, {**blind, "epsilon": None}):
        assert spent(two, own, secure=vain).epsilon is None
    other = Contract.of(job((*two, "telecom"), secure={"labels": "blind", "epsilon": 0.1}))
    assert (other.terms.algorithm, other.epsilon) == ("vfb2-svrg", None)  # no gradient is told there
    assert Spendable.of(other, own).epsilon is None
    policy = Policy(epsilon=3.0)
    Ledger(tmp_path).check(policy, "repaid", spent(two, own, secure=blind, **woe))
    with pytest.raises(Refused, match=r"epsilon 3.49\d+ would exceed the privacy budget .*: 3 of 3 is left"):
        Ledger(tmp_path).check(policy, "repaid", spent(two, Limits(), secure=blind, **woe))


def test_a_damaged_ledger_is_no_empty_one(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    ledger.reserve(spending("10", 1.0))
    (tmp_path / "ledger.json").write_text("[{")
    with pytest.raises(ShareError, match="is not a readable ledger"):
        ledger.check(Policy(epsilon=3.0), "repaid", Spendable(1.0, 1e-5))


def test_private_runs_spend_until_a_proposal_is_refused_at_both_ends(tmp_path: Path) -> None:
    consortium = lay_out(tmp_path, bank=ACCEPT + "epsilon = 3.5")

    async def program(daemons: dict[str, Daemon]) -> tuple[Any, str, str]:
        manifest = await daemons["shop"].train(
            private()
        )  # it reserves 2; what it spent takes the place of that
        await settled(daemons["bank"])
        (first,) = daemons["bank"].books.ledger.entries()
        assert first.state == "spent"
        assert first.epsilon is not None
        assert 0 < first.epsilon <= 2.0
        told = []
        for terms in (private(privacy={**PRIVATE, "epsilon": 3.4}), job()):
            with pytest.raises(Refused) as refusal:
                await daemons["shop"].train(terms)
            told.append(str(refusal.value))
        assert manifest.epsilon is None  # known where the label is
        return first, "; ".join(told), "; ".join(daemons["bank"].journal.latest)

    first, here, there = together(consortium, program)
    left = f"{3.5 - first.epsilon:g} of 3.5 is left"
    for text in (here, there):
        assert f"epsilon 3.4 would exceed the privacy budget of the labels repaid: {left}" in text
        assert "epsilon 3.5 in all), and this job has no mechanism" in text
    config = str(consortium.config("bank"))
    (found,) = json.loads(CliRunner().invoke(main, ["budget", "-c", config, "--json"]).stdout)
    assert found["epsilon"] == first.epsilon
    shown = CliRunner().invoke(main, ["budget", "-c", config]).stdout
    assert f"{3.5 - first.epsilon:.4g}" in shown
    assert "nothing to account for" in CliRunner().invoke(
        main, ["budget", "-c", str(consortium.config("telecom"))]
    ).stdout  # fmt: skip


def test_a_run_that_is_cut_off_leaves_its_reservation(tmp_path: Path) -> None:
    consortium = lay_out(tmp_path, bank=ACCEPT + "epsilon = 3.0")

    async def cut(daemons: dict[str, Daemon]) -> None:
        long = private(train={"epochs": 9000, "batch": 64, "l2": 1e-3})
        proposed = asyncio.ensure_future(daemons["bank"].train(long))
        await until(lambda: any(run.state == "running" for run in daemons["telecom"].runs.values()))
        (entry,) = daemons["bank"].books.ledger.entries()
        assert (entry.epsilon, entry.state) == (2.0, "reserved")  # before the first reply
        await until(lambda: any(run.session.told for run in daemons["bank"].runs.values()))
        await daemons["telecom"].close()
        with pytest.raises(ColonnadeError):
            await asyncio.wait_for(proposed, 60)

    async def again(daemons: dict[str, Daemon]) -> str:
        with pytest.raises(Refused) as told:
            await daemons["bank"].train(private())
        return str(told.value)

    together(consortium, cut)
    assert "1 of 3 is left" in together(consortium, again)  # a daemon that was started anew knows it


def test_a_proposal_that_another_party_refuses_costs_nothing(tmp_path: Path) -> None:
    consortium = lay_out(tmp_path, bank=ACCEPT + "epsilon = 3.0", shop=ACCEPT + "train = false")

    async def program(daemons: dict[str, Daemon]) -> None:
        for proposer in ("telecom", "bank"):
            with pytest.raises(Refused, match="shop refused"):
                await daemons[proposer].train(private())
            await settled(daemons["bank"])
            assert daemons["bank"].books.ledger.entries() == []

    together(consortium, program)


def test_two_proposals_at_once_cannot_spend_the_same_budget(tmp_path: Path) -> None:
    consortium = lay_out(tmp_path, bank=ACCEPT + "epsilon = 3.0")

    async def program(daemons: dict[str, Daemon]) -> list[Any]:
        both = [daemons[name].train(private(name=name)) for name in ("shop", "telecom")]
        return await asyncio.gather(*both, return_exceptions=True)

    found = together(consortium, program)
    refused = [each for each in found if isinstance(each, Refused)]
    assert len(refused) == 1
    assert "would exceed the privacy budget" in str(refused[0])


def test_a_run_without_a_bound_is_written_down(tmp_path: Path) -> None:
    consortium = lay_out(tmp_path)

    async def program(daemons: dict[str, Daemon]) -> None:
        await daemons["bank"].train(job(train={"epochs": 1, "batch": 64}))

    together(consortium, program)
    settle(consortium, "bank", ACCEPT + "epsilon = 3.0")
    (found,) = json.loads(
        CliRunner().invoke(main, ["budget", "-c", str(consortium.config("bank")), "--json"]).stdout
    )
    assert (found["unbounded"], found["epsilon"], found["left"]) == (1, 0.0, 3.0)


def test_labels_made_private_before_training_spend_exactly_epsilon(tmp_path: Path) -> None:
    """Any algorithm can train on them; randomised response has no delta."""
    consortium = lay_out(tmp_path, bank='accept = ["scores"]\nmin_rows = 20\nepsilon = 4.0')
    privacy = {"mechanism": "labels", "epsilon": 3.0}

    async def program(daemons: dict[str, Daemon]) -> str:
        await daemons["shop"].train(job(privacy=privacy))
        await settled(daemons["bank"])
        with pytest.raises(Refused) as told:
            await daemons["bank"].train(job(privacy=privacy))
        return str(told.value)

    assert "epsilon 3 would exceed the privacy budget of the labels repaid: 1 of 4 is left" in together(
        consortium, program
    )
    (entry,) = Ledger(tmp_path / "bank" / "runs").entries()
    assert (entry.epsilon, entry.delta, entry.state) == (3.0, 0.0, "spent")
