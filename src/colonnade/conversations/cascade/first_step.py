"""The first step of every model, found without asking anybody for a gradient.

Along a random direction u the outputs of a model change by J u; the mean of ||J u||^2 over directions and
rows is the trace of J'J / n, and the loss multiplies it by at most its smoothness. For a two-point
estimate along K directions the trace is what matters: E g'Hg is about (H's trace / K + H's largest
eigenvalue) ||grad||^2. Blocks move at the same time and add up, so the largest eigenvalues of all blocks
are summed through the server:

    step = 1 / (sum_m lambda_m + trace_m / K)

For a linear block lambda_m is computed from its columns; of any other model only lambda_m <= trace_m is
known. A nearer bound, sqrt(trace(G^2)) with G = J'J / n, can be had from the same directions, but networks
bend more as they learn: with it runs on MNIST began faster and diverged in their second epoch.
Where rows have weights, heavy ones are curved more, and the server says how much (`losses.Weighted`); so it
does where the sum of all outputs has a unit (`units`).

AsyREVEL's Theorems 2 and 3 ask for a step that falls with the delay tau, 1 / (4 (tau + 1) L), beside one that
falls with the length of the run (here steps fall over the run anyway). `assumed_delay` asks for that, with a
tau of one's own or with the bound that the server enforces. It is not the default: outputs in the server's
table are as old as a pass, and the theorem's step then hardly moves anything (docs/algorithms/asyrevel.md).

What each side learns: the server one number per client; every client their sum, and how uneven weights are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from colonnade.arrays import Numbers
from colonnade.conversations.cascade.client import Client
from colonnade.conversations.cascade.settings import CascadeSettings, Questions
from colonnade.conversations.cascade.units import NO_UNIT, Unit
from colonnade.conversations.context import Context
from colonnade.errors import ProtocolError
from colonnade.messages import Announce, Topic, tag_of
from colonnade.models.blackbox import Linear
from colonnade.models.linear import rows_of, squared_norms
from colonnade.net.expect import floats
from colonnade.optim.optimizers import Optimizer, optimizer_of

SAMPLE = 2048
PROBES = 16
ITERATIONS = 20
MARGIN = 1.05
PROBING = 6  # purpose of the generator
FIRST_ORDER_SERVER = 0.1


@dataclass(frozen=True)
class Steps:
    """The first steps of a client and of the server, and how many answers the run has."""

    step: float
    server_step: float | None  # None: measured before every step (`replies.ZerothStep`)
    total: int


def chosen_optimizer(settings: CascadeSettings) -> Optimizer:
    """Return the plan's optimiser; its state belongs to the party that steps with it."""
    return optimizer_of(settings.optimizer, settings.optimizer_options)


async def agree_on_steps(
    context: Context[CascadeSettings], client: Client | None, *, clients: int, unit: Unit = NO_UNIT
) -> Steps:
    """Return the steps as the job says, or as found here.

    `clients` is their number at the server, 0 elsewhere; the server also knows the unit of the sum.
    """
    pace, settings, net = context.plan.pace, context.plan.settings, context.net
    ready = chosen_optimizer(settings).rate
    automatic = pace.step == "auto" and ready is None
    largest, trace = curvature(context, client) if automatic and client is not None else (0.0, 0.0)
    up, down = tag_of(Topic.TUNE, 0), tag_of(Topic.TUNE, 1)
    if context.me == context.evaluator:
        told = await net.gather(Announce, up, values=floats(1, low=0))
        joint = largest + sum(float(message.values[0]) for message in told.values())
        heavier = unit.square * context.label_holder.loss.smoothness / context.loss.smoothness
        # as many answers as the clients have batches in all epochs; the quick may get more of them
        total = pace.epochs * -(-context.train.rows // pace.batch) * clients
        await net.broadcast(Announce(down, np.array([joint, float(total), heavier])))
    else:
        await net.send(context.evaluator, Announce(up, np.array([largest])))
        news = (await net.recv(Announce, context.evaluator, down, values=floats(3, low=0))).values
        if news[1] > 2.0**53:
            raise ProtocolError(f"{context.evaluator} announced {news[1]:g} answers; no run has that many")
        joint, total, heavier = float(news[0]), int(news[1]), float(news[2])
    noise = (trace + largest) / settings.questions.directions if _along_random(settings.questions) else 0.0
    if pace.step != "auto":
        step = float(pace.step)
    else:
        # to the others, who do not see them, local steps are one long step
        curved = heavier * (joint + noise) * _caution(context)
        step = 1 / max(curved, 1e-12) / settings.local_steps if ready is None else ready
    return Steps(step, _server_step(settings, ready), total)


def _caution(context: Context[CascadeSettings]) -> float:
    """Return how many times shorter a step is for the delay that the plan assumes: 4 (tau + 1), or 1 without
    one."""
    settings = context.plan.settings
    if settings.assumed_delay is None:
        return 1.0
    tau = settings.delay_bound if settings.assumed_delay == "bound" else settings.assumed_delay
    return 4.0 * (tau + 1)


def _server_step(settings: CascadeSettings, ready: float | None) -> float | None:
    """Return the first step of F0; None where it is measured before every step. `ready`: the optimiser's
    own."""
    if settings.server_step != "auto":
        return float(settings.server_step)
    if ready is not None:
        return ready
    first = settings.reply != "values" or settings.server == "first"
    return FIRST_ORDER_SERVER if first else None


def _along_random(questions: Questions) -> bool:
    """Return whether gradient estimates have the noise of random directions.

    A random change of all outputs of a batch comes back through the model as a random direction of its
    parameters, so deltas per batch are as noisy as values. Per sample or coordinate little is left of it.
    """
    deltas = questions.reply == "deltas" and questions.smoothing != "coordinate" and questions.per != "sample"
    return questions.reply == "values" or deltas


def curvature(context: Context[CascadeSettings], client: Client) -> tuple[float, float]:
    """Return the largest eigenvalue and the trace of this block's part of the Hessian, or bounds of them."""
    rng = context.rng(PROBING)
    rows = rng.permutation(context.train.rows)[:SAMPLE]
    X = context.train.X[rows]
    s, penalty = context.loss.smoothness, context.plan.objective.l2 * context.regularizer.smoothness
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
    mu = context.plan.settings.questions.mu
    u = rng.standard_normal((PROBES, model.parameters)).astype(client.w.dtype, copy=False)
    outputs = model.forward(np.concatenate([client.w[None], client.w + client.w.dtype.type(mu) * u]), X)
    changes = (outputs[1:] - outputs[0]) / mu
    trace = s * float((changes**2).sum(axis=2).mean()) + penalty * model.parameters
    return trace, trace
