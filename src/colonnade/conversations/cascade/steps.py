"""How long the first step of every model may be, found without asking anybody for a gradient.

Along a random direction u the outputs of a model change by J u; the mean of ||J u||^2 over directions and
rows is the trace of J'J / n, and the loss multiplies it by at most its smoothness. For a two-point
estimate along K directions the trace is what matters: E g'Hg is about (H's trace / K + H's largest
eigenvalue) ||grad||^2. Blocks move at the same time and add up, so the largest eigenvalues of all blocks
are summed through the server:

    step = 1 / (sum_m lambda_m + trace_m / K)

For a linear block lambda_m is computed from its columns; of any other model only lambda_m <= trace_m is
known. What each side learns: the server one number per client, every client their sum.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from colonnade.arrays import Numbers
from colonnade.conversations.cascade.client import Client
from colonnade.conversations.context import Context
from colonnade.job.rules import batch_of
from colonnade.messages import Announce, Topic, tag_of
from colonnade.models.blackbox import Linear
from colonnade.models.linear import rows_of, squared_norms
from colonnade.optim.optimizers import Optimizer, optimizer_of

SAMPLE = 2048
PROBES = 16
ITERATIONS = 20
MARGIN = 1.05
PROBING = 6  # purpose of the generator
FIRST_ORDER_SERVER = 0.1


@dataclass(frozen=True)
class Terms:
    """What a party goes into training with."""

    step: float
    server_step: float | None  # None: measured anew for every step (`replies.ZerothStep`)
    total: int  # answers of the whole run


def chosen_optimizer(context: Context) -> Optimizer:
    """Every party makes its own, with a state of its own."""
    asked = context.job.cascade
    return optimizer_of(asked.optimizer, asked.optimizer_options)


async def agree_on_steps(context: Context, client: Client | None, *, clients: int) -> Terms:
    """As the job says, or as found here. Only the server knows how many clients there are."""
    job, net = context.job, context.net
    ready = chosen_optimizer(context).rate
    automatic = job.train.step == "auto" and ready is None
    largest, trace = curvature(context, client) if automatic and client is not None else (0.0, 0.0)
    up, down = tag_of(Topic.TUNE, 0), tag_of(Topic.TUNE, 1)
    if context.me == context.evaluator:
        told = await net.gather(Announce, up)
        joint = largest + sum(float(message.values[0]) for message in told.values())
        # as many answers as the clients have batches in all epochs; the quick may get more of them
        rows = context.train.rows
        total = job.train.epochs * -(-rows // batch_of(job, rows)) * clients
        await net.broadcast(Announce(down, np.array([joint, float(total)])))
    else:
        await net.send(context.evaluator, Announce(up, np.array([largest])))
        news = (await net.recv(Announce, context.evaluator, down)).values
        joint, total = float(news[0]), int(news[1])
    by_values, local = context.preset.reply == "values", job.cascade.local_steps or context.preset.local_steps
    noise = (trace + largest) / job.cascade.directions if _along_random(context) else 0.0
    if job.train.step != "auto":
        step = float(job.train.step)
    else:
        # local steps along one gradient are one long step, to a linear model exactly
        step = 1 / max(joint + noise, 1e-12) / local if ready is None else ready
    if job.cascade.server_step != "auto":
        return Terms(step, float(job.cascade.server_step), total)
    if ready is not None:
        return Terms(step, ready, total)
    first = not by_values or job.cascade.server == "first"
    return Terms(step, FIRST_ORDER_SERVER if first else None, total)


def _along_random(context: Context) -> bool:
    """Whether gradients have the noise of random directions.

    A random change of all outputs of a batch comes back through the model as a random direction of its
    parameters, so deltas per batch are as noisy as values. Per sample or coordinate little is left of it.
    """
    preset, per = context.preset, context.job.cascade.per
    return preset.reply == "values" or (
        preset.reply == "deltas" and preset.smoothing != "coordinate" and per != "sample"
    )


def curvature(context: Context, client: Client) -> tuple[float, float]:
    """Largest eigenvalue and trace of this block's part of the Hessian, or bounds of them."""
    rng = context.rng(PROBING)
    rows = rng.permutation(context.train.rows)[:SAMPLE]
    X = context.train.X[rows]
    s, penalty = context.loss.smoothness, context.job.train.l2 * context.regularizer.smoothness
    model = client.model
    if isinstance(model, Linear):
        block, size = rows_of(X), 0.0
        v: Numbers = rng.standard_normal(int(X.shape[1]))
        for _ in range(ITERATIONS):
            v = v / max(float(np.linalg.norm(v)), 1e-300)
            v = block.gradient(0, len(rows), block.scores(0, len(rows), v)) / len(rows)
            size = float(np.linalg.norm(v))
        trace = float(squared_norms(X).mean()) * model.outputs
        return s * MARGIN * size + penalty, s * trace + penalty * model.parameters
    mu = context.job.cascade.mu
    u = rng.standard_normal((PROBES, model.parameters)).astype(client.w.dtype, copy=False)
    outputs = model.forward(np.concatenate([client.w[None], client.w + client.w.dtype.type(mu) * u]), X)
    changes = (outputs[1:] - outputs[0]) / mu
    trace = s * float((changes**2).sum(axis=2).mean()) + penalty * model.parameters
    return trace, trace
