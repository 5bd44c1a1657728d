"""A quasi-Newton direction beside first order with defaults, on every set there is and on made-up ones.

python -m colonnade_bench.micro.quasi_newton [--rows 1000] [--seeds 2] [--epochs 20]
    [--kinds svrg asysqn-svrg] [--sets a9a phishing] [--shapes tall tiny]
"""

from __future__ import annotations

import argparse

from colonnade_bench.common import Bench
from colonnade_bench.linear.sweep import PAIRS, every_case, sweep


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, help="the most rows of a set; without it what is feasible")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--kinds", nargs="+", default=list(PAIRS), choices=list(PAIRS))
    parser.add_argument("--epochs", type=int, help="instead of the defaults")
    parser.add_argument("--sets", nargs="*", help="these sets alone; without a name: none")
    parser.add_argument("--shapes", nargs="*", help="these made-up sets alone; without a name: none")
    given = parser.parse_args()
    bench = Bench("quasi_newton", "Quasi-Newton beside first order", quick=False)
    cases = every_case(given.rows, given.seeds, given.sets, given.shapes)
    sweep(bench, lambda line: print(line, flush=True), cases, given.kinds, epochs=given.epochs)
    (table,) = bench.grids
    print(table.markdown())
    above = sum(row[-1] == "ABOVE" for row in table.rows)
    print(f"\n{above} of {len(table.rows)} runs end above first order")


if __name__ == "__main__":
    main()
