"""What each party learnt in a run beyond its own columns, in plain words, and how labels were protected.

Who can read what stands on top of the page and beside the place to sign; how it was protected has a section.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from colonnade.findings import AT_LEAST, Finding
from colonnade.openings.leaks import readings
from colonnade.report import summary
from colonnade.report.html import Html, joined, notes, table, tag
from colonnade.result import Result


def learnt(result: Result) -> dict[str, list[str]]:
    """Return what every party learnt, a sentence each without its name; nothing for a result that does not
    know it."""
    found: dict[str, list[str]] = {party: [] for party in result.parties}
    for party, words in _readings(result):
        found[party].append(words)
    return found


def _readings(result: Result) -> Iterator[tuple[str, str]]:
    """Yield every party with something that it learnt, the worst first."""
    return readings(result.parties, result.active, result.privacy.leaks)


def privacy_card(result: Result) -> Html:
    """Return who can read what, to stand on top of a report and beside the place to sign."""
    if len(result.parties) == 1:
        told = tag("p", "One party: nothing was sent to anybody.")
    elif not result.privacy.leaks:
        told = tag("p", "By construction no party learns a number about a training row of another.")
    else:
        told = tag("ul", *(tag("li", tag("b", party), f" {words}.") for party, words in _readings(result)))
    noise = [tag("p", f"Noise: {sentence}.")] if (sentence := _noise(result)) else []
    alarming = {"labels", "shares"} & set(result.privacy.leaks)
    title = tag("h2", "Who can read what")
    return tag("section", title, told, *noise, class_="card alarm" if alarming else "card", id_="privacy")


def _noise(result: Result) -> str:
    """Return how much noise protects labels, in words; empty where there is none."""
    return dict(summary.privacy_rows(result))["noise"].removeprefix("none")


def privacy_section(result: Result, findings: Sequence[Finding]) -> Html:
    """Return how scores and labels were protected, and what attacks reached."""
    parts = [table("How scores and labels were protected", (), summary.privacy_rows(result))]
    parts.append(notes(result.privacy.notes))
    if findings:
        rows = [[each.by, each.attack, _reached(each), each.guessing, each.note] for each in findings]
        head = ["by", "attack", "reached (95% interval)", "guessing reaches", ""]
        parts.append(table("Attacks that were tried on a run of this job", head, rows))
        parts.append(tag("p", AT_LEAST, class_="soft"))
    else:
        parts.append(
            tag(
                "p",
                "No attack was tried on this run: this is what it gives away by construction. ",
                tag("code", "colonnade audit"),
                " tries some.",
                class_="soft",
            )
        )
    return joined(*parts)


def _reached(each: Finding) -> str:
    """Return how far an attack came; strong where that is surely more than guessing."""
    return tag("strong", each.success) if each.found else each.success
