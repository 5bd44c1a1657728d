"""Boosted trees: as good as on pooled columns, at what cost, and how that grows.

`accuracy` trains secureboost and boosted-sum beside scikit-learn's HistGradientBoosting and, where it is
installed, XGBoost, on the same prepared columns, with the same depth, rounds and learning rate. `cost` is the
processor time of all parties for one more tree, beside scikit-learn's in the same run. `growth` is that for
more rows and columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from colonnade_bench.common import Bench, Grid, Say
from colonnade_bench.trees.accuracy import SETS, Quality, measured
from colonnade_bench.trees.attacks import KNOWN, ROUNDS, columns_at_the_label_holder, labels_at_an_owner
from colonnade_bench.trees.cost import Cost, made_up, ours, side_by_side
from colonnade_bench.trees.large import large
from colonnade_bench.trees.slow import AFTER, EVERY, SPEEDS, sitting_out, waiting
from colonnade_bench.trees.told import TOLD_SETS, bytes_of, quality, right
from colonnade_bench.trees.told import WAYS as TOLD

TITLE = "Boosted trees over split columns"
PARTS = {
    "accuracy": "test rows of known sets, beside scikit-learn and XGBoost",
    "cost": "processor time and bytes of one tree, 30,000 rows and 23 columns",
    "growth": "the same for 10^4 to 10^6 rows, and for more columns",
    "attacks": "what an owner finds out about labels, and the label holder about columns",
    "told": "what owners tell of histograms: single rows' bins that it gives away, and accuracy",
    "bytes": "megabytes and processor time of blind trees, bins veiled once and rows put in order",
    "slow": "a slow party, in virtual time: waited for, or sitting out trees",
    "large": "ten million rows: time, and the memory of the largest party",
}
LAST = ()
LONG = ("mnist", "givemesomecredit", "news20", "uci-credit", "phishing")  # begun first
WAYS = ("secureboost", "boosted-sum", "scikit-learn", "leaves of any size", "XGBoost", "pooled")


def pieces(quick: bool) -> list[str]:
    """What can run side by side, the longest first."""
    sets = sorted(SETS, key=lambda name: LONG.index(name) if name in LONG else len(LONG))
    rest = ("slow", "attacks", "told", "bytes", "growth", "cost")
    return ["large", *(f"accuracy:{name}" for name in sets), *rest]


def run(
    quick: bool, out: Path, say: Say, *, only: Sequence[str] = (), tables: Path | None = None
) -> list[Path]:
    """Measure the parts that are wanted, and write what there is after every part."""
    bench = Bench("trees", TITLE, quick)
    for piece in only or PARTS:
        part, _, which = piece.partition(":")
        bench.grids += _measured(part, [which] if which else list(SETS), quick, say)
        bench.write(tables or out)
    return bench.write(tables or out)


def _measured(part: str, sets: Sequence[str], quick: bool, say: Say) -> list[Grid]:
    """The tables of a part."""
    match part:
        case "accuracy":
            return [_accuracy(sets, quick, say)]
        case "cost":
            return [_cost(quick, say)]
        case "growth":
            return [_growth(quick, say)]
        case "attacks":
            return _attacks(quick, say)
        case "told":
            return _told(quick, say)
        case "bytes":
            return [_bytes(quick, say)]
        case "slow":
            return _slow(quick, say)
        case _:
            return [_large(quick, say)]


def _accuracy(sets: Sequence[str], quick: bool, say: Say) -> Grid:
    rows = []
    for name in sets:
        try:
            found = measured(name, rounds=10 if quick else 100, quick=quick)
        except FileNotFoundError as absent:
            say(f"{name}: left out, {absent.filename} is not there")
            continue
        rows.append(_accuracy_row(name, SETS[name], found))
        say(" ".join(rows[-1]))
    note = (
        "4 parties; 100 rounds (mnist, news20: 10), depth 6, learning rate 0.1, 255 bins, lambda 1. Means "
        "over 5 splits of the rows, 3 of givemesomecredit, 1 of news20 and where there are test rows. Of "
        "news20 those 250 columns of each party that are other than 0 most often. Leaves of any size: "
        "scikit-learn without its bound of 20 rows to a leaf. Pooled, in quick runs: our own program. "
        "XGBoost where it is installed."
    )
    return Grid("Test rows", ("data", "measure", *WAYS), rows, note)


def _accuracy_row(name: str, metric: str, found: dict[str, Quality]) -> list[str]:
    cells = [f"{found[way][metric]:.4f}" if way in found else "-" for way in WAYS]
    return [name, metric, *cells]


def _cost(quick: bool, say: Say) -> Grid:
    found = side_by_side(*((2, 3) if quick else (9, 10)))
    base = np.array([cost.seconds for cost in found["scikit-learn"]])
    rows = []
    for way, costs in found.items():
        times = np.array([cost.seconds for cost in costs])
        low, middle, high = np.quantile(times / base, (0.25, 0.5, 0.75))
        ratio = f"{middle:.1f} ({low:.1f} to {high:.1f})"
        rows.append([way, f"{1e3 * np.median(times):.1f}", ratio, f"{costs[0].megabytes:.2f}"])
        say(" ".join(rows[-1]))
    title = "One tree of 30,000 rows and 23 columns, depth 6, 32 bins, 4 parties"
    heads = ("labels", "ms of processor time, all parties", "times scikit-learn", "MB")
    note = (
        f"Medians of {len(base)} runs of each, in turns, and quartiles; a run is the mean of some trees, "
        "without cutting columns and the first trees. scikit-learn has one thread."
    )
    return Grid(title, heads, rows, note)


def _growth(quick: bool, say: Say) -> Grid:
    sizes = [(10_000, 20), (100_000, 20), (1_000_000, 20), (30_000, 50), (30_000, 200)]
    rows = []
    for n, d in sizes[:2] if quick else sizes:
        clear, blind = (ours(made_up(n, d), way) for way in ("clear", "blind"))
        rows.append([f"{n:,}", str(d), *_both(clear, blind)])
        say(" ".join(rows[-1]))
    columns = ("rows", "columns", "clear: ms a tree", "blind: ms a tree", "clear: MB", "blind: MB")
    return Grid("How it grows: depth 6, 32 bins, 4 parties", columns, rows)


def _both(clear: Cost, blind: Cost) -> list[str]:
    times = [f"{1e3 * cost.seconds:.0f}" for cost in (clear, blind)]
    return [*times, *(f"{cost.megabytes:.2f}" for cost in (clear, blind))]


def _large(quick: bool, say: Say) -> Grid:
    rows = []
    for n in (100_000,) if quick else (1_000_000, 10_000_000):
        for labels in ("clear", "blind"):
            found = large(n, labels)
            cells = [f"{found.seconds:.1f}", f"{found.processor:.1f}", f"{found.megabytes:.0f}"]
            rows.append([f"{n:,}", labels, *cells, f"{found.largest:.2f}"])
            say(" ".join(rows[-1]))
    columns = (
        "rows",
        "labels",
        "s a tree",
        "processor s a tree, all parties",
        "MB a tree",
        "largest process, GB",
    )
    note = "Processor time includes reading and cutting columns."
    return Grid("Many rows: 20 columns, depth 6, 32 bins, 4 parties, a process each", columns, rows, note)


def _attacks(quick: bool, say: Say) -> list[Grid]:
    labels = labels_at_an_owner(1000 if quick else 6000)
    sizes = [(200, 5)] if quick else [(400, 10), (400, 30), (2000, 10), (2000, 30), (2000, 60)]
    columns = [columns_at_the_label_holder(*size) for size in sizes]
    for row in (*labels, *columns):
        say(" ".join(row))
    note = (
        f"UCI credit, 4 parties, {ROUNDS} rounds of depth 6. AUC of guesses, 0.5: nothing. {KNOWN} known "
        "labels: mean of ten draws; all other rows are guessed."
    )
    heads = ("rows", "trees", "median correlation", "columns above 0.8")
    return [
        Grid("Labels, guessed by an owner of columns", ("from", "clear", "blind"), labels, note),
        Grid("Columns, guessed by the label holder: depth 4, 16 bins", heads, columns),
    ]


def _told(quick: bool, say: Say) -> list[Grid]:
    sizes = [(500, 3)] if quick else [(1000, 10), (4000, 20)]
    found = [right(*size, way) for size in sizes for way in TOLD]
    some = {"a9a": (range(1), [4])} if quick else TOLD_SETS
    auc = [
        row
        for name, (splits, lengths) in some.items()
        for rounds in lengths
        for row in quality(name, splits, rounds, 2000 if quick else None)
    ]
    for row in (*found, *auc):
        say(" ".join(row))
    heads = ("rows", "trees", "what is told", "bins right", "the commonest bin")
    measures = ("data", "splits", "trees", "what is told", "AUC", "less exact (error)", "accuracy, the same")
    return [
        Grid("Others' bins, row by row: UCI credit, 4 parties", heads, found),
        Grid("AUC of test rows in points, 4 parties", measures, auc),
    ]


def _bytes(quick: bool, say: Say) -> Grid:
    wide: list[tuple[str | tuple[int, int], int]] = [
        ((24_000, 57), 64),
        ((24_000, 57), 32),
        ((49_749, 300), 2),
    ]
    rows = []
    for data, bins in [((2000, 12), 64)] if quick else [*wide, ("a9a", 2)]:
        try:
            found = [bytes_of(data, bins, veil=veil) for veil in (False, True)]
        except FileNotFoundError as absent:
            say(f"{data}: left out, {absent.filename} is not there")
            continue
        for row in found:
            say(" ".join(row))
        rows += found
    columns = ("rows x columns", "bins", "way", "MB once", "MB a tree", "MB for 100 trees", "CPU s a tree")
    return Grid("Blind trees, three parties; columns are made up but for those of a9a", columns, rows)


def _slow(quick: bool, say: Say) -> list[Grid]:
    rows = 1000 if quick else None
    times = [row for labels in ("clear", "blind") for row in waiting(rows, labels)]
    losses = [sitting_out(rows, party) for party in ((3,) if quick else (1, 2, 3))]
    for row in (*times, *losses):
        say(" ".join(row))
    speeds = [f"ms a tree, speed {speed:g}" for speed in SPEEDS]
    heads = [f"{rounds} rounds" for rounds in AFTER]
    return [
        Grid("A slow party is waited for: UCI credit, 4 parties", ("network", "labels", *speeds), times),
        Grid(f"Loss of test rows: in all rounds / in every {EVERY}th", ("slow", *heads), losses),
    ]
