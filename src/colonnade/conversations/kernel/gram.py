"""PP-SVMV (Yu, Vaidya and Jiang 2006): the whole kernel matrix is summed to one party, which trains on it.

Inner products are sums over columns, so X X' of all columns is the sum of every party's own, and the
Gaussian kernel follows from it. The matrix has n^2 numbers: the active party keeps them all and every
party sends them all, which is why this ends where the kernel conversation goes on; a matrix that would
not fit is refused before anything is sent. The evaluator trains scikit-learn's SVC on it.

What each side learns: the evaluator learns the inner product of every two rows over all columns, hence
all rows up to a rotation; the others learn nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Literal

import numpy as np

from colonnade.arrays import Floats, Matrix, Rows
from colonnade.conversations.context import Context, Outcome
from colonnade.conversations.evaluate import Mark
from colonnade.errors import JobError
from colonnade.job import Section
from colonnade.losses import weights_of
from colonnade.messages import Announce, Topic, tag_of
from colonnade.models.bandwidth import Sample
from colonnade.models.random_features import KERNELS
from colonnade.net.expect import NOTHING
from colonnade.net.network import Network
from colonnade.secure.protocol import SecureSum

if TYPE_CHECKING:
    from sklearn.svm import SVC


STRETCH = 2**20  # numbers of a message
NORMS = tag_of(Topic.EVALUATE, 2**40)
# the sum, the kernel made of it, and what the sum itself needs while it is under way
COPIES = 2.5


def memory_needed(rows: int) -> float:
    """Return how many bytes the active party needs for this many rows."""
    return COPIES * 8.0 * rows * rows


def check_memory(rows: int, available: float | None = None) -> None:
    """Refuse a kernel matrix that this machine cannot hold, and say how many rows would fit."""
    if available is None:
        available = float(os.sysconf("SC_PAGE_SIZE")) * os.sysconf("SC_PHYS_PAGES")
    if memory_needed(rows) > available:
        raise JobError(
            f"pp-svmv: the kernel matrix of {rows} rows needs {memory_needed(rows) / 2**30:.0f} GiB and this "
            f"machine has {available / 2**30:.0f}; at most {int((available / COPIES / 8) ** 0.5)} rows fit. "
            "Use fdskl, which needs no matrix"
        )


class GramSettings(Section, frozen=True):
    """The part of a plan that only this conversation has: how its bandwidth and penalty are chosen."""

    sigma: float | Literal["median"]
    fraction: float | Literal["auto"]
    chosen_l2: bool


async def converse(context: Context[GramSettings]) -> Outcome:
    """Sum the kernel matrix to the evaluator, which trains on it and measures; the others only send."""
    evaluation, X, test = context.evaluation(), context.train.X, context.test
    if evaluation.scribe is None:
        await _give(context, X, X, Topic.TRAIN)
        if test is not None:
            await _give(context, test.X, X, Topic.EVALUATE)
            await context.measuring.sum.give(_norms(test.X), root=evaluation.root, tag=NORMS)
        return Outcome(weights={}, step=0.0, rounds=1, updates=1, evaluation=evaluation)
    check_memory(context.train.rows)
    await context.net.aside(partial(import_module, "sklearn.svm"))  # seconds on a busy machine
    gram = await _collect(context, X, X, Topic.TRAIN)
    fitted = await context.measuring.net.aside(partial(_fit, context, gram))
    when, z = context.net.clock.now(), [fitted.z]
    if test is not None:
        crossed = await _collect(context, test.X, X, Topic.EVALUATE)
        own = await context.measuring.sum.collect(_norms(test.X), tag=NORMS)
        z.append(await context.measuring.net.aside(partial(fitted.scores, crossed, own)))
    evaluation.scribe.record(z, 0.0, context.net.meter.bytes(), when, Mark(1, 1, final=True))
    return Outcome(
        weights={"dual": fitted.machine.dual_coef_, "support": fitted.support},
        step=0.0,
        rounds=1,
        updates=1,
        evaluation=evaluation,
        chosen={"sigma": fitted.sigma, "l2": fitted.l2},
    )


@dataclass(frozen=True)
class GramMachine:
    """A machine of the kernel matrix, and all that its scores need."""

    machine: SVC
    squares: Floats  # |x|^2 of every row of training
    used: Rows | slice  # those that weigh something
    sigma: float
    l2: float
    support: Floats  # the rows that it stands on
    z: Floats  # scores of all rows of training

    def scores(self, crossed: Floats, squares: Floats) -> Floats:
        """Return scores of new rows, from their inner products with those of training and with themselves."""
        kernel = _gaussian(crossed, squares, self.squares, self.sigma)
        z: Floats = self.machine.decision_function(kernel[:, self.used])
        return z


def _fit(context: Context[GramSettings], gram: Floats) -> GramMachine:
    """Train the machine on the summed inner products, which it overwrites."""
    from sklearn.svm import SVC

    from colonnade.baselines.svc import trade_off

    squares = gram.diagonal().copy()
    sigma, l2 = _bandwidth_and_penalty(context, gram, squares)
    kernel = _gaussian(gram, squares, squares, sigma)
    y, weight = context.label_holder.labels, weights_of(context.label_holder.y)
    # rows that weigh nothing are left out here: SVC would do it too, but forgets them in a kernel it is given
    used = slice(None) if weight is None else np.flatnonzero(weight)
    machine = SVC(C=trade_off(context.train.rows, l2), kernel="precomputed").fit(
        kernel[used][:, used], y[used], sample_weight=None if weight is None else weight[used]
    )
    support = np.arange(len(y))[used][machine.support_] * 1.0
    return GramMachine(machine, squares, used, sigma, l2, support, machine.decision_function(kernel[:, used]))


def _bandwidth_and_penalty(
    context: Context[GramSettings], gram: Floats, squares: Floats
) -> tuple[float, float]:
    """Return the bandwidth and lambda, found as in `setup.agree` but from the matrix that is here already."""
    plan, y = context.plan, context.label_holder.y
    settings, classes = plan.settings, plan.objective.classes or 1
    rng = np.random.default_rng(plan.seed)
    sample = Sample.draw(
        rng, len(y), KERNELS["gaussian"], settings.sigma, settings.fraction, penalty=settings.chosen_l2
    )
    a, b = sample.pairs
    distance = np.maximum(squares[a] + squares[b] - 2 * gram[a, b], 0.0)
    sigma = sample.bandwidth(distance, y, classes) or 1.0
    if not settings.chosen_l2:
        return sigma, plan.objective.l2
    return sigma, sample.penalty(distance, sigma, y, context.loss, classes)


def _gaussian(gram: Floats, left: Floats, right: Floats, sigma: float) -> Floats:
    """Return the Gaussian kernel exp(-(|x|^2 + |x'|^2 - 2 x.x') / (2 sigma^2)); overwrites the inner
    products."""
    gram *= 2.0
    gram -= left[:, None]
    gram -= right
    gram /= 2 * sigma**2
    return np.exp(np.minimum(gram, 0.0, out=gram), out=gram)


async def _collect(context: Context[GramSettings], A: Matrix, B: Matrix, topic: Topic) -> Floats:
    """Return a B' over all columns, summed a stretch of rows at a time; others wait for its word after
    each."""
    net, secure = _line(context, topic)
    total = np.empty((int(A.shape[0]), int(B.shape[0])))
    for tag, rows in _stretches(A, B, topic):
        total[rows] = await secure.collect(_product(A[rows], B), tag=tag)
        await net.broadcast(Announce(tag, np.empty(0)))
    return total


async def _give(context: Context[GramSettings], A: Matrix, B: Matrix, topic: Topic) -> None:
    """Send this party's part of A B' to the evaluator, which says when it has taken a stretch."""
    net, secure = _line(context, topic)
    for tag, rows in _stretches(A, B, topic):
        await secure.give(_product(A[rows], B), root=context.evaluator, tag=tag)
        await net.recv(Announce, context.evaluator, tag, values=NOTHING)


def _line(context: Context[GramSettings], topic: Topic) -> tuple[Network, SecureSum]:
    """Return the network and the sum for a topic: those for measuring, or those for training."""
    if topic == Topic.EVALUATE:
        return context.measuring.net, context.measuring.sum
    return context.net, context.sum


def _stretches(A: Matrix, B: Matrix, topic: Topic) -> Iterator[tuple[int, slice]]:
    """Cut A's rows into stretches whose products with B fit a message; yields a tag and the rows of each."""
    size = max(1, STRETCH // int(B.shape[0]))
    for number, start in enumerate(range(0, int(A.shape[0]), size)):
        yield tag_of(topic, number), slice(start, start + size)


def _product(A: Matrix, B: Matrix) -> Floats:
    part = A @ B.T
    return part if isinstance(part, np.ndarray) else part.toarray()


def _norms(X: Matrix) -> Floats:
    """Return this party's part of |x|^2 of every row."""
    return KERNELS["gaussian"].distance(X)
