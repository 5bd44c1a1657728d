"""Load on a prediction service: single-row requests at a steady rate, latency as the client sees it.

    python -m colonnade_bench.micro.service http://127.0.0.1:8401 TOKEN_FILE IDS.csv --rate 200 --seconds 20

Requests are sent when they are due, whether or not earlier ones were answered, so a slow answer is not
hidden by a client that waits.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from pathlib import Path

import aiohttp
import numpy as np


async def load(url: str, token: str, ids: list[str], rate: float, seconds: float) -> dict[str, float]:
    """Ask for one score at a time at a steady rate; returns counts and latencies."""
    took: list[float] = []
    failed = 0

    async def one(session: aiohttp.ClientSession, name: str, due: float) -> None:
        nonlocal failed
        async with session.post(f"{url}/v1/score", json={"ids": [name]}) as answer:
            found = await answer.json()
        if answer.status == 200 and found["scores"][0]["found"]:
            took.append(time.perf_counter() - due)
        else:
            failed += 1

    headers = {"Authorization": f"Bearer {token}"}
    connector = aiohttp.TCPConnector(limit=64)
    async with aiohttp.ClientSession(headers=headers, connector=connector) as session:
        for name in ids[:50]:  # connections and caches first
            await one(session, name, time.perf_counter())
        took.clear()
        begin = time.perf_counter()
        tasks = []
        for k in range(int(rate * seconds)):
            due = begin + k / rate
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            tasks.append(asyncio.ensure_future(one(session, ids[k % len(ids)], due)))
        await asyncio.gather(*tasks)
        wall = time.perf_counter() - begin
    p50, p95, p99 = np.percentile(took, [50, 95, 99]) * 1e3
    return {
        "requests": len(took),
        "failed": failed,
        "per_second": round(len(took) / wall, 1),
        "p50_ms": round(float(p50), 2),
        "p95_ms": round(float(p95), 2),
        "p99_ms": round(float(p99), 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("url")
    parser.add_argument("token_file", type=Path)
    parser.add_argument("ids", type=Path)
    parser.add_argument("--rate", type=float, default=200.0)
    parser.add_argument("--seconds", type=float, default=20.0)
    given = parser.parse_args()
    ids = [line.split(",")[0].strip('"') for line in given.ids.read_text().split()[1:]]
    token = given.token_file.read_text().strip()
    print(json.dumps(asyncio.run(load(given.url, token, ids, given.rate, given.seconds))))


if __name__ == "__main__":
    main()
