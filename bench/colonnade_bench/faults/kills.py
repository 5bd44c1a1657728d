"""Kill -9 at random moments of real runs: every party in turn, and the run goes on to the same weights.

Every party is a process with its own folder (`run.processes`). A run that is left alone says what is
expected, and a copy of its checkpoints is where the others begin: in a real world owners of blind runs and of
random features have secrets of their own, and only runs that share them can end alike.
"""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from colonnade.errors import ColonnadeError
from colonnade.run.launch import launch
from colonnade.run.party import Share
from colonnade.run.world import CHECKPOINTS, PARTIES, Launch
from colonnade_bench.faults.cases import BLIND, CLEAR, Case, order_of

CASES = (
    Case("vfb-saga", sections={"secure": CLEAR}),
    Case("fd-svrg"),
    Case("lbfgs", sections={"secure": CLEAR}),
    # owners are told their weights with random low bits, which no two runs share
    Case("vfb2-sgd", exact=False, sections={"secure": BLIND, "train": {"ahead": 1}}),
    Case("fdskl"),
    Case("split"),
    Case("c-vfl"),
    Case("secureboost", sections={"secure": CLEAR}),
)
LONGEST_S = 180.0


@dataclass
class Killed:
    """What became of one kill."""

    case: str
    party: str
    after_s: float
    outcome: str  # equal, or what is wrong
    error: str = ""  # what the launcher said when the party was gone


def kill_runs(
    kills: int, say: Callable[[str], None], cases: tuple[Case, ...] = CASES, *, deadline_s: float = 10.0
) -> list[Killed]:
    """Kill so many parties of a run of every case; says a line for each. So long is a peer waited for."""
    found, rng = [], np.random.default_rng(0)
    for case in cases:
        with tempfile.TemporaryDirectory(prefix="colonnade-kills-") as name:
            order = order_of(case, rows=240, epochs=6, world="network", deadline_s=deadline_s)
            begin, expected, seconds = _left_alone(order, Path(name))
            for number in range(kills):
                party = order.plan.parties[number % len(order.plan.parties)]
                after = float(rng.uniform(0.05, seconds))
                found.append(_killed(case, order, begin, expected, party, after, Path(name) / str(number)))
        mine = [each for each in found if each.case == case.name]
        equal = sum(each.outcome == "equal" for each in mine)
        cut = sum(bool(each.error) for each in mine)
        say(f"{case.name}: {len(mine)} kills, {cut} ended the run by name, {equal} equal after going on")
        for each in mine:
            if each.outcome != "equal":
                say(f"  {each.party} killed after {each.after_s:.2f} s: {each.outcome}")
    return found


def _left_alone(order: Launch, folder: Path) -> tuple[Path, dict[str, Share], float]:
    """A run that nobody disturbs: a copy of early checkpoints, its result, and how long it took."""
    begin, out = folder / "begin", folder / "alone"
    done = threading.Event()

    def watch() -> None:
        while not done.is_set():
            found = list(out.glob(f"{PARTIES}/*/{CHECKPOINTS}/*.gate"))
            if len({path.parent for path in found}) == len(order.plan.parties):
                for path in found:
                    target = begin / path.relative_to(out)
                    target.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy2(path, target)
                return
            time.sleep(0.002)

    watcher = threading.Thread(target=watch)
    watcher.start()
    began = time.monotonic()
    try:
        shares = launch(replace(order, out=out))
    finally:
        done.set()
        watcher.join()
    return begin, shares, time.monotonic() - began


def _killed(
    case: Case,
    order: Launch,
    begin: Path,
    expected: dict[str, Share],
    party: str,
    after: float,
    out: Path,
) -> Killed:
    """Kill a party some time after a run began, and let the run go on."""
    if begin.is_dir():
        shutil.copytree(begin, out)
    result = Killed(case.name, party, after, "equal")
    again = replace(order, out=out, resume=True)
    with _murderer(out / PARTIES / party, after):
        try:
            shares = launch(again)
        except ColonnadeError as error:
            result.error = f"{type(error).__name__}: {error}"
            shares = {}
    if not shares:
        began = time.monotonic()
        try:
            shares = launch(again)
        except ColonnadeError as error:
            result.outcome = f"did not go on: {type(error).__name__}: {error}"
            return result
        if time.monotonic() - began > LONGEST_S:
            result.outcome = "took too long"
    for name, share in expected.items():
        for key, array in share.weights.items():
            told = shares[name].weights[key]
            blurred = not case.exact and name != order.plan.evaluator
            if not (np.allclose(array, told, atol=1e-5) if blurred else np.array_equal(array, told)):
                result.outcome = f"{name} has another {key}"
    return result


@contextmanager
def _murderer(folder: Path, after: float) -> Iterator[None]:
    """Kill -9 the process of a party so many seconds from now, if it runs then."""

    def strike() -> None:
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):  # of others', and of those that end meanwhile
                if (process / "fd" / "2").readlink() == folder / "log.txt":
                    os.kill(int(process.name), signal.SIGKILL)

    timer = threading.Timer(after, strike)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
