"""Made-up rows for kernel machines: few and many columns, smooth and rough labels, noise, rare classes.

How the penalty is chosen was decided by test errors on other draws of such rows.
A wave is a random smooth function of all columns that matter, and a
label says whether it is high; `noise` is added to the wave, `flipped` labels are wrong.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from colonnade.arrays import Floats
from colonnade.data.table import Table
from colonnade.run.federate import Tables
from colonnade_bench.kernel.runs import ACTIVE, PARTIES, tables_of

WAVES = 300


@dataclass(frozen=True)
class MadeUp:
    """How rows are made; a fifth of them are test rows."""

    columns: int
    rows: int
    length: float = 1.0  # of a wave; the shorter, the rougher
    noise: float = 0.0
    flipped: float = 0.0
    positive: float = 0.5
    matter: int | None = None  # columns that do; None: all
    plane: bool = False  # a plane instead of waves

    def draw(self, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Columns of unit variance, and labels."""
        X = rng.standard_normal((self.rows, self.columns))
        some = X[:, : self.matter]
        k = some.shape[1]
        if self.plane:
            f = some @ rng.standard_normal(k)
        else:
            W = rng.standard_normal((k, WAVES)) / (self.length * np.sqrt(k))
            f = np.cos(some @ W + rng.uniform(0, 2 * np.pi, WAVES)) @ rng.standard_normal(WAVES)
        f += self.noise * f.std() * rng.standard_normal(self.rows)
        y = np.where(f > np.quantile(f, 1 - self.positive), 1.0, -1.0)
        return X, np.where(rng.random(self.rows) < self.flipped, -y, y)


SETS = {
    "22 columns": MadeUp(22, 50_000, positive=0.1),
    "8 columns, some noise": MadeUp(8, 20_000, length=0.7, noise=0.1),
    "8 columns, 15% wrong": MadeUp(8, 20_000, length=0.7, flipped=0.15),
    "2 columns, rough": MadeUp(2, 20_000, length=0.1, noise=0.3),
    "50 columns, 5 matter, 3% positive": MadeUp(50, 20_000, noise=0.3, positive=0.03, matter=5),
    "plane in 30 columns, 10% wrong": MadeUp(30, 20_000, flipped=0.1, plane=True),
    "1,000 rows": MadeUp(10, 1_000, noise=0.2, positive=0.3),
}


def made_up(name: str, rows: int | None = None, parties: int = PARTIES) -> Tables:
    """Some of these rows, over parties: so many training rows and test rows at most, or all."""
    made = SETS[name]
    X, y = made.draw(np.random.default_rng([made.columns, made.rows]))
    first_test = made.rows * 4 // 5
    names = [f"party-{i}" for i in range(parties)]
    blocks = dict(zip(names, np.array_split(np.arange(made.columns), parties), strict=True))
    blocks = {party: block for party, block in blocks.items() if len(block)}
    active = tuple(names[:ACTIVE])

    def dealt(part: slice) -> dict[str, Table]:
        return {
            party: Table(
                party,
                tuple(f"x{j}" for j in block),
                np.ascontiguousarray(X[part][:, block]),
                y[part] if party in active else None,
            )
            for party, block in blocks.items()
        }

    train, test = slice(first_test), slice(first_test, None)
    if rows is not None:
        train, test = slice(min(rows, first_test)), slice(first_test, first_test + rows)
    return Tables(name, dealt(train), dealt(test), active)


def some_tables(name: str, rows: int | None = None) -> Tables:
    """A made-up set or a data set, of so many training rows and test rows at most."""
    return made_up(name, rows) if name in SETS else tables_of(name, 0, rows=rows)
