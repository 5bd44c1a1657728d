"""df/dh from differences of the loss: what a server tells a client in VFL-CZOFO instead of the gradient.

The client has sent its outputs h [B rows, d]. The server moves them along K directions and evaluates its
own model and the loss there; per batch, all rows move at once and one number a direction comes back:

    delta_k = (f(h + mu u_k) - f(h)) / mu,  u_k in R^{B x d}        one-sided (Avg-RandGradEst)
    delta_k = (f(h + mu u_k) - f(h - mu u_k)) / 2 mu                two-sided ("central")
    df/dh  ~  phi / K * sum_k delta_k u_k,  phi = B d on the unit sphere, else 1

The paper's two-sided formula lacks the factor 1/2: it gives the gradient twice. Per sample, every row has
its own deltas (K B numbers) and directions in R^d: B times the bytes, and the error is smaller by sqrt(B). By
coordinate (CoordGradEst), the j-th output of all rows moves at once; as a row's loss depends on its own
outputs only, 2 d evaluations give all B d derivatives, which are as many numbers as the gradient.

Directions are never sent: client and server draw them from the job's seed and the number of the round. Per
batch they are K bases v_j in R^d with a random sign for every base and row, e_jb: evaluation k moves row b by

    u_k[b] = e_jb v_j,   j = (k + b) mod K

so that a row meets every base once, and a base serves all rows. Signs make rows uncorrelated, E[u_k u_k'] = I
as of independent draws; the error of the estimate is theirs too (tests/optim/test_deltas.py: exactly, unless
Gaussian rows meet in a base because B > K). Drawing takes K (d + B) random numbers instead of K B d, and the
first layer of the server's model K rows instead of K B. What is not independent is V'V / K, through which
every row's own part of the gradient passes: its error does not average out over rows. It is at most as large
as the error that the rows bring on each other, and vanishes where their gradients cancel. Without shared
bases u_k is drawn independently for every row, as the paper has it.

What each side learns: the server sees h in clear. The client knows u_k, so a reply is a deterministic
function of the labels: K linear equations in the gradient of its batch. The noise of the estimate protects
nothing (docs/algorithms/czofo.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np

from colonnade.arrays import Matrix, Numbers, Rows
from colonnade.models.blackbox import Differentiable, Perturbations
from colonnade.optim.replies import Head, Query, Seed
from colonnade.optim.smoothing import Directions, Smoothing
from colonnade.regularizers import Penalty
from colonnade.state import UNCHANGED


@dataclass(frozen=True)
class Deltas:
    """A way to estimate df/dh; `count` and `two_sided` are not used where the directions are coordinates."""

    directions: Directions | Literal["coordinate"]
    count: int
    mu: float = 1e-3
    two_sided: bool = False
    per: Literal["batch", "sample"] = "batch"
    shared_bases: bool = True  # of all rows of a batch; per sample every row has its own in any case

    @property
    def factored(self) -> bool:
        """Whether a direction of a batch is one base for each row, with a sign."""
        return self.per == "batch" and self.shared_bases

    def rule(self, d: int) -> Smoothing:
        """Return the rule for differences of the loss, for outputs of d numbers."""
        if self.directions == "coordinate":
            return Smoothing("rademacher", d, self.mu, two_sided=True)
        return Smoothing(self.directions, self.count, self.mu, self.two_sided)

    def shape(self, rows: int, d: int) -> tuple[int, ...]:
        """Return the shape of a reply about that many rows with d outputs each."""
        count = self.rule(d).count
        return (count,) if self.per == "batch" else (count, rows)

    def draw(self, seed: Seed, rows: int, d: int) -> Perturbations:
        """Return the points where one question evaluates the loss, in single precision; the first is h
        itself."""
        signs: Numbers = np.ones((self.rule(d).count, rows), dtype=np.float32)
        if self.directions == "coordinate":
            bases: Numbers = np.eye(d, dtype=np.float32)[:, None]
        else:
            rng = np.random.default_rng(seed)
            if self.factored:
                signs = _signs(rng, signs.shape)
            bases = self._bases(rng, rows, d)
        steps = np.float32(self.mu) * signs
        sides = (steps, -steps) if self.rule(d).two_sided else (steps,)
        # the first point is where h is, along any base
        return Perturbations(
            np.concatenate([bases[:1], *[bases] * len(sides)]), np.concatenate([0 * steps[:1], *sides])
        )

    def _bases(self, rng: np.random.Generator, rows: int, d: int) -> Numbers:
        """Return the bases: [K, 1, d], or [K, rows, d] where rows have their own."""
        shape = (self.count, 1 if self.factored else rows, d)
        if self.directions == "rademacher":
            return _signs(rng, shape)
        v: Numbers = rng.standard_normal(shape, dtype=np.float32)
        if self.directions == "sphere":
            whole = (1, 2) if self.per == "batch" else 2
            v /= np.sqrt(np.square(v).sum(axis=whole, keepdims=True))
            if self.factored:
                v /= np.float32(rows**0.5)  # so that u_k, all rows of it, has length 1
        return v

    def changes(self, losses: Numbers, d: int) -> Numbers:
        """Return the change of every row's loss along its directions, [K, rows], from losses [points,
        rows]."""
        found = self.rule(d).quotients(losses.astype(np.float64))
        if self.factored:
            K, rows = found.shape
            found = found[_base(K, rows), np.arange(rows)]
        return found

    def reply(self, changes: Numbers) -> Numbers:
        """Return the reply: the changes of the mean loss of the batch, or what each row adds to them."""
        told: Numbers = changes.mean(axis=1) if self.per == "batch" else changes / changes.shape[1]
        return told

    def gradient(self, reply: Numbers, points: Perturbations) -> Numbers:
        """Return the estimate of df/dh [rows, d], f the mean loss of the batch."""
        if self.directions == "coordinate":
            return reply.T
        K, rows, d = self.count, points.steps.shape[1], points.bases.shape[2]
        bases, signs = points.bases[1 : K + 1], np.copysign(1.0, points.steps[1 : K + 1])
        if self.per == "sample":
            scaled = self.rule(d).scale(d) / K * reply
            found: Numbers = np.einsum("kb,kbd->bd", scaled.astype(bases.dtype), bases)
        elif not self.shared_bases:
            scaled = self.rule(d).scale(rows * d) / K * reply
            found = np.einsum("k,kbd->bd", scaled.astype(bases.dtype), bases)
        else:
            scaled = self.rule(d).scale(rows * d) / K * signs
            found = (scaled * reply[_evaluation(K, rows)]).astype(bases.dtype).T @ bases[:, 0]
        return found


@lru_cache(maxsize=4)  # a run has one or two sizes of batches
def _base(K: int, rows: int) -> Rows:
    """Return along which base evaluation k moves row b, [K, rows]."""
    base: Rows = (np.arange(K)[:, None] + np.arange(rows)) % K
    return base


@lru_cache(maxsize=4)
def _evaluation(K: int, rows: int) -> Rows:
    """Return which evaluation moves row b along base j, [K, rows]."""
    evaluation: Rows = (np.arange(K)[:, None] - np.arange(rows)) % K
    return evaluation


def _signs(rng: np.random.Generator, shape: tuple[int, ...]) -> Numbers:
    """Return numbers +1 or -1, of one random bit each."""
    size = int(np.prod(shape))
    bits = np.unpackbits(np.frombuffer(rng.bytes(-(-size // 8)), dtype=np.uint8), count=size)
    return bits.reshape(shape).astype(np.float32) * 2 - 1


@dataclass(frozen=True)
class DeltasClient:
    """Sends its outputs, draws the same directions, and propagates the estimate back through its model."""

    STATE = UNCHANGED

    model: Differentiable
    penalty: Penalty
    deltas: Deltas

    def ask(self, w: Numbers, X: Matrix, seed: Seed = ()) -> Query:
        return Query(X, w, self.model.forward(w[None], X), seed=seed)

    def reply_shape(self, query: Query) -> tuple[int, ...]:
        return self.deltas.shape(*query.outputs.shape[1:])

    def gradient(self, query: Query, values: Numbers) -> Numbers:
        points = self.deltas.draw(query.seed, *query.outputs.shape[1:])
        back = self.model.gradient(query.w, query.X, self.deltas.gradient(values, points))
        return back + self.penalty.gradient(query.w)


@dataclass(frozen=True)
class DeltasServer:
    """Evaluates F0 and the loss at all moved outputs in one batched call, and replies with the changes."""

    head: Head
    deltas: Deltas

    def answer(self, C: Numbers, own: slice, outputs: Numbers, y: Numbers, seed: Seed = ()) -> Numbers:
        rows, d = outputs.shape[1:]
        points = self.deltas.draw(seed, rows, d)
        return self.deltas.reply(self.deltas.changes(self.head.losses_perturbed(C, own, points, y), d))

    def evaluations(self, outputs: Numbers) -> int:
        return self.deltas.rule(outputs.shape[2]).points_per_step
