"""What AsyREVEL's own settings reach on MNIST: one direction a step, in one place, nothing stale.

Section 5.1 of the paper: every party has a network 98 -> 128 -> 1 with ReLU, the server one layer from 8 to
10, Gaussian directions, steps of 0.002 for parties and 0.002 / 8 for the server, mu = 1e-3. Algorithm 1 draws
one row for a step. How many steps it made the paper does not say; accuracy is printed as they go by. Equation
15's factor d_m is left out, with which Gaussian directions diverge, and so is the penalty of 1e-4.

    python -m colonnade_bench.asyrevel.literal --steps 200000 --batch 256 --device auto
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import click
import numpy as np

from colonnade_bench.asyrevel.setting import PARTIES, tables_of
from colonnade_bench.party_tables import held_out

if TYPE_CHECKING:
    from torch import Generator, Tensor

HIDDEN, CLASSES, STEP, MU = 128, 10, 0.002, 1e-3
CHUNK = 2000


class Networks:
    """The networks of all parties, one row of parameters for each, and the server's layer."""

    def __init__(self, columns: int, seed: int, device: str) -> None:
        import torch

        self.torch, self.columns = torch, columns
        self.random = generator(device, seed)
        self.sizes = [columns * HIDDEN, HIDDEN, HIDDEN, 1]
        rng = np.random.default_rng(seed)
        first, second = (
            rng.uniform(-1, 1, (PARTIES, size)) / np.sqrt(fan)
            for size, fan in (((columns + 1) * HIDDEN, columns), (HIDDEN + 1, HIDDEN))
        )
        w0 = rng.standard_normal((PARTIES + 1, CLASSES)) / np.sqrt(PARTIES)
        self.w = torch.tensor(np.concatenate([first, second], axis=1), dtype=torch.float32, device=device)
        self.w0 = torch.tensor(w0, dtype=torch.float32, device=device)
        self.own = torch.eye(PARTIES, dtype=torch.bool, device=device)[:, None, :]

    def outputs(self, x: Tensor, u: Tensor | None = None) -> list[Tensor]:
        """One number for every party [P] and row of x [P, rows, columns]; along u as well if it is given."""
        parts = self.w.split_with_sizes(self.sizes, dim=1)
        hidden = self._hidden(parts, x)
        if u is None:
            return [_above(hidden, *parts[2:])]
        moved = u.split_with_sizes(self.sizes, dim=1)
        beyond = hidden + MU * self._hidden(moved, x)
        return [
            _above(hidden, *parts[2:]),
            _above(beyond, *(here + MU * along for here, along in zip(parts[2:], moved[2:], strict=True))),
        ]

    def _hidden(self, parts: tuple[Tensor, ...], x: Tensor) -> Tensor:
        weights = parts[0].reshape(PARTIES, self.columns, HIDDEN)
        return self.torch.baddbmm(parts[1][:, None], x, weights)

    def scores(self, w0: Tensor, c: Tensor) -> Tensor:
        """The scores [..., rows, classes] of outputs [..., rows, parties]."""
        return c @ w0[..., :PARTIES, :] + w0[..., PARTIES:, :]

    def step(self, x: Tensor, y: Tensor) -> None:
        """A step of every party and, for each, one of the server, on the rows x [P, rows, columns]."""
        u, u0 = self._normal(self.w.shape), self._normal((PARTIES, *self.w0.shape))
        c, moved = (found.T for found in self.outputs(x, u))
        each = self.torch.where(self.own, moved, c)
        here = self._losses(self.scores(self.w0, c), y)
        there = self._losses(self.scores(self.w0, each), y)
        self.w -= (STEP / MU * (there - here)).float()[:, None] * u
        for direction in u0:
            both = self.torch.stack([self.w0, self.w0 + MU * direction])
            here, there = self._losses(self.scores(both, c), y)
            self.w0 -= (STEP / PARTIES / MU * (there - here)).float() * direction

    def replaying(self, step: Callable[[], None]) -> Callable[[], None]:
        """The same step as a CUDA graph: its hundred kernels take longer to start one by one than to run."""
        from colonnade.models.cuda_graph import recorded

        before = [w.clone() for w in (self.w, self.w0)]
        graph, _ = recorded(step)
        for w, kept in zip((self.w, self.w0), before, strict=True):
            w.copy_(kept)
        return graph.replay

    def _normal(self, shape: tuple[int, ...]) -> Tensor:
        return self.torch.randn(shape, generator=self.random, device=self.w.device)

    def _losses(self, z: Tensor, y: Tensor) -> Tensor:
        """The mean loss of every point, of scores [..., rows, classes]."""
        z = z.double()
        right = z.gather(-1, y.expand(z.shape[:-1])[..., None])[..., 0]
        return (z.logsumexp(-1) - right).mean(-1)

    def accuracy(self, x: Tensor, y: Tensor) -> float:
        """The part of rows whose class is found; x is [P, rows, columns]."""
        right = 0
        for start in range(0, len(y), CHUNK):
            z = self.scores(self.w0, self.outputs(x[:, start : start + CHUNK])[0].T)
            right += int((z.argmax(dim=1) == y[start : start + CHUNK]).sum())
        return right / len(y)


def generator(device: str, seed: int) -> Generator | None:
    """Random numbers of a seed; on a GPU those of torch, the only ones that a CUDA graph draws anew."""
    import torch

    torch.manual_seed(seed)
    return None if device == "cuda" else torch.Generator(device).manual_seed(seed)


def _above(hidden: Tensor, weights: Tensor, intercept: Tensor) -> Tensor:
    """The outputs [P, rows] from what the hidden units get."""
    return (hidden.relu() @ weights[:, :, None])[:, :, 0] + intercept


def literal(
    steps: int, batch: int, seed: int = 0, device: str = "cpu", times: int = 8
) -> Iterator[tuple[int, float]]:
    """The answers given so far and the test accuracy, so many times in all; ends early if it diverges."""
    import torch

    tables = tables_of("mnist")
    test = held_out(tables)
    parties, holder = sorted(tables.train), tables.active[0]
    X, T = (
        torch.tensor(np.stack([each[p].X for p in parties]), dtype=torch.float32, device=device)
        for each in (tables.train, test)
    )
    y, t = (torch.tensor(each[holder].y, dtype=torch.int64, device=device) for each in (tables.train, test))
    networks = Networks(X.shape[2], seed, device)
    rows = generator(device, seed + 1)

    def step() -> None:
        some = torch.randint(len(y), (batch,), generator=rows, device=device)
        networks.step(X[:, some], y[some])

    make = networks.replaying(step) if device == "cuda" else step
    for number in range(1, steps + 1):
        make()
        if number % (steps // times) == 0:
            if not bool(networks.w.isfinite().all()):
                yield number * PARTIES, float("nan")
                return
            yield number * PARTIES, networks.accuracy(T, t)


@click.command()
@click.option("--steps", default=60_000, help="of every party")
@click.option("--batch", default=1, help="rows of a step; the paper's Algorithm 1 has one")
@click.option("--device", default="cpu", help="cpu, cuda, or auto: a GPU where torch sees one")
@click.option("--times", default=8, help="how often the accuracy is printed")
def main(steps: int, batch: int, device: str, times: int) -> None:
    """Print the accuracy that the paper's settings have after so many answers."""
    import torch

    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    start = time.monotonic()
    with torch.no_grad():
        for answers, accuracy in literal(steps, batch, device=device, times=times):
            seconds = time.monotonic() - start
            click.echo(f"{answers:>10,} answers  test accuracy {100 * accuracy:.2f}%  {seconds:.0f} s")


if __name__ == "__main__":
    main()
