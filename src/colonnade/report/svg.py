"""A small chart writer: axes, lines, dots, bars and rules as SVG, inside a page or as a file of its own.

Colours are classes that the page's style sheet fills in, so the same figure is readable in light, in dark
and on paper, and a page of twenty figures needs no plotting library. Series differ in dashes as well as in
colour.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from math import ceil, floor, log10

import numpy as np

from colonnade.arrays import Floats
from colonnade.report.html import Html, joined, tag

LEFT, RIGHT, TOP, BOTTOM = 52, 10, 10, 40
MOST_POINTS = 400
SERIES = 8


def number(value: float) -> str:
    """Return a number on an axis.

    >>> [number(x) for x in (0.0, 0.25, 1500.0, 1e-5, 2.0)]
    ['0', '0.25', '1500', '1e-05', '2']
    """
    return f"{value:.6g}"


def percent(value: float) -> str:
    """Return a part of one as a percentage."""
    return f"{100 * value:.3g}%"


@dataclass(frozen=True)
class Axis:
    """What an axis shows, from where to where."""

    label: str
    low: float = 0.0
    high: float = 1.0
    log: bool = False
    words: Callable[[float], str] = number

    @staticmethod
    def around(label: str, values: Iterable[float], *, zero: bool = False, log: bool = False) -> Axis:
        """Return the axis that holds all these values; `zero`: it begins at 0."""
        known = [value for value in values if np.isfinite(value)]
        low, high = min(known, default=0.0), max(known, default=1.0)
        if zero:
            low = min(low, 0.0)
        if log:
            low, high = 10.0 ** floor(log10(low)), 10.0 ** ceil(log10(high) + 1e-12)
        if low == high:
            low, high = (low, high * 10) if log else (low - 0.5, high + 0.5)
        return Axis(label, low, high, log)

    def place(self, value: float) -> float:
        """Return where a value lies on the axis: 0 at its beginning, 1 at its end."""
        if self.log:
            return (log10(value) - log10(self.low)) / (log10(self.high) - log10(self.low))
        return (value - self.low) / (self.high - self.low)

    def ticks(self) -> list[float]:
        """Round values to write at the axis: about five.

        >>> Axis("", 0, 1).ticks(), Axis("", 0.02, 300, log=True).ticks()
        ([0.0, 0.2, 0.4, 0.6, 0.8, 1.0], [0.1, 1.0, 10.0, 100.0])
        """
        if self.log:
            first, last = ceil(log10(self.low) - 1e-9), floor(log10(self.high) + 1e-9)
            stride = max(1, ceil((last - first + 1) / 6))
            powers = [10.0**k for k in range(first, last + 1, stride)]
            return powers if len(powers) > 1 else [self.low, self.high]
        rough = (self.high - self.low) / 5
        unit = 10.0 ** floor(log10(rough))
        step = next(unit * k for k in (1, 2, 5, 10) if unit * k >= rough * 0.999)
        marks = range(ceil(self.low / step - 1e-9), floor(self.high / step + 1e-9) + 1)
        return [float(f"{k * step:.12g}") for k in marks]


@dataclass
class Chart:
    """One figure: a title for those who cannot see it, two axes, and marks that are added to it."""

    title: str
    x: Axis
    y: Axis
    width: int = 360
    height: int = 280
    marks: list[Html] = field(default_factory=list)
    names: dict[int, str] = field(default_factory=dict)

    def line(
        self, x: Sequence[float] | Floats, y: Sequence[float] | Floats, series: int = 0, name: str = ""
    ) -> None:
        """Draw a line through points; of many points only as many as can be seen are kept."""
        xs, ys = thinned(np.asarray(x, dtype=float), np.asarray(y, dtype=float))
        points = " ".join(f"{self._x(a):.1f},{self._y(b):.1f}" for a, b in zip(xs, ys, strict=True))
        self.marks.append(tag("polyline", points=points, class_=f"line s{series % SERIES}"))
        self._named(series, name)

    def dots(
        self, x: Iterable[float], y: Iterable[float], series: int = 0, name: str = "", radius: float = 3
    ) -> None:
        """Draw a dot for every point."""
        for a, b in zip(x, y, strict=True):
            x_, y_ = f"{self._x(a):.1f}", f"{self._y(b):.1f}"
            self.marks.append(tag("circle", cx=x_, cy=y_, r=radius, class_=f"dot s{series % SERIES}"))
        self._named(series, name)

    def bar(self, low: float, high: float, top: float, *, title: str) -> None:
        """Draw a bar over [low, high] on the x axis, with a title for a mouse that points at it."""
        left, right, up, down = self._x(low), self._x(high), self._y(top), self._y(0.0)
        box = {"x": f"{left:.1f}", "y": f"{up:.1f}"}
        box |= {"width": f"{max(right - left, 0.4):.1f}", "height": f"{max(down - up, 0):.1f}"}
        self.marks.append(tag("g", tag("title", title), tag("rect", **box), class_="bar s0"))

    def rule(self, from_: tuple[float, float], to: tuple[float, float]) -> None:
        """Draw a thin dotted line to compare with."""
        ends = zip(("x1", "y1", "x2", "y2"), (*from_, *to), (self._x, self._y, self._x, self._y), strict=True)
        self.marks.append(tag("line", **{k: f"{place(v):.1f}" for k, v, place in ends}, class_="rule"))

    def render(self, caption: str = "") -> Html:
        """Return the figure with its legend and caption."""
        size = f"0 0 {self.width} {self.height}"
        drawing = tag(
            "svg", tag("title", self.title), self.drawing(), viewBox=size, role="img",
            style=f"max-width:{self.width * 1.25:.0f}px",
        )  # fmt: skip
        keys = [tag("span", name, class_=f"key s{k % SERIES}") for k, name in self.names.items()]
        legend = [tag("span", *keys, class_="legend")] if keys else []
        return tag("figure", drawing, tag("figcaption", tag("b", self.title), *legend, caption))

    def drawing(self) -> Html:
        """Return the axes and all marks, from the upper left corner of the chart."""
        return joined(*self._frame(), *self.marks)

    def _frame(self) -> list[Html]:
        """Return the grid, the numbers at the axes and their labels."""
        right, bottom = self.width - RIGHT, self.height - BOTTOM
        found = []
        for value in self.x.ticks():
            at = f"{self._x(value):.1f}"
            found.append(tag("line", x1=at, x2=at, y1=TOP, y2=bottom, class_="grid"))
            words = self.x.words(value)
            found.append(tag("text", words, x=at, y=bottom + 15, text_anchor="middle"))
        for value in self.y.ticks():
            at = f"{self._y(value):.1f}"
            found.append(tag("line", x1=LEFT, x2=right, y1=at, y2=at, class_="grid"))
            found.append(tag("text", self.y.words(value), x=LEFT - 6, y=at, dy="0.32em", text_anchor="end"))
        middle, height = (LEFT + right) / 2, (TOP + bottom) / 2
        found.append(
            tag("text", self.x.label, x=middle, y=self.height - 6, class_="label", text_anchor="middle")
        )
        turned = {
            "transform": f"translate(11 {height}) rotate(-90)",
            "class_": "label",
            "text_anchor": "middle",
        }
        return [*found, tag("text", self.y.label, **turned)]

    def _named(self, series: int, name: str) -> None:
        if name:
            self.names[series] = name

    def _x(self, value: float) -> float:
        return LEFT + self.x.place(value) * (self.width - LEFT - RIGHT)

    def _y(self, value: float) -> float:
        return self.height - BOTTOM - self.y.place(value) * (self.height - BOTTOM - TOP)


def side_by_side(*figures: Html) -> Html:
    """Return figures in a row, or below each other where there is no room."""
    return tag("div", joined(*figures), class_="figures")


def thinned(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Return at most `MOST_POINTS` points of a line, evenly along it as it is drawn, with both ends."""
    if len(x) <= MOST_POINTS:
        return x, y

    def spread(values: Floats) -> float:
        return float(np.ptp(values)) or 1.0

    along = np.cumsum(np.hypot(np.diff(x, prepend=x[0]) / spread(x), np.diff(y, prepend=y[0]) / spread(y)))
    chosen = np.unique(np.searchsorted(along, np.linspace(0, along[-1], MOST_POINTS - 2)))
    chosen = np.unique(np.concatenate([[0], np.minimum(chosen, len(x) - 1), [len(x) - 1]]))
    return x[chosen], y[chosen]
