"""Figures of runs: how far the model is from the optimum, against time, rounds and bytes.

Drawn with matplotlib's objects, never through pyplot, so that a figure has no state outside itself and
can be made on any thread.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from colonnade.disk import drafted
from colonnade.report.summary import headline, sent
from colonnade.result import Moment, Result

COLOURS = ("#2f6690", "#d1495b", "#3a7d44", "#edae49", "#6c4f77", "#00798c", "#8d6b53", "#555555")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
UNITS = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "bytes"))
# text stays text, and the same result gives the same file
STYLE: dict[Any, Any] = {"svg.fonttype": "none", "svg.hashsalt": "colonnade", "font.size": 10.0}


def loss_figure(runs: Result | Mapping[str, Result], title: str | None = None) -> Figure:
    """A figure of three panels; several runs are one line each, under the names they are given."""
    named = {runs.algorithm: runs} if isinstance(runs, Result) else dict(runs)
    first = next(iter(named.values()))
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(12.0, 4.2), layout="constrained")
        figure.suptitle(title or headline(first), fontsize=12, fontweight="bold")
        panels = figure.subplots(1, 3, sharey=True)
        log = all(gap > 0 for result in named.values() for gap in _gaps(result))
        most = max(moment.bytes for result in named.values() for moment in result.history)
        divisor, unit = next((size, unit) for size, unit in UNITS if most >= size or size == 1.0)
        longest = max(_when(moment) for result in named.values() for moment in result.history)
        scale, second = (1.0, "s") if longest >= 1 else (1e-3, "ms")
        simulated = "simulated " if first.cost.virtual_seconds is not None else ""
        axes: tuple[tuple[str, Callable[[Moment], float]], ...] = (
            (f"{simulated}time [{second}]", lambda moment: _when(moment) / scale),
            ("rounds", lambda moment: moment.rounds),
            (f"{sent(named.values())} [{unit}]", lambda moment: moment.bytes / divisor),
        )
        for panel, (label, where) in zip(panels, axes, strict=True):
            for number, (name, result) in enumerate(named.items()):
                heights = _gaps(result) if log else [moment.loss for moment in result.history]
                _line(panel, [where(moment) for moment in result.history], heights, name, number)
            _style(panel, label, log=log)
        panels[0].set_ylabel("training loss above the optimum" if log else "training loss")
        if not log:
            _optima(panels, named)
        if len(named) > 1 or not log:
            panels[-1].legend(frameon=False, loc="upper right")
    return figure


def save(figure: Figure, path: Path) -> Path:
    """Write the figure in the format that the file's ending names: whole or not at all."""
    with drafted(path) as draft:
        draft.write_bytes(drawn(figure, path.suffix.lstrip(".")))
    return path


def drawn(figure: Figure, kind: str) -> bytes:
    """The figure as the bytes of a png or svg file."""
    page = io.BytesIO()
    with mpl.rc_context(STYLE):
        figure.savefig(page, format=kind, dpi=150, metadata={"Date": None} if kind == "svg" else None)
    return page.getvalue()


def _gaps(result: Result) -> list[float]:
    """The loss above the pooled optimum at every moment; minus infinity without an optimum."""
    optimum = result.pooled.get("train_loss", float("inf"))
    return [moment.loss - optimum for moment in result.history]


def _when(moment: Moment) -> float:
    return moment.seconds if moment.virtual_seconds is None else moment.virtual_seconds


def _line(panel: Axes, x: list[float], y: list[float], name: str, number: int) -> None:
    panel.plot(
        x,
        y,
        label=name,
        color=COLOURS[number % len(COLOURS)],
        marker=MARKERS[number % len(MARKERS)],
        markersize=4,
        markevery=max(1, len(x) // 15),
        linewidth=1.8,
    )


def _optima(panels: Iterable[Axes], named: Mapping[str, Result]) -> None:
    """Draw the optimum as a dotted line: on a linear scale it is what to compare with."""
    for level in sorted({result.pooled["train_loss"] for result in named.values() if result.pooled}):
        for panel in panels:
            panel.axhline(level, color="#888888", linestyle=":", linewidth=1.2, label="pooled")


def _style(panel: Axes, label: str, *, log: bool) -> None:
    panel.set_xlabel(label)
    panel.set_xlim(0, 1.03 * panel.dataLim.x1)
    panel.xaxis.set_major_locator(MaxNLocator(6))
    if log:
        panel.set_yscale("log")
    panel.grid(visible=True, which="major", color="#d8d8d8", linewidth=0.8)
    panel.grid(visible=True, which="minor", axis="y", color="#ececec", linewidth=0.5)
    panel.set_axisbelow(True)
    panel.spines[["top", "right"]].set_visible(False)
