"""Limits against a peer whose own program was changed: nothing of what it skips is needed at the other side.

The daemons are real ones on loopback. The bank proposes by hand and says on its lines what its own daemon
never would; the shop refuses it by the name of a limit, keeps no more than that, and serves everybody else.
"""

from __future__ import annotations

import asyncio
import logging
import re
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from tests.deploy.companies import (
    NAMES,
    connected,
    considered,
    job,
    lay_out,
    propose,
    running,
    settle,
    settled,
    together,
)
from tests.deploy.consortium import Consortium
from tests.deploy.joined import ids_of
from tests.patience import until

from colonnade.conversations.predict import CHUNK, Session
from colonnade.deploy.books.journal import Comparison, Journal, read_journal
from colonnade.deploy.daemon import commands, verbs
from colonnade.deploy.daemon.daemon import Daemon
from colonnade.deploy.policy.cost_limits import check_limits
from colonnade.deploy.policy.membership import ComparisonRequest, Membership
from colonnade.deploy.settings import Limits, Settings
from colonnade.deploy.terms.contract import check_terms
from colonnade.deploy.terms.terms import Scoring, Terms
from colonnade.errors import ColonnadeError, JobError, PeerLost, Refused
from colonnade.messages import (
    Abort,
    AskShare,
    Begin,
    Cancel,
    CutOff,
    Message,
    Points,
    Roster,
    Score,
    decode,
    encode,
)
from colonnade.net.frame import DATA, Header, Routes, pack
from colonnade.net.stream.mux import MessageLimits
from colonnade.shares import now

MB = 2**20


def limited(tmp_path: Path, limits: str, policy: str = "") -> Consortium:
    """Three companies; the shop has these limits."""
    consortium = lay_out(tmp_path)
    settle(consortium, "shop", policy, f"[limits]\n{limits}\n")
    return consortium


def proposal(**changes: Any) -> bytes:
    """A job as a proposal that nobody has checked."""
    plain = {**msgspec.to_builtins(job()), **changes}
    return msgspec.json.encode({"train": plain})


async def said(daemons: dict[str, Daemon], peer: str, message: Message) -> None:
    await daemons[peer].peers.controls["shop"].send("shop", message)


async def answered(daemons: dict[str, Daemon], number: int, terms: bytes) -> str:
    """Why the shop has refused a proposal that the bank made by hand; empty if it accepts."""
    shop, before = daemons["shop"], daemons["shop"].journal.ended["refused"]
    await propose(daemons["bank"], "shop", number, terms)
    await until(lambda: number in shop.runs or shop.journal.ended["refused"] > before)
    return "" if number in shop.runs else shop.journal.latest[-1]


async def withdrawn(daemons: dict[str, Daemon]) -> None:
    """Let every peer take back what it proposed to the shop."""
    shop = daemons["shop"]
    for run in list(shop.runs.values()):
        await said(daemons, run.proposer, Cancel(run.id, "enough"))
    await settled(shop)


