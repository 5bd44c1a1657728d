"""The models of a cascade trained where all columns lie together: nothing is sent, nothing is stale.

`by_values` is the paper's non-federated comparison: the same two-point rule on the same batches, every
block answered from the current outputs of all. `by_gradient` is what first-order training reaches: Adam
by back-propagation through F0 and every block; it needs models that have gradients.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from colonnade.arrays import Matrix, Numbers, Rows
from colonnade.data.table import Table
from colonnade.errors import DataError
from colonnade.job import Job
from colonnade.job.rules import batch_of, preset_of, smoothing_kind
from colonnade.losses import LOSSES
from colonnade.metrics import metrics_of
from colonnade.models.blackbox import Differentiable, Model, differentiable
from colonnade.models.build import party_model, server_model
from colonnade.optim.replies import Head, ValuesClient, ValuesServer, ZerothStep
from colonnade.optim.smoothing import Smoothing
from colonnade.privacy.mechanisms import mean_losses
from colonnade.regularizers import REGULARIZERS

RATE = 1e-3  # Adam's own default
EPOCHS = 10
STEPS = 1000  # at least, where an epoch has few batches
CHUNK = 4096


@dataclass
class Stack:
    """The models of all parties with their columns, and F0 on top, in one place."""

    job: Job
    blocks: list[Matrix]
    y: Numbers
    models: list[Model]
    head: Head
    w: list[Numbers]

    def embed(self, blocks: Sequence[Matrix], rows: Rows | slice) -> Numbers:
        """The outputs of all models for these rows, side by side."""
        parts = [m.forward(w[None], X[rows])[0] for m, w, X in zip(self.models, self.w, blocks, strict=True)]
        return np.concatenate(parts, axis=1)

    def scores(self, blocks: Sequence[Matrix]) -> Numbers:
        """The scores of all rows, computed some rows at a time."""
        n = blocks[0].shape[0]
        parts = [
            self.head.scores(self.head.w[None], self.embed(blocks, slice(start, start + CHUNK)))[0]
            for start in range(0, n, CHUNK)
        ]
        return np.concatenate(parts)

    def penalty(self) -> float:
        regularizer = REGULARIZERS[self.job.train.regularizer]
        return self.job.train.l2 * sum(regularizer.value(w) for w in self.w)

    def metrics(self, blocks: Sequence[Matrix] | None, y: Numbers | None) -> dict[str, float]:
        """The training loss, and the metrics of the test rows in `blocks` if there are any."""
        loss = float(self.head.loss.value(self.scores(self.blocks), self.y).mean()) + self.penalty()
        found = {"train_loss": loss}
        if blocks is not None and y is not None:
            found |= metrics_of(self.head.loss, self.scores(blocks), y, self.penalty())
        return found


def stack_of(
    job: Job,
    train: Mapping[str, Table],
    server: str,
    models: Mapping[str, Model] | None = None,
    server_object: Model | None = None,
) -> Stack:
    """Every party's model at its initial parameters, which are those of a federation with this seed."""
    y = train[server].y
    if y is None:
        raise DataError(f"{server} holds no labels; a cascade is trained by the party that does")
    loss = LOSSES[job.train.loss or "logistic"]
    parties = sorted(train)
    index = {party: number for number, party in enumerate(parties)}
    holders = [party for party in parties if train[party].X.shape[1]]
    made = [
        (models or {}).get(p)
        or party_model(job.model.parties.get(p, job.model), train[p].X.shape[1], job.model.device)
        for p in holders
    ]
    w = [
        m.initial(np.random.default_rng([job.seed, index[p], 3])) for m, p in zip(made, holders, strict=True)
    ]
    blocks = [train[party].X for party in holders]
    width = sum(m.forward(v[None], X[:1]).shape[2] for m, v, X in zip(made, w, blocks, strict=True))
    outputs = int(y.max()) + 1 if loss.task == "multiclass" else 1
    top = server_object or server_model(job.model.server, width, outputs, job.model.device)
    head = Head(top, loss, top.initial(np.random.default_rng([job.seed, index[server], 4])))
    return Stack(job, blocks, y, made, head, w)


