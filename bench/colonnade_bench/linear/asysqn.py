"""AsySQN's experiments: Figure 2, Tables 3-5, and what quasi-Newton directions save in rounds.

The paper's scheme is the pull conversation; the same directions on the backward conversation, where one
aggregation updates every block, are shown beside it. Table 4 has those of the paper's sets that are on this
machine (`papers`).
"""

from __future__ import annotations

from pathlib import Path

from colonnade_bench.calibrate import calibrate, words
from colonnade_bench.common import Bench, Grid, Say
from colonnade_bench.linear.cti import BANDWIDTH_BPS, LATENCY_S, timed
from colonnade_bench.linear.lossless import lossless
from colonnade_bench.linear.pace import ESTIMATORS, crui, crui_of_processes
from colonnade_bench.linear.rates import pulled, quasi_newton
from colonnade_bench.papers import ASYSQN, ASYSQN_TABLE_4, MORE


def run(quick: bool, out: Path, say: Say) -> list[Path]:
    """Measure every part, and write what there is after each."""
    bench = Bench("asysqn", "AsySQN: quasi-Newton directions over split columns", quick)
    costs = calibrate()
    say(words(costs))
    transmission(bench, say, quick=quick)
    speeds = (0.3, 0.4, 0.5, 0.6)
    estimators = ("sgd",) if quick else ESTIMATORS
    crui(bench, costs, say, estimators=estimators, speeds=speeds, rows=1536 if quick else 4096)
    crui_of_processes(bench, say, speeds=(0.3,) if quick else speeds, batch=9 if quick else 4)
    bench.write(out)
    quasi_newton(bench, say, quick=quick)
    bench.write(out)
    sets = ("a9a",) if quick else ("a9a", "uci-credit")
    pulled(bench, say, sets=sets, target=1e-3 if quick else 1e-5, aggregations=5_000 if quick else 36_000)
    bench.write(out)
    names = ("phishing", "uci-credit") if quick else (*ASYSQN, *MORE)
    trials = 1 if quick else 10
    bench.data["calibration"] = words(costs)
    algorithms = ("asysqn-svrg", "asysqn-saga")
    lossless(bench, names, algorithms, ("l2",), trials, ASYSQN_TABLE_4, say, out)
    return bench.write(out)


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
