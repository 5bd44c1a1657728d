"""Star, tree and ring summation of the same arrays for 2 to 32 parties, in simulated seconds.

python -m colonnade_bench.micro.topologies [--values 262144]
"""

from __future__ import annotations

import argparse

from colonnade_bench.kernel.topologies import PARTIES, measure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--values", type=int, default=2**18, help="numbers in one array")
    values = parser.parse_args().values
    lines = measure(values)
    print(f"arrays of {values} numbers, milliseconds")
    print("parties " + "".join(f"{shape:>10}" for shape in lines))
    for row, q in enumerate(PARTIES):
        print(f"{q:7} " + "".join(f"{1e3 * points[row][1]:10.2f}" for points in lines.values()))


if __name__ == "__main__":
    main()
