"""How a model was trained: the loss against time, rounds and bytes, what was sent to whom, what it cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from colonnade.report import summary
from colonnade.report.html import Html, beside, table, tag
from colonnade.report.quality import heat_cell
from colonnade.report.svg import Axis, Chart, side_by_side
from colonnade.result import Moment, Result

UNITS = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "bytes"))


def when(moment: Moment) -> float:
    """Return the time of a moment on the run's own clock."""
    return moment.seconds if moment.virtual_seconds is None else moment.virtual_seconds


def loss_section(runs: Mapping[str, Result]) -> Html:
    """Return the loss of one run or several against time, rounds and bytes, for a page."""
    charts = loss_charts(runs)
    if not charts:
        return tag("p", "The loss is known to the label holder that measures the model, not here.")
    if all(len(run.history) < 2 for run in runs.values()):
        return tag("p", "The loss was measured once, at the end, so there are no curves.", class_="soft")
    caption = "Dotted: the pooled optimum." if shows_optimum(runs, charts) else ""
    return side_by_side(*(chart.render(caption) for chart in charts))


def shows_optimum(runs: Mapping[str, Result], charts: Sequence[Chart]) -> bool:
    """Return whether the charts have the pooled optimum as a rule: on a log scale it is what 0 would be."""
    return not charts[0].y.log and any(run.pooled for run in runs.values())


def loss_charts(runs: Mapping[str, Result]) -> list[Chart]:
    """Return the loss of one run or several against time, rounds and bytes; nothing where nobody knows it."""
    moments = [moment for run in runs.values() for moment in run.history]
    if not moments:
        return []
    gaps = {name: _gaps(run) for name, run in runs.items()}
    log = all(gap > 0 for each in gaps.values() for gap in each)
    heights = gaps if log else {name: [m.loss for m in run.history] for name, run in runs.items()}
    label = "objective above the pooled optimum" if log else "objective: training loss with penalty"
    y = Axis.around(label, [value for each in heights.values() for value in each], log=log)
    size, unit = next(each for each in UNITS if max(m.bytes for m in moments) >= each[0] or each[0] == 1.0)
    scale, second = (1.0, "s") if max(map(when, moments)) >= 1 else (1e-3, "ms")
    simulated = "simulated " if moments[0].virtual_seconds is not None else ""
    axes: tuple[tuple[str, str, Callable[[Moment], float]], ...] = (
        ("Loss against time", f"{simulated}time [{second}]", lambda m: when(m) / scale),
        ("Loss against rounds", "rounds", lambda m: float(m.rounds)),
        ("Loss against traffic", f"{summary.sent(runs.values())} [{unit}]", lambda m: m.bytes / size),
    )
    charts = []
    for title, words, place in axes:
        chart = Chart(title, Axis.around(words, map(place, moments), zero=True), y)
        for k, (name, run) in enumerate(runs.items()):
            x = [place(moment) for moment in run.history]
            chart.line(x, heights[name], k, name if len(runs) > 1 else "")
            if len(x) <= 40:
                chart.dots(x, heights[name], k, radius=2)
        if not log:
            for optimum in {optimum_of(run) for run in runs.values()}:
                if optimum is not None and y.low <= optimum <= y.high:
                    chart.rule((chart.x.low, optimum), (chart.x.high, optimum))
        charts.append(chart)
    return charts


def _gaps(run: Result) -> list[float]:
    """Return the objective above the pooled optimum at every moment; minus infinity without an optimum."""
    optimum = optimum_of(run)
    return [moment.loss - (float("inf") if optimum is None else optimum) for moment in run.history]


def optimum_of(run: Result) -> float | None:
    """Return the least loss with its penalty on pooled columns; up to 0.2 the one loss there was."""
    return run.pooled.get("objective", run.pooled.get("train_loss"))


def traffic(result: Result) -> Html:
    """Return who sent how much to whom, and what it was."""
    cost = result.cost
    pairs, names = cost.bytes_by_pair, sorted({*result.parties, *cost.bytes_by_pair})
    most = max((count for row in pairs.values() for count in row.values()), default=0) or 1
    rows = []
    for sender in names:
        row = pairs.get(sender)
        if row is None:
            continue
        cells = [
            heat_cell(summary.size(row[to]), row[to] / most) if to in row else tag("td", "–") for to in names
        ]
        rows.append([sender, *cells, summary.size(sum(row.values()))])
    matrix = table(
        "Bytes sent: from the party of the row to that of the column",
        ["", *names, "all"],
        rows,
        class_="heat numbers",
    )
    kinds = sorted(cost.bytes_by_kind.items(), key=lambda item: -item[1])
    whole = sum(cost.bytes_by_kind.values()) or 1
    shares = [
        [kind, summary.size(count), f"{100 * count / whole:.1f}%", meter(count / whole)]
        for kind, count in kinds
    ]
    by_kind = table("Bytes by kind of message", ["kind", "bytes", "part", ""], shares, class_="numbers")
    return beside(matrix, by_kind)


def meter(part: float) -> Html:
    """Return a cell with a bar as long as this part of it."""
    return tag(
        "td", tag("span", class_="meter", style=f"width:{100 * min(1.0, part):.1f}%"), class_="bar-cell"
    )
