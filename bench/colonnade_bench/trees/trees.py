"""Boosted trees: as good as on pooled columns, at what cost, and how that grows.

`accuracy` trains secureboost and boosted-sum beside scikit-learn's HistGradientBoosting and, where it is
installed, XGBoost, on the same prepared columns, with the same depth, rounds and learning rate. `cost` is the
processor time of all parties for one more tree, beside scikit-learn's in the same run. `growth` is that for
more rows and columns.
"""

from __future__ import annotations

from pathlib import Path

from colonnade_bench.common import Bench, Grid, Say
from colonnade_bench.trees.accuracy import SETS, Quality, measured
from colonnade_bench.trees.attacks import KNOWN, ROUNDS, columns_at_the_label_holder, labels_at_an_owner
from colonnade_bench.trees.cost import Cost, credit_like, made_up, per_tree
from colonnade_bench.trees.large import large
from colonnade_bench.trees.slow import AFTER, EVERY, SPEEDS, sitting_out, waiting

PARTS = {
    "accuracy": "test rows of known sets, beside scikit-learn and XGBoost",
    "cost": "processor time and bytes of one tree, 30,000 rows and 23 columns",
    "growth": "the same for 10^4 to 10^6 rows, and for more columns",
    "attacks": "what an owner finds out about labels, and the label holder about columns",
    "slow": "a slow party, in virtual time: waited for, or sitting out trees",
    "large": "ten million rows: time, and the memory of the largest party",
}
WAYS = ("secureboost", "boosted-sum", "scikit-learn", "leaves of any size", "XGBoost", "pooled")
ELSEWHERE = (
    "Others, with encryption, on a machine like ours: SecretFlow SGB 82 s for 10 trees of UCI credit, "
    "FedTree with homomorphic encryption 307 s, FATE's SecureBoost 134 s for 10 trees of breast cancer."
)


def run(quick: bool, out: Path, say: Say, only: tuple[str, ...] = ()) -> list[Path]:
    """Measure the parts that are wanted, and write their tables."""
    bench = Bench("trees", "Boosted trees over split columns", quick)
    wanted = only or tuple(PARTS)
    if "accuracy" in wanted:
        bench.grids.append(_accuracy(quick, say))
    if "cost" in wanted:
        bench.grids.append(_cost(quick, say))
    if "growth" in wanted:
        bench.grids.append(_growth(quick, say))
    if "attacks" in wanted:
        bench.grids += _attacks(quick, say)
    if "slow" in wanted:
        bench.grids += _slow(quick, say)
    if "large" in wanted:
        bench.grids.append(_large(quick, say))
    return bench.write(out)


def _accuracy(quick: bool, say: Say) -> Grid:
    rows = []
    for name, metric in SETS.items():
        try:
            found = measured(name, rounds=10 if quick else 100, quick=quick)
        except FileNotFoundError as absent:
            say(f"{name}: left out, {absent.filename} is not there")
            continue
        rows.append(_accuracy_row(name, metric, found))
        say(" ".join(rows[-1]))
    note = (
        "4 parties; 100 rounds (mnist: 10), depth 6, learning rate 0.1, 255 bins, lambda 1. Means over 5 "
        "splits of the rows, 3 of givemesomecredit, 1 where there are test rows. Leaves of any size: "
        "scikit-learn without its bound of 20 rows to a leaf. Pooled, in quick runs: our own program. "
        "XGBoost where it is installed."
    )
    return Grid("Test rows", ("data", "measure", *WAYS), rows, note)


def _accuracy_row(name: str, metric: str, found: dict[str, Quality]) -> list[str]:
    cells = [f"{found[way][metric]:.4f}" if way in found else "-" for way in WAYS]
    return [name, metric, *cells]


def _cost(quick: bool, say: Say) -> Grid:
    trees = 5 if quick else 20
    ways = ("scikit-learn", "clear", "blind")
    found = {way: per_tree(credit_like(), way, trees) for way in ways}
    base = found["scikit-learn"].seconds
    rows = [
        [way, f"{1e3 * cost.seconds:.1f}", f"{cost.seconds / base:.1f}", f"{cost.megabytes:.2f}"]
        for way, cost in found.items()
    ]
    for row in rows:
        say(" ".join(row))
    title = "One tree of 30,000 rows and 23 columns, depth 6, 32 bins, 4 parties"
    return Grid(
        title, ("labels", "ms of processor time, all parties", "times scikit-learn", "MB"), rows, ELSEWHERE
    )


def _growth(quick: bool, say: Say) -> Grid:
    sizes = [(10_000, 20), (100_000, 20), (1_000_000, 20), (30_000, 50), (30_000, 200)]
    rows = []
    for n, d in sizes[:2] if quick else sizes:
        clear, blind = (per_tree(made_up(n, d), way, 2) for way in ("clear", "blind"))
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
    note = "Processor time includes reading and cutting columns. Memory is the most up to this run."
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
