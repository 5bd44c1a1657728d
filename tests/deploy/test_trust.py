"""What a peer cannot make a party do or tell, whatever it sends: limits, ids as a budget, storing."""

from __future__ import annotations

import asyncio
import errno
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.deploy.companies import ADA, NAMES, job, lay_out, propose, settle, settled, together
from tests.deploy.consortium import Consortium
from tests.deploy.joined import ids_of
from tests.patience import until

from colonnade import shares as stored
from colonnade.deploy.books.journal import Comparison, read_journal
from colonnade.deploy.books.ledger import Ledger
from colonnade.deploy.daemon import commands, operators, verbs
from colonnade.deploy.daemon.daemon import Daemon
from colonnade.deploy.models import stored_shares
from colonnade.deploy.policy.cost_limits import check_limits
from colonnade.deploy.settings import Limits, Settings
from colonnade.deploy.terms.contract import check_terms
from colonnade.deploy.terms.terms import Proposal
from colonnade.errors import ColonnadeError, Refused, ShareError
from colonnade.job import Section
from colonnade.messages import Begin, Cancel

ACCEPT = 'accept = ["labels", "scores", "two-parties", "similarity", "outputs"]\nmin_rows = 20\n'


def limited(tmp_path: Path, limits: str, policy: str = ACCEPT) -> Consortium:
    """Three companies; the shop has these limits and this policy."""
    consortium = lay_out(tmp_path)
    settle(consortium, "shop", policy, f"[limits]\n{limits}\n")
    return consortium


async def fails(daemons: dict[str, Daemon], **changes: Any) -> str:
    """What the bank is told when it proposes this, after everybody has forgotten the run."""
    with pytest.raises(ColonnadeError) as told:
        await daemons["bank"].train(job(**changes))
    for daemon in daemons.values():
        await settled(daemon)
    return str(told.value)


# -- what a job may cost --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "limit"),
    [
        ({"train": {"epochs": 10**9}}, "epochs = 10000"),
        ({"algorithm": "vfb-sgd", "train": {"epochs": 3, "loss": "softmax", "classes": 10**9}}, "classes"),
        ({"network": {"deadline_s": 1e18}}, "deadline_s = 600"),
        (
            {"algorithm": "tig", "model": {"kind": "mlp", "hidden": [4096] * 16, "outputs": 4096}},
            "parameters = 2e+07",
        ),
    ],
)
def test_a_job_that_would_cost_too_much_is_refused_before_it_costs_anything(changes: Any, limit: str) -> None:
    contract = check_terms(job(**changes), "job")
    with pytest.raises(Refused, match=re.escape(f"is over limits.{limit}")):
        check_limits(Limits(), contract, "shop")


def test_columns_count_once_they_are_known() -> None:
    changes: Any = {"train": {"epochs": 3, "loss": "softmax", "classes": 100}}
    contract = check_terms(job(algorithm="vfb-sgd", **changes), "job")
    check_limits(Limits(parameters=1000), contract, "shop", columns=10)
    with pytest.raises(Refused, match=r"parameters = 1100 is over limits\.parameters = 1000"):
        check_limits(Limits(parameters=1000), contract, "shop", columns=11)


def test_limits_of_a_peer_and_run_0(tmp_path: Path) -> None:
    consortium = limited(tmp_path, "runs_of_a_peer = 2\nproposals_an_hour = 6\nepochs = 50")
    terms = msgspec.json.encode(Proposal(train=job()), order="deterministic")

    async def program(daemons: dict[str, Daemon]) -> list[str]:
        shop, line = daemons["shop"], daemons["bank"].peers.controls["shop"]
        assert "shop refused: epochs = 51 is over limits.epochs = 50" in await fails(
            daemons, train={"epochs": 51, "batch": 32}
        )
        for number in (0, 16, 32, 48):
            await propose(daemons["bank"], "shop", number, terms)
        await line.send("shop", Cancel(0, "never mind"))
        await until(lambda: any("runs_of_a_peer" in text for text in shop.journal.latest))
        for number in (16, 32):
            await line.send("shop", Cancel(number, "enough"))
        await settled(shop)
        for number in (64, 80):
            await propose(daemons["bank"], "shop", number, terms)
        await until(lambda: any("proposals_an_hour" in text for text in shop.journal.latest))
        assert line is daemons["bank"].peers.controls["shop"]  # the line between them stands
        return shop.journal.latest

    text = "; ".join(together(consortium, program))
    assert "run 00000000 is not a free number" in text
    assert "2 runs go on or wait here, limits.runs_of_a_peer = 2" in text
    assert "limits.proposals_an_hour = 6 is reached here" in text


