"""Kill -9 at random moments of real runs: every party in turn, and the run goes on to the same weights.

Every party is a process with its own folder (`run.processes`). A run that is left alone says what is
expected, and a copy of its checkpoints is where the others begin: in a real world owners of blind runs and of
random features have secrets of their own, and only runs that share them can end alike.

The moment of a kill is drawn from the life of the party's process, from its first instruction to its last,
as long as that was when nobody disturbed it. A process that was faster this time ends before its kill; such a
run is counted, another takes its place, and its life is what the next moments are drawn from.
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
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np

from colonnade.errors import ColonnadeError
from colonnade.run.launch import launch
from colonnade.run.party import Share
from colonnade.run.world import CHECKPOINTS, PARTIES, Launch
from colonnade_bench.faults.cases import BLIND, CLEAR, Case, Fate, order_of

CASES = (
    Case("vfb-saga", sections={"secure": CLEAR}),
    Case("fd-svrg"),
    Case("lbfgs", sections={"secure": CLEAR}),
    Case("vfb2-sgd", exact=False, sections={"secure": BLIND, "train": {"ahead": 1}}),
    Case("fdskl"),
    Case("pp-svmv"),
    Case("secureboost", sections={"secure": CLEAR}),
    Case("secureboost", sections={"secure": BLIND}),
    Case("split"),
    Case("synrevel-gau"),
    Case("czofo", exact=False),
    Case("c-vfl"),
    Case("vfb2-saga", exact=False, sections={"secure": CLEAR, "train": {"ahead": 4}}, holders=2),
)
LONGEST_S = 180.0
CALIBRATIONS = 3  # undisturbed runs that say how long a process lives


@dataclass
class Killed(Fate):
    """What became of one run whose party was to be killed."""

    after_s: float = 0.0  # of the life of its process
    error: str = ""  # what the launcher said when the party was gone
    ended_s: float = 0.0  # how long after the kill the launcher said so


@dataclass
class Victim:
    """A case in one folder: where its runs begin, how they end, and how long its processes live."""

    case: Case
    order: Launch
    folder: Path
    begin: Path
    expected: dict[str, Share] = field(default_factory=dict)
    life_s: dict[str, float] = field(default_factory=dict)


def kill_runs(
    kills: int,
    say: Callable[[str], None],
    cases: tuple[Case, ...] = CASES,
    *,
    deadline_s: float = 10.0,
    seed: int = 0,
) -> list[Killed]:
    """Kill so many parties of a run of every case; says a line for each. So long is a peer waited for."""
    found, rng = [], np.random.default_rng(seed)
    for case in cases:
        with tempfile.TemporaryDirectory(prefix="colonnade-kills-") as name:
            victim = _left_alone(case, Path(name), deadline_s)
            parties, mine = victim.order.plan.parties, list[Killed]()
            while sum(each.struck for each in mine) < kills and len(mine) < 2 * kills:
                party = parties[sum(each.struck for each in mine) % len(parties)]
                mine.append(_killed(victim, party, float(rng.uniform()), Path(name) / str(len(mine))))
                if mine[-1].outcome != "equal":
                    say(
                        f"  {case.name}: {mine[-1].party} killed after {mine[-1].after_s:.2f} s: "
                        f"{mine[-1].outcome}"
                    )
        say(_summary(case.name, mine))
        found += mine
    return found


def _summary(case: str, runs: list[Killed]) -> str:
    struck = [each for each in runs if each.struck]
    cut = [each for each in struck if each.error]
    named = sum(each.party in each.error for each in cut)
    slowest = max((each.ended_s for each in cut), default=0.0)
    equal = sum(each.outcome == "equal" for each in struck)
    return (
        f"{case}: {len(struck)} kills ({len(runs) - len(struck)} came too late), {len(cut)} cut a run, "
        f"{named} of them with an error that names the party, after {slowest:.1f} s at most; "
        f"{equal} equal after going on"
    )


def _left_alone(case: Case, folder: Path, deadline_s: float) -> Victim:
    """A case whose runs nobody disturbs: a copy of early checkpoints, the result, and how long it takes."""
    order = order_of(case, rows=240, epochs=6, world="network", deadline_s=deadline_s)
    victim = Victim(case, order, folder, folder / "begin")
    first = folder / "alone"
    with _watched(lambda: _copied(first, victim.begin, len(order.plan.parties))):
        victim.expected = launch(replace(order, out=first))
    lives: dict[str, list[float]] = {party: [] for party in order.plan.parties}
    for number in range(CALIBRATIONS):
        out = folder / f"calibration-{number}"
        if victim.begin.is_dir():
            shutil.copytree(victim.begin, out)
        seen: dict[str, list[float]] = {party: [] for party in lives}
        with _watched(partial(_look, out, seen)):
            launch(replace(order, out=out, resume=True))
        for party, moments in seen.items():
            lives[party].append(moments[-1] - moments[0])
    victim.life_s = {party: float(np.median(found)) for party, found in lives.items()}
    return victim


@contextmanager
def _watched(look: Callable[[], bool]) -> Iterator[None]:
    """Look again and again while a block lasts, until a look says that it is enough."""
    done = threading.Event()

    def watch() -> None:
        while not done.is_set() and not look():
            time.sleep(0.002)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()


def _copied(out: Path, begin: Path, parties: int) -> bool:
    """Copy the first checkpoints once every party has one."""
    found = list(out.glob(f"{PARTIES}/*/{CHECKPOINTS}/*.gate"))
    if len({path.parent for path in found}) < parties:
        return False
    for path in found:
        target = begin / path.relative_to(out)
        target.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileNotFoundError):  # a later gate took its place meanwhile
            shutil.copy2(path, target)
    return True


def _look(out: Path, seen: dict[str, list[float]]) -> bool:
    """Note which parties' processes live now."""
    now = time.monotonic()
    for party, moments in seen.items():
        if _process_of(out / PARTIES / party):
            moments.append(now)
    return False


