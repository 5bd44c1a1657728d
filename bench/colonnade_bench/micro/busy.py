"""How long a daemon takes to answer while it trains or scores: the status, asked twenty times a second.

    python -m colonnade_bench.micro.busy --seconds 20

Four daemons on this machine (`colonnade demo`) train with small batches, which is as much work as they can do
at a time; the label holder's operator asks for the status meanwhile, and before. Then a short training makes
a model, and it asks while scores of a hundred thousand ids are asked for, again and again.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from pathlib import Path

import numpy as np

from colonnade.demo.daemons import daemons, wait_connected
from colonnade.demo.departments import HOLDER, MEASURES, lay_out
from colonnade.deploy.daemon import commands
from colonnade.deploy.settings import Settings, read_settings
from colonnade.deploy.terms.contract import read_terms

HEAVY = {"epochs = 40": "epochs = 5000", "batch = 32": "batch = 4", 'labels = "blind"': 'labels = "clear"'}
MANY = 100_000
MORE = 'accept = ["scores", "labels"]  #'


async def _answered(settings: Settings, request: commands.Request) -> None:
    async for _ in commands.ask(settings, request):
        pass


async def _goes_on(settings: Settings) -> bool:
    """Whether a run goes on at this daemon."""
    runs: object = None
    async for message in commands.ask(settings, commands.StatusRequest()):
        runs = (getattr(message, "result", None) or {}).get("runs")
    return bool(runs)


async def latencies(settings: Settings, seconds: float) -> list[float]:
    """How long every status took, in milliseconds."""
    took, until = [], time.perf_counter() + seconds
    while time.perf_counter() < until:
        began = time.perf_counter()
        await _answered(settings, commands.StatusRequest())
        took.append((time.perf_counter() - began) * 1e3)
        await asyncio.sleep(0.05)
    return took


async def scoring(settings: Settings, short: commands.TrainRequest, seconds: float) -> list[float]:
    """The latencies while many ids are scored, most of which nobody knows."""
    await _answered(settings, short)
    known = settings.path("new.csv").read_text().splitlines()[1:]
    ids = [line.split(",")[0] for line in known] + [f"X{number}" for number in range(MANY)]

    async def again() -> None:
        while True:
            await _answered(settings, commands.PredictRequest(short.terms.name, [ids], "new"))

    asking = asyncio.ensure_future(again())
    took = await latencies(settings, seconds)
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    return took


async def measure(
    settings: Settings, request: commands.TrainRequest, short: commands.TrainRequest, seconds: float
) -> dict[str, object]:
    """The latencies at rest, while a training goes on, and while rows are scored."""
    rest = await latencies(settings, min(5.0, seconds))
    training = asyncio.ensure_future(_answered(settings, request))
    status: dict[str, object] = {}
    for _ in range(600):  # until rounds are made: rows are read, and aligned, before
        async for message in commands.ask(settings, commands.StatusRequest()):
            status = getattr(message, "result", None) or {}
        if "training" in json.dumps(status):
            break
        await asyncio.sleep(0.1)
    busy = await latencies(settings, seconds)
    going = not training.done()
    training.cancel()
    await asyncio.gather(training, return_exceptions=True)
    while await _goes_on(settings):  # noqa: ASYNC110  it was told to stop
        await asyncio.sleep(0.2)
    scored = await scoring(settings, short, seconds)
    names = ("p50_ms", "p99_ms", "max_ms")
    found = {
        what: dict(zip(names, np.round(np.percentile(took, [50, 99, 100]), 1).tolist(), strict=True))
        for what, took in (("at rest", rest), ("while it trains", busy), ("while it scores", scored))
    }
    return {**found, "still training": going}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seconds", type=float, default=20.0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        lay_out(folder)
        job = folder / "job.toml"
        text = job.read_text()
        for usual, heavy in HEAVY.items():
            text = text.replace(usual, heavy)
        job.write_text(text)
        for party in MEASURES:
            file = folder / "parties" / party / "party.toml"
            file.write_text(file.read_text().replace('accept = ["scores"]  #', MORE))
        settings = {party: read_settings(folder / "parties" / party / "party.toml") for party in MEASURES}
        with daemons(settings):
            wait_connected(settings)
            long = commands.TrainRequest(read_terms(job))
            job.write_text(
                text.replace(HEAVY["epochs = 40"], "epochs = 3").replace("batch = 4", "batch = 32")
            )
            short = commands.TrainRequest(read_terms(job))
            found = asyncio.run(measure(settings[HOLDER], long, short, given.seconds))
            print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
