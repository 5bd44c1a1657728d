"""Weight of evidence in figures: seconds and bytes for all columns of UCI credit over four parties.

    python -m colonnade_bench.micro.woe --world local

Prints one JSON line: seconds of the conversation and in all (processes, certificates and files included),
what was sent, and the largest distance of any WOE and IV from those that pooled columns give.
"""

from __future__ import annotations

import argparse
import json
import time
from math import log

import numpy as np

from colonnade.data.split.assign import Assigned
from colonnade.job import job_from
from colonnade.run.federate import read, weigh_job
from colonnade.run.resolve import compose
from colonnade.run.woe_party import Weighing


def distance(assigned: Assigned, weighed: dict[str, Weighing]) -> float:
    """The largest difference to WOE and IV counted where labels and columns lie together."""
    y = assigned.parties[assigned.label_holders[0]].train.y
    bad = np.asarray(y, dtype=float) > 0
    worst = 0.0
    for party, done in weighed.items():
        for column in done.columns:
            bins, iv = column.joined(assigned.parties[party].train), 0.0
            for k, woe in enumerate(column.woe):
                goods, bads = (bins[~bad] == k).mean(), (bins[bad] == k).mean()
                worst = max(worst, abs(woe - log(goods / bads)) if len(column.woe) > 1 else 0.0)
                iv += (goods - bads) * log(goods / bads)
            worst = max(worst, abs(iv - column.iv))
    return float(worst)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--world", choices=["local", "simulated", "network"], default="local")
    parser.add_argument("--data", default="uci-credit")
    parser.add_argument("--parties", type=int, default=4)
    parser.add_argument("--test-fraction", type=float, default=0.2, help="of the rows that are not weighed")
    parser.add_argument("--blind", action="store_true", help="encrypt labels, so that nobody sees a count")
    given = parser.parse_args()
    job = job_from(
        {
            "algorithm": "lbfgs",
            "world": given.world,
            "data": {"train": given.data, "parties": given.parties, "test_fraction": given.test_fraction},
            "secure": {"labels": "blind" if given.blind else "clear"},
            "woe": {"noise": 0.0},  # counts are compared with exact ones
        }
    )
    composition = compose(job)
    assigned = read(composition)
    began = time.perf_counter()
    weighed = weigh_job(composition, assigned)
    summary = {
        "world": given.world,
        "rows": next(iter(assigned.parties.values())).rows,
        "columns": sum(len(done.columns) for done in weighed.values()),
        "seconds_all": round(time.perf_counter() - began, 2),
        "seconds": round(max(done.seconds for done in weighed.values()), 2),
        "megabytes_sent_by_all": round(sum(done.bytes_sent for done in weighed.values()) / 1e6, 1),
        "largest_difference": distance(assigned, weighed),
    }
    print(json.dumps(summary))


if __name__ == "__main__":
    main()
