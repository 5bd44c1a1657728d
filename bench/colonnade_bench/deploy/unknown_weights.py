"""A prediction service whose model's weights nobody knows, beside one whose owners know theirs.

    python -m colonnade_bench.deploy.unknown_weights [--one-way-ms 0 10] [--rate 50] [--seconds 10]

Three companies train `vfb2-svrg` twice, with `secure.reveal = "owner"` and `"never"`, and the first serves
the model. Single-row requests come at a steady rate; then as fast as sixteen clients get
answers.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from pathlib import Path

import aiohttp
import numpy as np

from colonnade.demo.daemons import wait_connected
from colonnade.deploy.daemon import commands
from colonnade.net.stream.port import free_ports
from colonnade.run.processes import stop_all
from colonnade_bench.deploy.distant import Distant, made_up
from colonnade_bench.micro.service import load

NAMES, ROWS, COLUMNS = ("bank", "shop", "telco"), 3000, 24
CLIENTS = 16
TOKEN = "secret-of-a-bench-and-of-nothing-else"  # noqa: S105
IDS = [str(number) for number in range(ROWS)]


def serving(companies: Distant, model: str) -> str:
    """Let the first company serve a model, and return the service's address."""
    name, port = NAMES[0], free_ports(1)[0]
    folder = companies.folder / name
    token = folder / "token"
    token.write_text(TOKEN)
    token.chmod(0o600)
    config = folder / "party.toml"
    settings = config.read_text().split("[serve]")[0]
    served = f'[serve]\nlisten = "127.0.0.1:{port}"\nmodel = "{model}"\ntoken_file = "token"\n'
    config.write_text(f"{settings}{served}")
    stop_all([companies.processes[name]])
    companies.start(name)
    wait_connected(companies.settings)
    address = f"http://127.0.0.1:{port}"
    asyncio.run(_ready(address))
    return address


async def _ready(address: str) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    async with aiohttp.ClientSession(headers=headers) as session:
        for _ in range(300):
            try:
                async with session.get(f"{address}/v1/model") as answer:
                    if (await answer.json()).get("ready"):
                        return
            except aiohttp.ClientError:
                pass
            await asyncio.sleep(0.1)
    raise TimeoutError("the service is not ready")


async def most(address: str, seconds: float) -> float:
    """Return how many single-row requests a second are answered to clients that wait for each answer."""
    answered, until = 0, time.perf_counter() + seconds

    async def client(session: aiohttp.ClientSession, seed: int) -> None:
        nonlocal answered
        rng = np.random.default_rng(seed)
        while time.perf_counter() < until:
            body = {"ids": [IDS[int(rng.integers(ROWS))]]}
            async with session.post(f"{address}/v1/score", json=body) as answer:
                await answer.read()
                answered += answer.status == 200

    headers = {"Authorization": f"Bearer {TOKEN}"}
    async with aiohttp.ClientSession(headers=headers) as session:
        await asyncio.gather(*(client(session, seed) for seed in range(CLIENTS)))
    return answered / seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--one-way-ms", type=float, nargs="+", default=[0.0, 10.0])
    parser.add_argument("--rate", type=float, default=50.0)
    parser.add_argument("--seconds", type=float, default=10.0)
    given = parser.parse_args()
    print("| one way | reveal | p50 | p99 | requests a second, at the most |\n|---|---|---|---|---|")
    for delay in given.one_way_ms:
        for reveal in ("owner", "never"):
            with tempfile.TemporaryDirectory() as folder:
                companies = Distant(Path(folder), NAMES, made_up(ROWS, COLUMNS), delay)
                with companies:
                    secure = {"labels": "blind", "reveal": reveal}
                    terms = companies.terms("vfb2-svrg", "model", train={"epochs": 3}, secure=secure)
                    companies.ask(commands.TrainRequest(terms))
                    address = serving(companies, "model")
                    found = asyncio.run(load(address, TOKEN, IDS, given.rate, given.seconds))
                    fastest = asyncio.run(most(address, given.seconds))
            figures = f"{found['p50_ms']:.1f} ms | {found['p99_ms']:.1f} ms | {fastest:.0f}"
            print(f"| {delay:g} ms | `{reveal}` | {figures} |", flush=True)


if __name__ == "__main__":
    main()
