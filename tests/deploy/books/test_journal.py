"""What a journal remembers for limits: a day of comparisons, and every peer's last set of ids for good."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from colonnade.deploy.books.journal import DAY_S, Comparison, Journal
from colonnade.shares import now


def compared(when: str, purpose: Literal["train", "score"], commitment: str) -> Comparison:
    return Comparison(
        when=when,
        run="00000010",
        purpose=purpose,
        entry="customers",
        peer="bank",
        own_ids=3,
        peer_ids=2,
        commitment=commitment,
    )


def test_memory_keeps_a_day_and_the_last_set_and_the_file_everything(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    journal = Journal(path)
    long_ago = now(-3 * DAY_S)
    journal.compare(compared(long_ago, "train", "aa"))
    for _ in range(50):
        journal.compare(compared(long_ago, "score", "bb"))
    journal.compare(compared(now(), "score", "cc"))
    for each in (journal, Journal(path)):  # also after a restart
        since = now(-DAY_S)
        assert each.compared.times("bank", "customers", since) == 1
        assert each.compared.scored("bank", since) == 2
        assert each.compared.sets("bank", "customers", since) == set()
        assert each.trained["bank", "customers"].commitment == "aa"
    assert path.read_text().count("comparison") == 52
