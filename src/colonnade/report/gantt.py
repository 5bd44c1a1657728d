"""The timeline of a run as a picture: a lane for every party, dark where it computed, ticks where it sent."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from colonnade.arrays import Floats
from colonnade.report.html import Html, joined, table, tag
from colonnade.report.summary import duration
from colonnade.report.svg import Axis
from colonnade.timeline import PartyTimeline, Timeline

WIDTH, LEFT, LANE, TOP = 940, 120, 30, 6
ROOM = WIDTH - LEFT - 12
SPANS = 24  # of computing at the busiest party, in the picture of a short while
SLICES, SHADES = 300, 10  # of a long stretch: how finely its lanes are shaded


def timeline_section(timeline: Timeline) -> Html:
    """Return who computed, waited and sent: the whole of what was recorded, and a short while of it."""
    lanes = {name: lane for name, lane in timeline.parties.items() if lane.busy or lane.sent}
    if not lanes:
        return tag("p", "Nothing was recorded.")
    end = max(lane.until for lane in lanes.values())
    complete = min(lane.until for lane in lanes.values())
    whole = max(lane.seconds for lane in lanes.values())
    stretch = (
        "The whole run"
        if complete >= 0.99 * whole
        else f"The first {duration(complete)} of {duration(whole)}"
    )
    figures = [_picture(lanes, 0.0, min(complete, end), stretch)]
    begin, until = _short_while(lanes, complete)
    if until - begin < 0.6 * complete:
        figures.append(_picture(lanes, begin, until, f"{duration(until - begin)} from its middle"))
    clock = "simulated time" if timeline.virtual else "real time"
    words = (
        f"Each party has a lane, in {clock}: filled where it computed, empty where it waited; a tick below "
        "it is a message that it sent."
    )
    ((only, lane), *others) = lanes.items()
    if lane.received and not others:
        words = (
            f"{only} as it saw itself, in its own time: filled where it computed, empty where it waited; a "
            "tick below is a message that it sent, a tick above one that it received. What the others did is "
            "not known here, and no clocks are compared."
        )
        return joined(tag("p", words), *figures, _totals(lanes), _waits(lane))
    return joined(tag("p", words), *figures, _totals(lanes))


def _waits(lane: PartyTimeline) -> Html:
    """Return for whom a party waited: the sender of the message after which it went on computing."""
    idle = max(0.0, lane.seconds - lane.busy_seconds)
    rows = [
        [peer, duration(waited), f"{100 * waited / idle:.1f}%" if idle else ""]
        for peer, waited in sorted(lane.waited.items(), key=lambda item: -item[1])
    ]
    head = ["party", "waited for it", "of all waiting"]
    return table("Whose message ended a wait", head, rows, class_="numbers")


def _short_while(lanes: dict[str, PartyTimeline], complete: float) -> tuple[float, float]:
    """Return a stretch in the middle in which the busiest party computes about `SPANS` times."""
    busiest = max(lanes.values(), key=lambda lane: len(lane.busy)).busy
    inside = [span for span in busiest if span[1] <= complete]
    if len(inside) <= SPANS:
        return 0.0, complete
    first = (len(inside) - SPANS) // 2
    return inside[first][0], inside[first + SPANS - 1][1]


@dataclass(frozen=True)
class _Stretch:
    """A stretch of time and where its moments are in the picture."""

    begin: float
    end: float

    @property
    def unit(self) -> tuple[float, str]:
        """What seconds are multiplied with to be read, and what they are then."""
        return (1.0, "s") if self.end >= 1 else (1e3, "ms") if self.end >= 1e-3 else (1e6, "µs")

    @property
    def axis(self) -> Axis:
        scale, unit = self.unit
        return Axis(f"time [{unit}]", self.begin * scale, max(self.end, self.begin + 1e-9) * scale)

    def place(self, seconds: float) -> float:
        return LEFT + self.axis.place(seconds * self.unit[0]) * ROOM


def _picture(lanes: dict[str, PartyTimeline], begin: float, end: float, title: str) -> Html:
    """Return one stretch of time: every span where they are few, shades of how much was computed where
    not."""
    stretch, bottom = _Stretch(begin, end), TOP + LANE * len(lanes)
    fine = all(len(_within(lane, begin, end)) <= SLICES for lane in lanes.values())
    marks = _time_marks(stretch, bottom)
    for k, (name, lane) in enumerate(lanes.items()):
        marks += _lane_marks(stretch, name, lane, k, fine=fine)
    view = f"0 0 {WIDTH} {bottom + 36}"
    drawing = tag("svg", tag("title", f"Timeline: {title}"), *marks, viewBox=view, role="img")
    words = "" if fine else "The deeper the shade, the larger the part of that time in which it computed."
    return tag("figure", drawing, tag("figcaption", tag("b", title), words), class_="wide")


def _time_marks(stretch: _Stretch, bottom: int) -> list[Html]:
    """Return the grid, its numbers, and what they are."""
    marks = []
    for value in stretch.axis.ticks():
        at = f"{stretch.place(value / stretch.unit[0]):.1f}"
        marks.append(tag("line", x1=at, x2=at, y1=TOP, y2=bottom, class_="grid"))
        marks.append(tag("text", f"{value:g}", x=at, y=bottom + 15, text_anchor="middle"))
    middle = {"x": (LEFT + WIDTH) / 2, "y": bottom + 30}
    return [*marks, tag("text", stretch.axis.label, **middle, text_anchor="middle", class_="label")]


def _lane_marks(stretch: _Stretch, name: str, lane: PartyTimeline, k: int, *, fine: bool) -> list[Html]:
    """Return one party's lane: its name, when it computed and, where there is room, when it sent."""
    top, begin, end = TOP + LANE * k, stretch.begin, stretch.end
    shown = name if len(name) <= 16 else f"{name[:15]}…"
    marks = [
        tag("text", shown, x=LEFT - 8, y=top + 13, dy="0.32em", text_anchor="end"),
        tag("rect", x=LEFT, y=top + 5, width=ROOM, height=16, class_="lane"),
    ]
    spans = _within(lane, begin, end)
    if not fine:
        return marks + _shaded(_parts(spans, begin, end), top + 5, ROOM, k)
    boxes = [(stretch.place(low), stretch.place(high)) for low, high in spans]
    ticks = [(stretch.place(when), stretch.place(when)) for when, _, _ in lane.sent if begin <= when <= end]
    heard = [(stretch.place(at), stretch.place(at)) for at, _, _ in lane.received if begin <= at <= end]
    return [
        *marks,
        tag("path", d=_boxes(boxes, top + 5, 16), class_=f"bar s{k % 8}"),
        tag("path", d=_boxes(ticks, top + 22, 5), class_="sent"),
        *([tag("path", d=_boxes(heard, top - 1, 5), class_="sent")] if heard else []),
    ]


