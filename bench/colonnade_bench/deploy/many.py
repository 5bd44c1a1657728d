"""Many companies on one machine: `python -m colonnade_bench.deploy.many --parties 16 50`.

Every company is a daemon with a line to every other, and trains in a process of its own. They train a9a
together, with masks of a few neighbours each. A row has their memory together at the most, shared pages
counted once, and their processor time. What a round takes is what a longer training takes more.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from colonnade.data.datasets.loading import load_dataset
from colonnade.deploy.daemon.commands import TrainRequest
from colonnade_bench.deploy.distant import Distant, Rows

LIMITS = "runs_of_a_peer = 16"


def a9a() -> Rows:
    """Return the rows of a9a that are trained on, and their labels."""
    train = load_dataset("a9a").train
    X: Any = train.values
    X = X.toarray() if hasattr(X, "toarray") else X
    return Rows(np.asarray(X, dtype=float), np.where(np.asarray(train.y, dtype=float) > 0, 1.0, 0.0))


class Watch:
    """The memory of all companies while they train."""

    def __init__(self, companies: Distant) -> None:
        self.companies, self.most, self.over = companies, 0.0, threading.Event()
        self.thread = threading.Thread(target=self._look, daemon=True)
        self.thread.start()

    def _look(self) -> None:
        while not self.over.wait(1.0):
            self.most = max(self.most, self.companies.memory_mb())

    def stop(self) -> float:
        """Return the most that there was, in MB."""
        self.over.set()
        self.thread.join()
        return self.most


def measured(folder: Path, count: int, rows: Rows, passes: list[int]) -> Iterator[dict[str, Any]]:
    """Yield what it took to connect so many companies, and then what each training took."""
    names = tuple(f"p{k:02d}" for k in range(count))
    began = time.monotonic()
    with Distant(folder, names, rows, more=LIMITS) as companies:
        yield {
            "parties": count,
            "connected after, s": round(time.monotonic() - began, 1),
            "memory of all, MB": round(companies.memory_mb()),
            "CPU of all, s": round(companies.cpu_seconds(), 1),
        }
        for epochs in passes:
            watch, load = Watch(companies), os.getloadavg()[0]
            found = trained(companies, epochs)
            yield {
                "parties": count,
                "passes": epochs,
                "rounds": found["rounds"],
                "seconds": round(found["seconds"], 1),
                "CPU of all, s": round(found["CPU"], 1),
                "memory of all, MB": round(watch.stop()),
                "test_auc": round(found["metrics"]["test_auc"], 4),
                "load": round(load, 1),
            }


def trained(companies: Distant, epochs: int) -> dict[str, Any]:
    """Return what came of a training, with the processor time of all companies."""
    terms = companies.terms(
        "vfb2-svrg",
        secure={"labels": "clear", "neighbours": "auto"},
        train={"epochs": epochs, "batch": 1024, "tolerance": 0.0},
        align={"method": "ot"},
    )
    before = companies.cpu_seconds()
    done = companies.ask(TrainRequest(terms))
    time.sleep(2.0)  # until processes have ended everywhere
    return {**done, "CPU": companies.cpu_seconds() - before}


def main() -> None:
    """Print a row for every number of companies."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parties", type=int, nargs="+", default=[16, 50])
    parser.add_argument("--passes", type=int, nargs="+", default=[10, 100])
    given = parser.parse_args()
    rows = a9a()
    for count in given.parties:
        with tempfile.TemporaryDirectory() as folder:
            for row in measured(Path(folder), count, rows, given.passes):
                print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
