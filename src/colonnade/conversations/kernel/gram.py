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

import numpy as np
from sklearn.svm import SVC

from colonnade.arrays import Floats, Matrix
from colonnade.baselines.svc import trade_off
from colonnade.conversations.context import Context, Outcome
from colonnade.conversations.evaluate import Evaluation, Mark
from colonnade.errors import JobError
from colonnade.messages import Announce, Topic, tag_of
from colonnade.models.bandwidth import Sample
from colonnade.models.random_features import KERNELS

STRETCH = 2**20
# the sum, the kernel made of it, and what the sum itself needs while it is under way
COPIES = 2.5


def memory_needed(rows: int) -> float:
    """Bytes at the active party."""
    return COPIES * 8.0 * rows * rows


def check_memory(rows: int, available: float | None = None) -> None:
    """Refuse a kernel matrix that this machine cannot hold, and say which machine could."""
    if available is None:
        available = float(os.sysconf("SC_PAGE_SIZE")) * os.sysconf("SC_PHYS_PAGES")
    if memory_needed(rows) > available:
        raise JobError(
            f"pp-svmv: the kernel matrix of {rows} rows needs {memory_needed(rows) / 2**30:.0f} GiB and this "
            f"machine has {available / 2**30:.0f}; at most {int((available / COPIES / 8) ** 0.5)} rows fit. "
            "Use fdskl, which needs no matrix"
        )


async def converse(context: Context) -> Outcome:
    """Sum the matrix, train at the evaluator, measure it there."""
    evaluation, rows = context.evaluation(), context.train.rows
    if context.me == context.evaluator:
        check_memory(rows)
    X = context.train.X
    gram = await _summed(context, X, X, Topic.TRAIN)
    machine = None
    if gram is not None:
        squares = gram.diagonal().copy()
        sigma = _bandwidth(context, gram, squares)
        C = trade_off(rows, context.job.train.l2)
        machine = SVC(C=C, kernel="precomputed").fit(_gaussian(gram, squares, squares, sigma), context.y)
    when = context.net.clock.now()
    test = context.test
    crossed = None
    if test is not None:
        crossed = await _summed(context, test.X, X, Topic.EVALUATE)
        own = await _norms(context, test.X, evaluation)
    if machine is not None and gram is not None:
        z = [machine.decision_function(gram)]
        if crossed is not None and own is not None:
            z.append(machine.decision_function(_gaussian(crossed, own, squares, sigma)))
        evaluation.record(z, 0.0, context.net.meter.bytes(), when, Mark(1, 1, final=True))
    weights = {} if machine is None else {"dual": machine.dual_coef_, "support": machine.support_ * 1.0}
    return Outcome(weights=weights, step=0.0, rounds=1, updates=1, evaluation=evaluation)


def _bandwidth(context: Context, gram: Floats, squares: Floats) -> float:
    """As `colonnade.conversations.kernel.setup` finds it, from distances that are here already."""
    kernel, y = context.job.kernel, context.y
    assert y is not None  # noqa: S101  the evaluator holds the label
    rng = np.random.default_rng(context.job.seed)
    sample = Sample.draw(rng, len(y), KERNELS["gaussian"], kernel.sigma, kernel.fraction)
    a, b = sample.pairs
    distance = np.maximum(squares[a] + squares[b] - 2 * gram[a, b], 0.0)
    return sample.bandwidth(distance, y) or 1.0


def _gaussian(gram: Floats, left: Floats, right: Floats, sigma: float) -> Floats:
    """exp(-(|x|^2 + |x'|^2 - 2 x'x') / (2 sigma^2)), in place of the inner products."""
    gram *= 2.0
    gram -= left[:, None]
    gram -= right
    gram /= 2 * sigma**2
    return np.exp(np.minimum(gram, 0.0, out=gram), out=gram)


async def _summed(context: Context, A: Matrix, B: Matrix, topic: Topic) -> Floats | None:
    """A B' of all columns at the evaluator, a stretch of rows at a time; it says when it has one."""
    evaluating = topic == Topic.EVALUATE
    net = context.evaluation_net if evaluating else context.net
    secure = context.evaluation_sum if evaluating else context.sum
    n, m = int(A.shape[0]), int(B.shape[0])
    total: Floats | None = np.empty((n, m)) if net.me == context.evaluator else None
    size = max(1, STRETCH // m)
    for number, start in enumerate(range(0, n, size)):
        part = A[start : start + size] @ B.T
        piece = part if isinstance(part, np.ndarray) else part.toarray()
        tag = tag_of(topic, number)
        summed = await secure.sum(piece, root=context.evaluator, tag=tag)
        if total is not None and summed is not None:
            total[start : start + size] = summed
            await net.broadcast(Announce(tag, np.empty(0)))
        else:
            await net.recv(Announce, context.evaluator, tag)
    return total


async def _norms(context: Context, X: Matrix, evaluation: Evaluation) -> Floats | None:
    """|x|^2 of every row over all columns, at the evaluator."""
    tag = tag_of(Topic.EVALUATE, 2**40)
    return await context.evaluation_sum.sum(KERNELS["gaussian"].distance(X), root=evaluation.root, tag=tag)
