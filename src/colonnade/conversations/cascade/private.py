"""Private replies: noise on the server's replies, planned so that all of a run together keep to epsilon.

Where values are replied, the noise is on what is replied (`privacy.mechanisms.NoisyScalars`). Where gradients
are, it is on the labels: each wave draws them once, and its replies are made from all draws so far
(`privacy.labels.NoisyLabels`, `privacy.posterior`).

What each side learns: a client that knows everything else learns no more of any label than epsilon allows.
"""

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
    """A run's budget, and the labels that replies are made from: exact for noisy values, else noisy."""

    budget: Budget
    holder: Numbers
    posterior: Posterior | None

    def labels(self, rows: Rows) -> Numbers:
        """The labels to make a reply about these rows from."""
        return self.holder[rows] if self.posterior is None else self.posterior(rows)

    def affords(self, rows: Rows, answers: int) -> bool:
        """Whether the budget allows so many answers about these rows."""
        return self.budget.affords(rows, self._releases(answers))

    def spend(self, rows: Rows, answers: int) -> None:
        """Charge the budget for so many answers about these rows."""
        self.budget.spend(rows, self._releases(answers))

    def _releases(self, answers: int) -> int:
        """How many releases of a label a wave of so many answers is: noisy labels are drawn once a wave."""
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
    """Plan the noise of all replies of a run.

    Where values are replied, the second result is what answers with that noise; else it is None.
    """
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
