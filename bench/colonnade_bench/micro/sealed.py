"""What a tree costs two parties alone, whose histograms are encrypted: processor time, bytes, by every way.

    python -m colonnade_bench.micro.sealed [--rows 30000] [--columns 23] [--bins 32] [--depth 6]
    python -m colonnade_bench.micro.sealed --set a9a

Made-up columns, all at the owner but for as many as `--own` says; or a named set's, dealt to two parties. CPU
seconds of both parties together in one process, and megabytes, of a tree after the first ones: the mean of as
many as `--trees` says. Beside it the same in clear text.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
from msgspec import structs

from colonnade.data.table import Table
from colonnade.job import job_from
from colonnade.result import Moment
from colonnade.run.federate import Tables, federate, run_tables
from colonnade.secure.lattice.arithmetic import WAYS, using


def tables(rows: int, columns: int, own: int) -> Tables:
    """Columns of numbers, the first at the label holder."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, columns))
    y = np.where(X[:, 0] + X[:, 1] * X[:, 2] + rng.standard_normal(rows) > 0, 1.0, -1.0)
    train = {}
    for name, block in (("holder", np.arange(own)), ("owner", np.arange(own, columns))):
        names = tuple(f"c{j}" for j in block)
        train[name] = Table(name, names, np.ascontiguousarray(X[:, block]), y if name == "holder" else None)
    return Tables("made up", train, None, ("holder",))


def a_tree(data: Tables | str, labels: str, trees: int, how: dict[str, Any]) -> tuple[float, float]:
    """CPU seconds and megabytes of one more tree."""
    when: list[float] = []
    sent: list[float] = []

    def note(moment: Moment) -> None:
        when.append(time.process_time())
        sent.append(moment.bytes / 1e6)

    job = job_from(
        {
            "algorithm": "secureboost",
            "data": {"train": data if isinstance(data, str) else "made up", "parties": 2},
            "secure": {"labels": labels},
            "train": {"epochs": 2 * trees, "evaluate_every": trees},
            "trees": how,
        }
    )
    job = structs.replace(job, compare=False)
    if isinstance(data, str):
        federate(job, progress=note)
    else:
        run_tables(job, data, progress=note)
    return (when[1] - when[0]) / trees, (sent[1] - sent[0]) / trees


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    for name, default in (("rows", 30_000), ("columns", 23), ("own", 0), ("bins", 32), ("depth", 6)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--set", help="a name from `colonnade datasets`, or a file")
    parser.add_argument("--trees", type=int, default=3)
    parser.add_argument("--ways", nargs="+", default=[WAYS[-1]], help=f"of {', '.join(WAYS)}, or all")
    given = parser.parse_args()
    data = given.set or tables(given.rows, given.columns, given.own)
    how = {"max_bin": given.bins, "max_depth": given.depth}
    shape = given.set or f"{given.rows:,} x {given.columns}"
    print(f"{shape}, {given.bins} bins, depth {given.depth}: one tree")
    seconds, megabytes = a_tree(data, "clear", given.trees, how)
    print(f"{'clear':>12}  {seconds:6.2f} CPU s  {megabytes:7.2f} MB")
    for way in WAYS if given.ways == ["all"] else given.ways:
        with using(way):
            seconds, megabytes = a_tree(data, "blind", given.trees, how)
        print(f"{way:>12}  {seconds:6.2f} CPU s  {megabytes:7.2f} MB")


if __name__ == "__main__":
    main()
