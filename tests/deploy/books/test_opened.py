"""The books of what peers heard: booked once a run, added up over runs, refused beyond limits."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from colonnade.deploy.books.opened import LATEST, Opened, OpenedBooks
from colonnade.deploy.settings import Limits
from colonnade.errors import Refused, ShareError

ANY = Limits()


def line(run: str = "01", **changed: object) -> Opened:
    known = Opened(
        run=run,
        job="churn",
        entry="customers",
        peer="shop",
        about="labels",
        kinds=("weights",),
        numbers=10,
        bits=120.0,
        rows=1000,
        columns=3,
        when="2026-01-31T12:00:00",
    )
    return msgspec.structs.replace(known, **changed)


def test_runs_add_up_and_one_that_goes_on_is_booked_once(tmp_path: Path) -> None:
    books = OpenedBooks(tmp_path)
    for run in ("01", "02", "02"):  # the second was cut off, and books again when it goes on
        books.book(ANY, [line(run), line(run, about="columns", numbers=3000, bits=192_000.0)])
    labels, columns = sorted(OpenedBooks(tmp_path).accounts(), key=lambda each: each.about, reverse=True)
    assert (labels.runs, labels.numbers) == (2, 20)
    assert labels.per_row == pytest.approx(0.24)
    assert columns.per_cell == pytest.approx(2 * 192.0 / 3)


def test_what_is_over_a_limit_is_refused_and_not_written(tmp_path: Path) -> None:
    books, limits = OpenedBooks(tmp_path), Limits(opened_label_bits_per_row=0.3)
    books.book(limits, [line("01")])
    books.book(limits, [line("02")])
    with pytest.raises(Refused, match=r"heard 0.24 bits a label of customers and would hear 0.12"):
        books.book(limits, [line("03")])
    books.book(limits, [line("02")])  # what goes on tells the same again
    books.book(limits, [line("03", peer="telco")])  # each peer has an account of its own
    assert {(each.run, each.peer) for each in books.lines()} == {
        ("01", "shop"),
        ("02", "shop"),
        ("03", "telco"),
    }


def test_limits_of_columns_count_cells(tmp_path: Path) -> None:
    limits = Limits(opened_column_bits_per_cell=50.0)
    with pytest.raises(Refused, match="opened_column_bits_per_cell = 50"):
        OpenedBooks(tmp_path).book(limits, [line(about="columns", bits=192_000.0)])


def test_epsilon_stands_beside_and_is_none_if_any_run_has_none(tmp_path: Path) -> None:
    books = OpenedBooks(tmp_path)
    books.book(ANY, [line("01", epsilon=1.0), line("02", epsilon=0.5)])
    assert books.accounts()[0].epsilon == 1.5
    books.book(ANY, [line("03")])
    assert books.accounts()[0].epsilon is None


def test_books_do_not_grow_without_end_and_lose_nothing(tmp_path: Path) -> None:
    books = OpenedBooks(tmp_path)
    runs = LATEST + 40
    for run in range(runs):
        columns = line(f"{run}", about="columns", numbers=3, bits=100.0 + run, columns=1 + run % 5, rows=100)
        books.book(ANY, [line(f"{run}", numbers=2, bits=9.0, epsilon=0.5 if run % 2 else 1.0), columns])
    assert len(books.lines()) == 2 * LATEST
    heard, labels = books.accounts()
    assert (labels.runs, labels.numbers, heard.runs, heard.numbers) == (runs, 2 * runs, runs, 3 * runs)
    assert labels.epsilon == pytest.approx(0.75 * runs)
    assert heard.bits == pytest.approx(100 * runs + runs * (runs - 1) / 2)
    assert heard.per_cell == pytest.approx(sum((100 + run) / 100 / (1 + run % 5) for run in range(runs)))
    size = (tmp_path / "opened.json").stat().st_size
    books.book(ANY, [line(f"{runs - 1}", numbers=2, bits=9.0)])  # one of the latest goes on: nothing new
    assert books.accounts()[1].runs == runs
    for run in range(runs, runs + 20):
        books.book(ANY, [line(f"{run}")])
    assert (tmp_path / "opened.json").stat().st_size < 1.01 * size
    whole = books.accounts()[1].per_row
    with pytest.raises(Refused, match="and would hear"):  # what is folded counts
        books.book(Limits(opened_label_bits_per_row=whole + 0.01), [line("x", bits=20.0)])


def test_a_folder_without_books_begins_at_nothing_and_damage_is_named(tmp_path: Path) -> None:
    books = OpenedBooks(tmp_path)
    assert books.accounts() == []
    assert books.since
    (tmp_path / "opened.json").write_bytes(b"{")
    with pytest.raises(ShareError, match=r"opened.json: cannot be read"):
        books.accounts()
