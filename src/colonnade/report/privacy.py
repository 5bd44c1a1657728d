"""What each party learnt in a run beyond its own columns, in plain words, and how labels were protected."""

from __future__ import annotations

from collections.abc import Sequence

from colonnade.findings import AT_LEAST, Finding
from colonnade.report import summary
from colonnade.report.html import Html, bullets, joined, notes, table, tag
from colonnade.result import Result

# who learns it (the "holders" of the label, the "first" of them, or the "others"), and what it is
LEARNT: dict[str, tuple[str, str]] = {
    "labels": ("others", "the label of every training row, which it can work out"),
    "scores": ("holders", "the others' joint score of every training row"),
    "shares": ("holders", "every party's own score of every training row, which was sent in clear"),
    "outputs": ("first", "what every party's model makes of each training row"),
    "embeddings": (
        "all",
        "what the others' models make of each training row, and the server's model",
    ),
    "similarity": ("holders", "how alike two rows are in the others' columns"),
    "evidence": (
        "all",
        "how bads spread over bins: the label holder of every party's, each party of its own",
    ),
    "nodes": (
        "all",
        "parts of trees: the label holder sums for bins of every column, each party who shares a node",
    ),
    "two-parties": ("holders", "the other party's score of every row: with two parties nothing can hide it"),
}


def learnt(result: Result) -> dict[str, list[str]]:
    """Return what every party learnt, a sentence each; nothing for a result that does not know it."""
    found: dict[str, list[str]] = {party: [] for party in result.parties}
    for leak in result.privacy.leaks:
        who, words = LEARNT.get(leak, ("all", leak))
        for party in result.parties:
            holds, first = party in result.active, result.active[:1] == [party]
            if who == "all" or (holds if who == "holders" else first if who == "first" else not holds):
                found[party].append(words)
    return found


def privacy_section(result: Result, findings: Sequence[Finding]) -> Html:
    """Return how scores and labels were protected, what was learnt nevertheless, and what attacks reached."""
    parts = [table("How scores and labels were protected", (), summary.privacy_rows(result))]
    if result.privacy.leaks or len(result.parties) == 1:
        rows = [
            [party, "label holder" if party in result.active else "", bullets(words) if words else "nothing"]
            for party, words in learnt(result).items()
        ]
        parts.append(
            table(
                "What each party learnt beside its own columns and its part of the model",
                ["party", "", "learnt"],
                rows,
            )
        )
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
                "No attack was tried on this run: this is what it gives away by construction. "
                "`colonnade audit` tries some.",
                class_="soft",
            )
        )
    return joined(*parts)


def _reached(each: Finding) -> str:
    """Return how far an attack came; strong where that is surely more than guessing."""
    return tag("strong", each.success) if each.found else each.success