def test_a_run_takes_as_long_as_this_party_allows_and_its_operator_ends_it(tmp_path: Path) -> None:
    consortium = limited(tmp_path, "run_s = 1.5")
    long: Any = {"train": {"epochs": 9000, "batch": 32, "l2": 1e-3, "tolerance": 0.0}}

    async def overtime(daemons: dict[str, Daemon]) -> str:
        return await fails(daemons, **long)

    assert "limits.run_s = 1.5 of shop is over" in together(consortium, overtime)
    settle(consortium, "shop", ACCEPT)  # or its limit could be over first

    async def stopped(daemons: dict[str, Daemon]) -> str:
        proposed = asyncio.ensure_future(daemons["bank"].train(job(name="other", **long)))
        await until(lambda: any(run.state == "running" for run in daemons["telecom"].runs.values()))
        (run,) = daemons["telecom"].runs.values()
        decision = operators.stop(daemons["telecom"], run.number, ADA)
        assert (decision.what, decision.who, decision.proposer) == ("stopped", "ada (command)", "bank")
        with pytest.raises(ColonnadeError) as told:
            await asyncio.wait_for(proposed, 60)
        return str(told.value)

    assert "telecom was told to stop by its operator" in together(consortium, stopped)


# -- ids as a budget ------------------------------------------------------------------------------------


def test_another_set_of_ids_needs_the_consent_of_job_and_policy(tmp_path: Path) -> None:
    """Also under another name of the peer's entry, and after a run that was made to fail."""
    consortium = limited(tmp_path, "id_sets_a_day = 2")
    path = tmp_path / "bank" / "customers.csv"
    config = consortium.config("bank")
    other = '[data.same]\nfile = "customers.csv"\nid = "id"\nlabel = "repaid"\n[policy]'
    config.write_text(config.read_text().replace("[policy]", other))

    def drop_one() -> None:
        path.write_text("\n".join(path.read_text().splitlines()[:-1]) + "\n")

    async def program(daemons: dict[str, Daemon]) -> list[str]:
        told = [await fails(daemons, align={"minimum": 340})]  # it fails, and it counts
        drop_one()
        parties = {name: {"data": "customers", "label": name == "bank"} for name in NAMES}
        told.append(await fails(daemons, parties={**parties, "bank": {"data": "same", "label": True}}))
        told.append(await fails(daemons, align={"changed": "accept"}))
        return told

    few, renamed, by_job_alone = together(consortium, program)
    assert "fewer ids are common to all parties than the 340 that are needed" in few
    assert "bank brings other ids than the time before" in renamed
    assert "bank brings other ids than the time before" in by_job_alone
    for name in ("shop", "telecom"):
        settle(consortium, name, ACCEPT + 'changed = "accept"', "[limits]\nid_sets_a_day = 2\n")

    async def accepted(daemons: dict[str, Daemon]) -> str:
        assert (await daemons["bank"].train(job(align={"changed": "accept"}))).metrics
        for daemon in daemons.values():
            await settled(daemon)
        drop_one()
        return await fails(daemons, align={"changed": "accept"})

    assert "limits.id_sets_a_day = 2 of bank is reached" in together(consortium, accepted)
    written, _ = read_journal(tmp_path / "shop" / "runs" / "journal.jsonl")
    compared = [each for each in written if isinstance(each, Comparison) and each.peer == "bank"]
    assert [each.purpose for each in compared] == ["train"] * 2
    assert compared[0].peer_ids == compared[1].peer_ids + 1


