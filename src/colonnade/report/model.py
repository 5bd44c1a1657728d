"""The model by party: the weight of every column where there is one, its size elsewhere."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from colonnade.data.prepare import INTERCEPT
from colonnade.report.dossier import Part
from colonnade.report.html import Html, joined, section, table, tag
from colonnade.report.training import meter
from colonnade.result import Described

MOST = 40  # columns that are shown of a party


def model_section(parts: Sequence[Part], data: Described, seen_by: str | None) -> Html:
    """Every party's part of the model that the reader may see."""
    who = (
        "All parties ran on one machine, so all their parts are here; between companies each sees its own."
        if seen_by is None
        else f"Only the part of {seen_by}: what the others learnt stays with them."
    )
    largest = max((float(np.abs(_sizes(part)).max(initial=0)) for part in parts), default=0.0) or 1.0
    return joined(tag("p", who), *(_part(each, data, largest) for each in parts))


def _sizes(part: Part) -> np.ndarray:
    """How much each column can move a score: the largest weight in absolute value; 0 for the intercept."""
    if part.weights is None:
        return np.zeros(0)
    sizes = np.abs(part.weights.reshape(len(part.columns), -1)).max(axis=1, initial=0)
    return np.where(np.array(part.columns) == INTERCEPT, 0.0, sizes)


def _part(part: Part, data: Described, largest: float) -> Html:
    if part.weights is None:
        text = (
            f"A {part.kind} model of {part.parameters:,} numbers over {len(part.columns)} prepared columns; "
            "no single number says what a column does."
        )
        return section(part.party, tag("p", text), level=3)
    sizes, several = _sizes(part), part.weights.ndim == 2
    order = np.argsort(-sizes, kind="stable")
    chosen = [k for k in order.tolist() if part.columns[k] != INTERCEPT][:MOST]
    intercepts = [k for k, name in enumerate(part.columns) if name == INTERCEPT]
    rows = []
    for k in [*intercepts, *chosen]:
        values = np.atleast_1d(part.weights[k])
        rows.append([part.columns[k], *(f"{value:+.4f}" for value in values), meter(sizes[k] / largest)])
    classes = data.classes if len(data.classes) == np.atleast_2d(part.weights).shape[-1] else None
    if several:
        head = ["column", *(classes or [f"class {k}" for k in range(part.weights.shape[1])]), ""]
    else:
        head = ["column", "weight", ""]
    left = len(part.columns) - len(rows)
    more = f"; {left} smaller ones are not shown" if left > 0 else ""
    caption = f"Weights of prepared columns, the largest first{more}"
    return section(part.party, table(caption, head, rows, class_="numbers"), level=3)
