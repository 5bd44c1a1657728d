"""Sums and results over stars and trees for 2 to 32 parties, in simulated time, and where the lines cross.

python -m colonnade_bench.micro.topologies [--values 262144] [--latency-ms 0.5] [--mbps 1000] [--out DIR]
"""

from __future__ import annotations

import argparse
from pathlib import Path

from colonnade.net.simulated import Link
from colonnade_bench.common import Bench
from colonnade_bench.kernel.topologies import figure_4


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--values", type=int, default=2**18, help="numbers in one array")
    parser.add_argument("--latency-ms", type=float, default=0.5)
    parser.add_argument("--mbps", type=float, default=1000.0, help="of every party's card")
    parser.add_argument("--out", type=Path, help="also write the figure and its numbers to this folder")
    options = parser.parse_args()
    bench = Bench("topologies", "Stars and trees against the number of parties", quick=False)
    figure_4(bench, options.values, link=Link(options.latency_ms / 1e3, options.mbps * 1e6))
    for grid in bench.grids:
        print(grid.markdown(), end="\n\n")
    if options.out is not None:
        bench.write(options.out)


if __name__ == "__main__":
    main()