@pytest.mark.parametrize(
    ("limit", "text"), [("ids = 300", "ids = 300"), ("ids_ratio = 0.5", "0.5 times the")]
)
def test_a_peer_that_brings_too_many_ids_is_refused_before_any_is_compared(
    tmp_path: Path, limit: str, text: str
) -> None:
    told = together(limited(tmp_path, limit), fails)
    assert text in told
    assert "nothing was compared" in told
    written, _ = read_journal(tmp_path / "shop" / "runs" / "journal.jsonl")
    assert not [each for each in written if isinstance(each, Comparison)]


def test_ids_that_a_peer_asks_scores_for_are_counted_once(tmp_path: Path) -> None:
    consortium = limited(tmp_path, "scored_ids_a_day = 100")
    applicants = ids_of(tmp_path / "bank" / "applicants.csv", "id")

    async def program(daemons: dict[str, Daemon]) -> str:
        await daemons["bank"].train(job())

        async def predict(ids: list[list[str]]) -> None:
            for daemon in daemons.values():
                await settled(daemon)
            request = commands.PredictRequest("repaid", ids, "applicants")
            await verbs._predict(daemons["bank"], request, lambda event: None)

        for _ in range(3):  # the same ids again tell nothing new
            await predict([applicants])
        with pytest.raises(ColonnadeError) as told:
            await predict([applicants[:50]])
        return str(told.value)

    told = together(consortium, program)
    assert "bank asks about 50 ids after 60 within a day, limits.scored_ids_a_day = 100" in told


def test_scores_without_a_party_need_its_consent(tmp_path: Path) -> None:
    """Scores with and without a party differ by its exact part, so every other party must allow that."""
    consortium = lay_out(tmp_path, shop=ACCEPT)
    applicants = ids_of(tmp_path / "bank" / "applicants.csv", "id")

    async def program(daemons: dict[str, Daemon]) -> str:
        await daemons["bank"].train(job(use={"degraded": True}))
        await settled(daemons["shop"])
        await daemons["telecom"].close()
        await until(lambda: "telecom" not in daemons["bank"].peers.controls)
        request = commands.PredictRequest("repaid", [applicants], "applicants")
        with pytest.raises(Refused) as told:
            await verbs._predict(daemons["bank"], request, lambda event: None)
        return str(told.value)

    assert "scores while a party is away are not allowed here" in together(consortium, program)
    settle(consortium, "shop", ACCEPT + "degraded = true\nmin_parties = 3")

    async def with_two(daemons: dict[str, Daemon]) -> str:
        await daemons["telecom"].close()
        await until(lambda: "telecom" not in daemons["bank"].peers.controls)
        request = commands.PredictRequest("repaid", [applicants], "applicants")
        with pytest.raises(Refused) as told:
            await verbs._predict(daemons["bank"], request, lambda event: None)
        return str(told.value)

    assert "2 parties would score, 3 are demanded here" in together(consortium, with_two)


# -- books and files ------------------------------------------------------------------------------------


def test_a_run_that_told_nothing_costs_no_budget(tmp_path: Path) -> None:
    policy = ACCEPT + "epsilon = 3.0"
    consortium = lay_out(tmp_path, bank=policy)
    private = {"mechanism": "labels", "epsilon": 1.0}

    async def program(daemons: dict[str, Daemon]) -> float | None:
        bank, line = daemons["bank"], daemons["shop"].peers.controls["bank"]
        terms = job(privacy=private)
        await propose(daemons["shop"], "bank", 16, Proposal(train=terms).written())
        await until(lambda: 16 in bank.runs)
        assert Ledger(bank.settings.state).balance(bank.settings.policy, "repaid").left == 2.0
        await line.send("bank", Begin(16, terms.digest()))
        await until(lambda: bank.runs[16].state == "running")
        await line.send("bank", Cancel(16, "never mind"))
        await settled(bank)
        return Ledger(bank.settings.state).balance(bank.settings.policy, "repaid").left

    assert together(consortium, program) == 3.0


def test_shares_are_stored_by_all_or_by_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    consortium = lay_out(tmp_path)
    write = stored._write

    def full(path: Path, content: bytes) -> None:
        if "shop" in str(path) and "second" in str(path):
            raise OSError(errno.ENOSPC, "No space left on device")
        write(path, content)

    monkeypatch.setattr(stored, "_write", full)

    async def program(daemons: dict[str, Daemon]) -> str:
        await daemons["bank"].train(job(name="first"))
        for daemon in daemons.values():
            await settled(daemon)
        return await fails(daemons, name="second")

    told = together(consortium, program)
    assert "shop" in told
    assert "cannot read or store its share" in told
    assert str(tmp_path) not in told
    for name in NAMES:
        models = tmp_path / name / "runs" / "models"
        assert [manifest.terms.name for manifest in stored_shares.listing(models)] == ["first"]
        assert len(list(models.iterdir())) == 1  # nothing half-written


