"""A party that keeps its weights in clear to itself, and is told gradients with noise.

How it learns the gradient of its columns, and how inner products of all blocks are added up, is the kind of
party's: products are encrypted (`parties.encrypted`) or made of words that others deal (`parties.dealt`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter

import numpy as np
from numpy.typing import NDArray

from colonnade.arrays import Floats
from colonnade.conversations.context import Context, Outcome
from colonnade.conversations.linear.noisy.noisy_lbfgs import FirstMatrix, NoisyLbfgs
from colonnade.conversations.linear.noisy.product_forms import FORMS
from colonnade.conversations.linear.noisy.rare import gram
from colonnade.conversations.linear.noisy.row_noise import Loudness
from colonnade.conversations.linear.settings import FullSettings
from colonnade.conversations.own_noise import OwnNoise
from colonnade.errors import JobError, ProtocolError
from colonnade.job.plan import Noisy
from colonnade.losses import labels_of, weights_of
from colonnade.models.linear import rows_of
from colonnade.regularizers import Penalty
from colonnade.state import Declared

SURELY = 0.999  # of the own longest row: it is told rounded


class NoisyParty(ABC):
    """What a pass of `algorithm.noisy_full` asks of a party, and what all kinds of it do alike."""

    STATE = Declared(parts=("lbfgs",))
    sums_a_pass = 1

    def __init__(self, context: Context[FullSettings], terms: Noisy) -> None:
        self.context, self.terms = context, terms
        self.form = FORMS[context.plan.objective.loss]
        self.noise = OwnNoise.of(context.gates)
        self.evaluation = context.evaluation()
        self.unit, self.loudness = 1.0, Loudness(0)  # of theta, and of noise: the label holder says them
        self.holds = context.me == context.evaluator
        if self.holds:
            y = context.label_holder.y
            self.y, self.weight = labels_of(y), weights_of(y)

    def keep_columns(self, kept: NDArray[np.intp], key: str, *, helper: bool = False) -> None:
        """Train with the columns at these places; refuse to with none, unless this party only helps."""
        if not len(kept) and not helper:
            raise JobError(
                f"{key}: every column of {self.context.me} says something of few rows alone; more rows or "
                "coarser columns are needed"
            )
        self.kept = kept
        self.free = tuple(
            place for place, column in enumerate(kept) if column in self.context.train.free
        )  # of the penalty

    def settle(self, longest: float) -> int:
        """Return the unit of theta, as a power of two, and settle how loud noise is: for rows no longer than
        this, every column in units of its largest number. At the label holder."""
        holder, weight = self.context.label_holder, self.weight
        heaviest = 1.0 if weight is None else max(1.0, float(weight.max()))
        self.loudness = Loudness.of(self.terms, heaviest, longest)
        start = holder.start if self.free else 0.0
        size = float(np.sqrt(np.mean(holder.loss.dz(np.full(len(self.y), start), holder.y) ** 2)))
        return round(np.log2(size)) if self.form.scaled and size else 0

    def heard_loudness(self, code: int, longest: float) -> Loudness:
        """Return how loud the label holder says that noise is; refuse less than the job's for own rows of
        this length, since it hides own columns, too."""
        if code < Loudness.of(self.terms, 1.0, SURELY * longest).code:
            raise ProtocolError(
                f"{self.context.evaluator} says that noise is less than the job does: it would hide nothing"
            )
        return Loudness(code, self.loudness.epsilon)

    def begin(self, spread: Floats, together: float = 1.0) -> None:
        """Make the first matrix, of noise that spreads so, and the weights to begin with.

        `together` is how many times further a step of all blocks may go that say the same.
        """
        context, kept = self.context, self.kept
        objective, ones = context.plan.objective, np.ones(len(kept))
        self.penalty = Penalty(context.regularizer, objective.l2 / self.unit, 0.0, self.free)
        moments = gram(context.train.X, kept) * (self.form.curvature(self.unit) / context.train.rows)
        bend = self.penalty.bend(ones, ones)
        if not len(kept):  # a helper takes part in sums with a column of zeros
            moments, bend, spread = np.zeros((1, 1)), np.ones(1), np.zeros(1)
        w = np.zeros(len(spread))
        if self.holds and self.free:  # the intercept begins where it fits all labels best
            w[list(self.free)] = context.label_holder.start
        self.lbfgs = NoisyLbfgs(FirstMatrix(moments * together, bend, spread), self.penalty, w)
        context.gates.keep(self, "lbfgs", name="NoisyParty")

    # -- what a kind of party does -------------------------------------------------------------------------

    @abstractmethod
    async def set_up(self) -> None:
        """Agree on noise and unit, do what products need, and `begin`."""

    @abstractmethod
    async def gradient(self) -> Floats:
        """Return the gradient of the own block at the present weights, with noise."""

    @abstractmethod
    async def totals(self, own: Floats) -> Floats:
        """Return the sum of all parties' inner products."""

    @abstractmethod
    async def measure(self) -> None:
        """Measure the finished model."""

    @property
    def settled(self) -> bool:
        """Whether the run may end before its last pass; all parties agree."""
        return False

    # -- the finished model ----------------------------------------------------------------------------

    def end(self) -> None:
        """Take the weights that the run ends with."""
        self.w = self.whole(self.lbfgs.weights)

    def whole(self, w: Floats) -> Floats:
        """Return weights of all own columns: of those that were left out they are 0."""
        weights = np.zeros(self.context.train.width)
        if len(self.kept):
            weights[self.kept] = w
        return weights

    def test_scores(self) -> Floats | None:
        """Return the own part of scores of test rows."""
        test = self.context.test
        return None if test is None else rows_of(test.X).scores(0, test.rows, self.w)

    def outcome(self) -> Outcome:
        """Return what this party returns."""
        steps = self.lbfgs.state.steps
        return Outcome(
            weights={"w": self.w},
            step=1.0,
            rounds=self.sums_a_pass * steps,
            updates=steps,
            evaluation=self.evaluation,
            delays=Counter({0: steps}),
            epsilon=self.loudness.epsilon,
        )
