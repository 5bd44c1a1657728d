"""What correlations of several parties' columns cost, and how exact they are: made-up columns, one process.

Run it with `python -m colonnade_bench.micro.describe --rows 30000 --columns 12 11`: columns by party.
`off` is the largest difference to correlations of pooled columns: without noise, and as companies are told.
"""

from __future__ import annotations

import argparse
import json
import time

import numpy as np

from colonnade.data.table import Table
from colonnade.describe.joint import NOISE
from colonnade.describe.own import UnitColumns
from colonnade.run.describe import conversed, together


def made_up(rows: int, widths: list[int]) -> dict[str, UnitColumns]:
    """Columns that go together, of every party; the first has a label."""
    rng = np.random.default_rng(0)
    common = rng.normal(size=rows)
    found = {}
    for number, width in enumerate(widths):
        X = rng.normal(size=(rows, width)) + np.outer(common, rng.normal(size=width))
        y = None if number else (common + rng.normal(size=rows) > 0).astype(float)
        name = f"party-{number}"
        found[name] = UnitColumns.of(Table(name, tuple(map(str, range(width))), X), y)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=30_000)
    parser.add_argument("--columns", type=int, nargs="+", default=[12, 11])
    given = parser.parse_args()
    own = made_up(given.rows, given.columns)
    exact = together(own).R
    summary: dict[str, object] = {"rows": given.rows, "columns": given.columns}
    for name, noise in (("off_without_noise", 0.0), ("off_as_told", NOISE)):
        began, cpu = time.perf_counter(), time.process_time()
        told, sent = conversed(own, noise)
        summary |= {
            "seconds": round(time.perf_counter() - began, 2),
            "cpu_s": round(time.process_time() - cpu, 2),
            "megabytes_sent_by_all": round(sum(sent.values()) / 1e6, 1),
            name: float(f"{np.abs(told['party-0'].R - exact).max():.2g}"),
        }
    print(json.dumps(summary))


if __name__ == "__main__":
    main()
