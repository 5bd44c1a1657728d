"""`colonnade bench faults`: seeds of simulated faults, kills of processes and daemons, and what it costs.

Seeds, kills and strikes are taken apart and run side by side (`--processes`); what has ended is said and
written at once, so that a bench that is cut off leaves what it has seen.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from colonnade.errors import ColonnadeError
from colonnade_bench.faults.daemons import CASES as BETWEEN
from colonnade_bench.faults.daemons import STRIKES, strike_runs
from colonnade_bench.faults.kills import CASES, kill_runs
from colonnade_bench.faults.price import CASES as PRICED
from colonnade_bench.faults.price import price_of
from colonnade_bench.faults.seeds import Verdict, run_seeds

PARTS = {
    "seeds": "simulated faults",
    "kill": "kill -9 of real processes",
    "daemons": "kill -9 between companies",
    "price": "what checkpoints cost",
}
SITTING = 100  # seeds that are one piece of work
WAITED_S = 5.0  # how long a killed party is waited for; `pp-svmv` imports for some seconds on a busy machine
Found = tuple[list[str], str, list[dict[str, Any]]]


def run(
    quick: bool,
    out: Path,
    say: Callable[[str], None],
    seeds: int = 0,
    kill: int = 0,
    only: Sequence[str] = (),
    processes: int = 1,
) -> list[Path]:
    """Run `seeds` simulations and `kill` kills of every conversation, or a usual number of both."""
    chosen = set(only) or {part for part, asked in (("seeds", seeds), ("kill", kill)) if asked} or set(PARTS)
    out.mkdir(parents=True, exist_ok=True)
    file = out / "faults.json"
    found: dict[str, Any] = {part: [] for part in PARTS if part in chosen}
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        # what waits most begins first, and what computes fills the rest
        work = [pool.submit(_killed, k, kill or (3 if quick else 50)) for k in _cases(chosen)]
        if "daemons" in chosen:
            work += [pool.submit(_daemons, case, quick) for case in range(len(BETWEEN))]
        last = (seeds or (50 if quick else 1000)) if "seeds" in chosen else 0
        starts = range(0, last, SITTING)
        work += [pool.submit(_seeds, start, min(start + SITTING, last)) for start in starts]
        if "price" in chosen:
            work += [pool.submit(_price, case, quick) for case in range(len(PRICED))]
        for done in as_completed(work):
            lines, part, results = done.result()
            found[part] += results
            for line in lines:
                say(line)
            file.write_text(json.dumps(found, indent=1), encoding="utf-8")
    if found.get("seeds"):
        say(_in_all([Verdict(**each) for each in found["seeds"]]))
    return [file]


def _cases(chosen: set[str]) -> range:
    return range(len(CASES) if "kill" in chosen else 0)


def _killed(case: int, kills: int) -> Found:
    """One case of kills, in a process of its own."""
    logging.getLogger("colonnade").setLevel(logging.ERROR)
    lines: list[str] = []
    try:
        found = kill_runs(kills, lines.append, CASES[case : case + 1], deadline_s=WAITED_S, seed=case)
    except ColonnadeError as error:  # the other cases are worth their time
        return [*lines, f"{CASES[case].name}: cannot be measured: {error}"], "kill", []
    return lines, "kill", [asdict(each) for each in found]


def _daemons(case: int, quick: bool) -> Found:
    """One case between daemons, in a process of its own."""
    lines: list[str] = []
    try:
        found = strike_runs(
            lines.append, BETWEEN[case : case + 1], STRIKES[:3] if quick else STRIKES, seed=case
        )
    except (ColonnadeError, RuntimeError) as error:
        return [*lines, f"{BETWEEN[case].name}: cannot be measured: {error}"], "daemons", []
    return lines, "daemons", [asdict(each) for each in found]


def _seeds(start: int, end: int) -> Found:
    """Some seeds, in a process of its own."""
    logging.getLogger("colonnade").setLevel(logging.ERROR)  # disks are full here all the time
    lines: list[str] = []
    found = run_seeds(range(start, end), lines.append)
    return lines, "seeds", [asdict(verdict) for verdict in found]


def _price(case: int, quick: bool) -> Found:
    """What checkpoints cost in one case, in a process of its own."""
    lines: list[str] = []
    name, found = price_of(case, lines.append, quick=quick)
    return lines, "price", [{"case": name, **found}]


def _in_all(verdicts: list[Verdict]) -> str:
    """What became of all seeds together, and of every conversation."""
    cases = Counter(each.case for each in verdicts)
    failing = [each.seed for each in verdicts if each.fault]
    sessions, deaths = sum(each.sessions for each in verdicts), sum(each.deaths for each in verdicts)
    return (
        f"in all {len(verdicts)} seeds, {sessions} sessions, {deaths} deaths, {len(failing)} fail "
        f"{failing}; of {', '.join(f'{name} {count}' for name, count in sorted(cases.items()))}"
    )
