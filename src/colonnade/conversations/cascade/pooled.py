"""The models of a cascade trained on pooled columns: nothing is sent, nothing is stale.

`by_values` is the paper's non-federated comparison: the same two-point rule on the same batches, every
block answered from the current outputs of all. `by_gradient` is what first-order training reaches: Adam
by back-propagation through F0 and every block; it needs models that have gradients.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from colonnade.arrays import Matrix, Numbers, Rows
from colonnade.conversations.cascade.settings import CascadeSettings
from colonnade.conversations.cascade.units import Unit, head_unit, unit_of
from colonnade.conversations.pooling import AllColumns, Pooled, pooled_optimum
from colonnade.job.plan import Plan
from colonnade.losses import LOSSES, labels_of, loss_for
from colonnade.metrics import metrics_of
from colonnade.models.blackbox import Differentiable, Model, differentiable, free_parameters
from colonnade.models.build import party_model, server_model
from colonnade.optim.adam import Adam
from colonnade.optim.replies import Head, ValuesClient, ValuesServer, ZerothStep
from colonnade.optim.smoothing import Smoothing
from colonnade.privacy.mechanisms import mean_losses
from colonnade.regularizers import REGULARIZERS, Penalty

RATE = Adam.rate
EPOCHS = 10
STEPS = 1000  # at least, where an epoch has few batches
CHUNK = 4096


@dataclass
class Stack:
    """All parties' models and columns, and F0 on top, in one place."""

    plan: Plan[CascadeSettings]
    blocks: list[Matrix]
    y: Numbers
    models: list[Model]
    head: Head
    w: list[Numbers]
    penalties: list[Penalty]
    unit: Unit  # of y, and of what F0 gives

    def embed(self, blocks: Sequence[Matrix], rows: Rows | slice) -> Numbers:
        """Return the outputs of all models for these rows, side by side."""
        parts = [m.forward(w[None], X[rows])[0] for m, w, X in zip(self.models, self.w, blocks, strict=True)]
        return np.concatenate(parts, axis=1)

    def scores(self, blocks: Sequence[Matrix]) -> Numbers:
        """Return the scores of all rows."""
        return self.unit.scores(self.trained_scores(blocks))

    def trained_scores(self, blocks: Sequence[Matrix]) -> Numbers:
        """Return the same in the unit of `y`, computed some rows at a time."""
        n = blocks[0].shape[0]
        parts = [
            self.head.scores(self.head.w[None], self.embed(blocks, slice(start, start + CHUNK)))[0]
            for start in range(0, n, CHUNK)
        ]
        return np.concatenate(parts)

    def penalty(self) -> float:
        """Return the regulariser of all models below, times l2."""
        values = (penalty.value(w) for penalty, w in zip(self.penalties, self.w, strict=True))
        return self.unit.square * sum(values)

    def losses(self) -> dict[str, float]:
        """Return the training loss, without and with its penalty."""
        mean = float(self.head.loss.value(self.trained_scores(self.blocks), self.y).mean())
        loss = self.unit.square * mean
        return {"train_loss": loss, "objective": loss + self.penalty()}


def stack_of(plan: Plan[CascadeSettings], columns: AllColumns) -> Stack:
    """Return every party's model at its initial parameters, which are those of a federation with this
    seed."""
    train, specs = columns.train, plan.settings.model
    y = train[columns.label_holder].labels
    if y is None:
        raise RuntimeError(f"{columns.label_holder} holds no label")
    loss, parties = loss_for(LOSSES[plan.objective.loss], y), sorted(train)
    index = {party: number for number, party in enumerate(parties)}
    holders = [party for party in parties if train[party].width]
    made = [columns.models.get(p) or party_model(specs.of(p), train[p].width, specs.device) for p in holders]
    w = [
        m.initial(np.random.default_rng([plan.seed, index[p], 3])) for m, p in zip(made, holders, strict=True)
    ]
    blocks = [train[party].X for party in holders]
    widths = [m.forward(v[None], X[:1]).shape[2] for m, v, X in zip(made, w, blocks, strict=True)]
    unit = unit_of(plan, labels_of(y), given=columns.head is not None)
    top = columns.head or server_model(
        specs.server,
        widths,
        plan.objective.classes or 1,
        specs.device,
        unit=unit.size,
        offset=unit.offset,
    )
    start = top.initial(np.random.default_rng([plan.seed, index[columns.label_holder], 4]))
    regularizer, l2 = REGULARIZERS[plan.objective.regularizer], plan.objective.l2
    penalties = [
        unit.penalty(Penalty(regularizer, l2, free=free_parameters(m, train[p].free)))
        for m, p in zip(made, holders, strict=True)
    ]
    own = head_unit(plan, labels_of(y), given=columns.head is not None)
    return Stack(plan, blocks, own.labels(y), made, Head(top, loss, start), w, penalties, own)


