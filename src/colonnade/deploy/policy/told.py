"""What a job tells whom, in words: the same before it is approved and in the report of its run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from colonnade.deploy.policy.policy import leaks
from colonnade.deploy.terms.contract import Contract
from colonnade.job.plan import Plan
from colonnade.openings.account import WORDS, heard
from colonnade.openings.leaks import readings
from colonnade.openings.opening import Opening
from colonnade.run.notes import WOE_NOTES, notes


def reads(contract: Contract) -> list[str]:
    """Return who can read what, a sentence each."""
    terms = contract.terms
    return [
        f"{party} {words}."
        for party, words in readings(sorted(terms.parties), list(terms.active), leaks(contract))
    ]


def notes_of(plan: Plan[Any], contract: Contract) -> list[str]:
    """Return what the users of a run should know about what it gives away, a sentence each."""
    weighed = [WOE_NOTES[contract.hides_counts]] if contract.terms.prepare.woe else []
    return [*notes(plan), *weighed]


def hearings(openings: Iterable[Opening], rows: int) -> Iterator[str]:
    """Yield what every party hears about every other, in the words of the account, at the most."""
    for each in heard(openings, rows):
        kinds = "; ".join(WORDS[kind] for kind in each.kinds)
        yield (
            f"{each.hearer}, about {each.about} of {each.of}: {kinds}. At most {each.numbers:,} "
            f"number{'s' * (each.numbers != 1)}, {each.numbers_per_row:.3g} a row."
        )