def flood(daemons: dict[str, Daemon], peer: str, run: int, count: int, size: int) -> None:
    """Send frames of a run that nobody has asked for, past the peer's own checks."""
    route = Routes(peer, NAMES, run).to["shop"]
    wire = daemons[peer].mux.lines["shop"].wire
    assert wire is not None
    for number in range(count):
        points = encode(Points(number, np.zeros((size // 65, 65), dtype=np.uint8)))
        wire.send("shop", pack(Header(DATA, route, number + 1, 0), points, checked=False))


# -- proposals ------------------------------------------------------------------------------------------


def test_names_and_words_of_any_length(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A name is as long as its bytes; a reason that fills a page is no message; the log stays short."""
    consortium = limited(tmp_path, "epochs = 50")

    async def program(daemons: dict[str, Daemon]) -> None:
        shop = daemons["shop"]
        assert "name: has 400 bytes" in await answered(daemons, 16, proposal(name="\U0001d400" * 100))
        assert not await answered(daemons, 32, proposal())
        await said(daemons, "bank", Cancel(32, "x" * 900_000))
        await said(daemons, "bank", CutOff(32, 32, "x" * 900_000))
        await asyncio.sleep(0.2)
        assert 32 in shop.runs  # it was not read
        await said(daemons, "bank", Cancel(32, "x" * 2000))
        await settled(shop)
        assert sum(map(len, shop.journal.latest)) + sum(len(run.reason) for run in shop.journal.runs) < 10_000
        assert "bank" in shop.peers.controls

    together(consortium, program)
    assert len(caplog.text) < 50_000
    for told in (Abort("x" * 5000, ""), Abort("Aborted", "x" * 5000), Cancel(16, "x" * 5000)):
        with pytest.raises(ColonnadeError, match="does not decode"):
            decode(encode(told))


FDSKL: dict[str, Any] = {"algorithm": "fdskl"}


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"align": {"minimum": 10**30}}, "align.minimum: give at least 1"),
        ({"align": {"keys": [{"kind": "date", "formats": ["%Y"] * 17}]}}, "at most 16"),
        ({"prepare": {"woe": True}, "woe": {"bins": 10**9}}, "woe.bins: 1000000000 bins are too many"),
        ({"algorithm": "c-vfl", "cascade": {"local_steps": 10**9}}, "is over limits.epochs = 10000"),
        ({**FDSKL, "kernel": {"block": 10**9}}, "is over limits.parameters"),
        ({"algorithm": "fdskl-capped", "kernel": {"features": 10**9}}, "is over limits.parameters"),
        ({**FDSKL, "kernel": {"sigma": 1e308}}, "kernel.sigma: 1e+308 is not"),
        ({"train": {"step": 1e308}}, "train.step: 1e+308 is not"),
        ({"train": {"step": 5e-324}}, "train.step: 5e-324 is not"),
        ({"checkpoint": {"wait_s": 1e18}}, "is over limits.wait_s = 3600"),
        ({"network": {"deadline_s": 1e18}}, "is over limits.deadline_s = 600"),
        ({"cascade": {"directions": 10**9}}, "cascade.directions: 1000000000; at most"),
    ],
)
def test_numbers_that_multiply_what_a_job_costs(changes: Any, told: str) -> None:
    """Each was found by putting huge numbers into every field of a job, and running what was not refused."""
    terms = msgspec.convert({**msgspec.to_builtins(job()), **changes}, Terms)
    with pytest.raises((JobError, Refused), match=re.escape(told)):
        check_limits(Limits(), check_terms(terms, "job"), "shop")


def test_accomplices_cannot_fill_up_all_the_room_there_is(tmp_path: Path) -> None:
    """Two peers take every run that may go on at once; a third one, and the shop itself, are still served."""
    consortium = limited(tmp_path, "runs = 2\nruns_of_a_peer = 2")

    async def program(daemons: dict[str, Daemon]) -> str:
        shop = daemons["shop"]
        for number in (16, 32):
            assert not await answered(daemons, number, proposal())
        assert "limits.runs = 2" in await answered(daemons, 48, proposal())
        await propose(daemons["telecom"], "shop", 64, proposal())
        await until(lambda: 64 in shop.runs)
        await propose(daemons["telecom"], "shop", 80, proposal())
        await until(lambda: "limits.runs = 2" in shop.journal.latest[-1])
        assert len(shop.runs) == 3
        model = str((await shop.train(job())).model)
        await withdrawn(daemons)
        return model

    assert together(consortium, program).startswith("repaid-")


def test_proposals_that_come_at_once_share_one_room(tmp_path: Path) -> None:
    """Every one of them finds room when it comes; while its rows are read another takes it."""
    consortium = limited(tmp_path, "runs_of_a_peer = 1")

    async def program(daemons: dict[str, Daemon]) -> list[str]:
        shop = daemons["shop"]
        found = await asyncio.gather(
            *(considered(shop, "bank", 16 * k, proposal()) for k in range(1, 5)),
            return_exceptions=True,
        )
        assert len(shop.runs) == 1
        return [str(each) for each in found if isinstance(each, BaseException)]

    told = together(consortium, program)
    assert len(told) == 3
    assert all("limits.runs_of_a_peer = 1" in each for each in told)


# -- bytes that wait ------------------------------------------------------------------------------------


@pytest.mark.parametrize("apart", [False, True])
def test_what_a_peer_leaves_unread_is_counted_over_all_its_runs(tmp_path: Path, apart: bool) -> None:
    """Each run has little; together they have too much, and the largest ends. Nobody else's does."""
    consortium = limited(tmp_path, "waiting_mb = 8")

    async def main() -> None:
        async with running(consortium, apart=apart) as daemons:
            shop = daemons["shop"]
            for number in (16, 32, 48, 64):
                assert not await answered(daemons, number, proposal())
            await propose(daemons["telecom"], "shop", 80, proposal())
            await until(lambda: 80 in shop.runs)
            for number in (16, 32, 48):
                flood(daemons, "bank", number, 14, MB // 2)  # below the limit, each by itself
                await asyncio.sleep(0.2)
                assert sum(wire.waiting() for wire in shop.mux._runs._with("bank")) < 9 * MB
            await until(lambda: shop.mux.refused["OversizedMessage"] > 0)
            await said(daemons, "bank", Begin(16, job().digest()))
            await until(lambda: 16 not in shop.runs)
            assert "over limits.waiting_mb = 8" in shop.journal.latest[-1]
            assert 80 in shop.runs
            assert "bank" in shop.peers.controls
            await withdrawn(daemons)

    asyncio.run(main())


def test_answers_that_a_peer_never_acknowledges_are_not_kept_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Beside the runs, too: the bank asks and asks, reads every answer, and says of none that it has it."""
    monkeypatch.setattr("colonnade.net.stream.mux.CONTROL_ROOM", MessageLimits(MB, MB // 8))
    monkeypatch.setattr("colonnade.net.stream.run_wires.WEIGHED_EVERY", MB // 64)
    caplog.set_level(logging.INFO)

    async def program(daemons: dict[str, Daemon]) -> None:
        shop, line = daemons["shop"], daemons["bank"].peers.controls["shop"]
        kept = shop.peers.controls["bank"]
        ends = line._delivery._lines["shop"]

        def unacknowledging(payload: bytes) -> bytes:
            frame = pack((DATA, ends.to, ends.sent + 1, 0), payload, checked=False)
            ends.count(frame)
            return frame

        monkeypatch.setattr(ends, "pack", unacknowledging)
        monkeypatch.setattr(line._delivery, "_acknowledge", lambda sender, line: line.report())
        for number in range(5000):
            if shop.peers.controls.get("bank") is not kept:
                break
            await line.send("shop", AskShare(number, "x" * 200))
            if number % 20 == 0:
                await asyncio.sleep(0.005)
                await until(lambda: not kept._mailbox.waiting)  # questions that wait are another limit's
            assert kept.waiting < MB // 4
        await until(lambda: shop.peers.controls.get("bank") is not kept)
        assert kept.waiting == 0
        await connected(daemons)  # a new line, with nothing of the old one

    together(limited(tmp_path, "epochs = 50"), program)
    assert re.search(r"bank is away: bank lets \d+ bytes lie unread, 131072 are allowed", caplog.text)


# -- finding common rows, and scores --------------------------------------------------------------------


def test_what_stands_for_a_set_of_ids_is_no_longer_than_a_hash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is written into the shop's journal, which is kept for good."""
    consortium = limited(tmp_path, "epochs = 50")
    honest = Membership.commitment

    def long(self: Membership, ids: Any) -> bytes:
        return bytes(MB) if self.settings.name == "bank" else honest(self, ids)

    monkeypatch.setattr(Membership, "commitment", long)

    async def program(daemons: dict[str, Daemon]) -> str:
        with pytest.raises(ColonnadeError) as told:
            await daemons["bank"].train(job())
        await settled(daemons["shop"])
        return str(told.value)

    assert "bank sent what" in together(consortium, program)
    path = tmp_path / "shop" / "runs" / "journal.jsonl"
    assert path.stat().st_size < MB // 100  # the run, and what the parties have signed of it
    assert not any(isinstance(entry, Comparison) for entry in read_journal(path)[0])


def test_scores_are_asked_for_by_distinct_parties_and_so_many_rows_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    consortium = limited(tmp_path, "epochs = 50")
    applicants = ids_of(tmp_path / "bank" / "applicants.csv", "id")

    async def program(daemons: dict[str, Daemon]) -> tuple[list[str], str]:
        shop, bank = daemons["shop"], daemons["bank"]
        model = (await bank.train(job(use={"degraded": True}))).model
        for daemon in daemons.values():
            await settled(daemon)
        told = []
        for number, parties in enumerate(
            (("bank", *NAMES), ("bank", "telecom"), ("shop", "telecom"), ("shop",), ()), start=1
        ):
            terms = Scoring(model=model, asker="bank", parties=parties, data="applicants")
            asked = msgspec.json.encode({"score": msgspec.to_builtins(terms)})
            told.append(await answered(daemons, 16 * number, asked))
        assert not shop.runs

        async def ask(session: Session, rows: Any) -> Any:
            too_many = np.zeros(CHUNK + 1, dtype=np.int64)
            session._allow(too_many)  # modified software is not held back by itself
            await session.net.broadcast(Score(0, too_many))
            return await session.scorer.score(session, too_many)

        monkeypatch.setattr(Session, "ask", ask)
        request = commands.PredictRequest("repaid", [applicants], "applicants")
        with pytest.raises(ColonnadeError) as ended:
            await verbs._predict(bank, request, lambda event: None)
        await settled(shop)
        return told, str(ended.value)

    told, ended = together(consortium, program)
    assert len(told) == 5
    assert all("refused by policy: a proposal of bank" in each for each in told), told
    assert f"it asks for {CHUNK + 1} rows at once" in ended


# -- a daemon that is asked about runs without end ------------------------------------------------------


def test_a_peer_that_comes_back_again_and_again_is_counted_all_the_same(tmp_path: Path) -> None:
    """A new line, and a new start of the daemon, do not make the day's budget of comparisons anew."""
    consortium = limited(tmp_path, "comparisons_a_day = 2\nproposals_an_hour = 3")

    async def one(daemons: dict[str, Daemon]) -> None:
        await daemons["bank"].train(job())
        for daemon in daemons.values():
            await settled(daemon)

    async def lines(daemons: dict[str, Daemon]) -> str:
        await one(daemons)
        for _ in range(1):  # the line ends, and begins again
            line = daemons["bank"].mux.lines["shop"].wire
            assert line is not None
            line._lose(line._links["shop"], PeerLost("it went away"))
            await until(lambda: "shop" not in daemons["bank"].peers.controls)
            await connected(daemons)
        with pytest.raises(ColonnadeError) as told:
            await one(daemons)
        for daemon in daemons.values():
            await settled(daemon)
        await answered(daemons, 16, proposal())
        await said(daemons, "bank", Cancel(16, "enough"))
        return str(told.value) + await answered(daemons, 32, proposal())

    together(consortium, one)
    told = together(consortium, lines)
    assert "limits.comparisons_a_day = 2" in told
    assert "limits.proposals_an_hour = 3" in told


def test_who_asks_for_the_score_of_one_row_may_bring_one_id(tmp_path: Path) -> None:
    """What others hold are no candidates for it; where another asks, or to train, they are."""
    settings = Settings(name="bank", listen="127.0.0.1:1", peers={}, folder=str(tmp_path))
    guard = Membership(settings, Journal(tmp_path / "journal.jsonl"))
    rosters = {"shop": Roster(10_000, 1, b"", "", "curve")}
    asyncio.run(guard.admit(ComparisonRequest("00000010", "score", "customers", proposer="bank"), 1, rosters))
    for asked in (
        ComparisonRequest("00000011", "score", "customers", proposer="shop"),
        ComparisonRequest("00000012", "train", "customers", proposer="bank"),
    ):
        with pytest.raises(Refused, match="ids_ratio = 100 times the 1 of bank"):
            asyncio.run(guard.admit(asked, 1, rosters))


def test_a_clock_that_is_set_back_makes_no_budget_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings(
        name="shop", listen="127.0.0.1:1", peers={}, folder=str(tmp_path), limits=Limits(comparisons_a_day=1)
    )
    asked = ComparisonRequest(run="00000010", purpose="score", entry="customers", proposer="bank")
    rosters = {"bank": Roster(100, 1, b"", "", "curve")}

    def budget() -> Membership:
        return Membership(settings, Journal(tmp_path / "journal.jsonl"))  # as after a new start

    def set_clock(hours: int) -> None:
        for module in ("policy.membership", "books.journal"):
            monkeypatch.setattr(f"colonnade.deploy.{module}.now", lambda more=0.0: now(3600.0 * hours + more))

    asyncio.run(budget().admit(asked, 100, rosters))
    for hours in (-48, -1, 0, 23):
        set_clock(hours)
        with pytest.raises(Refused, match="comparisons_a_day = 1"):
            asyncio.run(budget().admit(asked, 100, rosters))
    set_clock(25)
    asyncio.run(budget().admit(asked, 100, rosters))
