"""What AsyREVEL's own settings reach on MNIST: one row and one direction a step, in one place, nothing stale.

Section 5.1 of the paper: every party has a network 98 -> 128 -> 1 with ReLU, the server one layer from 8 to
10, Gaussian directions, steps of 0.002 for parties and 0.002 / 8 for the server, mu = 1e-3. Algorithm 1 draws
one row for a step. How many steps it made the paper does not say; accuracy is printed as they go by. Equation
15's factor d_m is left out, with which Gaussian directions diverge, and so is the penalty of 1e-4.

    python -m colonnade_bench.asyrevel.literal --steps 20000 --batch 1
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import click
import numpy as np

from colonnade.arrays import Numbers
from colonnade_bench.asyrevel.setting import PARTIES, tables_of
from colonnade_bench.party_tables import held_out

HIDDEN, CLASSES, STEP, MU = 128, 10, 0.002, 1e-3
CHUNK = 2000


class Networks:
    """The networks of all parties and the server's layer, with one row of parameters for each party."""

    def __init__(self, columns: int, seed: int) -> None:
        self.rng, self.columns = np.random.default_rng(seed), columns
        self.sizes = np.cumsum([columns * HIDDEN, HIDDEN, HIDDEN])
        first, second = (
            self.rng.uniform(-1, 1, (PARTIES, size)) / np.sqrt(fan)
            for size, fan in (((columns + 1) * HIDDEN, columns), (HIDDEN + 1, HIDDEN))
        )
        self.w = np.concatenate([first, second], axis=1).astype(np.float32)
        self.w0 = (self.rng.standard_normal((PARTIES + 1) * CLASSES) / np.sqrt(PARTIES)).astype(np.float32)

    def outputs(self, x: Numbers, u: Numbers | None = None) -> list[Numbers]:
        """One number for every party [P] and row of x [P, rows, columns]; along u as well if it is given."""
        parts = np.split(self.w, self.sizes, axis=1)
        hidden = self._hidden(parts, x)
        if u is None:
            return [_above(parts, hidden)]
        moved = np.split(u, self.sizes, axis=1)
        there = [here + np.float32(MU) * along for here, along in zip(parts[2:], moved[2:], strict=True)]
        beyond = hidden + np.float32(MU) * self._hidden(moved, x)
        return [_above(parts, hidden), _above([*parts[:2], *there], beyond)]

    def _hidden(self, parts: list[Numbers], x: Numbers) -> Numbers:
        found: Numbers = x @ parts[0].reshape(PARTIES, self.columns, HIDDEN) + parts[1][:, None]
        return found

    def scores(self, w0: Numbers, c: Numbers) -> Numbers:
        """The scores [rows, classes] of outputs [rows, parties]."""
        found: Numbers = c @ w0[: PARTIES * CLASSES].reshape(PARTIES, CLASSES) + w0[PARTIES * CLASSES :]
        return found

    def step(self, x: Numbers, y: Numbers) -> None:
        """A step of every party and, for each, one of the server, on the rows x [P, rows, columns]."""
        u = self.rng.standard_normal(self.w.shape, dtype=np.float32)
        c, moved = (found.T for found in self.outputs(x, u))
        each = np.repeat(c[None], PARTIES + 1, axis=0)  # the last is c itself
        for party in range(PARTIES):
            each[party, :, party] = moved[:, party]
        losses = _losses(self.scores(self.w0, each), y)
        u *= (STEP * (losses[:-1] - losses[-1]) / MU).astype(np.float32)[:, None]
        self.w -= u
        for _ in range(PARTIES):
            u0 = self.rng.standard_normal(self.w0.shape, dtype=np.float32)
            points = np.stack([self.scores(self.w0, c), self.scores(self.w0 + np.float32(MU) * u0, c)])
            here, there = _losses(points, y)
            self.w0 -= np.float32(STEP / PARTIES * (there - here) / MU) * u0

    def accuracy(self, x: Numbers, y: Numbers) -> float:
        """The part of rows whose class is found; x is [P, rows, columns]."""
        right = 0
        for start in range(0, len(y), CHUNK):
            z = self.scores(self.w0, self.outputs(x[:, start : start + CHUNK])[0].T)
            right += int((z.argmax(axis=1) == y[start : start + CHUNK]).sum())
        return right / len(y)


def _above(parts: list[Numbers], hidden: Numbers) -> Numbers:
    """The outputs [P, rows] from what the hidden units get."""
    found: Numbers = np.einsum("prh,ph->pr", np.maximum(hidden, 0.0), parts[2]) + parts[3]
    return found


def _losses(z: Numbers, y: Numbers) -> Numbers:
    """The mean loss of every point, of scores [points, rows, classes]."""
    z = z.astype(np.float64)
    top = z.max(axis=2, keepdims=True)
    total = top[..., 0] + np.log(np.exp(z - top).sum(axis=2))
    found: Numbers = (total - z[:, np.arange(len(y)), y]).mean(axis=1)
    return found


def literal(steps: int, batch: int, seed: int = 0) -> Iterator[tuple[int, float]]:
    """The answers given so far and the test accuracy, eight times in all; ends early if it diverges."""
    tables = tables_of("mnist")
    test = held_out(tables)
    parties, holder = sorted(tables.train), tables.active[0]
    X, T = (
        np.stack([np.asarray(each[p].X, dtype=np.float32) for p in parties]) for each in (tables.train, test)
    )
    y, t = (np.asarray(each[holder].y, dtype=np.int64) for each in (tables.train, test))
    networks, rows = Networks(X.shape[2], seed), np.random.default_rng([seed, 1])
    for number in range(1, steps + 1):
        some = rows.integers(len(y), size=batch)
        networks.step(X[:, some], y[some])
        if number % (steps // 8) == 0:
            if not np.isfinite(networks.w).all():
                yield number * PARTIES, float("nan")
                return
            yield number * PARTIES, networks.accuracy(T, t)


@click.command()
@click.option("--steps", default=60_000, help="of every party")
@click.option("--batch", default=1, help="rows of a step; the paper's Algorithm 1 has one")
def main(steps: int, batch: int) -> None:
    """Print the accuracy that the paper's settings have after so many answers."""
    start = time.process_time()
    with np.errstate(all="ignore"):  # runs that diverge are told from their accuracy
        for answers, accuracy in literal(steps, batch):
            seconds = time.process_time() - start
            click.echo(f"{answers:>10,} answers  test accuracy {100 * accuracy:.2f}%  {seconds:.0f} s")


if __name__ == "__main__":
    main()
