"""What a client sends to the server, what the server replies, and the gradient that this gives.

A preset of a cascade chooses one of three kinds of replies.


`values` (AsyREVEL): the client sends its outputs at its parameters and along random directions, the
server answers with the mean loss of each, and the client estimates its gradient from the differences.
Neither needs a gradient of anybody's model. `gradient` (TIG): the client sends its outputs, the server
answers with the derivative of the loss by each of them, and the client propagates it back. `deltas`
(VFL-CZOFO, `optim.deltas`) lies between: the client propagates back what the server estimated from values.

Each kind is two small objects: `ReplyClient` at the client and `ReplyServer` at the server.

What each side learns: the server sees every output in clear; a client learns its own derivatives dL/dc,
from `gradient` directly and from `values` by division, and with them the labels (docs/algorithms/
asyrevel.md has the measured attack). Only a privacy mechanism limits what a reply tells about a label.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from colonnade.arrays import Matrix, Numbers
from colonnade.losses import Loss
from colonnade.models.blackbox import (
    Differentiable,
    Model,
    Perturbations,
    Perturbing,
    Replacing,
    differentiable,
    losses_of,
)
from colonnade.optim.smoothing import Smoothing
from colonnade.regularizers import Penalty
from colonnade.state import UNCHANGED, Declared

CAUTION = 0.5  # of F0's step: its clients move at the same time

Release = Callable[[Numbers], Numbers]
"""Turns the losses [points, rows] of a batch into the reply (`privacy.mechanisms`)."""

Seed = tuple[int, ...]
"""What client and server draw the directions of one question from, so that both have the same."""


@dataclass(frozen=True, eq=False)
class Query:
    """A question that awaits its answer: what was sent, and what the client needs to use the answer."""

    X: Matrix
    w: Numbers
    outputs: Numbers  # [vectors, rows, outputs]
    directions: Numbers = field(default_factory=lambda: np.zeros((0, 0)))  # of `values` only
    seed: Seed = ()


class ReplyClient(Protocol):
    """The client's half."""

    @property
    def penalty(self) -> Penalty:
        """What the client's own parameters add to the objective."""
        ...

    def ask(self, w: Numbers, X: Matrix, seed: Seed = ()) -> Query:
        """Return the question about the rows X at the parameters w; its `outputs` go to the server."""
        ...

    def reply_shape(self, query: Query) -> tuple[int, ...]:
        """Return the shape that an answer to this question must have."""
        ...

    def gradient(self, query: Query, values: Numbers) -> Numbers:
        """Return the gradient of the objective by w, from the server's answer."""
        ...


class ReplyServer(Protocol):
    """The server's half."""

    def answer(self, C: Numbers, own: slice, outputs: Numbers, y: Numbers, seed: Seed = ()) -> Numbers:
        """Return the reply to a client's outputs for rows with the labels y.

        `C` holds the latest embeddings of the rows from all clients; the columns `own` are this client's.
        """
        ...

    def evaluations(self, outputs: Numbers) -> int:
        """Return how many times F0 is evaluated for every row of an answer to these outputs."""
        ...


@dataclass
class Head:
    """The server's model F0 with its parameters, and the loss on top of it."""

    STATE = Declared(kept=("w",))

    model: Model
    loss: Loss
    w: Numbers
    soft: bool = False  # labels are points with noise on them (`privacy.labels`), not classes

    def scores(self, W: Numbers, C: Numbers) -> Numbers:
        """Return the scores of every parameter vector and row: one number a row, or one per class."""
        z = self.model.forward(W, C)
        return z if self.loss.task == "multiclass" else z[..., 0]

    def losses(self, W: Numbers, C: Numbers, y: Numbers) -> Numbers:
        """Return the losses [vectors, rows] of every parameter vector in W."""
        return losses_of(self.loss, self.model.forward(W, C), y)

    def losses_replaced(self, C: Numbers, own: slice, outputs: Numbers, y: Numbers) -> Numbers:
        """Return the losses [vectors, rows] for C with the columns `own` replaced by each of `outputs`."""
        if isinstance(self.model, Replacing):
            return losses_of(self.loss, self.model.forward_replaced(self.w, C, own, outputs), y)
        P, B = outputs.shape[:2]
        replaced = np.repeat(C[None], P, axis=0)
        replaced[:, :, own] = outputs
        z = self.model.forward(self.w[None], replaced.reshape(P * B, -1))
        return losses_of(self.loss, z.reshape(P, B, -1), y)

    def losses_perturbed(self, C: Numbers, own: slice, points: Perturbations, y: Numbers) -> Numbers:
        """Return the losses [points, rows] for C with the columns `own` moved."""
        if isinstance(self.model, Perturbing):
            return self.model.losses_perturbed(self.w, C, own, points, self.loss, y)
        return self.losses_replaced(C, own, points.of(C[:, own]), y)

    def dz(self, C: Numbers, y: Numbers) -> Numbers:
        """Return the derivative of the mean loss by every output of F0."""
        z = self.scores(self.w[None], C)[0]
        dz = self.loss.soft_dz(z, y) if self.soft else self.loss.dz(z, y)
        return dz.reshape(len(y), -1) / len(y)


