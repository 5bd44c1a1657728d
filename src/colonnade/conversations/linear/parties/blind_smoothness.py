"""Finds how smooth the objective of a blind run is, without telling owners anything.

It is the power iteration of `linear.tune`, made in the space of rows: the label holder has one number for
every sampled row, adds them to a shared vector (X'c), and asks for that vector's scores (X X'c). The matrix
X X' has the eigenvalues of X'X. Owners see uniform words; the label holder sees totals, as in training.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from colonnade.arrays import Floats, Rows
from colonnade.conversations.blind.fixed_point import Lengths, Slot, bits_for
from colonnade.conversations.linear.tune import AGAIN, FIRST, MARGIN, SAMPLE
from colonnade.models.linear import rows_of, squared_norms
from colonnade.optim.steps import Smoothness
from colonnade.state import Declared

if TYPE_CHECKING:
    from colonnade.conversations.linear.parties.blind import BlindParty


class BlindTuner:
    """Measures the smoothness; the label holder keeps the vector that it found."""

    STATE = Declared(kept=("v",))

    def __init__(self, training: BlindParty) -> None:
        self.training = training
        self.sample = training.schedule.places(0, 0, min(SAMPLE, training.schedule.rows))
        n = len(self.sample)
        self.v: Floats = training.context.rng(1).standard_normal(n)
        self.v /= np.linalg.norm(self.v)

    async def measure(self, lengths: Lengths, *, first: bool = False) -> None:
        """Set the smoothness of the label holder's steps: for any weights or, later, at those of now."""
        training, label_holder, n = self.training, self.training.label_holder, len(self.sample)
        anywhere = first and np.isfinite(training.context.loss.smoothness)
        bent = np.ones(n) if anywhere else await self._bent(first)
        if label_holder is not None and anywhere:
            bent = np.broadcast_to(_sampled(label_holder.labels.steepest, self.sample), (n,))
        value = 0.0
        for _ in range(FIRST if first else AGAIN):
            value = await self._iterate(np.sqrt(bent), lengths)
        if label_holder is None:
            return
        penalty = training.context.penalty.smoothness
        own = float(squared_norms(training.context.train.X).max(initial=0.0))
        steepest = float(np.max(label_holder.labels.steepest))
        worst = (steepest if np.isfinite(steepest) else float(bent.max())) * (own + lengths.longest**2)
        mean = MARGIN * value + penalty
        label_holder.steps.smoothness = Smoothness(mean=mean, worst_row=max(worst + penalty, mean))

    async def _bent(self, first: bool) -> Floats:
        """Return the curvature of the loss at every sampled row, at the label holder."""
        training, label_holder = self.training, self.training.label_holder
        vectors = training.whole
        lot = await training.products.open("train", [self.sample], scored=vectors.stop, added=0)
        total = await training.products.scores(lot, 0, vectors)
        if label_holder is None or total is None:
            return np.ones(len(self.sample))
        z = label_holder.own_scores()[self.sample]
        if not first:
            z = z + label_holder.others(self.sample, total).z
        return label_holder.labels.curvature(z, self.sample)

    async def _iterate(self, root: Floats, lengths: Lengths) -> float:
        """Iterate once; returns the Rayleigh quotient, at the label holder."""
        training, label_holder, n = self.training, self.training.label_holder, len(self.sample)
        slot, words, sent = None, None, root * self.v
        if label_holder is not None:
            bits = bits_for(lengths.longest * float(lengths.reach(sent)), lengths.bits)
            slot = Slot(lengths, bits, label_holder.rng, np.zeros(()))
            words, sent = slot.written(sent)
            slot.settle(lengths.reach(sent) ** 2)
        lot = await training.products.open("train", [self.sample], scored=1, added=1)
        await training.products.flush()
        training.products.clear(training.probe)
        await training.products.add(lot, 0, training.probe, words)
        total = await training.products.scores(lot, 0, training.probe)
        if slot is None or total is None:
            return 0.0
        y = root * (slot.value(total)[:, 0] + self._own(sent))
        value, norm = float(self.v @ y), float(np.linalg.norm(y))
        if norm:
            self.v = y / norm
        return value / n

    def _own(self, c: Floats) -> Floats:
        """Return the own block's part of X X'c."""
        rows = rows_of(self.training.context.train.X, self.sample)
        n = len(self.sample)
        return rows.scores(0, n, rows.gradient(0, n, c))


def _sampled(steepest: Floats, sample: Rows) -> Floats:
    return steepest if steepest.ndim == 0 else steepest[sample]
