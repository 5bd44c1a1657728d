"""AsySQN's experiments: Figures 2-4, Tables 3-5, what quasi-Newton directions save in rounds.

The paper's scheme is the pull conversation; the same directions on the backward conversation, where one
aggregation updates every block, are shown beside it. Every part has those of the paper's sets that are on
this machine, or what stands in for them (`papers`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from colonnade.data.datasets.loading import available
from colonnade_bench.calibrate import calibrated, words
from colonnade_bench.common import Bench, Grid, Say
from colonnade_bench.linear.cti import BANDWIDTH_BPS, LATENCY_S, timed
from colonnade_bench.linear.lossless import Lossless
from colonnade_bench.linear.pace import ESTIMATORS, Costs, crui, crui_of_processes
from colonnade_bench.linear.rates import pulled, quasi_newton
from colonnade_bench.linear.slow_party import SPLITS as SLOW_SPLITS
from colonnade_bench.linear.slow_party import SlowParty
from colonnade_bench.linear.sqn_figures import crui_on, figure_2, figure_3, figure_4
from colonnade_bench.linear.sweep import PAIRS, Case, every_case, set_names, sweep
from colonnade_bench.papers import (
    ASYSQN,
    ASYSQN_FIGURE_4,
    ASYSQN_TABLE_4,
    MORE,
    first_here,
    here_or_bundled,
    nothing_here,
)

PARTS = {
    "cti": "Table 3: a vector over a scalar",
    "crui": "Table 5: 21 passes over every set, quasi-Newton on",
    "closed-form": "what Table 5 should have: first order beside the closed form",
    "processes": "Table 5 with real processes",
    "rounds": "rounds to a sub-optimality, backward and pull",
    "figure2": "sub-optimality against rounds, all estimators",
    "figure3": "sub-optimality against time",
    "figure4": "speed-up",
    "sweep": "every set with defaults, beside first order",
    "lossless": "Table 4",
    "slow": "Table 4 between processes, without a slow party and with one",
}
FIGURES = ("figure2", "figure3")
"""Parts whose pieces are a set and an estimator; those of Table 5 have the straggler's speed as well."""

MADE_UP = "made up"
TITLE = "AsySQN: quasi-Newton directions over split columns"
LAST = ("lossless:kept", "slow:kept")
# of one core, by processor time
MINUTES = {
    "cti": 0.1, "crui": 42, "rounds": 14, "figure2": 9, "figure3": 7, "figure4": 0.5, "lossless": 30,
}  # fmt: skip


def table_4(quick: bool) -> Lossless:
    """Table 4 on the sets that are here."""
    names = ("phishing", "uci-credit") if quick else (*ASYSQN, *MORE)
    algorithms = ("asysqn-svrg", "asysqn-saga")
    return Lossless(here_or_bundled(names), algorithms, ("l2",), 1 if quick else 10, ASYSQN_TABLE_4)


def table_4_slow(quick: bool) -> SlowParty:
    """Table 4 with a slow party and without, on the same sets."""
    return SlowParty(table_4(quick), 1 if quick else SLOW_SPLITS)


def pieces(quick: bool) -> list[str]:
    """What can run side by side, the longest first."""
    sets = _sets(quick)
    table_5 = [f"crui:{name}:{how}:{s}" for name in sets for how in ESTIMATORS for s in _speeds(quick)]
    figures = [f"{part}:{name}:{how}" for part in FIGURES for name in sets for how in ESTIMATORS]
    sweeps = [f"sweep:{name}:{kind}" for name in swept(quick) for kind in _kinds(quick)]
    return [
        *(f"rounds:backward:{name}" for name in _backward_sets(quick)), *(f"rounds:{name}" for name in sets),
        *table_5, *figures, "figure4", "closed-form", *sweeps, "cti", "processes",
        *table_4_slow(quick).pieces(), *table_4(quick).pieces(),
    ]  # fmt: skip


def run(
    quick: bool, out: Path, say: Say, *, only: Sequence[str] = (), tables: Path | None = None
) -> list[Path]:
    """Measure every part, or some, and write what there is after each."""
    bench = Bench("asysqn", TITLE, quick)
    bench.data["calibration"] = words(calibrated(out))
    return bench.made(only or PARTS, lambda piece: _piece(bench, piece, say, out, quick=quick), tables or out)