@dataclass(frozen=True)
class ValuesClient:
    """Sends outputs along random directions and estimates the gradient (AsyREVEL, Algorithm 1, steps 4-6)."""

    STATE = Declared(parts=("rng",))

    model: Model
    smoothing: Smoothing
    penalty: Penalty
    rng: np.random.Generator
    private: bool = False  # the server sends quotients, clipped and noisy, instead of values

    def ask(self, w: Numbers, X: Matrix, seed: Seed = ()) -> Query:
        # directions of its own, not those of the seed: the server has no need to know them
        u = self.smoothing.draw(self.rng, len(w))
        return Query(X, w, self.model.forward(self.smoothing.points(w, u), X), u)

    def reply_shape(self, query: Query) -> tuple[int, ...]:
        return (self.smoothing.count if self.private else self.smoothing.points_per_step,)

    def gradient(self, query: Query, values: Numbers) -> Numbers:
        u = query.directions
        g = np.array([self.penalty.value(point) for point in self.smoothing.points(query.w, u)])
        penalty = self.smoothing.quotients(g)
        quotients = values if self.private else self.smoothing.quotients(values)
        return self.smoothing.gradient(quotients + penalty, u)


@dataclass(frozen=True)
class ValuesServer:
    """Replies with the losses of F0 at all of the client's outputs, in one batched call (steps 8 and 9)."""

    head: Head
    release: Release

    def answer(self, C: Numbers, own: slice, outputs: Numbers, y: Numbers, seed: Seed = ()) -> Numbers:
        return self.release(self.head.losses_replaced(C, own, outputs, y))

    def evaluations(self, outputs: Numbers) -> int:
        return len(outputs)


@dataclass(frozen=True)
class GradientClient:
    """Sends its outputs, and propagates the derivatives that come back through its own model."""

    STATE = UNCHANGED

    model: Differentiable
    penalty: Penalty

    def ask(self, w: Numbers, X: Matrix, seed: Seed = ()) -> Query:
        return Query(X, w, self.model.forward(w[None], X))

    def reply_shape(self, query: Query) -> tuple[int, ...]:
        return query.outputs.shape[1:]

    def gradient(self, query: Query, values: Numbers) -> Numbers:
        back = self.model.gradient(query.w, query.X, values)
        return back + self.penalty.gradient(query.w)


@dataclass(frozen=True)
class GradientServer:
    """Replies with the derivative of the loss by each of the client's outputs."""

    head: Head

    def answer(self, C: Numbers, own: slice, outputs: Numbers, y: Numbers, seed: Seed = ()) -> Numbers:
        model = differentiable(self.head.model)
        return model.input_gradient(self.head.w, C, self.head.dz(C, y))[:, own]

    def evaluations(self, outputs: Numbers) -> int:
        return 1


class OwnStep(Protocol):
    """How the server finds the gradient of its own parameters."""

    def gradient(self, C: Numbers, y: Numbers) -> Numbers:
        """Return the gradient of the mean loss by the parameters of F0, from embeddings C and labels y."""
        ...


@dataclass(frozen=True)
class ZerothStep:
    """The two-point estimate for w0 (Algorithm 1, step 10).

    With `measured` the estimate is scaled to a safe step length each time: embeddings grow as the clients
    learn, so a step that was right at the start is too long later. How far the directions move F0's outputs
    says how long it may be.
    """

    STATE = Declared(parts=("rng",))

    head: Head
    smoothing: Smoothing
    rng: np.random.Generator
    measured: bool = False

    def gradient(self, C: Numbers, y: Numbers) -> Numbers:
        u = self.smoothing.draw(self.rng, len(self.head.w))
        z = self.head.model.forward(self.smoothing.points(self.head.w, u), C)
        values = losses_of(self.head.loss, z, y).mean(axis=1)
        gradient = self.smoothing.gradient(self.smoothing.quotients(values), u)
        return self._length(z) * gradient if self.measured else gradient

    def _length(self, z: Numbers) -> float:
        """Return a safe step: CAUTION / (largest eigenvalue + noise of K directions) of F0's part of the
        Hessian."""
        moved = self.smoothing.quotients(z)
        each = self.smoothing.scale(len(self.head.w)) * float((moved**2).mean())  # J'J of one output
        trace, largest = moved.shape[2] * each, each
        curvature = self.head.loss.smoothness * (largest + (trace + largest) / self.smoothing.count)
        return CAUTION / max(float(curvature), 1e-12)


@dataclass(frozen=True)
class FirstStep:
    """Back-propagation, for a server whose model has gradients."""

    STATE = UNCHANGED

    head: Head

    def gradient(self, C: Numbers, y: Numbers) -> Numbers:
        model = differentiable(self.head.model)
        return model.gradient(self.head.w, C, self.head.dz(C, y))
