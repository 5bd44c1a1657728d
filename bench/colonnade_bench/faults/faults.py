"""`colonnade bench faults`: seeds of simulated faults, kills of real processes, and what checkpoints cost."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from colonnade_bench.faults.kills import kill_runs
from colonnade_bench.faults.price import price
from colonnade_bench.faults.seeds import run_seeds

PARTS = {"seeds": "simulated faults", "kill": "kill -9 of real processes", "price": "what checkpoints cost"}


def run(
    quick: bool,
    out: Path,
    say: Callable[[str], None],
    seeds: int = 0,
    kill: int = 0,
    only: Sequence[str] = (),
) -> list[Path]:
    """Run `seeds` simulations and `kill` kills of every conversation, or a usual number of both."""
    logging.getLogger("colonnade").setLevel(logging.ERROR)  # disks are full here all the time
    chosen = set(only) or {part for part, asked in (("seeds", seeds), ("kill", kill)) if asked} or set(PARTS)
    found: dict[str, Any] = {}
    if "seeds" in chosen:
        count = seeds or (50 if quick else 1000)
        found["seeds"] = [asdict(verdict) for verdict in run_seeds(range(count), say)]
    if "kill" in chosen:
        found["kill"] = [asdict(each) for each in kill_runs(kill or (3 if quick else 50), say)]
    if "price" in chosen:
        found["price"] = price(say, quick=quick)
    out.mkdir(parents=True, exist_ok=True)
    file = out / "faults.json"
    file.write_text(json.dumps(found, indent=1), encoding="utf-8")
    return [file]
