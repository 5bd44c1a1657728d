"""The sheet of a training: what left this party, to whom, how much, and who approved, from its own books.

    STATE/books/NAME-RUN.sheet.html

It is written when a run is over, however it ended: one that failed halfway has told what it told.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from colonnade.deploy.books.journal import Decision, Ended
from colonnade.deploy.books.opened import Account, Opened, OpenedBooks
from colonnade.deploy.settings import Settings
from colonnade.deploy.terms.terms import Terms
from colonnade.report.sheet import Sheet, write_sheet
from colonnade.result import Heard


def sheet_file(state: Path, job: str, run: str) -> Path:
    """Return where the sheet of a run lies."""
    return state / "books" / f"{job}-{run}.sheet.html"


def write_run_sheet(
    settings: Settings, terms: Terms, ended: Ended, decisions: Sequence[Decision]
) -> Path | None:
    """Write the sheet of a training that is over; returns its path, None if it told nothing."""
    me, entry = settings.name, terms.parties[settings.name].data
    books = OpenedBooks(settings.state)
    lines = books.lines()
    mine = [each for each in lines if each.run == ended.run]
    ids = [
        each
        for each in lines
        if each.about == "membership" and each.entry == entry and each.peer in terms.parties
    ]
    if not mine and not ids:
        return None
    path = sheet_file(settings.state, terms.name, ended.run)
    path.parent.mkdir(parents=True, exist_ok=True)
    sheet = Sheet(
        title=terms.name,
        facts=list(_facts(terms, ended, me)),
        told=[_heard(each, me) for each in (*mine, *ids[-len(terms.parties) :])],
        approved=[
            *([f"{me}'s operator proposed the run."] if ended.proposer == me else []),
            *(f"{each.when}: {each.line()}" for each in decisions if each.run == ended.run),
        ],
        seen_by=me,
        before=[
            _before(each)
            for each in books.accounts(without={ended.run})
            if each.entry == entry and each.about != "membership"
        ],
    )
    return write_sheet(sheet, path)


def _facts(terms: Terms, ended: Ended, me: str) -> Iterator[tuple[str, str]]:
    """Yield what the run was."""
    yield "run", ended.run
    yield "over", f"{ended.when}, {ended.state}{f': {ended.reason}' if ended.reason else ''}"
    yield "proposed by", ended.proposer
    yield "algorithm", terms.algorithm
    yield "parties", ", ".join(sorted(terms.parties))
    yield "label", ", ".join(terms.active)
    columns = terms.parties[me].columns
    yield f"data of {me}", terms.parties[me].data + (f": {', '.join(columns)}" if columns else "")
    yield "digest of the job", terms.digest()


def _heard(line: Opened, me: str) -> Heard:
    """Return a line of the books as reports have it."""
    return Heard(
        hearer=line.peer,
        about=line.about,
        of=me,
        kinds=line.kinds,
        numbers=line.numbers,
        bits=line.bits,
        rows=line.rows,
        epsilon=line.epsilon,
    )


def _before(known: Account) -> str:
    """Return what a peer has heard in other runs, as a sentence."""
    of = f"{known.runs} other run{'s' * (known.runs != 1)}"
    return f"{known.peer} has heard {known.per_row:.3g} bits a row about {known.about} in {of}."
