"""What peers can find out about ids: guesses are few a day, and whoever begins again pays nothing."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from colonnade.arrays import Digests
from colonnade.conversations.align import leader_of, most_written
from colonnade.conversations.align.layout import capacity, tables_for
from colonnade.deploy.books import journal as books
from colonnade.deploy.books.journal import Journal
from colonnade.deploy.policy import membership
from colonnade.deploy.policy.membership import ComparisonRequest, Membership, announced
from colonnade.deploy.settings import Limits, Policy, Rule, Settings
from colonnade.errors import ChangedIds, Refused
from colonnade.messages import Roster
from colonnade.secure.hints import size_for
from colonnade.shares import now


def digests(*, of: int, first: int = 0) -> Digests:
    """Ids first, first + 1, ... as digests."""
    ids = np.zeros((of, 32), dtype=np.uint8)
    ids[:, :8] = np.arange(first, first + of, dtype=np.uint64).reshape(-1, 1).view(np.uint8)
    return ids


class Companies:
    """A shop, and a bank that asks for scores with ids that it chooses."""

    def __init__(self, folder: Path, **changes: Any) -> None:
        shop = Settings(name="shop", listen="127.0.0.1:1", peers={}, folder=str(folder / "shop"))
        self.shop = msgspec.structs.replace(shop, **changes)
        self.bank = Settings(name="bank", listen="127.0.0.1:2", peers={}, folder=str(folder / "bank"))
        self.customers = digests(of=2000)
        self.runs = 0

    def ask(self, ids: Digests, *, says: Digests | None = None, purpose: str = "score") -> int:
        """Compare ids, in a daemon that was just started; returns how many are common. `says` are others that
        the bank announces."""
        self.runs += 1
        guard = Membership(self.shop, Journal(self.shop.state / "journal.jsonl"))
        asked = ComparisonRequest(f"{self.runs:08x}", purpose, "customers", proposer="bank")  # type: ignore[arg-type]
        told = announced(self.bank, ids if says is None else says)
        asyncio.run(guard.admit(asked, len(self.customers), {"bank": Roster(len(ids), 1, told, "", "curve")}))
        both = np.isin(ids.view("S32").ravel(), self.customers.view("S32").ravel())
        common = ids[both]
        guard.found(self.customers, common)
        return len(common)


def test_a_session_that_begins_again_fifty_times_costs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every restart of a service announces all its ids; 29,100 of them were more than a day's budget."""
    companies = Companies(tmp_path)
    all_ids = digests(of=29_100)
    companies.ask(all_ids, purpose="train")
    for restart in range(50):
        minutes = 28 * restart
        for module in (membership, books):
            monkeypatch.setattr(module, "now", lambda more=0.0, s=60.0 * minutes: now(s + more))
        assert companies.ask(all_ids) == 2000
    lines = (companies.shop.state / "journal.jsonl").read_text().splitlines()
    assert len([line for line in lines if line]) == 1 + 2 * 50


def test_who_lists_candidates_finds_few_of_the_customers_a_day(tmp_path: Path) -> None:
    companies, found = Companies(tmp_path), 0
    candidates = np.random.default_rng(5).permutation(digests(of=20_000))
    lots = [candidates[start : start + 300] for start in range(0, 20_000, 300)]
    for lot in lots:
        with suppress(Refused):
            found += companies.ask(lot)
    with pytest.raises(Refused, match=r"limits\.missed_ids_a_day = 1000; nothing was compared"):
        companies.ask(lots[-1])
    assert found <= 0.15 * membership.MISSED
    with pytest.raises(Refused, match="24648 ids that it has not"):  # so many fit its tables, if it cheats
        Companies(tmp_path / "at once").ask(candidates)


def test_customers_do_not_count_as_misses(tmp_path: Path) -> None:
    companies = Companies(tmp_path)
    for start in range(0, 2000, 500):
        assert companies.ask(digests(of=500, first=start)) == 500
    assert companies.ask(digests(of=900, first=1900)) == 100
    with pytest.raises(Refused, match="today 200 more may turn out not to be here"):
        companies.ask(digests(of=201, first=5000))


def test_consent_to_other_sets_counts_for_scores_too(tmp_path: Path) -> None:
    policy = Policy(peers={"bank": Rule(changed="accept")})
    companies = Companies(tmp_path, policy=policy, limits=Limits(id_sets_a_day=2))
    for first in (0, 1):
        assert companies.ask(digests(of=29_100, first=first)) == 2000 - first
    with pytest.raises(Refused, match=r"limits\.id_sets_a_day = 2 of bank is reached"):
        companies.ask(digests(of=29_100, first=2))


def test_a_peer_that_only_says_that_its_ids_are_the_same_is_found_out(tmp_path: Path) -> None:
    companies = Companies(tmp_path)
    honest, candidates = digests(of=1000, first=1500), digests(of=1000, first=500)
    assert companies.ask(honest) == 500
    assert companies.ask(honest) == 500
    with pytest.raises(ChangedIds, match="bank says that its ids are those of an earlier run"):
        companies.ask(candidates, says=honest)
    with pytest.raises(Refused, match="has not come with before"):  # from now on it pays for each of them
        companies.ask(candidates, says=honest)


@pytest.mark.parametrize("size", [100, 5000, 100_000])
def test_a_follower_counts_by_the_size_of_its_tables(size: int) -> None:
    """Solving equations fits as many ids into a table as it has places; peeling fits one in 1.23."""
    tables = tables_for(size)
    most = most_written(size, 10, "curve")
    assert most == tables * size_for(capacity(size, tables))
    assert 1.2 * size < most < 2 * size
    assert leader_of({"bank": size, "shop": size + 1}) == "bank"
    companies_limits = Limits(ids=size)
    assert most > companies_limits.ids
