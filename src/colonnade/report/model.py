"""The model by party: the weight of every column where there is one, its size elsewhere."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from colonnade.arrays import Floats
from colonnade.credit.scorecard import Scaling, ScorecardRow
from colonnade.data.table import INTERCEPT
from colonnade.report.facts import Part
from colonnade.report.html import Html, beside, joined, section, table, tag
from colonnade.report.training import meter
from colonnade.result import Described

MOST = 15  # columns that are shown of a party at once


def model_section(parts: Sequence[Part], data: Described, seen_by: str | None) -> Html:
    """Return every party's part of the model that the reader may see."""
    who = (
        "All parties ran on one machine, so all their parts are here; between companies each sees its own."
        if seen_by is None
        else f"Only the part of {seen_by}: what the others learnt stays with them."
    )
    largest = max((float(np.abs(_sizes(part)).max(initial=0)) for part in parts), default=0.0) or 1.0
    return joined(tag("p", who), beside(*(_part(each, data, largest) for each in parts)))


def _sizes(part: Part) -> Floats:
    """Return how much each column can move a score: the largest weight in absolute value; 0 for the
    intercept."""
    if part.weights is None:
        return np.zeros(0)
    sizes = np.abs(part.weights.reshape(len(part.columns), -1)).max(axis=1, initial=0)
    return np.where(np.array(part.columns) == INTERCEPT, 0.0, sizes)


def _part(part: Part, data: Described, largest: float) -> Html:
    if part.gains is not None:
        return section(part.party, _importances(part, part.gains), level=3)
    if part.weights is None:
        text = (
            f"A {part.kind} model of {part.parameters:,} numbers over {len(part.columns)} prepared columns; "
            "no single number says what a column does."
        )
        return section(part.party, tag("p", text), level=3)
    sizes = _sizes(part)
    order = [k for k in np.argsort(-sizes, kind="stable").tolist() if part.columns[k] != INTERCEPT]
    intercepts = [k for k, name in enumerate(part.columns) if name == INTERCEPT]
    rows = [
        [
            part.columns[k],
            *(f"{value:+.4f}" for value in np.atleast_1d(part.weights[k])),
            _bar(part.weights[k], sizes[k] / largest),
        ]
        for k in [*intercepts, *order]
    ]
    head = ["column", *_heads(part.weights, data), ""]
    first, rest = rows[: MOST + len(intercepts)], rows[MOST + len(intercepts) :]
    shown = [table(_caption(part.weights), head, first, class_="numbers")]
    if rest:
        more = table("The smaller weights", head, rest, class_="numbers")
        shown.append(tag("details", tag("summary", f"{len(rest)} more"), more))
    if part.points:
        shown.append(_points(part.points))
    return section(part.party, *shown, level=3)


def _bar(weight: Floats, size: float) -> Html:
    """Return a bar as long as a weight is large: to the right where it raises the score, to the left where it
    lowers it; of weights for several classes only the size."""
    if np.ndim(weight):
        return meter(size)
    half, down = 50 * min(1.0, size), float(weight) < 0
    place = f"left:{50 - half if down else 50:.1f}%;width:{half:.1f}%"
    inner = tag("span", class_="down" if down else None, style=place)
    return tag("td", tag("span", inner, class_="signed"), class_="bar-cell")


def _importances(part: Part, gains: Floats) -> Html:
    """Return the columns of a party that trees split by, the largest gain first."""
    used = [k for k in np.argsort(-gains, kind="stable").tolist() if gains[k] > 0]
    if not used:
        return tag("p", "No tree splits by a column of this party.")
    largest = float(gains.max())
    rows = [[part.columns[k], f"{gains[k]:.1%}", meter(gains[k] / largest)] for k in used]
    head, caption = ["column", "gain", ""], "Part of all gain that the splits of a column have"
    shown = [table(caption, head, rows[:MOST], class_="numbers")]
    if rows[MOST:]:
        more = table("Columns that gain less", head, rows[MOST:], class_="numbers")
        shown.append(tag("details", tag("summary", f"{len(rows) - MOST} more"), more))
    return joined(*shown)


def _points(lines: Sequence[ScorecardRow]) -> Html:
    """Return the scorecard of a party's own columns; a column is named once."""
    rows, before = [], ""
    for each in lines:
        name = each.column if each.column != before else ""
        rows.append([name, each.bin, f"{each.woe:+.4f}", f"{each.points:+.0f}"])
        before = each.column
    scaling = Scaling()
    caption = (
        f"Scorecard: points of every bin, where {scaling.pdo:g} points double the odds of good to bad. "
        "`colonnade credit scorecard` has those that every row starts with, and other scales."
    )
    return table(caption, ["column", "bin", "WOE", "points"], rows, class_="numbers points")


def _caption(weights: Floats) -> str:
    """Return what stands above the weights."""
    said = "Weights of prepared columns, the largest first"
    return said if weights.ndim > 1 else f"{said}; bars to the right raise the score, to the left lower it"


def _heads(weights: Floats, data: Described) -> list[str]:
    """Return what stands above the weights: the names of the classes where there are several."""
    if weights.ndim == 1:
        return ["weight"]
    several = weights.shape[1]
    return list(data.classes) if len(data.classes) == several else [f"class {k}" for k in range(several)]
