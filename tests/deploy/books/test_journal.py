"""What a journal remembers for limits: a day of comparisons, and every peer's last set of ids for good."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

from colonnade.deploy.books.journal import DAY_S, Comparison, Journal
from colonnade.errors import ShareError
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


def three(path: Path) -> list[bytes]:
    """A journal of three comparisons; returns its lines."""
    journal = Journal(path)
    for commitment in ("aa", "bb", "cc"):
        journal.compare(compared(now(), "score", commitment))
    return [line for line in path.read_bytes().splitlines() if line]


@pytest.mark.parametrize("left", [0, 1, 2])
def test_a_journal_whose_last_lines_are_gone_is_refused(tmp_path: Path, left: int) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_bytes(b"\n".join(three(path)[:left]))
    with pytest.raises(
        ShareError, match=rf"has {left} records, but journal\.end beside it says that record 3"
    ):
        Journal(path)


def test_a_crash_between_a_line_and_its_count_costs_nothing(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    three(path)
    noted = path.with_suffix(".end").read_bytes()
    Journal(path).compare(compared(now(), "score", "dd"))
    path.with_suffix(".end").write_bytes(noted)
    again = Journal(path)
    assert again.on_disk.count == 4
    again.compare(compared(now(), "score", "ee"))
    assert Journal(path).on_disk.count == 5


def test_a_journal_of_version_0_2_is_read_and_counted_from_then_on(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    lines = three(path)
    path.with_suffix(".end").unlink()
    Journal(path).compare(compared(now(), "score", "dd"))
    path.write_bytes(b"\n".join(lines))
    with pytest.raises(ShareError, match="says that record 4"):
        Journal(path)
