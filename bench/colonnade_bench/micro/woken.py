"""What a party's program costs where it is woken for every message, beside one that runs on.

    python -m colonnade_bench.micro.woken [--naps 50 200 500] [--repeat 5]

Two parties in one process train on one column each, so that a round is hardly more than its program. Before
every message the process sleeps for some microseconds, as one that waits for another process does. Printed is
the processor time of a party for a round, less what sleeping itself takes, the best of the repeats: caches
and processor have forgotten the program meanwhile, and the same instructions take longer.
"""

from __future__ import annotations

import argparse
import time

from threadpoolctl import threadpool_limits

from colonnade.job import job_from
from colonnade.net.network import Wire
from colonnade.net.tapped import TappedWire
from colonnade.run.federate import run_tables
from colonnade_bench.micro.stragglers import tables

BATCH, EPOCHS = 256, 50
ROUNDS = 4 * EPOCHS


def round_us(nap: float, repeats: int) -> float:
    """Microseconds of processor time of a party for a round, with naps of so many seconds."""
    job = job_from(
        {
            "algorithm": "vfb-sgd",
            "world": "local",
            "compare": False,
            "data": {"train": "random", "parties": 2, "active": 1},
            "train": {"step": 0.01, "batch": BATCH, "epochs": EPOCHS, "evaluate_every": 0, "tolerance": 0.0},
            "secure": {"labels": "clear"},
        }
    )
    data = tables(2, [0], rows=4 * BATCH, columns=2)
    slept = 0

    def sleep(to: str, frame: bytes) -> None:
        nonlocal slept
        if nap:
            time.sleep(nap)
            slept += 1

    def tap(party: str, wire: Wire) -> Wire:
        return TappedWire(wire, sleep)

    spent = []
    for _ in range(repeats):
        slept = 0
        done = run_tables(job, data, tap=tap)
        spent.append(sum(share.cpu_seconds or 0.0 for share in done.shares.values()))
    return 1e6 * (min(spent) - slept * sleeping(nap)) / (2 * ROUNDS)


def sleeping(nap: float, times: int = 200) -> float:
    """Seconds of processor time that a nap takes."""
    if not nap:
        return 0.0
    began = time.thread_time()
    for _ in range(times):
        time.sleep(nap)
    return (time.thread_time() - began) / times


def main() -> None:
    """Print what a round costs a party, without naps and with each."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("--naps", type=float, nargs="+", default=[50, 200, 500])
    arguments.add_argument("--repeat", type=int, default=5)
    given = arguments.parse_args()
    with threadpool_limits(1):
        for nap in (0.0, *given.naps):
            print(f"asleep {nap:5.0f} us: {round_us(nap / 1e6, given.repeat):6.0f} us a round", flush=True)


if __name__ == "__main__":
    main()
