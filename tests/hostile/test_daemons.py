"""A peer that is pinned and says anything to a daemon: proposals, and all that daemons say beside the runs.

The daemon refuses or ignores it, by typed errors only, keeps no more than its limits allow, and goes on.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from tests.deploy.companies import NAMES, connected, job, lay_out, propose, settle, settled, together
from tests.hostile.altering import LAST_INT, altered, anything
from tests.patience import until

from colonnade.deploy.daemon.daemon import Daemon
from colonnade.deploy.negotiate.proposals import read_proposal, signed_digest
from colonnade.deploy.runs import signing
from colonnade.deploy.terms.terms import Proposal, Scoring
from colonnade.errors import PeerUnreachable, Refused
from colonnade.messages import (
    Answer,
    AskShare,
    Begin,
    Cancel,
    HaveShare,
    Message,
    Pending,
    Progress,
    Propose,
    decode,
)

ODD: tuple[Any, ...] = (
    None, True, -1, 0, 2**31, 10**9, 2**64, 1e308, -0.5, "", "x" * 5000, "../../etc/passwd", "a\nb\x1b[2J",
    [], {}, [[]], {"x": 1}, "NaN", ["bank"] * 50,
)  # fmt: skip
NUMBERS = (0, 1, 15, 16, 32, 48, 2**31, 2**32 - 16, 2**32, LAST_INT, -16)


def twisted(rng: np.random.Generator, plain: Any) -> Any:
    """JSON with one value exchanged for an odd one, dropped, or one more beside it."""
    if isinstance(plain, dict) and plain and rng.random() < 0.85:
        key = list(plain)[int(rng.integers(len(plain)))]
        if rng.random() < 0.1:
            return {other: value for other, value in plain.items() if other != key}
        return {**plain, key: twisted(rng, plain[key])}
    if isinstance(plain, dict) and rng.random() < 0.3:
        return {**plain, "surprise": ODD[int(rng.integers(len(ODD)))]}
    return ODD[int(rng.integers(len(ODD)))]


def proposal(rng: np.random.Generator, kind: int) -> bytes:
    """A proposal that is nearly one: of training, of scores, or nothing of the kind."""
    if kind == 0:
        return rng.bytes(int(rng.integers(0, 200)))
    scoring = Scoring(
        model="repaid", asker="bank", parties=NAMES, data="applicants", service=False, nonce="00"
    )
    whole = Proposal(train=job()) if kind < 5 else Proposal(score=scoring)
    plain = msgspec.to_builtins(whole)
    for _ in range(int(rng.integers(0, 3))):
        plain = twisted(rng, plain)
    return msgspec.json.encode(plain)


def message(rng: np.random.Generator) -> Message:
    """Something that daemons say to each other beside the runs, with anything in it."""
    number, text = int(rng.choice(NUMBERS)), str(ODD[int(rng.integers(len(ODD)))])
    match int(rng.integers(12)):
        case 0 | 1 | 2 | 3:
            return Propose(number, proposal(rng, int(rng.integers(8))))
        case 4:
            return Begin(number, job().digest() if rng.random() < 0.3 else text)
        case 5:
            return Cancel(number, text)
        case 6:
            return Answer(number, text, None if rng.random() < 0.5 else text)
        case 7:
            return Pending(number, float(rng.choice([np.nan, np.inf, -1.0, 1e300, 5.0])))
        case 8:
            return Progress(number, int(rng.choice(NUMBERS)), float(rng.choice([np.nan, 0.5, np.inf])))
        case 9:
            return AskShare(number, text)
        case 10:
            return HaveShare(number, text, text, None)
    return anything(rng, Cancel(number, text))


async def attack(daemons: dict[str, Daemon], seed: int, count: int) -> None:
    """The bank says so many things to the shop."""
    rng, shop = np.random.default_rng([seed, 5]), daemons["shop"]
    for _ in range(count):
        line = daemons["bank"].peers.controls.get("shop")
        if line is None:  # it said too much at once, and was hung up on
            await until(lambda: "shop" in daemons["bank"].peers.controls)
            continue
        said = message(rng)
        if isinstance(said, Propose) and rng.random() < 0.8:  # what nobody has signed is refused
            with suppress(Refused):
                digest = signed_digest(read_proposal(said.terms))
                await daemons["bank"].books.signed.say("shop", said.run, "proposes", digest)
        if isinstance(said, Propose | Begin | Cancel | Answer) and rng.random() < 0.2:
            for payload in altered(rng, said).payloads[:3]:
                try:
                    said = decode(payload)
                except Exception:  # noqa: S112  what is no message is for tests of the net
                    continue
                await line.send("shop", said)
        else:
            await line.send("shop", said)
        assert len(shop.runs) + len(shop.approvals.held) <= shop.settings.limits.runs
    for number in NUMBERS:
        if 0 < number < 2**32:
            await daemons["bank"].peers.send("shop", Cancel(number, "enough"))


async def serious(daemons: dict[str, Daemon]) -> Any:
    """A training that the bank means; before it, it may have said that it leaves, and must come back."""
    for _ in range(5):
        await connected(daemons)
        try:
            return await daemons["bank"].train(job())
        except (PeerUnreachable, Refused):
            await asyncio.sleep(1)
    raise AssertionError(daemons["shop"].journal.latest)


def survived(tmp_path: Path, caplog: pytest.LogCaptureFixture, seed: int, count: int) -> None:
    # what is not signed is waited for, one after the other
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(signing, "STATED_S", 0.05)
        _survived(tmp_path, caplog, seed, count)


def _survived(tmp_path: Path, caplog: pytest.LogCaptureFixture, seed: int, count: int) -> None:
    consortium = lay_out(tmp_path)

    async def program(daemons: dict[str, Daemon]) -> None:
        await attack(daemons, seed, count)
        shop = daemons["shop"]
        assert "telecom" in shop.peers.controls
        manifest = await serious(daemons)
        assert manifest.metrics["test_auc"] > 0.8
        await settled(shop)
        assert sum(map(len, shop.journal.latest)) < 200_000

    together(consortium, program)
    untyped = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert not untyped, [record.getMessage() for record in untyped]


def test_a_peer_that_talks_without_end_fills_no_memory_and_no_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Progress of a run from somebody who has no label, or again and again; proposals beyond any limit."""
    monkeypatch.setattr(signing, "STATED_S", 0.1)
    consortium = lay_out(tmp_path)
    settle(consortium, "shop", more="[limits]\nproposals_an_hour = 5\n")
    terms = Proposal(train=job()).written()

    async def program(daemons: dict[str, Daemon]) -> None:
        shop, bank, telecom = (daemons[name] for name in ("shop", "bank", "telecom"))
        await propose(bank, "shop", 16, terms)
        await until(lambda: 16 in shop.runs)
        followed = shop.runs[16].followed
        for number in range(300):
            await telecom.peers.send("shop", Progress(16, 1, 0.5))
            await bank.peers.send("shop", Progress(16, number % 4, 0.25))
            await bank.peers.send("shop", Progress(16, 10**9, 0.25))
            await bank.peers.send("shop", Pending(16, float("nan")))
            await bank.peers.send("shop", Propose(16, terms))
            await bank.books.signed.say("shop", 32, "proposes", "nothing")
        await until(lambda: shop.journal.ended["refused"] == 300)
        await bank.peers.send("shop", Cancel(16, "enough"))
        await settled(shop)
        assert followed.losses == [(0, 0.25), (1, 0.25), (2, 0.25), (3, 0.25)]

    together(consortium, program)
    refused = [record for record in caplog.records if "refused run" in record.getMessage()]
    assert len(refused) == 10


@pytest.mark.parametrize("seed", range(2))
def test_a_daemon_survives_whatever_a_peer_says(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, seed: int
) -> None:
    survived(tmp_path, caplog, seed, 120)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 104))
def test_a_daemon_survives_a_long_talk(tmp_path: Path, caplog: pytest.LogCaptureFixture, seed: int) -> None:
    survived(tmp_path, caplog, seed, 500)