def _process_of(folder: Path) -> int:
    """The number of the process that a party's log belongs to; 0 if there is none."""
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # of others', and of those that end meanwhile
            if (process / "fd" / "2").readlink() == folder / "log.txt":
                return int(process.name)
    return 0


def _killed(victim: Victim, party: str, moment: float, out: Path) -> Killed:
    """Kill a party at a moment of its process's life, from 0 to 1, and let the run go on."""
    if victim.begin.is_dir():
        shutil.copytree(victim.begin, out)
    after = moment * victim.life_s[party]
    result = Killed(victim.case.name, party, after_s=after)
    again = replace(victim.order, out=out, resume=True)
    with _murderer(out / PARTIES / party, after) as struck:
        try:
            shares = launch(again)
        except ColonnadeError as error:
            result.error, shares = f"{type(error).__name__}: {error}", {}
    ended = time.monotonic()
    if struck.at:
        result.struck, result.ended_s = True, ended - struck.at
    elif struck.seen:
        victim.life_s[party] = struck.seen - struck.began  # faster than it was
    if not shares:
        try:
            shares = launch(again)
        except ColonnadeError as error:
            result.outcome = f"did not go on: {type(error).__name__}: {error} (first {result.error})"
            return result
        if time.monotonic() - ended > LONGEST_S:
            result.outcome = "took too long"
    result.outcome = _difference(victim, shares) or result.outcome
    shutil.rmtree(out, ignore_errors=True)
    return result


def _difference(victim: Victim, shares: dict[str, Share]) -> str:
    """In what the shares differ from those of the run that nobody disturbed."""
    for name, share in victim.expected.items():
        for key, array in share.weights.items():
            told = shares[name].weights[key]
            if victim.case.exact or ((blind := victim.case.blind) and name == victim.order.plan.evaluator):
                alike = np.array_equal(array, told)
            else:  # owners in blind runs have random low bits, and asynchronous runs are never the same
                alike = np.allclose(array, told, atol=1e-5) if blind else np.isfinite(told).all()
            if array.shape != told.shape or not alike:
                return f"{name} has another {key}"
    return ""


@dataclass
class Murder:
    """When a process was first seen, last seen, and killed; 0 if it was not."""

    began: float = 0.0
    seen: float = 0.0
    at: float = 0.0


@contextmanager
def _murderer(folder: Path, after: float) -> Iterator[Murder]:
    """Kill -9 the process of a party so many seconds after it began."""
    murder = Murder()

    def look() -> bool:
        process, now = _process_of(folder), time.monotonic()
        if process:
            murder.seen, murder.began = now, murder.began or now
        if not process or now - murder.began < after:
            return False
        with suppress(OSError):
            os.kill(process, signal.SIGKILL)
            murder.at = time.monotonic()
        return True

    with _watched(look):
        yield murder
