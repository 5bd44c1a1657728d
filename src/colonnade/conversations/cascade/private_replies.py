"""Private replies: noise on the server's replies, planned so that all of a run together keep to epsilon.

Where values are replied, the noise is on what is replied (`privacy.mechanisms.NoisyScalars`). Where gradients
are, it is on the labels: each wave draws them once, and its replies are made from all draws so far
(`privacy.label_noise.NoisyLabels`, `privacy.posterior`).

A run that was cut off plays some rounds twice. Noise on labels is then the same as before (`privacy.noise`),
and nothing is told twice. Noise on replies is not, since a client might ask something else with it: replies
are counted on disk before they are given, and what was counted stays spent.

What each side learns: a client that knows everything else learns no more of any label than epsilon allows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from colonnade.arrays import Numbers, Rows
from colonnade.conversations.cascade.settings import CascadeSettings
from colonnade.conversations.context import Context
from colonnade.conversations.gates import Gates
from colonnade.errors import JobError
from colonnade.optim.replies import Head, ReplyServer, ValuesServer
from colonnade.optim.smoothing import Smoothing
from colonnade.privacy.label_noise import noisy_labels
from colonnade.privacy.mechanisms import NoisyScalars
from colonnade.privacy.noise import Noise
from colonnade.privacy.posterior import Posterior
from colonnade.state import Declared

if TYPE_CHECKING:
    from colonnade.privacy.accountant import Budget

COUNTED = "replies"


@dataclass
class PrivateReplies:
    """A run's budget, and the labels that replies are made from: exact for noisy values, else noisy."""

    STATE = Declared(parts=("budget", "posterior"), remade=("counted",))  # a note on disk has those

    budget: Budget
    holder: Numbers
    posterior: Posterior | None
    counted: Rows  # replies by row, as the disk knows of them: never fewer than were given
    count: Callable[[Rows], None] = lambda counted: None  # returns when they are on disk

    def labels(self, rows: Rows) -> Numbers:
        """Return the labels to make a reply about these rows from."""
        return self.holder[rows] if self.posterior is None else self.posterior(rows)

    def affords(self, rows: Rows, answers: int) -> bool:
        """Return whether the budget allows this many answers about these rows."""
        return self.budget.affords(rows, self._releases(answers))

    def spend(self, rows: Rows, answers: int) -> None:
        """Charge the budget for this many answers about these rows, before they are given.

        The disk is told of one more for every row, not of these alone: so it hears of a pass once.
        """
        releases = self._releases(answers)
        if (self.budget.spent[rows] + releases > self.counted[rows]).any():
            self.counted = np.maximum(self.counted, self.budget.spent + releases)
            self.count(self.counted)
        self.budget.spend(rows, releases)

    def go_on(self) -> None:
        """Take what earlier sessions of the run may have told for told; once the checkpoint is put back."""
        if self.posterior is None:
            np.maximum(self.budget.spent, self.counted, out=self.budget.spent)
        self.budget.told_before = int(self.counted.max(initial=0))

    def _releases(self, answers: int) -> int:
        """Return how many releases of a label a wave of answers is: noisy labels are drawn once a wave."""
        return answers if self.posterior is None else 1


def private_replies(
    context: Context[CascadeSettings],
    head: Head,
    smoothing: Smoothing,
    *,
    clients: int,
    total: int,
    per_epoch: int,
) -> tuple[PrivateReplies, ReplyServer | None]:
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
    counted, count = _counted(context.gates, context.train.rows)
    if scalar:
        noisy = NoisyScalars(smoothing, terms.clip, z)
        return PrivateReplies(budget, y, None, counted, count), ValuesServer(head, noisy)
    head.soft = True
    classes, noise = context.plan.objective.classes or None, Noise(context.gates.secret())
    labels = noisy_labels(y, context.loss, terms.clip, z, classes, noise)
    posterior = Posterior(labels, context.loss, terms.clip)
    return PrivateReplies(budget, y, posterior, counted, count), None


def _counted(gates: Gates, rows: int) -> tuple[Rows, Callable[[Rows], None]]:
    """Return how many replies earlier sessions may have given about every row, and how to bring more to
    disk."""
    noted = gates.noted(COUNTED)
    counted = np.zeros(rows, dtype=np.int64) if noted is None else np.frombuffer(noted, dtype=np.int64).copy()
    return counted, lambda more: gates.note(COUNTED, more.tobytes())