def by_values(stack: Stack, *, step: float) -> Stack:
    """Train by two-point estimates on shuffled batches, for as many epochs as the job has."""
    job = stack.job
    asked, train = job.cascade, job.train
    smoothing = Smoothing(smoothing_kind(job, preset_of(job)), asked.directions, asked.mu, asked.two_sided)
    regularizer = REGULARIZERS[train.regularizer]
    clients = [
        ValuesClient(model, smoothing, regularizer, train.l2, np.random.default_rng([job.seed, number, 2]))
        for number, model in enumerate(stack.models)
    ]
    server, own = ValuesServer(stack.head, mean_losses), None
    measured = asked.server_step == "auto"
    server_step = 1.0 if asked.server_step == "auto" else asked.server_step
    if stack.head.w.size:
        own = ZerothStep(stack.head, smoothing, np.random.default_rng([job.seed, 0, 5]), measured)
    n = len(stack.y)
    batch = batch_of(job, n)
    per_epoch = -(-n // batch)
    rounds = train.epochs * per_epoch
    for number in range(rounds):
        epoch, position = divmod(number, per_epoch)
        if position == 0:
            order = np.random.default_rng([job.seed, 0, epoch]).permutation(n)
        rows = order[position * batch : (position + 1) * batch]
        y = stack.y[rows]
        left = 1 - (number + 1) / rounds if asked.decay == "linear" else 1.0
        queries = [
            client.ask(w, X[rows]) for client, w, X in zip(clients, stack.w, stack.blocks, strict=True)
        ]
        C, start = np.concatenate([query.outputs[0] for query in queries], axis=1), 0
        for m, (client, query) in enumerate(zip(clients, queries, strict=True)):
            columns = slice(start, start := start + query.outputs.shape[2])
            values = server.answer(C, columns, query.outputs, y)
            change = step * left * client.gradient(query, values)
            stack.w[m] = stack.w[m] - change.astype(stack.w[m].dtype)
        if own is not None:
            for _ in clients:  # Algorithm 1 updates w0 for every upload
                stack.head.w = stack.head.w - server_step * left * own.gradient(C, y)
    return stack


@dataclass
class Adam:
    """The optimiser of Kingma and Ba (2015) for one parameter vector."""

    rate: float
    m: Numbers | float = 0.0
    v: Numbers | float = 0.0
    t: int = field(default=0)

    def step(self, w: Numbers, g: Numbers) -> Numbers:
        self.t += 1
        self.m = 0.9 * self.m + 0.1 * g
        self.v = 0.999 * self.v + 0.001 * g**2
        m, v = self.m / (1 - 0.9**self.t), self.v / (1 - 0.999**self.t)
        return np.asarray(w - self.rate * m / (np.sqrt(v) + 1e-8), dtype=w.dtype)


def by_gradient(stack: Stack) -> Stack:
    """Train all parameters with Adam, by back-propagation."""
    batch = min(256, batch_of(stack.job, len(stack.y)))
    epochs = max(EPOCHS, -(-STEPS * batch // len(stack.y)))
    head, regularizer = stack.head, REGULARIZERS[stack.job.train.regularizer]
    top, models = differentiable(head.model), [differentiable(model) for model in stack.models]
    steps, own = [Adam(RATE) for _ in stack.w], Adam(RATE)
    widths = [
        m.forward(w[None], X[:1]).shape[2]
        for m, w, X in zip(stack.models, stack.w, stack.blocks, strict=True)
    ]
    ends = np.cumsum(widths)
    for epoch in range(epochs):
        order = np.random.default_rng([stack.job.seed, epoch]).permutation(len(stack.y))
        for first in range(0, len(order), batch):
            rows = order[first : first + batch]
            C, y = stack.embed(stack.blocks, rows), stack.y[rows]
            dz = head.dz(C, y)
            dC = top.input_gradient(head.w, C, dz)
            for m, model in enumerate(models):
                X = stack.blocks[m][rows]
                back = model.gradient(stack.w[m], X, dC[:, ends[m] - widths[m] : ends[m]])
                back = back + stack.job.train.l2 * regularizer.gradient(stack.w[m])
                stack.w[m] = steps[m].step(stack.w[m], back)
            if head.w.size:
                head.w = own.step(head.w, top.gradient(head.w, C, dz))
    return stack


def pooled_cascade(
    job: Job,
    train: Mapping[str, Table],
    test: Mapping[str, Table] | None,
    server: str,
    models: Mapping[str, Model],
    server_object: Model | None,
) -> tuple[float, dict[str, float]]:
    """Training loss and metrics: by gradient if every model has one, else by values."""
    stack = stack_of(job, train, server, models, server_object)
    if all(isinstance(model, Differentiable) for model in [*stack.models, stack.head.model]):
        by_gradient(stack)
    else:
        step = 0.1 if job.train.step == "auto" else float(job.train.step)
        by_values(stack, step=step)
    blocks = [test[party].X for party in sorted(test) if test[party].X.shape[1]] if test else None
    metrics = stack.metrics(blocks, test[server].y if test else None)
    return metrics["train_loss"], metrics
