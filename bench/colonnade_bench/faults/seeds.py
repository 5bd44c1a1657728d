"""Simulated faults, a seed each: every run ends as if nothing had happened, or every live party says why not.

What a seed decides: which conversation, which links lose, double, change or delay frames, which processes
die, when, and whether anybody is told, which disks are full, forget, tear or die while they write, whose
clock jumps. A run goes on from its disks for a few sessions, and in the last nothing fails. It ends with the
weights of a run that nothing happened to; a private run may refuse to go on where a disk forgot its secret.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from unittest.mock import patch

import numpy as np

from colonnade.errors import CheckpointError
from colonnade.run.party import Share
from colonnade_bench.faults.cases import CASES, order_of
from colonnade_bench.faults.simulated import SimulatedDisk, Trouble, is_named, session

SESSIONS = 6  # of which the last has no faults
Weights = dict[str, dict[str, np.ndarray]]


@dataclass
class Verdict:
    """What became of one seed; `fault` says what is wrong with it, if something is."""

    seed: int
    case: str
    sessions: int = 0
    deaths: int = 0
    disk: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    fault: str = ""


@cache
def uninterrupted(case: int) -> tuple[Weights, float]:
    """The weights of a case when nothing fails, and the virtual seconds that it takes."""
    disks = {party: SimulatedDisk(np.random.default_rng(0)) for party in order_of(CASES[case]).data}
    with _one_secret():
        ended = session(order_of(CASES[case]), disks, Trouble(), 0)
    if ended.errors:
        raise next(iter(ended.errors.values()))
    return _weights(ended.shares), max(share.seconds for share in ended.shares.values())


def judged(seed: int, of: int | None = None) -> Verdict:
    """Run one seed, of the case that it draws or of this one."""
    rng = np.random.default_rng([seed, 0xFA17])
    drawn = int(rng.integers(len(CASES)))
    which = drawn if of is None else of
    case, order = CASES[which], order_of(CASES[which])
    verdict = Verdict(seed, case.name)
    expected, seconds = uninterrupted(which)
    full, forgets, dies = rng.choice([0.0, 0.0, 0.1, 0.3], size=3).tolist()
    disks = {party: SimulatedDisk(rng, full, forgets, dies) for party in sorted(order.data)}
    for number in range(SESSIONS):
        last = number == SESSIONS - 1
        for disk in disks.values():
            disk.dead = False
            if last:
                disk.full = disk.forgets = disk.dies = 0.0
        trouble = Trouble() if last else Trouble.drawn(rng, order.plan.parties, seconds)
        try:
            with _one_secret():
                ended = session(order, disks, trouble, seed + number)
        except TimeoutError:
            verdict.fault = f"session {number} hangs"
            break
        except RuntimeError as error:
            verdict.fault = f"session {number}: {error}"
            break
        verdict.sessions, verdict.deaths = number + 1, verdict.deaths + len(ended.dead)
        verdict.errors += [type(error).__name__ for error in ended.errors.values()]
        unnamed = {party: error for party, error in ended.errors.items() if not is_named(error)}
        if unnamed:
            verdict.fault = f"session {number} ends with {unnamed!r}"
            break
        if len(ended.shares) == len(order.data):
            verdict.fault = _difference(expected, _weights(ended.shares), exact=case.exact)
            break
        if last and not (case.private and _spoilt(disks, ended.errors)):
            verdict.fault = f"the last session ends with {ended.errors!r}"
    verdict.disk = [event for disk in disks.values() for event in disk.events]
    return verdict


def run_seeds(seeds: Iterable[int], say: Callable[[str], None]) -> list[Verdict]:
    """Run many seeds; says which fail, and what happened in all."""
    found = []
    for seed in seeds:
        found.append(judged(seed))
        if found[-1].fault:
            say(f"seed {seed} ({found[-1].case}): {found[-1].fault}")
    errors = Counter(error for verdict in found for error in verdict.errors)
    disk = Counter(event for verdict in found for event in verdict.disk)
    sessions, deaths = sum(each.sessions for each in found), sum(each.deaths for each in found)
    say(f"{len(found)} seeds, {sessions} sessions, {deaths} deaths, {sum(bool(v.fault) for v in found)} fail")
    say(f"disks: {dict(disk)}; errors: {dict(errors)}")
    return found


@contextmanager
def _one_secret() -> Iterator[None]:
    """Noise that a run draws is the same in all runs, so that their weights can be compared."""
    with patch("colonnade.conversations.gates.secrets.token_bytes", lambda size: bytes(size)):
        yield


def _weights(shares: dict[str, Share]) -> Weights:
    return {party: dict(share.weights) for party, share in shares.items()}


def _spoilt(disks: dict[str, SimulatedDisk], errors: dict[str, BaseException]) -> bool:
    """Whether a disk forgot what a private run must know, and every party says that it cannot go on.

    Without the key of its noise, or the count of its replies, a run would promise an epsilon that it does not
    keep.
    """
    return len(errors) == len(disks) and any(
        isinstance(error, CheckpointError) and {"torn", "lost"} & set(disks[party].events)
        for party, error in errors.items()
    )


def _difference(expected: Weights, found: Weights, *, exact: bool) -> str:
    """In what two results differ; where order matters, only whether the second is one."""
    for party, arrays in expected.items():
        for name, array in arrays.items():
            other = found[party][name]
            if array.shape != other.shape or not np.isfinite(other).all():
                return f"{party} has {name} of shape {other.shape}"
            if exact and not np.array_equal(array, other):
                return f"{party} has another {name}, by {np.abs(array - other).max():g}"
    return ""
