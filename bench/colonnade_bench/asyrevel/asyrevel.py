"""AsyREVEL's experiments: Tables 3 and 4, Figures 3 and 4, and what the paper leaves out about privacy.

Every part has those of the paper's sets that are on this machine (`papers`). Accuracy is measured with all
parties in this process (`local`); times of Figures 3 and 4 are simulated, so that a straggler is as slow as
it says whatever this machine does meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from threadpoolctl import threadpool_limits

from colonnade.data.datasets.loading import available
from colonnade_bench.asyrevel.line import line_times
from colonnade_bench.asyrevel.lossless import TABLE_4, sets_of, table_4, trial
from colonnade_bench.asyrevel.lossless import pieces as trial_pieces
from colonnade_bench.asyrevel.pace import delays, figure_3, figure_4, slower_of
from colonnade_bench.asyrevel.privacy import privacy
from colonnade_bench.asyrevel.setting import IMAGES, tables_of
from colonnade_bench.common import Bench, Grid, Panel, Say
from colonnade_bench.papers import ASYREVEL, ASYREVEL_FIGURE_4, first_here, here_or_bundled

TABLE_3 = "Table 3: time of an exchange"
# Table 3: the data, the columns of a party, and how much longer sending the gradient took
PAPER_3 = (
    ("D1 UCI credit", 12, 1.065), ("D2 GiveMeSomeCredit", 12, 1.078), ("D3 rcv1", 5904, 5.794),
    ("D4 a9a", 16, 1.192), ("D5 w8a", 37, 1.192), ("D6 epsilon", 250, 1.824), ("D7 MNIST", 98, 1.672),
    ("D8 Fashion-MNIST", 98, 1.672),
)  # fmt: skip
TITLE = "AsyREVEL: black-box models over split columns"
PARTS = {
    "privacy": "private replies, and the attack on them",
    "table3": "time of an exchange",
    "figure3": "loss against time with a slow party",
    "figure4": "speed-up",
    "delays": "the step and the delay",
    "table4": "losslessness",
}
LAST = ("table4:kept",)
# of one core, by processor time
MINUTES = {"privacy": 1, "figure3": 5, "figure4": 2, "delays": 1, "table4": 24}


def pieces(quick: bool) -> list[str]:
    """What can run side by side, the longest first."""
    slow = [f"figure3:{name}:{slower}" for name in timed_sets(quick) for slower in slower_of(quick)]
    more = [f"figure4:{name}" for name in sped_up_sets()]
    return [*slow, *more, "privacy", "delays", "table3", *trial_pieces(quick)]


def run(
    quick: bool, out: Path, say: Say, *, only: Sequence[str] = (), tables: Path | None = None
) -> list[Path]:
    """Measure everything that the data sets on this machine allow, and write it as it comes."""
    bench = Bench("asyrevel", TITLE, quick)
    with threadpool_limits(1):
        for piece in only or PARTS:
            _piece(bench, piece, say, out)
            bench.write(tables or out)  # a full run takes long, and what is there can be read meanwhile
    if not only:
        bench.panels += panels_of(bench.grids)
    return bench.write(tables or out)


def _piece(bench: Bench, piece: str, say: Say, out: Path) -> None:
    """Measure a part, or what of it is named behind a colon."""
    part, *which = piece.split(":")
    quick = bench.quick
    match part:
        case "privacy" if available("a9a"):
            privacy(bench, say, tables=tables_of("a9a"), quick=quick)
        case "table3":
            table_3(bench, say, quick=quick)
        case "figure3":
            slow_by = [float(word) for word in which[1:]] or slower_of(quick)
            figure_3(bench, say, which[:1] or timed_sets(quick), slow_by, quick=quick)
        case "figure4":
            figure_4(bench, say, which or sped_up_sets(), quick=quick)
        case "delays":
            delays(bench, say, quick=quick)
        case "table4" if len(which) == 3:
            name, row, seed = which
            trial(name, row, int(seed), say, out, quick=quick)
        case "table4":
            table_4(bench, say, sets_of(quick), out, quick=quick, new=which != ["kept"])


def timed_sets(quick: bool) -> list[str]:
    """The sets of Figure 3: all of the paper's that are here, networks first; the quick form has one."""
    found = here_or_bundled((*IMAGES, *ASYREVEL)).found
    return found[:1] if quick else found


def sped_up_sets() -> list[str]:
    """The sets of Figure 4: one of networks and one of linear models."""
    return [name for sets in (("mnist",), ASYREVEL_FIGURE_4) if (name := first_here(sets))]


def panels_of(grids: list[Grid]) -> list[Panel]:
    """The figures that show Tables 3 and 4."""
    panels = []
    for grid in grids:
        if grid.title == TABLE_3:
            lines = {
                name: [(float(row[1]), row[column]) for row in grid.rows]
                for column, name in enumerate(("paper", "gradient of d parameters", "one derivative"), 2)
            }
            panels.append(Panel(TABLE_3, "columns of a party", "times as long as values", lines, log=True))
        if grid.title == TABLE_4:
            pairs = [(row[1], (row[3], row[4])) for row in grid.rows if None not in row[3:5]]
            lines = {name: sorted(pair for n, pair in pairs if n == name) for name, _ in pairs}
            ends = [bound(value for _, pair in pairs for value in pair) for bound in (min, max)]
            lines["the same"] = [(end, end) for end in ends]
            panels.append(Panel(TABLE_4, "non-federated, test accuracy %", "federated %", lines))
    return panels


def table_3(bench: Bench, say: Say, *, quick: bool) -> None:
    """How much longer an exchange takes whose reply is a gradient."""
    say("Table 3: sending gradients against sending values, over mutual TLS")
    rows, times = [], {}
    for name, d, paper in sorted(PAPER_3, key=lambda row: row[1]):
        if d not in times:
            times[d] = line_times(d, 200 if quick else 2000)
        values, one, whole = times[d]
        rows.append([name, d, paper, whole / values, one / values, 1e6 * values])
    note = (
        "Every row is one exchange of a single sample over TLS on this machine, as in the paper: two outputs "
        "up, then either two losses down, or the gradient of the party's d parameters (what the paper "
        "compares with), or the derivative of its one output (what a split model really needs)."
    )
    heads = [
        "data",
        "d",
        "paper",
        "gradient of d / values",
        "derivative / values",
        "us with values",
    ]
    bench.grids.append(Grid(TABLE_3, heads, rows, note))
