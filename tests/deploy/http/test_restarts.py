"""A serving pair that is started again fifty times within a day; and one whose peer lists candidates."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.deploy.companies import connected, job, lay_out, settle, settled, together
from tests.deploy.consortium import write_csv
from tests.deploy.joined import ids_of
from tests.patience import until

from colonnade.deploy.books import journal as books
from colonnade.deploy.books.journal import Comparison, ComparisonOutcome, read_journal
from colonnade.deploy.daemon.daemon import Daemon
from colonnade.deploy.http import monitor
from colonnade.deploy.policy import membership
from colonnade.deploy.settings import Serve
from colonnade.net.stream.port import free_ports
from colonnade.shares import now

pytest.importorskip("aiohttp")

NAMES = ("bank", "shop")
POLICY = "accept = []\nmin_rows = 20\n"
LIMITS = "[limits]\nmissed_ids_a_day = 400\ncomparisons_a_day = 8\n"
RESTARTS, DAY_MIN = 50, 24 * 60


class Pair:
    """A bank that serves scores of applicants, of whom the shop knows some, on a clock that is set."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root, self.monkeypatch = root, monkeypatch
        self.consortium = lay_out(root, NAMES, bank=POLICY, shop=POLICY)
        settle(self.consortium, "shop", POLICY, LIMITS)
        self.known = ids_of(root / "shop" / "applicants.csv", "id")
        (port,) = free_ports(1)
        (root / "bank" / "token").write_text("a-token-of-some-length")
        (root / "bank" / "token").chmod(0o600)
        where, file = f"127.0.0.1:{port}", "token"
        self.serve = Serve(listen=where, model="repaid", data="applicants", token_file=file)

    def set_clock(self, minutes: float) -> None:
        """Let the books of both be so many minutes later than it is."""
        for module in (membership, books):
            self.monkeypatch.setattr(module, "now", lambda more=0.0: now(60 * minutes + more))

    def bring(self, ids: list[str]) -> None:
        """Have the bank come with these ids."""
        columns = {"income": [0.1 * k for k in range(len(ids))], "age": [0.0] * len(ids)}
        write_csv(self.root / "bank" / "applicants.csv", ids, columns)

    @asynccontextmanager
    async def serving(self, bank: Daemon) -> AsyncIterator[Any]:
        from colonnade.deploy.http.service import Service

        service = Service(bank, self.serve)
        await service.open()
        try:
            yield service
        finally:
            await service.close()

    async def train(self, daemons: dict[str, Daemon]) -> None:
        train, secure = {"epochs": 12, "l2": 1e-3}, {"labels": "blind", "reveal": "never"}
        await daemons["bank"].train(job(NAMES, algorithm="lbfgs", train=train, secure=secure))
        for name in NAMES:
            await settled(daemons[name])

    @staticmethod
    async def start_again(daemons: dict[str, Daemon], name: str) -> None:
        settings = daemons[name].settings
        await daemons[name].close()
        daemons[name] = Daemon(settings, apart=False)
        await daemons[name].open()
        await connected(daemons)


def is_ready(service: Any) -> bool:
    return bool(service.session.ready)


def is_away(service: Any) -> bool:
    return not service.session.ready


def is_settled(service: Any) -> bool:
    return is_ready(service) or service.session.reason != "the service is starting"


def strangers(count: int, first: int = 0) -> list[str]:
    return [f"S{first + k:05}" for k in range(count)]


@pytest.mark.slow
def test_a_pair_that_is_started_again_fifty_times_a_day_is_never_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every start announces all ids, of which ninety are not at the shop: four were more than a day's."""
    pair = Pair(tmp_path, monkeypatch)
    pair.bring([*pair.known, *strangers(90)])

    async def program(daemons: dict[str, Daemon]) -> None:
        await pair.train(daemons)
        for start in range(RESTARTS // 2):  # the bank, and then the shop while the bank goes on
            pair.set_clock(DAY_MIN / RESTARTS * 2 * start)
            await pair.start_again(daemons, "bank")
            async with pair.serving(daemons["bank"]) as service:
                await until(partial(is_ready, service))
                assert len(service.session.scorable.places) == len(pair.known)
                pair.set_clock(DAY_MIN / RESTARTS * (2 * start + 1))
                await pair.start_again(daemons, "shop")
                await until(partial(is_away, service))
                await until(partial(is_ready, service))
                assert monitor.page(daemons["bank"], "/ready") == ("200 OK", "ready\n")

    together(pair.consortium, program)
    written = read_journal(tmp_path / "shop" / "runs" / "journal.jsonl")[0]
    compared = [each for each in written if isinstance(each, Comparison) and each.purpose == "score"]
    assert len(compared) >= RESTARTS  # each restart was a session, and all but the first tell nothing new
    assert sum(not each.known for each in compared) == 1


def test_a_peer_that_lists_candidates_hears_of_no_more_than_a_day_allows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Through the service, lot by lot: what is not common is counted, and then nothing is compared."""
    pair = Pair(tmp_path, monkeypatch)

    async def program(daemons: dict[str, Daemon]) -> list[str]:
        await pair.train(daemons)
        reasons = []
        for lot in range(4):
            pair.bring([*pair.known[15 * lot : 15 * lot + 15], *strangers(135, 1000 * lot)])
            async with pair.serving(daemons["bank"]) as service:
                session = service.session
                await until(partial(is_settled, service))
                reasons.append("" if session.ready else session.reason)
                if reasons[-1]:
                    status, words = monitor.page(daemons["bank"], "/ready")
                    assert status.startswith("503")
                    assert "missed_ids_a_day" in words
        return reasons

    reasons = together(pair.consortium, program)
    assert reasons[0] == ""
    assert all("limits.missed_ids_a_day = 400" in each for each in reasons[2:])
    written = read_journal(tmp_path / "shop" / "runs" / "journal.jsonl")[0]
    found = [each for each in written if isinstance(each, ComparisonOutcome)]
    missed = sum(150 - each.rows for each in found)
    assert 0 < missed <= 400
    assert sum(each.rows for each in found) == 15 * len(found) < len(pair.known)
