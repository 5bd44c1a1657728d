"""What kernel machines choose for themselves, beside what they could have been given.

    python -m colonnade_bench.micro.kernel_choices penalty [--rows 2000] [--only "22 columns"]
    python -m colonnade_bench.micro.kernel_choices bits

`penalty`: test errors with `l2 = "auto"` and with given penalties, on made-up data and on data sets.
`bits`: test errors and bytes with projections of 16 and of 32 bits.
"""

from __future__ import annotations

import argparse

from threadpoolctl import threadpool_limits

from colonnade.data.datasets.loading import available
from colonnade_bench.kernel.made_up import SETS
from colonnade_bench.kernel.penalties import penalties
from colonnade_bench.kernel.traffic import COMPARED, bits_compared

OURS = ("fdskl", "fdskl-capped")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["penalty", "bits"])
    parser.add_argument("--rows", type=int, help="training rows of every set at most; all without it")
    parser.add_argument("--only", action="append", metavar="SET", help="this set; may be repeated")
    parser.add_argument("--algorithm", action="append", choices=OURS, help="one of the two, of penalty")
    given = parser.parse_args()
    usual = COMPARED if given.what == "bits" else (*SETS, *(name for name in COMPARED if name not in SETS))
    names = [name for name in given.only or usual if name in SETS or available(name)]
    with threadpool_limits(1):
        if given.what == "penalty":
            grids = penalties(names, given.rows, print, given.algorithm or OURS)
        else:
            grids = [bits_compared(names, given.rows, print)]
    for grid in grids:
        print(f"\n{grid.markdown()}")


if __name__ == "__main__":
    main()
