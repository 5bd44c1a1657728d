"""The timeline of a run as a picture: a lane for every party, dark where it computed, ticks where it sent."""

from __future__ import annotations

from bisect import bisect_left

from colonnade.report.html import Html, joined, table, tag
from colonnade.report.summary import duration
from colonnade.report.svg import Axis
from colonnade.timeline import PartyTimeline, Timeline

WIDTH, LEFT, LANE, TOP = 940, 120, 30, 6
SPANS = 40  # of computing at the busiest party, in the picture of a short while
FINEST = 0.4  # pixels; what is closer together is drawn as one


def timeline_section(timeline: Timeline) -> Html:
    """Who computed, waited and sent: the whole of what was recorded, and a short while of it."""
    lanes = {name: lane for name, lane in timeline.parties.items() if lane.busy or lane.sent}
    if not lanes:
        return tag("p", "Nothing was recorded.")
    end = max(lane.until for lane in lanes.values())
    complete = min(lane.until for lane in lanes.values())
    whole = max(lane.seconds for lane in lanes.values())
    stretch = (
        "The whole run"
        if complete >= whole * 0.999
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
    return joined(tag("p", words), *figures, _totals(lanes))


def _short_while(lanes: dict[str, PartyTimeline], complete: float) -> tuple[float, float]:
    """A stretch in the middle in which the busiest party computes about `SPANS` times."""
    busiest = max(lanes.values(), key=lambda lane: len(lane.busy)).busy
    inside = [span for span in busiest if span[1] <= complete]
    if len(inside) <= SPANS:
        return 0.0, complete
    first = (len(inside) - SPANS) // 2
    return inside[first][0], inside[first + SPANS - 1][1]


def _picture(lanes: dict[str, PartyTimeline], begin: float, end: float, title: str) -> Html:
    scale, unit = (1.0, "s") if end >= 1 else (1e3, "ms") if end >= 1e-3 else (1e6, "µs")
    axis = Axis(f"[{unit}]", begin * scale, max(end, begin + 1e-9) * scale)
    pixels = (WIDTH - LEFT - 12) / (axis.high - axis.low)

    def place(seconds: float) -> float:
        return LEFT + (seconds * scale - axis.low) * pixels

    bottom = TOP + LANE * len(lanes)
    marks = []
    for value in axis.ticks():
        at = f"{place(value / scale):.1f}"
        marks.append(tag("line", x1=at, x2=at, y1=TOP, y2=bottom, class_="grid"))
        marks.append(tag("text", f"{value:g}", x=at, y=bottom + 15, text_anchor="middle"))
    marks.append(
        tag(
            "text",
            f"time [{unit}]",
            x=(LEFT + WIDTH) / 2,
            y=bottom + 30,
            text_anchor="middle",
            class_="label",
        )
    )
    for k, (name, lane) in enumerate(lanes.items()):
        top = TOP + LANE * k
        shown = name if len(name) <= 16 else f"{name[:15]}…"
        marks.append(tag("text", shown, x=LEFT - 8, y=top + 13, dy="0.32em", text_anchor="end"))
        marks.append(tag("rect", x=LEFT, y=top + 5, width=WIDTH - LEFT - 12, height=16, class_="lane"))
        boxes = _joined([(place(max(a, begin)), place(min(b, end))) for a, b in _within(lane, begin, end)])
        path = "".join(f"M{a:.1f} {top + 5}H{max(b, a + FINEST):.1f}V{top + 21}H{a:.1f}Z" for a, b in boxes)
        marks.append(tag("path", d=path, class_=f"bar s{k % 8}"))
        ticks = _joined([(place(t), place(t)) for t, _, _ in lane.sent if begin <= t <= end])
        path = "".join(
            f"M{a:.1f} {top + 22}h{max(b - a, 0.6):.1f}v5h{-max(b - a, 0.6):.1f}Z" for a, b in ticks
        )
        marks.append(tag("path", d=path, class_="sent"))
    view = f"0 0 {WIDTH} {bottom + 36}"
    drawing = tag("svg", tag("title", f"Timeline: {title}"), *marks, viewBox=view, role="img")
    return tag("figure", drawing, tag("figcaption", tag("b", title)), class_="wide")


def _within(lane: PartyTimeline, begin: float, end: float) -> list[tuple[float, float]]:
    """The spans of computing that touch a stretch."""
    ordered = sorted(lane.busy)
    last = bisect_left(ordered, (end, float("inf")))
    return [span for span in ordered[:last] if span[1] >= begin]


def _joined(boxes: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Boxes from left to right, with those joined that nobody could tell apart."""
    found: list[tuple[float, float]] = []
    for low, high in sorted(boxes):
        if found and low - found[-1][1] < FINEST:
            found[-1] = (found[-1][0], max(found[-1][1], high))
        else:
            found.append((low, high))
    return found


def _totals(lanes: dict[str, PartyTimeline]) -> Html:
    rows = []
    for name, lane in lanes.items():
        room = lane.seconds * lane.lanes
        idle = max(0.0, room - lane.busy_seconds)
        part = f"{100 * lane.busy_seconds / room:.1f}%" if room else ""
        rows.append([name, duration(lane.busy_seconds), part, duration(idle), f"{lane.frames:,}"])
    head = ["party", "computed", "of its time", "waited", "frames sent"]
    return table("The whole run, by party", head, rows, class_="numbers")
