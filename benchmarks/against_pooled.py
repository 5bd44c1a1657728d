"""SVRG over 4 parties beside a pooled L-BFGS fit, on the real clock: local and network world.

python benchmarks/against_pooled.py [--repeats 3]
"""

from __future__ import annotations

import argparse

from colonnade.bench.against import against_pooled
from colonnade.bench.common import Bench


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3, help="the best counts")
    bench = Bench("against", "SVRG beside a pooled fit", quick=False)
    against_pooled(bench, print, repeats=parser.parse_args().repeats)
    print(bench.grids[0].markdown())


if __name__ == "__main__":
    main()
