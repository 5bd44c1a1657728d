"""AsySQN's experiments: Figures 2-4, Tables 3-5, what quasi-Newton directions save in rounds.

The paper's scheme is the pull conversation; the same directions on the backward conversation, where one
aggregation updates every block, are shown beside it. Table 4 has those of the paper's sets that are on this
machine (`papers`).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from colonnade_bench.calibrate import calibrate, words
from colonnade_bench.common import Bench, Grid, Say
from colonnade_bench.linear.cti import BANDWIDTH_BPS, LATENCY_S, timed
from colonnade_bench.linear.lossless import lossless
from colonnade_bench.linear.pace import ESTIMATORS, Costs, crui, crui_of_processes
from colonnade_bench.linear.rates import pulled, quasi_newton
from colonnade_bench.linear.sqn_figures import crui_on, figure_2, figure_3, figure_4
from colonnade_bench.linear.sweep import PAIRS, every_case, sweep
from colonnade_bench.papers import ASYSQN, ASYSQN_TABLE_4, MORE

PARTS = {
    "cti": "Table 3: a vector over a scalar",
    "crui": "Table 5, first order and with quasi-Newton on",
    "processes": "Table 5 with real processes",
    "rounds": "rounds to a sub-optimality, backward and pull",
    "figure2": "sub-optimality against rounds, all estimators",
    "figure3": "sub-optimality against time",
    "figure4": "speed-up",
    "sweep": "every set with defaults, beside first order",
    "lossless": "Table 4",
}


def run(quick: bool, out: Path, say: Say, *, only: Sequence[str] = ()) -> list[Path]:
    """Measure every part, or some, and write what there is after each."""
    bench = Bench("asysqn", "AsySQN: quasi-Newton directions over split columns", quick)
    costs = calibrate()
    say(words(costs))
    bench.data["calibration"] = words(costs)
    for part in only or PARTS:
        _part(part, bench, costs, say, out, quick=quick)
        bench.write(out)
    return bench.write(out)


def _part(name: str, bench: Bench, costs: Costs, say: Say, out: Path, *, quick: bool) -> None:
    """Measure one part."""
    speeds = (0.3,) if quick else (0.3, 0.4, 0.5, 0.6)
    sets = ("a9a",) if quick else ("a9a", "uci-credit")
    rows = 2_048 if quick else 10_000
    match name:
        case "cti":
            transmission(bench, say, quick=quick)
        case "crui":
            estimators = ("sgd",) if quick else ESTIMATORS
            crui(bench, costs, say, estimators=estimators, speeds=speeds, rows=1536 if quick else 4096)
            crui_on(bench, costs, say, estimators=ESTIMATORS, speeds=speeds, rows=192 if quick else 1536)
        case "processes":
            crui_of_processes(bench, say, speeds=speeds, batch=9 if quick else 4)
        case "rounds":
            quasi_newton(bench, say, quick=quick)
            most = 5_000 if quick else 36_000
            pulled(bench, say, sets=sets, target=1e-3 if quick else 1e-5, aggregations=most)
        case "figure2":
            figure_2(bench, say, sets=sets, estimators=ESTIMATORS, epochs=8 if quick else 21, rows=rows)
        case "figure3":
            epochs = 8 if quick else 21
            figure_3(bench, costs, say, sets=sets, estimators=ESTIMATORS, epochs=epochs, rows=rows)
        case "figure4":
            figure_4(bench, costs, say, counts=(1, 2, 4, 8), epochs=6 if quick else 12, rows=rows // 2)
        case "sweep":
            cases = every_case(300, 1, ("iris", "phishing")) if quick else every_case(2_000, 3)
            sweep(bench, say, cases, ("svrg", "asysqn-svrg") if quick else tuple(PAIRS))
        case "lossless":
            names = ("phishing", "uci-credit") if quick else (*ASYSQN, *MORE)
            algorithms = ("asysqn-svrg", "asysqn-saga")
            lossless(bench, names, algorithms, ("l2",), 1 if quick else 10, ASYSQN_TABLE_4, say, out)


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
