"""Alignment in figures: time, memory and bytes of q parties with n ids each, a process per party, over TLS.

    python -m colonnade_bench.micro.align --parties 2 --ids 100000 --method ot

Ids are random digests with an overlap of 80%. Prints one JSON line: seconds from the first message to the
common rows; processor time of all parties with their workers; the largest memory that any party's own
process had, that of its largest worker, and by how much the party's grew during the alignment; what all
parties sent.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import resource
import tempfile
import time
from pathlib import Path
from typing import Any, get_args

import numpy as np

from colonnade.arrays import Digests
from colonnade.conversations.align import AlignTerms, Method, align
from colonnade.net.clock import RealClock
from colonnade.net.endpoint import Endpoint
from colonnade.net.stream.authority import issue, make_authority
from colonnade.net.stream.certificates import Credentials
from colonnade.net.stream.port import free_ports
from colonnade.net.stream.wire import network_wire
from colonnade.secure.keys import agree

OVERLAP = 0.8


def ids_of(number: int, count: int) -> Digests:
    """The ids of a party: the first part is common to all, the rest its own."""
    common = int(OVERLAP * count)
    shared, own = np.random.default_rng(0), np.random.default_rng(number + 1)
    packed = shared.bytes(32 * common) + own.bytes(32 * (count - common))
    ids = np.frombuffer(packed, dtype=np.uint8).reshape(-1, 32)
    return ids[own.permutation(count)]


def party(
    number: int, names: list[str], ports: list[int], folder: str, count: int, method: Method, out: Any
) -> None:
    """One party, in a process of its own; puts its figures into the queue."""
    me, ids = names[number], ids_of(number, count)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    async def main() -> dict[str, Any]:
        credentials = Credentials.load(folder, me, names)
        addresses = {name: ("127.0.0.1", port) for name, port in zip(names, ports, strict=True)}
        wire = network_wire(me, addresses, credentials, 30.0)
        net = Endpoint(me, tuple(names), wire, RealClock(), run=1)
        await wire.start()
        secrets = await agree(net, credentials, version="0", job="benchmark")
        began = time.perf_counter()
        found = await align(net, ids, secrets, AlignTerms(order=b"benchmark", method=method))
        seconds = time.perf_counter() - began
        await net.finish()
        await net.close()
        return {"seconds": seconds, "common": len(found.rows), "bytes": net.meter.bytes()}

    cpu = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
    result = asyncio.run(main())
    own = resource.getrusage(resource.RUSAGE_SELF)
    for child in multiprocessing.active_children():
        child.join()
    workers = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = {"cpu_own": sum(own[:2]) - cpu, "cpu_workers": sum(workers[:2])}
    figures = {"rss": own.ru_maxrss, "before": before, "worker": workers.ru_maxrss}
    out.put({**result, **{name: kilobytes / 1024 for name, kilobytes in figures.items()}, **spent})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--parties", type=int, default=2)
    parser.add_argument("--ids", type=int, default=100_000)
    parser.add_argument("--method", choices=get_args(Method), default="curve")
    given = parser.parse_args()
    names = [f"party-{k}" for k in range(given.parties)]
    with tempfile.TemporaryDirectory() as folder:
        make_authority(Path(folder))
        for name in names:
            issue(Path(folder), name)
        ports = free_ports(len(names))
        context = multiprocessing.get_context("spawn")
        out = context.Queue()
        work = (
            context.Process(target=party, args=(k, names, ports, folder, given.ids, given.method, out))
            for k in range(given.parties)
        )
        processes = list(work)
        for process in processes:
            process.start()
        results = [out.get() for _ in processes]
        for process in processes:
            process.join()
    summary = {
        "parties": given.parties,
        "ids": given.ids,
        "method": given.method,
        "common": results[0]["common"],
        "seconds": round(max(each["seconds"] for each in results), 1),
        "cpu_seconds_all": round(sum(each["cpu_own"] + each["cpu_workers"] for each in results), 1),
        "cpu_seconds_workers": round(sum(each["cpu_workers"] for each in results), 1),
        "largest_mb": round(max(each["rss"] for each in results)),
        "largest_growth_mb": round(max(each["rss"] - each["before"] for each in results)),
        "largest_worker_mb": round(max(each["worker"] for each in results)),
        "megabytes_sent_by_all": round(sum(each["bytes"] for each in results) / 1e6, 1),
    }
    print(json.dumps(summary))


if __name__ == "__main__":
    main()