def test_a_damaged_model_hides_only_itself(tmp_path: Path) -> None:
    consortium = lay_out(tmp_path)

    async def program(daemons: dict[str, Daemon]) -> None:
        for name in ("first", "second"):
            await daemons["bank"].train(job(name=name))
            for daemon in daemons.values():
                await settled(daemon)

    together(consortium, program)
    models = tmp_path / "bank" / "runs" / "models"
    (path,) = models.glob("second-*/manifest.json")
    path.write_bytes(path.read_bytes()[:100])
    assert stored_shares.load(models, "first").manifest.terms.name == "first"
    with pytest.raises(ShareError, match="is not a readable manifest"):
        stored_shares.load(models, "second")


def test_a_full_disk_does_not_end_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    consortium = lay_out(tmp_path, bank=ACCEPT + "epsilon = 3.0")
    terms = job(privacy={"mechanism": "labels", "epsilon": 1.0})

    def full(self: Ledger, run: str) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    async def program(daemons: dict[str, Daemon]) -> Any:
        bank, line = daemons["bank"], daemons["shop"].peers.controls["bank"]
        await propose(daemons["shop"], "bank", 16, Proposal(train=terms).written())
        await until(lambda: 16 in bank.runs)
        monkeypatch.setattr(Ledger, "release", full)
        await line.send("bank", Cancel(16, "never mind"))
        await settled(bank)
        monkeypatch.undo()
        return await daemons["shop"].train(terms)

    assert together(consortium, program).model.startswith("repaid-")


@pytest.mark.parametrize("damage", ["change", "drop"])
def test_the_journal_shows_where_it_was_changed(tmp_path: Path, damage: str) -> None:
    consortium = lay_out(tmp_path)

    async def program(daemons: dict[str, Daemon]) -> str:
        await daemons["bank"].train(job())
        await settled(daemons["shop"])
        return daemons["shop"].journal.last

    last = together(consortium, program)
    path = tmp_path / "shop" / "runs" / "journal.jsonl"
    written, read = read_journal(path)
    assert read.last == last
    assert sum(isinstance(entry, Comparison) for entry in written) == 2  # with two peers
    lines = path.read_bytes().splitlines(keepends=True)
    at = next(k for k, line in enumerate(lines) if b"comparison" in line)
    lines[at] = lines[at].replace(b'"own_ids":3', b'"own_ids":4') if damage == "change" else b""
    path.write_bytes(b"".join(lines))
    with pytest.raises(ShareError, match="does not follow from those before it"):
        read_journal(path)


def test_seeds_and_names_that_cannot_be_used_are_refused_before_training() -> None:
    with pytest.raises(ColonnadeError, match="seed: 18446744073709551616 is not a number"):
        job(seed=2**64)
    with pytest.raises(ColonnadeError, match="name: has 300 bytes"):
        job(name="x" * 300)
    assert job(seed=2**63 - 1).seed == 2**63 - 1


def test_a_version_with_one_key_more_agrees_with_one_that_does_not_know_it() -> None:
    class Older(Section, frozen=True):
        epochs: int = 10

    class Newer(Section, frozen=True):
        epochs: int = 10
        pace: str = "steady"

    assert Older(epochs=3).digest() == Newer(epochs=3).digest() != Newer(epochs=3, pace="fast").digest()
    assert msgspec.json.decode(Newer(epochs=3).written(), type=Older) == Older(epochs=3)
    terms = job()
    assert msgspec.json.decode(Proposal(train=terms).written(), type=Proposal).train == terms
    assert b"align" not in Proposal(train=terms).written()  # nothing that is as it is by default


def test_a_line_may_be_down_for_half_a_minute() -> None:
    assert Settings(name="bank", listen="127.0.0.1:1", peers={}).reconnect_s >= 30
