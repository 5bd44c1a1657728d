"""The top of a report: what was trained by whom, on which data, how it ended; and the place to sign."""

from __future__ import annotations

from colonnade.report import summary
from colonnade.report.facts import ReportFacts
from colonnade.report.html import Html, beside, bullets, joined, notes, section, table, tag
from colonnade.report.privacy import learnt, privacy_card
from colonnade.result import Result

UNFINISHED = (
    "Training did not converge: it ended while the loss was still falling. Give it more epochs before "
    "anybody relies on it."
)
TASKS = {
    "binary": "one of two classes",
    "multiclass": "one of several classes",
    "regression": "a number",
}
KEY = ("test_auc", "test_accuracy", "r2", "rmse", "test_loss", "train_loss")


def opening(facts: ReportFacts) -> Html:
    """Return who trained what, in one sentence and a few figures."""
    result = facts.result
    made = f" · {facts.made}" if facts.made else ""
    at = "" if facts.seen_by is None else f" · as {facts.seen_by} sees it"
    unfinished = [notes([UNFINISHED])] if result.converged is False else []
    return joined(
        tag("p", f"Model report{made}{at}", class_="eyebrow"),
        tag("h1", summary.headline(result)),
        *unfinished,
        privacy_card(result),
        _key_figures(result),
    )


def _key_figures(result: Result) -> Html:
    names = [key for key in KEY if key in result.metrics][:3]
    boxes = []
    for key in names:
        beside = [tag("small", line) for line in _beside(result, key)]
        value = tag("dd", summary.metric(key, result.metrics[key]), *beside)
        boxes.append(tag("div", tag("dt", summary.NAMES.get(key, key)), value))
    rows, data = result.data.rows, result.data
    if rows:
        counts = f"{rows.get('train', 0):,} + {rows.get('test', 0):,}"
        boxes.append(tag("div", tag("dt", "rows to train + test"), tag("dd", counts)))
    if data.base_rate is not None:
        boxes.append(tag("div", tag("dt", "base rate"), tag("dd", f"{100 * data.base_rate:.2f}%")))
    cost = result.cost
    spent = cost.seconds if cost.virtual_seconds is None else cost.virtual_seconds
    word = "time" if cost.virtual_seconds is None else "simulated time"
    boxes.append(tag("div", tag("dt", word), tag("dd", summary.duration(spent))))
    boxes.append(
        tag(
            "div",
            tag("dt", summary.sent([result])),
            tag("dd", summary.size(cost.bytes_sent)),
        )
    )
    return tag("dl", *boxes, class_="key-figures")


def _beside(result: Result, key: str) -> list[str]:
    """Return a metric's interval and yardsticks, a line each."""
    known = {each.name: each for each in result.compared}
    lines = []
    if "together" in known and key in known["together"].intervals:
        low, high = known["together"].intervals[key]
        lines.append(f"95%: {summary.metric(key, low)} to {summary.metric(key, high)}")
    if "alone" in known and key in known["alone"].metrics:
        alone = known["alone"]
        lines.append(f"{alone.parties[0]} alone: {summary.metric(key, alone.metrics[key])}")
    if key in result.pooled:
        lines.append(f"pooled: {summary.metric(key, result.pooled[key])}")
    return lines


def run_section(facts: ReportFacts) -> Html:
    """Return the run in plain facts."""
    result = facts.result
    ended = {True: "yes", False: "no", None: "not known: the run ended after its epochs, or at a target"}
    rows = [
        ("algorithm", result.algorithm),
        ("data", result.dataset),
        ("parties", ", ".join(result.parties)),
        ("label held by", ", ".join(result.active)),
        ("world", result.world),
        ("converged", ended[result.converged]),
        ("epochs, rounds", f"{result.cost.epochs:,}, {result.cost.rounds:,}"),
        ("seed", str(result.seed)),
        ("version", facts.versions or f"Colonnade {result.version}"),
        *([("date", facts.made)] if facts.made else []),
        *facts.further,
    ]
    return section("The run", table("What was trained, by whom and how", (), rows), id_="run")


def data_section(result: Result) -> Html:
    """Return rows, columns and labels, and what was done to them."""
    data = result.data
    facts: list[tuple[str, str]] = []
    if data.task:
        facts.append(("what is predicted", TASKS.get(data.task, data.task)))
    if data.classes:
        facts.append(("labels", ", ".join(data.classes)))
    if data.positive:
        facts.append(("counts as positive (1)", ", ".join(data.positive)))
    if data.base_rate is not None:
        facts.append(("base rate", f"{100 * data.base_rate:.2f}% of the training rows are positive"))
    tables = [table("Labels", (), facts)] if facts else []
    if data.rows:
        rows = [(name.replace("_", " "), f"{count:,}") for name, count in data.rows.items()]
        tables.append(table("Rows", ("rows", "count"), rows, class_="numbers"))
    if data.columns:
        holds = {party: "yes" if party in result.active else "no" for party in data.columns}
        held = [(party, f"{count:,}", holds[party]) for party, count in data.columns.items()]
        head = ("party", "columns", "holds the label")
        tables.append(table("Columns, as prepared", head, held, class_="numbers"))
    done = [
        section(f"Done by {party}", bullets(words), level=3) for party, words in data.done.items() if words
    ]
    if not tables:
        tables.append(tag("p", "This result says nothing about its rows.", class_="soft"))
    return section("The data", beside(*tables), beside(*done), notes(data.warnings), id_="data")


def signature(result: Result) -> Html:
    """Return where those who answer for the model put their names, and what they put them under."""
    lines = [tag("dd", word) for word in ("name", "role", "date", "signature")]
    blocks = [tag("dl", tag("dt", who), *lines) for who in ("Prepared by", "Approved by")]
    worst = [f"{party} {said[0]}" for party, said in learnt(result).items() if said]
    under = [tag("p", f"Signed knowing that {'; '.join(worst)}.", class_="note")] if worst else []
    return section("Signatures", *under, tag("div", *blocks, class_="sign"), id_="sign")
