"""The lines of a bench as one figure; the only file of the benches that needs matplotlib."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from colonnade.disk import drafted
from colonnade_bench.common import Panel

COLOURS = ("#2f6690", "#d1495b", "#3a7d44", "#edae49", "#6c4f77", "#00798c", "#8d6b53", "#555555")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
FAR = 50  # times the smallest number
STYLE: dict[Any, Any] = {"font.size": 10.0}


def drawn(panels: Sequence[Panel], title: str, path: Path) -> Path:
    """Write a figure with the panels side by side, three in a row."""
    across = min(3, len(panels))
    down = math.ceil(len(panels) / across)
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(4.6 * across, 3.8 * down), layout="constrained")
        figure.suptitle(title, fontsize=12, fontweight="bold")
        for number, panel in enumerate(panels):
            axes = figure.add_subplot(down, across, number + 1)
            seen = {name: points for name, points in panel.lines.items() if points}
            if panel.bars:
                _bars(axes, panel, {name: points[0][0] for name, points in seen.items()})
                continue
            for k, (name, points) in enumerate(seen.items()):
                x, y = zip(*points, strict=True)
                colour, marker = COLOURS[k % len(COLOURS)], MARKERS[k % len(MARKERS)]
                axes.plot(x, y, label=name, markersize=4, linewidth=1.6, color=colour, marker=marker)
            if panel.log:
                _logarithmic(axes)
            axes.set(title=panel.title, xlabel=panel.x, ylabel=panel.y)
            axes.grid(visible=True, color="#d8d8d8", linewidth=0.8)
            axes.legend(frameon=False, fontsize=8)
        with drafted(path) as draft:
            figure.savefig(draft, format=path.suffix.lstrip("."), dpi=150)
    return path


def _bars(axes: Axes, panel: Panel, lengths: Mapping[str, float]) -> None:
    """Draw a bar with its number for every name, the first on top; those of `marked` stand out.

    Numbers that are far apart are drawn by their logarithm.
    """
    places = range(len(lengths))[::-1]
    colours = [COLOURS[0] if name in panel.marked else COLOURS[-1] for name in lengths]
    made = axes.barh(places, list(lengths.values()), color=colours)
    axes.bar_label(made, [f"{length:.2g}" for length in lengths.values()], padding=3, fontsize=8)
    axes.set_yticks(places, list(lengths))
    far = max(lengths.values()) > FAR * min(lengths.values())
    scale = f"{panel.x}, logarithmic" if far else panel.x
    axes.set(title=panel.title, xlabel=scale, xscale="log" if far else "linear")
    axes.margins(x=0.15)
    axes.set_xticks([], minor=True)
    axes.set_xticks([])  # each bar has its number
    axes.spines[["top", "right", "bottom"]].set_visible(False)


def _logarithmic(axes: Axes) -> None:
    """Make both axes logarithmic, with plain numbers, where there are few decades also at 2 and 5."""
    axes.set(xscale="log", yscale="log")
    for axis, (low, high) in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())):
        axis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 300 * low else (1,)))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_formatter(NullFormatter())
