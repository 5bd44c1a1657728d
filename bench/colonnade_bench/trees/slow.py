"""A slow party: how long all others wait for it, and what a model loses if they do not.

Time is the simulated world's. A party that is not waited for would have to sit out trees: its histograms are
of nodes that the next tree does not have.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from msgspec import structs

from colonnade.job import job_from
from colonnade.run.federate import Tables, run_tables
from colonnade.trees.bins import Counts
from colonnade.trees.boosting import Sampling
from colonnade_bench.trees.accuracy import dealt

NETWORKS = {"1 ms, 1 Gbit/s": (1.0, 1000.0), "20 ms, 100 Mbit/s": (20.0, 100.0)}
SPEEDS = (1.0, 0.25, 0.1)
NS_PER_VALUE = 12.0  # what a value of a tree costs here: `cost`, by rows, columns and levels
EVERY = 4
AFTER = (20, 40, 80)  # rounds


def waiting(rows: int | None, labels: str) -> list[list[str]]:
    """Virtual milliseconds of a tree, for every network and speed of the last party."""
    tables, loss = dealt("uci-credit", 0, rows)
    found = []
    for network, (latency, bandwidth) in NETWORKS.items():
        times = []
        for speed in SPEEDS:
            plain = _plain(loss, labels, 3)
            plain["world"] = "simulated"
            plain["network"] = {
                "latency_ms": latency,
                "bandwidth_mbps": bandwidth,
                "ns_per_value": NS_PER_VALUE,
                "speeds": [1.0, 1.0, 1.0, speed],
            }
            done = run_tables(structs.replace(job_from(plain), compare=False), tables)
            times.append(1e3 * (done.result.history[-1].virtual_seconds or 0.0) / 3)
        found.append([network, labels, *(f"{each:.0f}" for each in times)])
    return found


def sitting_out(rows: int | None, party: int) -> list[str]:
    """The loss of test rows after so many rounds, of which a party takes part in all or in every fourth."""
    tables, loss = dealt("uci-credit", 0, rows)
    cells = [f"party {party}"]
    for rounds in AFTER:
        always = _loss(tables, loss, rounds)
        with _absent(party):
            cells.append(f"{always:.4f} / {_loss(tables, loss, rounds):.4f}")
    return cells


def _loss(tables: Tables, loss: str, rounds: int) -> float:
    job = structs.replace(job_from(_plain(loss, "clear", rounds)), compare=False)
    return run_tables(job, tables).result.metrics["test_loss"]


def _plain(loss: str, labels: str, rounds: int) -> dict[str, object]:
    return {
        "algorithm": "secureboost",
        "data": {"train": "dealt", "parties": 4},
        "secure": {"labels": labels},
        "train": {"epochs": rounds, "loss": loss},
        "trees": {"max_bin": 32},
    }


@contextmanager
def _absent(absent: int) -> Iterator[None]:
    """One party has columns in every fourth tree alone."""
    all_columns = Sampling.columns_of

    def columns_of(sampling: Sampling, tree: int, party: int, columns: int) -> Counts:
        found = all_columns(sampling, tree, party, columns)
        return found if party != absent or tree % EVERY == 0 else np.zeros(0, dtype=np.int64)

    setattr(Sampling, "columns_of", columns_of)  # noqa: B010  for one measurement
    try:
        yield
    finally:
        setattr(Sampling, "columns_of", all_columns)  # noqa: B010
