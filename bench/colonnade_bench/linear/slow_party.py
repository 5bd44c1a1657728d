"""Losslessness with a slow party: the tables of accuracy once more, between processes, every run twice.

Every party is a process. In one run of a pair all parties have the same speed, in the other one of them
computes everything 1 / 0.4 times as long, by work and not by waiting. It is another party in every split, so
that parties with the label and without it take their turns. Everything else is as in the tables of the papers
(`lossless`), and what a run gave stays in OUT/trials.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any

from colonnade.run.gather_result import staleness_of
from colonnade_bench.common import Bench, Grid, Say
from colonnade_bench.linear.lossless import Answers, Lossless, Trial
from colonnade_bench.linear.trials import PARTIES
from colonnade_bench.pairs import HEADS, LIMIT, SPEED, Pairs

PART = "slow"
SPLITS = 3  # each takes VFB2's table the better part of an hour on one core, and they hardly differ


@dataclass(frozen=True)
class Paced:
    """What a run between processes gave: test accuracy in per cent, how it ended, and its delays."""

    accuracy: float
    above: float
    epochs: float
    delay: float
    longest: int


def slow_party(seed: int) -> int:
    """Which party is the slow one of a split.

    >>> [slow_party(seed) for seed in range(8)]
    [7, 4, 1, 6, 3, 0, 5, 2]
    """
    return (PARTIES - 1 - 3 * seed) % PARTIES


def speeds(seed: int, speed: float) -> list[float]:
    """The speeds of all parties of a split, the slow one at this."""
    return [speed if party == slow_party(seed) else 1.0 for party in range(PARTIES)]


def paced(trial: Trial, speed: float) -> Paced:
    """Run a trial between processes, one of them at this speed."""
    trace = trial.trace("network", network={"speeds": speeds(trial.seed, speed)})
    late = staleness_of(dict(trace.shares))
    last = trace.moments[-1]
    return Paced(100 * trace.metrics["test_accuracy"], trace.gaps[-1], last.epoch, late.mean, late.max)


@dataclass(frozen=True)
class SlowParty:
    """A table of losslessness between processes, without a slow party and with one, so many splits."""

    table: Lossless
    splits: int

    def pieces(self) -> list[str]:
        """A piece for every pair of runs; first the first split of all problems, then the second."""
        return [
            f"{PART}:{name}:{how}:{algorithm}:{seed}"
            for seed in range(self.splits)
            for name, how, algorithm in self._problems()
        ]

    def add(self, bench: Bench, say: Say, out: Path, which: Sequence[str] = ()) -> None:
        """Add the table; or keep the answers of one pair. With `kept` for `which` nothing is run."""
        match which:
            case [name, regularizer, algorithm, seed]:
                _pair(Trial(name, algorithm, regularizer, int(seed)), Answers(out))
            case _:
                self._tabulate(bench, say, Answers(out, new="kept" not in which))

    def _problems(self) -> list[tuple[str, str, str]]:
        """Every set with every penalty and algorithm."""
        return list(product(self.table.sets.found, self.table.regularizers, self.table.algorithms))

    def _tabulate(self, bench: Bench, say: Say, answers: Answers) -> None:
        rows: list[list[Any]] = []
        for name, regularizer, algorithm in self._problems():
            trials = [Trial(name, algorithm, regularizer, seed) for seed in range(self.splits)]
            found = [pair for trial in trials if (pair := _known(trial, answers)) is not None]
            if found:
                rows.append([name, regularizer, algorithm, *_cells(found)])
                say(f"a slow party, {name}, {regularizer}, {algorithm}: {rows[-1][8]:+.3f} points")
        columns = ["set", "problem", "algorithm", "splits", "NonF", *HEADS, f"within {LIMIT}"]
        columns += ["loss above the optimum", "epochs: without, with", "mean delay: without, with", "longest"]
        note = (
            "Test accuracy in per cent, a process for every party, TLS, settings as for losslessness; means "
            f"over splits. The slow party takes 1 / {SPEED} times as long for everything and is another one "
            "in every split. Delays are in updates, over all parties; the longest is that of a run with "
            "a slow party."
        )
        bench.grids.append(Grid("Losslessness with a slow party", columns, rows, note))


def _pair(trial: Trial, answers: Answers) -> tuple[float, Paced, Paced]:
    """The pooled accuracy of a split, and what both runs gave."""
    words = [trial.name, trial.algorithm, trial.regularizer, str(trial.seed)]

    def run(speed: float) -> Paced:
        question = {**trial.question, "speeds": speeds(trial.seed, speed)}
        name = "-".join([*words, "at", f"{speed:g}"])
        return Paced(**answers.kept(name, question, lambda: asdict(paced(trial, speed))))

    return answers.pooled(trial), run(1.0), run(SPEED)


def _known(trial: Trial, answers: Answers) -> tuple[float, Paced, Paced] | None:
    """What a pair gave; nothing where it was not run and nothing may be."""
    try:
        return _pair(trial, answers)
    except LookupError:
        return None


def _cells(found: Sequence[tuple[float, Paced, Paced]]) -> list[Any]:
    """The part of a row behind its algorithm."""
    nonf, without, slowed = zip(*found, strict=True)
    pairs = Pairs([run.accuracy for run in without], [run.accuracy for run in slowed])

    def means(what: str) -> str:
        return ", ".join(f"{statistics.mean(getattr(run, what) for run in runs):.1f}" for runs in both)

    both = (without, slowed)
    above = max(run.above for runs in both for run in runs)
    longest = max(run.longest for run in slowed)
    how = [pairs.within, f"{above:.1e}", means("epochs"), means("delay"), longest]
    return [len(found), statistics.mean(nonf), *pairs.cells(), *how]
