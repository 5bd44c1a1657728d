"""A fair chance for every algorithm of a comparison: settings from a grid that is printed with the table.

They are chosen on another split of the columns, another seed and a fifth of the rows, by the gap at the end
of as many passes as the run that is reported. A run that ends above the loss without training is as bad as
any. What is reported then runs once with what was chosen and, as a further row, with automatic settings.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from colonnade_bench.common import Grid, Say
from colonnade_bench.linear.trials import Problem, Trace, train

Setting = Mapping[str, float]
"""Keys of a job, written with their section, and their values."""

SPLIT = 1  # seed of the split and of the runs that choose; what is reported has seed 0
PART = 5  # of so many rows one is taken to choose on

STEPS: tuple[Setting, ...] = tuple({"train.step": step} for step in (0.1, 0.25, 0.5, 1, 2, 4, 8))
# the paper fixes delta and picks gamma; H is at most about 1 / delta, so gamma is tried as multiples of delta
DELTAS, TIMES_DELTA = (0.3, 1.0, 3.0, 10.0), (0.5, 1.0, 1.5, 2.0, 3.0)
PAPERS: tuple[Setting, ...] = tuple(
    {"direction.delta": delta, "direction.step": times * delta} for delta in DELTAS for times in TIMES_DELTA
)
GAMMAS = (0.125, 0.25, 0.5)
JOINT: tuple[Setting, ...] = tuple({"direction.step": gamma} for gamma in (0.25, 0.5, 0.7))
ADDED: tuple[Setting, ...] = tuple(
    {"train.step": step, "direction.step": gamma} for step in (1, 2) for gamma in GAMMAS
)
AUTOMATIC: Setting = {}


@dataclass(frozen=True)
class Way:
    """One algorithm of a comparison, what its job says, and the settings that are tried."""

    label: str
    algorithm: str
    grid: Sequence[Setting]
    terms: Mapping[str, Any] = field(default_factory=dict)  # of [train]
    pairs: str | None = None

    def run(
        self,
        data: Problem,
        setting: Setting,
        terms: Mapping[str, Any],
        *,
        seed: int = 0,
        target: float | None = None,
    ) -> Trace:
        """Train with a setting; a run that ends badly is a trace as well."""
        keys: dict[str, Any] = {**terms, **self.terms}
        direction: dict[str, Any] = {} if self.pairs is None else {"pairs": self.pairs}
        for key, value in setting.items():
            section, name = key.split(".")
            (keys if section == "train" else direction)[name] = value
        how: dict[str, Any] = {"seed": seed, "target": target, "keep_bad": True}
        return train(data, self.algorithm, **how, train=keys, direction=direction)

    def chosen(self, data: Problem, terms: Mapping[str, Any], say: Say) -> tuple[Setting, float]:
        """Return the setting of the grid that ends nearest the optimum, and its gap."""
        best: tuple[float, Setting] = (math.inf, self.grid[0])
        for setting in self.grid:
            trace = self.run(data, setting, terms, seed=SPLIT)
            gap = trace.gaps[-1] if trace.bad is None and trace.gaps else math.inf
            best = min(best, (gap, setting), key=lambda found: found[0])
        say(f"{data.name}, {self.label}: {words(best[1])} of {len(self.grid)} settings, gap {best[0]:.1e}")
        return best[1], best[0]


def sample(data: Problem) -> Problem:
    """Return the rows to choose on."""
    return data.part(max(64, data.rows // PART))


def words(setting: Setting) -> str:
    """Return a setting as the tables say it.

    >>> words({"direction.delta": 3.0, "direction.step": 4}), words({"train.step": 2}), words({})
    ('delta 3, gamma 4', 'step 2', 'automatic')
    """
    names = {"direction.delta": "delta", "direction.step": "gamma", "train.step": "step"}
    return ", ".join(f"{names[key]} {value:g}" for key, value in setting.items()) or "automatic"


AS_MANY = "as many passes as the reported run has"


def grid_table(found: Sequence[tuple[str, Way, Setting, float]], rounds: str = AS_MANY) -> Grid:
    """Return the grids and what was chosen from each, as a table."""
    rows = [[where, way.label, _spread(way.grid), words(setting), gap] for where, way, setting, gap in found]
    note = (
        f"Chosen with seed {SPLIT} on another split of the columns and one row of {PART}, by the gap after "
        f"{rounds}; what is reported has seed 0."
    )
    return Grid("Settings that were tried", ["set", "algorithm", "grid", "chosen", "gap there"], rows, note)


def _spread(grid: Sequence[Setting]) -> str:
    """Return every value that a grid has of every key; gamma in multiples of delta where both are tried."""
    if not any(grid):
        return "-"
    if grid is PAPERS:
        times = ", ".join(f"{value:g}" for value in TIMES_DELTA)
        return f"delta {', '.join(f'{value:g}' for value in DELTAS)}; gamma {times} times delta"
    values: dict[str, list[str]] = {}
    for setting in grid:
        for key, value in setting.items():
            name = words({key: 0}).split()[0]
            values.setdefault(name, [])
            if f"{value:g}" not in values[name]:
                values[name].append(f"{value:g}")
    return "; ".join(f"{name} {', '.join(each)}" for name, each in values.items())
