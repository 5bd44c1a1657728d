"""What leaves in a run, on one side of paper, for those who answer for personal data.

What leaves, to whom, how much by counting, what bounds it, and who approved. All figures are those that the
run was held to (`openings`); nothing here is worked out again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from colonnade import __version__
from colonnade.disk import drafted
from colonnade.openings.account import CAUTION, HEARD, table_of
from colonnade.report.facts import ReportFacts
from colonnade.report.html import Html, bullets, joined, notes, section, table, tag, whole_page
from colonnade.report.privacy import learnt
from colonnade.result import Heard

MOST = 16  # lines of a table that one side has room for

STAYS = (
    "Values of columns, ids in any form that can be read, keys and passwords; and of labels nothing but what "
    "the table says."
)


@dataclass(frozen=True, kw_only=True)
class Sheet:
    """One run: what it was, what others heard, and who approved it. `seen_by` is whose sheet it is."""

    title: str
    facts: Sequence[tuple[str, str]]
    told: Sequence[Heard]
    learns: Sequence[str] = ()
    approved: Sequence[str] = ()
    seen_by: str | None = None
    before: Sequence[str] = ()  # what peers had heard in earlier runs, a sentence each


def of_facts(one: ReportFacts) -> Sheet:
    """Return the sheet of a run whose parties were all on one machine."""
    result = one.result
    rows = ", ".join(f"{name.replace('_', ' ')} {count:,}" for name, count in result.data.rows.items())
    facts = [
        ("made", one.made),
        ("algorithm", result.algorithm),
        ("parties", ", ".join(result.parties)),
        ("label", ", ".join(result.active)),
        ("rows", rows),
    ]
    return Sheet(
        title=result.dataset,
        facts=[(name, value) for name, value in facts if value],
        told=result.opened,
        learns=[f"{party} {said[0]}" for party, said in learnt(result).items() if said],
        approved=["Nobody had to be asked: all parties were on one machine, and its user ran the job."],
        seen_by=one.seen_by,
    )


def write_sheet(sheet: Sheet, path: Path) -> Path:
    """Write a sheet as a file of its own; returns its path."""
    body = tag("article", tag("h1", sheet.title), sheet_section(sheet))
    with drafted(path) as draft:
        draft.write_text(whole_page(f"What leaves: {sheet.title}", body, __version__), encoding="utf-8")
    return path


def sheet_section(sheet: Sheet) -> Html:
    """Return the sheet, to stand on a page of its own."""
    whose = f" {sheet.seen_by}" if sheet.seen_by else " any party"
    parts = [
        table("The run", (), sheet.facts),
        _told(sheet.told),
        notes([f"Figures are {CAUTION}; they may all be about one row."]),
    ]
    if sheet.learns:
        parts.append(section("In words", bullets(sheet.learns), level=3))
    if sheet.before:
        parts.append(section("With earlier runs", bullets(sheet.before), level=3))
    parts.append(section(f"What does not leave{whose}", tag("p", STAYS), level=3))
    approved = sheet.approved or ("Nobody is on record.",)
    parts.append(section("Who approved", bullets(approved), level=3))
    return section("What leaves", *parts, id_="leaves")


def _told(told: Sequence[Heard]) -> Html:
    """Return what is heard by whom, as far as there is room."""
    rows = table_of(told)
    if not rows:
        return tag("p", "Nothing that is about anybody's labels, columns or ids leaves.")
    rest = len(rows) - MOST
    more = [tag("p", f"and {rest} more lines: see result.json, or `colonnade budget`")] if rest > 0 else []
    return joined(table("What leaves, to whom, how much at the most", HEARD, rows[:MOST]), *more)
