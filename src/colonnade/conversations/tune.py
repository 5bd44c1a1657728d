"""Finds how smooth the common objective is, so that a step can be chosen: a few power iterations.

The largest eigenvalue of X'X / n belongs to all columns together, so no party can know it alone. On a
sample of rows the parties iterate v -> X' X v: X v is summed securely to one active party, which returns
it, and every party keeps its own part of v. The worst row is bounded by the sum of every block's worst.

What each side learns: the active party and, from its answer, every other party see the joint scores of
the sampled rows for a few random directions; in training they see the like for every row.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from colonnade.conversations.context import Context
from colonnade.losses import Loss
from colonnade.messages import Announce, Topic, tag_of
from colonnade.models.linear import rows_of, squared_norms
from colonnade.net.transport import Network
from colonnade.optim.steps import Smoothness, automatic_step
from colonnade.secure.protocol import SecureSum

Floats = NDArray[np.float64]

SAMPLE = 4096
ITERATIONS = 12
# the Rayleigh quotient climbs towards the eigenvalue from below
MARGIN = 1.05


async def rate_of(context: Context, sample: NDArray[np.int64]) -> Callable[[int], float]:
    """The step as a function of the delay: what the job says, or what the data allow."""
    train = context.job.train
    if train.step != "auto":
        fixed = float(train.step)
        return lambda delay: fixed
    found = await smoothness(
        context.net,
        context.sum,
        context.train.X,
        loss=context.loss,
        penalty=train.l2 * context.regularizer.smoothness,
        root=context.evaluator,
        rng=context.rng(1),
        sample=sample[:SAMPLE],
    )
    return lambda delay: automatic_step(found, train.batch, context.train.rows, delay)


async def smoothness(
    net: Network,
    secure: SecureSum,
    X: Floats | csr_array,
    *,
    loss: Loss,
    penalty: float,
    root: str,
    rng: np.random.Generator,
    sample: NDArray[np.int64],
) -> Smoothness:
    """L of the mean loss and of the worst row; `penalty` is what the regulariser adds to both."""
    rows = rows_of(X, sample)
    n = len(sample)
    v: Floats = rng.standard_normal(int(X.shape[1]))
    worst = float(squared_norms(X).max(initial=0.0))
    eigenvalue = 0.0
    for iteration in range(ITERATIONS):
        tag = tag_of(Topic.TUNE, iteration)
        piece = np.concatenate([rows.scores(0, n, v), [v @ v, worst]])
        total = await secure.sum(piece, root=root, tag=tag)
        if total is not None:
            scores, squared_norm, worst_sum = total[:-2], total[-2], total[-1]
            eigenvalue = float(scores @ scores) / (n * squared_norm) if squared_norm > 0 else 0.0
            # every party gets the same unit vector's scores and the two numbers that are wanted
            news = np.concatenate([scores / max(np.sqrt(squared_norm), 1e-300), [eigenvalue, worst_sum]])
            await net.broadcast(Announce(tag, news))
        else:
            news = (await net.recv(Announce, root, tag)).values
        eigenvalue, worst_sum = float(news[-2]), float(news[-1])
        # of length near 1 whatever the columns' scale, or it would leave the range of the fixed-point sum
        v = rows.gradient(0, n, news[:-2]) / (n * eigenvalue or 1.0)
    return Smoothness(
        mean=loss.smoothness * MARGIN * eigenvalue + penalty,
        worst_row=loss.smoothness * max(worst_sum, MARGIN * eigenvalue) + penalty,
    )
