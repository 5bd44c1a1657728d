"""What it takes from three companies' CSV files to a model, part by part, in seconds of processor time.

    python -m colonnade_bench.micro.reading [--rows 400000] [--repeat 3]

Makes three files of overlapping customers (20 number columns, a town, a date, an id of eight letters), then
reads and joins them, prepares the columns and trains `lbfgs`, each as `colonnade run` does. Beside it a text
column of as many different words as there are rows is read. The best of some repeats is kept.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
from threadpoolctl import threadpool_limits

from colonnade.data.read.files import load
from colonnade.job import job_from
from colonnade.run.federate import federate

COLUMNS = {"bank": (0, 8), "shop": (8, 14), "post": (14, 20)}
LACK = 0.025  # of all customers, each file


def make(folder: Path, rows: int) -> dict[str, str]:
    """Write the files, and one of nothing but words; returns those of the parties."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, 20)).round(4)
    y = rng.random(rows) < 1 / (1 + np.exp(-X @ (0.5 * rng.standard_normal(20))))
    ids = np.array([f"C{k:07d}" for k in rng.permutation(10 * rows)[:rows]])
    town = np.array(["Ulm", "Bonn", "Kiel", "Jena"])[rng.integers(0, 4, rows)]
    days = np.datetime64("2025-01-01") + rng.integers(0, 365, rows)
    files = {}
    for party, (first, last) in COLUMNS.items():
        columns = {"customer": ids, **{f"{party}{j}": X[:, j] for j in range(first, last)}}
        columns |= {"town": town, "default": np.where(y, "yes", "no")} if party == "bank" else {}
        columns |= {"since": days} if party == "shop" else {}
        order = rng.permutation(rows)[: round((1 - LACK) * rows)]
        files[party] = str(folder / f"{party}.csv")
        pa.csv.write_csv(pa.table({name: values[order] for name, values in columns.items()}), files[party])
    words = np.array(["".join(chr(97 + int(digit)) for digit in str(k)) for k in range(rows)])
    pa.csv.write_csv(pa.table({"customer": ids, "word": words}), folder / "words.csv")
    return files


def seconds(do: Callable[[], object], repeat: int) -> float:
    """The least processor time that something takes."""
    found = []
    for _ in range(repeat):
        began = time.process_time()
        do()
        found.append(time.process_time() - began)
    return min(found)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("--rows", type=int, default=400_000)
    arguments.add_argument("--repeat", type=int, default=3)
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory() as made, threadpool_limits(1):
        files = make(Path(made), given.rows)
        said = {
            "files": files,
            "label": "default",
            "id": "customer",
            "active": ["bank"],
            "test_fraction": 0.2,
        }
        job = job_from({"algorithm": "lbfgs", "compare": False, "data": said, "secure": {"labels": "clear"}})
        read = seconds(lambda: [load(path, id="customer") for path in files.values()], given.repeat)
        whole = seconds(lambda: federate(job), given.repeat)
        trained = federate(job)
        words = seconds(lambda: load(Path(made) / "words.csv", id="customer"), given.repeat)
    training = sum(share.cpu_seconds or 0.0 for share in trained.shares.values())
    rows = trained.result.data.rows["train"]
    print(f"{given.rows:,} customers in three files, {rows:,} rows to train on")
    print(f"  reading the files                    {read:6.2f} s")
    print(f"  joining and preparing them           {whole - read - training:6.2f} s")
    print(f"  training, 3 parties, {trained.result.cost.epochs:2} passes       {training:6.2f} s")
    print(f"a column of {given.rows:,} different words  {words:6.2f} s")


if __name__ == "__main__":
    main()
