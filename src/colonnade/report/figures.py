"""The figure of a run as a file: how far the model is from the optimum, against time, rounds and bytes.

It has the same three charts as the page, with colours of its own, so that any viewer of SVG shows it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path

from colonnade.disk import drafted
from colonnade.errors import DataError
from colonnade.report.html import Html, tag
from colonnade.report.summary import headline
from colonnade.report.svg import SERIES
from colonnade.report.training import loss_charts, shows_optimum
from colonnade.result import Result

HEAD, FOOT = 34, 26  # pixels for the title above the charts and the legend below them
KEY, LETTER = 26, 6.6  # pixels of a line in the legend, and of a letter beside it
DASHES = ("none", "7 3", "2 3", "9 3 2 3")


def loss_figure(runs: Result | Mapping[str, Result], title: str | None = None) -> str:
    """Return an SVG of three charts; several runs are one line each, under the names they are given."""
    named = {runs.algorithm: runs} if isinstance(runs, Result) else dict(runs)
    charts = loss_charts(named)
    if not charts:
        raise DataError("no loss to draw: the label holder that measures the model knows it")
    title = title or headline(next(iter(named.values())))
    width, below = sum(chart.width for chart in charts), HEAD + charts[0].height
    keys = [(f"line s{k % SERIES}", name) for k, name in charts[0].names.items()]
    keys += [("rule", "pooled optimum")] if shows_optimum(named, charts) else []
    height = below + (FOOT if keys else 8)
    across = [sum(chart.width for chart in charts[:k]) for k in range(len(charts))]
    whole = tag(
        "svg",
        tag("title", title),
        tag("style", Html(_style())),
        tag("rect", width=width, height=height, class_="paper"),
        tag("text", title, x=width / 2, y=22, class_="title", text_anchor="middle"),
        *(_at(x, HEAD, chart.drawing()) for x, chart in zip(across, charts, strict=True)),
        _at(charts[0].width * 0.15, below + 12, *_legend(keys)),
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {width} {height}",
        width=width,
        height=height,
    )
    return f"{whole}\n"


def save(figure: str, path: Path) -> Path:
    """Write the figure, whole or not at all; refuse a name that promises another format."""
    if path.suffix.lower() != ".svg":
        raise DataError(f"{path}: figures are written as SVG; name it {path.with_suffix('.svg').name}")
    with drafted(path) as draft:
        draft.write_text(figure, encoding="utf-8")
    return path


def _at(x: float, y: float, *inside: Html) -> Html:
    return tag("g", *inside, transform=f"translate({x:g} {y:g})")


def _legend(keys: Sequence[tuple[str, str]]) -> list[Html]:
    """Return the names of the lines in a row, each beside a piece of its line."""
    found, x = [], 0.0
    for look, name in keys:
        found.append(tag("line", x1=x, x2=x + KEY, y1=-4, y2=-4, class_=look))
        found.append(tag("text", name, x=x + KEY + 6, y=0))
        x += KEY + 24 + LETTER * len(name)
    return found


@cache
def _style() -> str:
    """Return the rules of the figure, with the colours that the page has on white."""
    page = files("colonnade.report").joinpath("style.css").read_text(encoding="utf-8")
    colour = dict(re.findall(r"--(\w+): (#\w+)", page[: page.index("}")]))
    rules = [
        f"text {{ font: 11px sans-serif; fill: {colour['soft']} }}",
        f".label, .title {{ fill: {colour['ink']} }} .title {{ font: bold 14px sans-serif }}",
        f".paper {{ fill: {colour['paper']} }}",
        f".grid {{ stroke: {colour['line']}; stroke-width: 1 }}",
        f".rule {{ stroke: {colour['soft']}; stroke-width: 1.2; stroke-dasharray: 2 3 }}",
        ".line { fill: none; stroke-width: 2; stroke-linejoin: round } .dot { fill-opacity: .75 }",
    ]
    for k in range(SERIES):
        own, dashes = colour[f"s{k}"], DASHES[k % len(DASHES)]
        rules.append(
            f".line.s{k} {{ stroke: {own}; stroke-dasharray: {dashes} }} .dot.s{k} {{ fill: {own} }}"
        )
    return "\n".join(rules)