def _piece(bench: Bench, piece: str, say: Say, out: Path, *, quick: bool) -> None:
    """Measure a part, or what of it is named behind a colon."""
    part, *which = piece.split(":")
    costs = calibrated(out)
    match part:
        case "cti":
            transmission(bench, say, quick=quick)
        case "closed-form" if available("mnist"):
            estimators, rows = (("sgd",), 1536) if quick else (ESTIMATORS, 4096)
            crui(bench, costs, say, estimators=estimators, speeds=_speeds(quick), rows=rows)
        case "closed-form":
            say(nothing_here("CRUI beside the closed form", ["mnist"]))
        case "processes":
            crui_of_processes(bench, say, speeds=_speeds(quick)[::2], batch=9 if quick else 4)
        case "rounds":
            _rounds(bench, which, say, quick=quick)
        case "crui":
            _table_5(bench, which, costs, say, quick=quick)
        case _ if part in FIGURES:
            _figure(bench, part, which, costs, say, quick=quick)
        case "figure4" if name := first_here(ASYSQN_FIGURE_4):
            epochs, rows = (6, 1_024) if quick else (12, 5_000)
            figure_4(bench, costs, say, name, counts=(1, 2, 4, 8), epochs=epochs, rows=rows)
        case "figure4":
            say(nothing_here("Figure 4", ASYSQN_FIGURE_4))
        case "sweep":
            sweep(bench, say, _swept_cases(which[:1], quick), which[1:] or _kinds(quick))
        case "lossless":
            table_4(quick).add(bench, say, out, which)
        case "slow":
            table_4_slow(quick).add(bench, say, out, which)


def _rounds(bench: Bench, which: Sequence[str], say: Say, *, quick: bool) -> None:
    """Rounds in the backward conversation, and aggregations in that of the paper; or one of them."""
    if not which or which[0] == "backward":
        quasi_newton(bench, say, sets=which[1:] or _backward_sets(quick), quick=quick)
    sets = which or _sets(quick)
    if sets[0] != "backward":
        most = 5_000 if quick else 36_000
        pulled(bench, say, sets=sets, target=1e-3 if quick else 1e-5, aggregations=most)


def _table_5(bench: Bench, which: Sequence[str], costs: Costs, say: Say, *, quick: bool) -> None:
    """Table 5; of all sets, estimators and speeds, or of what is named."""
    sets, estimators = which[:1] or _sets(quick), which[1:2] or ESTIMATORS
    speeds = [float(word) for word in which[2:]] or _speeds(quick)
    most = 192 if quick else None
    crui_on(bench, costs, say, sets=sets, estimators=estimators, speeds=speeds, rows=most)


def _figure(bench: Bench, part: str, which: Sequence[str], costs: Costs, say: Say, *, quick: bool) -> None:
    """Figure 2 or Figure 3; of all sets and estimators, or of what is named."""
    sets, estimators = which[:1] or _sets(quick), which[1:] or ESTIMATORS
    epochs, rows = (8, 2_048) if quick else (21, 10_000)
    if part == "figure2":
        figure_2(bench, say, sets=sets, estimators=estimators, epochs=epochs, rows=rows)
    else:
        figure_3(bench, costs, say, sets=sets, estimators=estimators, epochs=epochs, rows=rows)


def _sets(quick: bool) -> Sequence[str]:
    return here_or_bundled(("a9a",) if quick else ASYSQN).found


def _backward_sets(quick: bool) -> Sequence[str]:
    return here_or_bundled(("a9a", "uci-credit") if quick else ASYSQN).found


def _speeds(quick: bool) -> Sequence[float]:
    return (0.3,) if quick else (0.3, 0.4, 0.5, 0.6)


def _kinds(quick: bool) -> Sequence[str]:
    return ("svrg", "asysqn-svrg") if quick else tuple(PAIRS)


def swept(quick: bool) -> list[str]:
    """The sets of the sweep; those that are made up have one name together."""
    return ["iris", "phishing"] if quick else [MADE_UP, *set_names()]


def _swept_cases(which: Sequence[str], quick: bool) -> Iterator[tuple[Case, int]]:
    """The named sets, or all."""
    names = which or swept(quick)
    most, seeds = (300, 1) if quick else (None, 3)
    return every_case(
        most, seeds, [name for name in names if name != MADE_UP], None if MADE_UP in names else ()
    )


def transmission(bench: Bench, say: Say, *, quick: bool) -> None:
    """Add Table 3: how much longer a vector takes than a number."""
    rows, seconds = timed(100, 5) if quick else timed(300, 15)
    columns = ["set of the paper", "d_l", "paper", "TLS on loopback", "simulated link"]
    note = (
        "Time to send d_l numbers over that of one number, an answer of one number included; median of "
        f"trials. Simulated link: {1e6 * LATENCY_S:.0f} us and {BANDWIDTH_BPS / 1e9:g} Gb/s. Both ends "
        "of the TLS line run in one process, so a vector is sealed and opened in turn."
    )
    bench.grids.append(Grid("CTI: a vector over a scalar", columns, rows, note))
    say(f"CTI measured in {seconds:.0f} s: {rows[0][3]:.2f} at 12 to {rows[-1][3]:.0f} at 169,398")
