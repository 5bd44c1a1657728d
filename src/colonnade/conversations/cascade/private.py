"""Replies with noise that covers every reply of a run: what labels may be told of in all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from colonnade.arrays import Numbers, Rows
from colonnade.conversations.cascade.settings import CascadeSettings
from colonnade.conversations.context import Context
from colonnade.errors import JobError
from colonnade.optim.replies import Answering, Head, ValuesServer
from colonnade.optim.smoothing import Smoothing
from colonnade.privacy.labels import NoisyLabels, label_points
from colonnade.privacy.mechanisms import NoisyScalars
from colonnade.privacy.posterior import Posterior

if TYPE_CHECKING:
    from colonnade.privacy.accountant import Budget


@dataclass
class PrivateReplies:
    """The budget of a run, and the labels that replies are made with: exact for noisy values, else noisy."""

    budget: Budget
    holder: Numbers
    posterior: Posterior | None

    def labels(self, rows: Rows) -> Numbers:
        return self.holder[rows] if self.posterior is None else self.posterior(rows)

    def affords(self, rows: Rows, answers: int) -> bool:
        return self.budget.affords(rows, self._releases(answers))

    def spend(self, rows: Rows, answers: int) -> None:
        self.budget.spend(rows, self._releases(answers))

    def _releases(self, answers: int) -> int:
        """How often a wave of so many answers tells about a label: noisy labels are drawn once for all."""
        return answers if self.posterior is None else 1


def private_replies(
    context: Context[CascadeSettings],
    head: Head,
    smoothing: Smoothing,
    *,
    clients: int,
    total: int,
    per_epoch: int,
) -> tuple[PrivateReplies, Answering | None]:
    """Plan the noise of all replies of a run; with values as replies, also what answers with that noise."""
    from colonnade.privacy.accountant import Budget  # dp-accounting is loaded only where it is used

    terms, y = context.plan.privacy, context.label_holder.y
    scalar = terms.mechanism == "scalar"
    if scalar and head.w.size:
        raise JobError("privacy: the server's own weights would carry labels into every reply; use a sum")
    if context.plan.pace.schedule == "async":
        # passes of all clients together, of which each may be in the middle of one when the run ends
        allowed = -(-total * clients // per_epoch) + clients - 1
    else:
        allowed = -(-total // per_epoch) * (clients if scalar else 1)
    budget = Budget.plan(terms.epsilon or 0.0, terms.delta, allowed, context.train.rows)
    z = budget.multiplier
    if scalar:
        return PrivateReplies(budget, y, None), ValuesServer(head, NoisyScalars(smoothing, terms.clip, z))
    points, sensitivity = label_points(y, context.loss, terms.clip, context.plan.objective.classes or None)
    head.soft = True
    posterior = Posterior(NoisyLabels(points, z * sensitivity), context.loss, terms.clip)
    return PrivateReplies(budget, y, posterior), None
