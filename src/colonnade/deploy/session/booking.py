"""Writes down what a session will tell each peer of this party's labels and columns, before it does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from colonnade.deploy.books.opened import UNITS, Account, Opened, OpenedBooks, sums
from colonnade.deploy.session.session import RunSession
from colonnade.deploy.settings import Settings
from colonnade.deploy.terms.contract import Contract
from colonnade.deploy.terms.terms import Terms
from colonnade.openings.account import heard
from colonnade.openings.opening import Extent, Opening, most_columns


def opened(
    me: str, terms: Terms, run: str, openings: Iterable[Opening], rows: int, columns: int
) -> list[Opened]:
    """Return the lines of this party's books about a run: what each peer hears of its labels and columns."""
    entry, epsilon = terms.parties[me].data, terms.privacy.epsilon
    return [
        Opened.of(each, run, terms.name, entry, columns, epsilon)
        for each in heard(openings, rows)
        if each.of == me
    ]


async def book(
    session: RunSession, terms: Terms, openings: Iterable[Opening], rows: int, columns: int
) -> None:
    """Write down what a training may tell; Refused where that is more than this party's limits allow."""
    run = f"{session.run:08x}"
    await session.guard.book(opened(session.me, terms, run, openings, rows, columns))


def expected(settings: Settings, contract: Contract, rows: int, columns: int) -> list[Opened]:
    """Return what a proposed training may tell each peer, if all of these rows are common."""
    terms, me = contract.terms, settings.name
    test = int(rows * terms.split.test)
    train = max(1, rows - test - int(rows * terms.split.validation))
    plan = contract.plan(me, columns, train)
    extent = Extent(train, test, {me: columns}, widest=most_columns(train), apart=True)
    return opened(me, terms, "", contract.conversation.openings(plan, extent), train, max(1, columns))


def sentences(settings: Settings, asked: Iterable[Opened]) -> Iterator[str]:
    """Yield what each peer has heard so far, and what a run adds, a sentence each."""
    books = OpenedBooks(settings.state)
    before = {(each.entry, each.peer, each.about): each for each in books.accounts()}
    for each in sums(asked):
        known = before.get((each.entry, each.peer, each.about))
        unit, cell = UNITS[each.about], each.about == "columns"
        told, adds = (0.0 if known is None else bits_of(known, cell=cell)), bits_of(each, cell=cell)
        yield (
            f"{each.peer} has heard {told:.3g} bits a {unit} of {each.entry} so far, by counting; this run "
            f"adds at most {adds:.3g} ({each.numbers:,} numbers)."
        )


def bits_of(account: Account, *, cell: bool) -> float:
    """Return bits a label or a row, or of columns bits a cell."""
    return account.per_cell if cell else account.per_row
