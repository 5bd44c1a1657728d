"""One HTML page about a run, or several, that needs nothing else: figures inside it, no script, no link."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from colonnade.data.table import count
from colonnade.disk import drafted
from colonnade.errors import DataError
from colonnade.report import summary
from colonnade.report.facts import ReportFacts
from colonnade.report.figures import loss_figure, save
from colonnade.report.gantt import timeline_section
from colonnade.report.header import data_section, opening, run_section, signature
from colonnade.report.html import Html, joined, section, table, tag, whole_page
from colonnade.report.model import model_section
from colonnade.report.privacy import privacy_section
from colonnade.report.quality import quality, roc_of
from colonnade.report.sheet import of_facts, sheet_section
from colonnade.report.svg import side_by_side
from colonnade.report.training import loss_section, traffic
from colonnade.report.words import words_section
from colonnade.result import Result

Run = Result | ReportFacts


def write_report(runs: Run | Mapping[str, Run], path: Path) -> Path:
    """Write a figure (.svg) or a page (.html) of a run, or of several by name, whole or not at all; returns
    its path."""
    match path.suffix.lower():
        case ".html":
            with drafted(path) as draft:
                draft.write_text(page(runs), encoding="utf-8")
            return path
        case ".svg":
            named = runs if isinstance(runs, Mapping) else {"": runs}
            results = {name: _facts(run).result for name, run in named.items()}
            return save(loss_figure(results if isinstance(runs, Mapping) else results[""]), path)
        case other:
            raise DataError(f"{path}: cannot write {other or 'a file without an ending'}; use .html or .svg")


def page(runs: Run | Mapping[str, Run]) -> str:
    """Return the page's text: a run, or several side by side and then one by one."""
    if isinstance(runs, Mapping):
        all_facts = {name: _facts(run) for name, run in runs.items()}
        title = count(len(runs), "run")
        each = [
            tag("article", tag("p", name, class_="eyebrow"), _about(one)) for name, one in all_facts.items()
        ]
        body = joined(tag("article", _side_by_side(title, all_facts)), *each)
    else:
        all_facts = {"": _facts(runs)}
        title = summary.headline(all_facts[""].result)
        body = tag("article", _about(all_facts[""], contents=True))
    versions = ", ".join(sorted({one.result.version for one in all_facts.values()}))
    return whole_page(title, body, versions)


def _facts(run: Run) -> ReportFacts:
    return ReportFacts(run) if isinstance(run, Result) else run


def _about(one: ReportFacts, *, contents: bool = False) -> Html:
    """Return the part of the page about one run, from its data to the place to sign."""
    shown = {name: part for name, part in _sections(one).items() if part is not None}
    named = ["privacy", *shown]
    links = tag(
        "nav",
        tag("ul", *(tag("li", tag("a", name, href=f"#{name}")) for name in named)),
        aria_label="Contents",
    )
    return joined(opening(one), *([links] if contents else []), *shown.values())


def _sections(one: ReportFacts) -> dict[str, Html | None]:
    """Return all sections by name; None where the run has nothing to say."""
    result, timeline = one.result, one.timeline
    model = model_section(one.parts, result.data, one.seen_by) if one.parts else None
    costs = table("Cost", (), summary.cost_rows(result))
    return {
        "protection": section("Protection", privacy_section(result, one.findings), id_="protection"),
        "run": run_section(one),
        "data": data_section(result),
        "quality": section("Quality", *_quality(one), id_="quality"),
        "model": section("The model", model, id_="model") if model is not None else None,
        "training": section("Training", loss_section({result.algorithm: result}), costs, id_="training"),
        "traffic": section("Traffic", traffic(result), id_="traffic") if result.cost.bytes_sent else None,
        "timeline": section("Timeline", timeline_section(timeline), id_="timeline") if timeline else None,
        "job": _job(one) if one.job else None,
        "leaves": sheet_section(of_facts(one)) if result.opened else None,
        "words": words_section(result),
        "sign": signature(result),
    }


def _quality(one: ReportFacts) -> list[Html]:
    """Return metrics and curves, or why there are none."""
    result, found = one.result, []
    if result.metrics:
        found.append(table(_caption(result), *summary.metric_table(result), class_="numbers"))
    if line := summary.gain_line(result):
        found.append(tag("p", f"The other parties' columns add: {line}."))
    if result.worth is not None:
        caption = f"What every party is worth: {summary.worth_line(result.worth)}"
        found.append(table(caption, *summary.worth_table(result.worth), class_="numbers"))
    if one.scores is not None:
        found.append(quality(one.scores, result.data, one.loss))
    elif result.metrics:
        found.append(
            tag(
                "p",
                "There are no scores of single test rows here, so there are no curves. "
                'A daemon keeps them with test_scores = "keep" in the label holder\'s settings.',
                class_="soft",
            )
        )
    else:
        found.append(tag("p", "Metrics are known to the label holders, not here.", class_="soft"))
    return found


def _caption(result: Result) -> str:
    """Return what the table of metrics is about."""
    if result.compared:
        return (
            "On test rows: the training labels alone, the label holder alone, all parties, all in one place"
        )
    return "Beside the same model, trained on pooled columns" if result.pooled else "Metrics"


def _job(one: ReportFacts) -> Html:
    again = [tag("p", "To run it again: ", tag("code", one.command))] if one.command else []
    return section("The job", *again, tag("pre", one.job), id_="job")


def _side_by_side(title: str, runs: Mapping[str, ReportFacts]) -> Html:
    """Return all runs in one table, and their curves over each other."""
    columns, measured = summary.overview([one.result for one in runs.values()])
    rows = [
        (name, one.result.algorithm, one.result.dataset, *cells)
        for (name, one), cells in zip(runs.items(), measured, strict=True)
    ]
    figures = [loss_section({name: one.result for name, one in runs.items()})]
    scored = {n: one.scores for n, one in runs.items() if one.scores is not None and one.scores.z.ndim == 1}
    binary = {n: scores for n, scores in scored.items() if set(scores.y.tolist()) == {-1.0, 1.0}}
    if len(binary) > 1:
        figures.append(side_by_side(roc_of(binary)))
    head = ("run", "algorithm", "data", *columns)
    return joined(
        tag("h1", title), table("All runs, one below the other", head, rows, class_="numbers runs"), *figures
    )
