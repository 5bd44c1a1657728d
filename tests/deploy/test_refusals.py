"""Refusals: whoever proposes reads a useful reason, and the other end has one in its journal or its log.

The log of a party is kept apart by its name in the text: all daemons run in this process.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.deploy.companies import NAMES, considered, job, lay_out, settled, together
from tests.deploy.consortium import Consortium
from tests.patience import until

from colonnade.deploy.daemon import verbs
from colonnade.deploy.daemon.daemon import Daemon
from colonnade.deploy.settings import read_settings
from colonnade.deploy.terms.terms import Prepare, Proposal
from colonnade.errors import JobError, PeerUnreachable, Refused
from colonnade.net.stream.authority import issue
from colonnade.net.stream.port import free_ports
from colonnade.net.stream.wire import NetworkWire

ACCEPT = 'accept = ["labels", "scores", "two-parties", "similarity", "outputs"]\n'


def refused(consortium: Consortium, terms: Any, at: str = "shop", **versions: str) -> tuple[str, str]:
    """What the proposer (the bank) is told, and what the party that refused has noted."""

    async def program(daemons: dict[str, Daemon]) -> tuple[str, str]:
        with pytest.raises((Refused, PeerUnreachable)) as told:
            await daemons["bank"].train(terms)
        await settled(daemons[at])
        return str(told.value), "; ".join(daemons[at].journal.latest)

    here, there = together(consortium, program, **versions)
    assert not list((consortium.root / "bank" / "runs").glob("models/*"))
    return here, there


async def lines_fail(consortium: Consortium, pair: tuple[str, str], word: str) -> tuple[str, str, str]:
    """Both daemons run and cannot meet: what `train` says at the first, and the status at either."""
    daemons = {name: Daemon(read_settings(consortium.config(name))) for name in consortium.names}
    for daemon in daemons.values():
        await daemon.open()
    first, second = (daemons[name] for name in pair)
    try:
        lines = first.mux.lines[second.me], second.mux.lines[first.me]
        await until(lambda: all(word in line.reason for line in lines))
        with pytest.raises(PeerUnreachable) as told:
            await first.train(job(pair))
        shown = [verbs.status(daemon)["peers"] for daemon in (first, second)]
        return str(told.value), shown[0][second.me]["reason"], shown[1][first.me]["reason"]
    finally:
        for daemon in daemons.values():
            await daemon.close()


# -- one: the policy forbids the algorithm ---------------------------------------------------------------


def test_policy_forbids_the_algorithm(tmp_path: Path) -> None:
    consortium = lay_out(tmp_path, shop=ACCEPT + 'algorithms = ["vfb-sgd"]')
    here, there = refused(consortium, job())
    assert "shop refused: algorithm vfb2-svrg is not allowed here; allowed: vfb-sgd" in here
    assert (
        "refused by policy: a proposal of bank: algorithm vfb2-svrg is not allowed here; allowed: vfb-sgd"
        in there
    )


def test_policy_does_not_accept_a_leak(tmp_path: Path) -> None:
    consortium = lay_out(tmp_path, shop='accept = ["scores"]', telecom='accept = ["scores", "labels"]')
    here, there = refused(consortium, job(algorithm="asyrevel-gau"))
    for text in (here, there):
        assert "asyrevel-gau leaks 'labels' (every party can work out the label" in text
        assert "its operator would have to add it to policy.accept" in text
    assert "telecom refused: asyrevel-gau leaks 'outputs' (the first label holder sees" in here


def test_policy_does_not_accept_that_everybody_sees_everything(tmp_path: Path) -> None:
    consortium = lay_out(tmp_path, shop='accept = ["scores", "labels", "outputs"]')
    here, _ = refused(consortium, job(algorithm="c-vfl"))
    assert "shop refused: c-vfl leaks 'embeddings' (every party sees what the others' models make" in here


def test_policy_for_one_peer(tmp_path: Path) -> None:
    consortium = lay_out(
        tmp_path, shop=ACCEPT + "[policy.peers.bank]\ntrain = false", telecom=ACCEPT + "min_parties = 4"
    )
    here, there = refused(consortium, job())
    assert "shop refused: bank may not propose training here" in here
    assert "bank may not propose training here" in there
    assert "telecom refused: 3 parties take part, 4 are demanded here" in here


# -- two: a column is missing ----------------------------------------------------------------------------


def test_a_column_is_missing_or_never_offered(tmp_path: Path) -> None:
    consortium = lay_out(tmp_path, telecom=ACCEPT + 'never = ["calls"]')
    parties: dict[str, dict[str, Any]] = {
        name: {"data": "customers", "label": name == "bank"} for name in NAMES
    }
    parties["shop"]["columns"] = ["vists"]
    parties["telecom"]["columns"] = ["calls"]
    here, there = refused(consortium, job(parties=parties))
    assert "shop refused: its data cannot be used as the job asks; its operator sees why" in here
    assert "visits" not in here  # its columns are its own business
    assert (
        "refused by policy: a proposal of bank: data.customers: no column 'vists' is offered; did you"
        in there
    )
    assert "did you mean 'visits'?" in there
    assert "telecom refused: column calls is never offered here" in here


def test_values_are_missing(tmp_path: Path) -> None:
    consortium = lay_out(tmp_path)
    path = tmp_path / "shop" / "customers.csv"
    lines = path.read_text().splitlines()
    lines[7] = lines[7].split(",")[0] + ","
    path.write_text("\n".join(lines) + "\n")
    here, there = refused(consortium, job(prepare=Prepare(missing="error")))
    assert "shop refused: its data cannot be used" in here
    assert "column 'visits', row 7 has no value" in there


# -- three: a wrong certificate --------------------------------------------------------------------------


def test_a_wrong_certificate(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The shop's certificate was issued anew, and nobody told the bank."""
    consortium = lay_out(tmp_path, ("bank", "shop"))
    for file in ("shop.crt", "shop.key"):
        (tmp_path / "authority" / file).unlink()
    issue(tmp_path / "authority", "shop")
    for file in ("shop.crt", "shop.key"):
        (tmp_path / "shop" / "certificates" / file).write_bytes((tmp_path / "authority" / file).read_bytes())
    told, here, there = asyncio.run(lines_fail(consortium, ("bank", "shop"), "pinned"))
    reason = "the certificate that shop presented to bank is not the pinned one; exchange shop.crt again"
    assert told == f"shop is away ({reason})"
    assert here == reason
    assert there == f"bank refused: {reason}"
    assert f"no line with shop: {reason}" in caplog.text  # the bank's log
    assert f"no line with bank: bank refused: {reason}" in caplog.text  # the shop's
    assert caplog.text.count("no line with shop") == 1  # once, however often it is tried


