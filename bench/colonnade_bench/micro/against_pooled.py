"""SVRG over 4 parties beside a pooled L-BFGS fit, on the real clock: local and network world.

python -m colonnade_bench.micro.against_pooled [--repeats 3] [--gaps 1e-3 1e-4] [--sets a9a uci-credit]
"""

from __future__ import annotations

import argparse

from colonnade_bench.common import Bench
from colonnade_bench.linear.against import SETS, against_pooled


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--gaps", type=float, nargs="+", default=[1e-3, 1e-4])
    parser.add_argument("--sets", nargs="+", default=SETS, choices=SETS)
    given = parser.parse_args()
    bench = Bench("against", "SVRG beside a pooled fit", quick=False)
    against_pooled(bench, print, sets=given.sets, gaps=given.gaps, repeats=given.repeats)
    print(bench.grids[0].markdown())


if __name__ == "__main__":
    main()