def by_values(stack: Stack, *, step: float) -> Stack:
    """Train by two-point estimates on shuffled batches, for as many epochs as the plan has."""
    plan, asked = stack.plan, stack.plan.settings.questions
    kind = "gaussian" if asked.smoothing == "coordinate" else asked.smoothing
    smoothing = Smoothing(kind, asked.directions, asked.mu, asked.two_sided)
    clients = [
        ValuesClient(model, smoothing, penalty, np.random.default_rng([plan.seed, number, 2]))
        for number, (model, penalty) in enumerate(zip(stack.models, stack.penalties, strict=True))
    ]
    server, own = ValuesServer(stack.head, mean_losses), None
    server_step = plan.settings.server_step
    if stack.head.w.size:
        rng = np.random.default_rng([plan.seed, 0, 5])
        own = ZerothStep(stack.head, smoothing, rng, server_step == "auto")
    n, batch = len(stack.y), plan.pace.batch
    per_epoch = -(-n // batch)
    rounds = plan.pace.epochs * per_epoch
    for number in range(rounds):
        epoch, position = divmod(number, per_epoch)
        if position == 0:
            order = np.random.default_rng([plan.seed, 0, epoch]).permutation(n)
        rows = order[position * batch : (position + 1) * batch]
        left = 1 - (number + 1) / rounds if plan.settings.decay == "linear" else 1.0
        C = _step_by_values(stack, clients, server, rows, step * left)
        if own is not None:
            rate = (1.0 if server_step == "auto" else server_step) * left
            for _ in clients:  # Algorithm 1 updates w0 for every upload
                stack.head.w = stack.head.w - rate * own.gradient(C, stack.y[rows])
    return stack


def _step_by_values(
    stack: Stack, clients: list[ValuesClient], server: ValuesServer, rows: Rows, step: float
) -> Numbers:
    """Make one step of every block on some rows; returns the outputs that the answers were made from."""
    queries = [client.ask(w, X[rows]) for client, w, X in zip(clients, stack.w, stack.blocks, strict=True)]
    C, start = np.concatenate([query.outputs[0] for query in queries], axis=1), 0
    for m, (client, query) in enumerate(zip(clients, queries, strict=True)):
        columns = slice(start, start := start + query.outputs.shape[2])
        values = server.answer(C, columns, query.outputs, stack.y[rows])
        change = step * client.gradient(query, values)
        stack.w[m] = stack.w[m] - change.astype(stack.w[m].dtype)
    return C


def by_gradient(stack: Stack) -> Stack:
    """Train all parameters with Adam, by back-propagation."""
    batch = min(256, stack.plan.pace.batch)
    epochs = max(EPOCHS, -(-STEPS * batch // len(stack.y)))
    head = stack.head
    top, models = differentiable(head.model), [differentiable(model) for model in stack.models]
    adam = Adam()
    states, own = [adam.init(w) for w in stack.w], adam.init(head.w)
    widths = [
        m.forward(w[None], X[:1]).shape[2]
        for m, w, X in zip(stack.models, stack.w, stack.blocks, strict=True)
    ]
    ends = np.cumsum(widths)
    for epoch in range(epochs):
        order = np.random.default_rng([stack.plan.seed, epoch]).permutation(len(stack.y))
        for first in range(0, len(order), batch):
            rows = order[first : first + batch]
            C, y = stack.embed(stack.blocks, rows), stack.y[rows]
            dz = head.dz(C, y)
            dC = top.input_gradient(head.w, C, dz)
            for m, model in enumerate(models):
                X = stack.blocks[m][rows]
                back = model.gradient(stack.w[m], X, dC[:, ends[m] - widths[m] : ends[m]])
                back = back + stack.penalties[m].gradient(stack.w[m])
                stack.w[m] = adam.step(states[m], stack.w[m], back, RATE)
            if head.w.size:
                head.w = adam.step(own, head.w, top.gradient(head.w, C, dz), RATE)
    return stack


def pooled(plan: Plan[CascadeSettings], columns: AllColumns) -> Pooled:
    """Return the optimum, if all models are linear and summed; else the same models trained in one place.

    They are trained by gradient if every model has one, and by values if not.
    """
    specs, given = plan.settings.model, bool(columns.models) or columns.head is not None
    kinds = {specs.kind, *(model.kind for model in specs.parties.values())}
    if kinds == {"linear"} and specs.server.kind == "sum" and not plan.objective.classes and not given:
        return pooled_optimum(plan, columns)
    stack, test = stack_of(plan, columns), columns.test
    if all(isinstance(model, Differentiable) for model in [*stack.models, stack.head.model]):
        by_gradient(stack)
    else:
        by_values(stack, step=0.1 if plan.pace.step == "auto" else float(plan.pace.step))
    metrics = stack.losses()
    known = test[columns.label_holder].labels if test else None
    if test is None or known is None:
        return Pooled(metrics["objective"], metrics)
    z = stack.scores([test[party].X for party in sorted(test) if test[party].width])
    return Pooled(metrics["objective"], metrics | metrics_of(LOSSES[plan.objective.loss], z, known), z)
