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

Directions are never sent: client and server draw them from the job's seed and the number of the round.

What each side learns: the server sees h in clear. The client knows u_k, so a reply is a deterministic
function of the labels: K linear equations in the gradient of its batch. The noise of the estimate protects
nothing (docs/algorithms/czofo.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from colonnade.data.table import Matrix
from colonnade.models.blackbox import Differentiable
from colonnade.optim.replies import Head, Query, Seed
from colonnade.optim.smoothing import Directions, Smoothing
from colonnade.regularizers import Regularizer

Floats = NDArray[Any]


@dataclass(frozen=True)
class Deltas:
    """How df/dh is estimated; `count` and `two_sided` say nothing where the directions are coordinates."""

    directions: Directions | Literal["coordinate"]
    count: int
    mu: float = 1e-3
    two_sided: bool = False
    per: Literal["batch", "sample"] = "batch"

    def rule(self, d: int) -> Smoothing:
        if self.directions == "coordinate":
            return Smoothing("rademacher", d, self.mu, two_sided=True)
        return Smoothing(self.directions, self.count, self.mu, self.two_sided)

    def shape(self, rows: int, d: int) -> tuple[int, ...]:
        """Of a reply about that many rows with d outputs each."""
        count = self.rule(d).count
        return (count,) if self.per == "batch" else (count, rows)

    def draw(self, seed: Seed, rows: int, d: int) -> Floats:
        """[directions, rows, d] in single precision; coordinates are the same for all rows: [d, 1, d]."""
        rng, shape = np.random.default_rng(seed), (self.count, rows, d)
        if self.directions == "coordinate":
            return np.eye(d, dtype=np.float32)[:, None, :]
        if self.directions == "rademacher":
            # one bit each: drawing directions is most of the server's work
            size = self.count * rows * d
            bits = np.unpackbits(np.frombuffer(rng.bytes(-(-size // 8)), dtype=np.uint8), count=size)
            return bits.reshape(shape).astype(np.float32) * 2 - 1
        u: Floats = rng.standard_normal(shape, dtype=np.float32)
        if self.directions == "sphere":
            axes = (1, 2) if self.per == "batch" else (2,)
            u /= np.sqrt(np.square(u).sum(axis=axes, keepdims=True))
        return u

    def quotients(self, losses: Floats, d: int) -> Floats:
        """The reply, from the losses [points, rows] at `rule(d).points`."""
        rows = losses.shape[1]
        quotients = self.rule(d).quotients(losses.astype(np.float64))
        reply: Floats = quotients.mean(axis=1) if self.per == "batch" else quotients / rows
        return reply

    def gradient(self, reply: Floats, u: Floats) -> Floats:
        """The estimate of df/dh [rows, d], f the mean loss of the batch."""
        if self.directions == "coordinate":
            return reply.T
        K, rows, d = u.shape
        if self.per == "batch":
            scaled = self.rule(d).scale(rows * d) / K * reply
            found: Floats = (scaled.astype(u.dtype) @ u.reshape(K, -1)).reshape(rows, d)
        else:
            scaled = self.rule(d).scale(d) / K * reply
            found = np.einsum("kb,kbd->bd", scaled.astype(u.dtype), u)
        return found


@dataclass(frozen=True)
class DeltasClient:
    """Sends its outputs, rebuilds the directions, and propagates the estimate back through its own model."""

    model: Differentiable
    regularizer: Regularizer
    l2: float
    deltas: Deltas

    def ask(self, w: Floats, X: Matrix, seed: Seed = ()) -> Query:
        return Query(X, w, self.model.forward(w[None], X), seed=seed)

    def reply_shape(self, query: Query) -> tuple[int, ...]:
        return self.deltas.shape(*query.outputs.shape[1:])

    def gradient(self, query: Query, values: Floats) -> Floats:
        u = self.deltas.draw(query.seed, *query.outputs.shape[1:])
        back = self.model.gradient(query.w, query.X, self.deltas.gradient(values, u))
        return back + self.l2 * self.regularizer.gradient(query.w)


@dataclass(frozen=True)
class DeltasServer:
    """Evaluates F0 at all moved outputs in one batched call; only the client's part of C moves."""

    head: Head
    deltas: Deltas

    def answer(self, C: Floats, own: slice, outputs: Floats, y: Floats, seed: Seed = ()) -> Floats:
        h = outputs[0]
        rows, d = h.shape
        points = self.deltas.rule(d).points(h, self.deltas.draw(seed, rows, d))
        return self.deltas.quotients(self.head.losses_replaced(C, own, points, y), d)

    def evaluations(self, outputs: Floats) -> int:
        return self.deltas.rule(outputs.shape[2]).points_per_step