def _boxes(boxes: list[tuple[float, float]], top: float, height: float) -> str:
    """Return the path of boxes from left to right; each is wide enough to be seen."""
    return "".join(f"M{a:.1f} {top}h{max(b - a, 0.6):.1f}v{height}h{-max(b - a, 0.6):.1f}Z" for a, b in boxes)


def _parts(spans: list[tuple[float, float]], begin: float, end: float) -> Floats:
    """Return which part of every slice of a stretch was spent on computing."""
    edges = np.linspace(begin, end, SLICES + 1)
    starts, ends = np.array([s[0] for s in spans]), np.array([s[1] for s in spans])
    # what was computed until each edge: whole spans, and the beginning of those that lie across it
    until = np.array([np.clip(np.minimum(ends, edge) - starts, 0, None).sum() for edge in edges])
    parts: Floats = np.diff(until) / ((end - begin) / SLICES)
    return parts


def _shaded(parts: Floats, top: float, room: float, series: int) -> list[Html]:
    """Return slices in as many shades as there are different amounts of computing."""
    width = room / SLICES
    shade = np.ceil(np.clip(parts, 0, 1) * SHADES).astype(int)
    found = []
    for level in range(1, SHADES + 1):
        boxes = [(LEFT + k * width, LEFT + (k + 1) * width) for k in np.flatnonzero(shade == level).tolist()]
        if boxes:
            path, style = _boxes(boxes, top, 16), f"fill-opacity:{level / SHADES:.1f}"
            found.append(tag("path", d=path, style=style, class_=f"bar s{series % 8}"))
    return found


def _within(lane: PartyTimeline, begin: float, end: float) -> list[tuple[float, float]]:
    """Return the spans of computing inside a stretch, cut off at its ends."""
    cut = [(max(low, begin), min(high, end)) for low, high in lane.busy]
    return [(low, high) for low, high in cut if low < high]


def _totals(lanes: dict[str, PartyTimeline]) -> Html:
    rows = []
    for name, lane in lanes.items():
        room = lane.seconds
        idle = max(0.0, room - lane.busy_seconds)
        part = f"{100 * lane.busy_seconds / room:.1f}%" if room else ""
        rows.append([name, duration(lane.busy_seconds), part, duration(idle), f"{lane.frames:,}"])
    head = ["party", "computed", "of its time", "waited", "frames sent"]
    return table("The whole run, by party", head, rows, class_="numbers")
