"""How long a daemon takes to answer while it scores many rows: by a linear model, a kernel machine, or trees.

    python -m colonnade_bench.micro.busy_scores --ids 100000 --seconds 20

Four daemons on this machine (`colonnade demo`) train a small model of each kind. Then the label holder asks
for scores of many rows that all four know, again and again, and the status of its daemon, and of one that
answers, is asked for twenty times a second meanwhile.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import numpy as np

from colonnade.demo.daemons import daemons, wait_connected
from colonnade.demo.departments import HOLDER, MEASURES, lay_out
from colonnade.deploy.daemon import commands
from colonnade.deploy.settings import Settings, read_settings
from colonnade.deploy.terms.contract import read_terms
from colonnade_bench.micro.busy import latencies

OTHER = "radiology"
LINES = {"linear": "batch = 32\nl2 = 1e-3\n", "kernel": "batch = 32\nl2 = 1e-3\n", "trees": ""}
ALGORITHMS = {"linear": "vfb-svrg", "kernel": "fdskl-capped", "trees": "secureboost"}
POLICY = """
min_rows = 100
min_parties = 3
accept = ["labels", "scores", "similarity", "nodes"]
[limits]
scored_ids_a_day = 1_000_000_000
comparisons_a_day = 100_000
"""


def prepare(folder: Path, ids: int) -> dict[str, Settings]:
    """Every party knows so many new rows, which repeat those of the demonstration under other names."""
    lay_out(folder)
    for party in MEASURES:
        home = folder / "parties" / party
        head, *rows = (home / "new.csv").read_text().splitlines()
        values = [row.partition(",")[2] for row in rows]
        lines = [f"N{number:07},{values[number % len(values)]}" for number in range(ids)]
        (home / "new.csv").write_text("\n".join([head, *lines]) + "\n")
        settings = home / "party.toml"
        settings.write_text(settings.read_text().partition("[policy]")[0] + "[policy]" + POLICY)
    return {party: read_settings(folder / "parties" / party / "party.toml") for party in MEASURES}


def job_of(folder: Path, kind: str) -> commands.TrainRequest:
    """A short training of this kind of model."""
    text = (folder / "job.toml").read_text().partition("[secure]")[0].partition("[train]")[0]
    text = text.replace("vfb2-saga", ALGORITHMS[kind]).replace('"diagnosis"', f'"{kind}"')
    path = folder / f"{kind}.toml"
    path.write_text(f"{text}[train]\nepochs = 20\n{LINES[kind]}")
    return commands.TrainRequest(read_terms(path))


async def asked(settings: Settings, request: commands.Request) -> None:
    """Ask a daemon, and raise what it says went wrong."""
    async for message in commands.ask(settings, request):
        if (error := getattr(message, "error", None)) is not None:
            raise RuntimeError(f"{error}: {getattr(message, 'text', '')}")


async def while_it_scores(
    settings: dict[str, Settings], request: commands.PredictRequest, seconds: float
) -> dict[str, object]:
    """How long the status takes at both ends while these scores are asked for again and again."""
    took: list[float] = []

    async def again() -> None:
        while True:
            began = time.perf_counter()
            await asked(settings[HOLDER], request)
            took.append(time.perf_counter() - began)

    asking = asyncio.ensure_future(again())
    found = await asyncio.gather(*(latencies(settings[party], seconds) for party in (HOLDER, OTHER)))
    asking.cancel()
    with suppress(asyncio.CancelledError):
        await asking
    shown = {
        party: np.round(np.percentile(each, [50, 99, 100]), 1).tolist()
        for party, each in zip((HOLDER, OTHER), found, strict=True)
    }
    return {"p50, p99, longest ms": shown, "seconds of a request": np.round(took, 1).tolist()}


async def measure(
    folder: Path, settings: dict[str, Settings], kinds: list[str], ids: int, seconds: float
) -> dict[str, object]:
    """The latencies of every kind of model."""
    names = [f"N{number:07}" for number in range(ids)]
    found: dict[str, object] = {}
    for kind in kinds:
        training = job_of(folder, kind)
        await asked(settings[HOLDER], training)
        request = commands.PredictRequest(training.terms.name, [names], "new")
        found[kind] = await while_it_scores(settings, request, seconds)
        print(kind, json.dumps(found[kind]), flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--ids", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--only", choices=list(ALGORITHMS), action="append")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        settings = prepare(folder, given.ids)
        with daemons(settings):
            wait_connected(settings)
            kinds = given.only or list(ALGORITHMS)
            asyncio.run(measure(folder, settings, kinds, given.ids, given.seconds))


if __name__ == "__main__":
    main()