# -- four: a peer is away --------------------------------------------------------------------------------


def test_a_peer_is_away(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The telecom's port is closed to the bank: both run, neither finds the other."""
    consortium = lay_out(tmp_path, ("bank", "telecom"))
    (closed,) = free_ports(1)
    config = consortium.config("bank")
    config.write_text(config.read_text().replace(f":{consortium.ports['telecom']}", f":{closed}"))
    told, here, there = asyncio.run(lines_fail(consortium, ("bank", "telecom"), "could not reach"))
    reason = (
        f"bank could not reach telecom at 127.0.0.1:{closed} within 4 s: Connection refused; is it running"
    )
    assert told.startswith(f"telecom is away ({reason}")
    assert here.startswith(reason)
    assert f"telecom could not reach bank at 127.0.0.1:{consortium.ports['bank']}" in there
    assert "it did not connect; is it running, is the address right, the port open?" in there
    assert f"no line with telecom: {reason}" in caplog.text
    assert "no line with bank: telecom could not reach bank" in caplog.text


def test_a_peer_has_stopped_and_a_third_one_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    consortium = lay_out(tmp_path)

    async def program(daemons: dict[str, Daemon]) -> str:
        await daemons["telecom"].close()
        await until(lambda: "telecom" not in daemons["bank"].peers.controls)
        with pytest.raises(PeerUnreachable) as told:
            await daemons["bank"].train(job())
        return str(told.value)

    assert "telecom is away (telecom hung up; it was stopped, or it failed" in together(consortium, program)
    assert "telecom is away: telecom hung up; it was stopped, or it failed" in caplog.text


# -- five: the job differs by one byte -------------------------------------------------------------------


def test_the_job_differs_by_one_digit(tmp_path: Path) -> None:
    agreed = job()
    consortium = lay_out(tmp_path, shop=ACCEPT + f'approved = ["{agreed.digest()}"]')
    other = job(train={"epochs": 6, "batch": 32, "l2": 2e-3})
    here, there = refused(consortium, other)
    for text in (here, there):
        assert f"only approved jobs are run here; repaid has digest {other.digest()[:16]}, approved: " in text
        assert agreed.digest()[:16] in text
        assert "compare the job files" in text

    async def program(daemons: dict[str, Daemon]) -> Any:
        return await daemons["bank"].train(agreed)

    assert together(consortium, program).digest == agreed.digest()


def test_a_byte_of_the_job_changed_on_its_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The shop reads a 7 where the bank wrote a 6: neither goes on, and both say that the jobs differ."""
    consortium = lay_out(tmp_path)
    decode = msgspec.json.decode

    def misread(data: Any, **options: Any) -> Any:
        if options.get("type") is Proposal and next(turns) == 0:
            data = bytes(data).replace(b'"epochs":6', b'"epochs":7')
        return decode(data, **options)

    turns = iter([0, 1, 2, 3])
    monkeypatch.setattr("colonnade.deploy.negotiate.proposals.msgspec.json.decode", misread)
    terms, changed = job(), job(train={"epochs": 7, "batch": 32, "l2": 1e-3})

    async def program(daemons: dict[str, Daemon]) -> tuple[str, list[str]]:
        with pytest.raises(Refused) as told:
            await daemons["bank"].train(terms)
        for name in ("shop", "telecom"):
            await settled(daemons[name])
        return str(told.value), ["; ".join(daemons[name].journal.latest) for name in ("shop", "telecom")]

    here, there = together(consortium, program)
    reason = f"read another job ({changed.digest()[:12]} against {terms.digest()[:12]})"
    assert reason in here
    shop, telecom = there  # who read it wrongly sees that it is not what was signed
    assert f"{reason} than bank has signed" in shop
    assert f"withdrawn by bank: {here}" in telecom


# -- six: the version differs ----------------------------------------------------------------------------


def test_versions_differ(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    consortium = lay_out(tmp_path, ("bank", "shop"))

    async def program(daemons: dict[str, Daemon]) -> list[str]:
        told = []
        for name in ("bank", "shop"):
            with pytest.raises(Refused) as refusal:
                await daemons[name].train(job(("bank", "shop")))
            told.append(str(refusal.value))
        shown = verbs.status(daemons["shop"])["peers"]["bank"]
        return [*told, shown["reason"]]

    here, there, shown = together(consortium, program, shop="0.9.0", bank="0.1.0")
    assert here == "shop runs Colonnade 0.9.0, bank runs 0.1.0; install the same release at both"
    assert there == "bank runs Colonnade 0.1.0, shop runs 0.9.0; install the same release at both"
    assert shown == there
    assert here in caplog.text  # when they met, before anybody proposed anything
    assert there in caplog.text


def test_the_wire_protocol_differs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    consortium = lay_out(tmp_path, ("bank", "shop"))
    monkeypatch.setattr(NetworkWire, "protocol", property(lambda wire: 2 if wire.me == "shop" else 1))
    told, here, there = asyncio.run(lines_fail(consortium, ("bank", "shop"), "wire protocol"))
    reason = (
        "bank speaks version 1 of the wire protocol, shop speaks version 2; install the same minor version "
        "of Colonnade at both"
    )
    assert told == f"shop is away (shop refused: {reason})"
    assert here == f"shop refused: {reason}"
    assert there == reason
    assert f"no line with bank: {reason}" in caplog.text
    assert f"no line with shop: shop refused: {reason}" in caplog.text


# -- and two that propose one number at once -------------------------------------------------------------


def test_two_peers_propose_runs_of_one_number(tmp_path: Path) -> None:
    """Only one of them is accepted, though both are read while the number is still free."""
    consortium = lay_out(tmp_path)
    asked = msgspec.json.encode(Proposal(train=job()))

    async def program(daemons: dict[str, Daemon]) -> tuple[list[Any], list[str]]:
        shop, peers = daemons["shop"], ("bank", "telecom")
        answers = await asyncio.gather(
            *(considered(shop, p, 0x10, asked) for p in peers), return_exceptions=True
        )
        accepted = [p for p, each in zip(peers, answers, strict=True) if isinstance(each, str)]
        assert [run.proposer for run in shop.runs.values()] == accepted
        return answers, accepted

    answers, accepted = together(consortium, program)
    assert len(accepted) == 1
    (refusal,) = (each for each in answers if isinstance(each, Refused))
    assert str(refusal) == "run 00000010 is not a free number"


# -- and before anybody is asked -------------------------------------------------------------------------


def test_own_mistakes_are_found_before_anybody_is_asked(tmp_path: Path) -> None:
    consortium = lay_out(tmp_path)

    async def program(daemons: dict[str, Daemon]) -> None:
        with pytest.raises(JobError, match="is not a peer of bank"):
            await daemons["bank"].train(job((*NAMES, "insurer")))
        parties = {name: {"data": "clients", "label": name == "bank"} for name in NAMES}
        with pytest.raises(Refused, match="no data named clients is offered"):
            await daemons["bank"].train(job(parties=parties))
        assert not daemons["shop"].journal.latest

    together(consortium, program)
