"""What only the label holder of a blind run has: labels, its own block, and the coefficients of all weights.

The owners' weights are w = alpha p + gamma q. p = X'C and q = X'D are shared vectors, of which nobody has
the whole; the label holder knows the coefficients C and D, one number a row (and class), and both factors. A
step

    w <- (1 - step l2) w - step (X'c / batch + m)

shrinks the factors and adds to p, so nothing has to be multiplied by a fraction while it is shared:

    sgd     D is empty, m = 0
    svrg    q = m is the mean gradient of a snapshot, D = theta / n; gamma falls by `step` in every round
    saga    q = n m is the sum of the thetas in the memory, D is the memory; gamma falls by step / n

SAGA adds X'c to q as well, and takes gamma of it out of p. What the memory keeps is what was sent, rounded.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from colonnade.arrays import Floats, Rows, Words
from colonnade.conversations.blind.columns import BITS, own_key
from colonnade.conversations.blind.predict import LONGER
from colonnade.conversations.blind.slots import ROOM, Lengths, Slot, bits_for
from colonnade.conversations.context import Context
from colonnade.conversations.linear.block import Block, Delays
from colonnade.conversations.linear.from_plan import block_of
from colonnade.conversations.linear.settings import LinearSettings
from colonnade.conversations.linear.steps import StepSizes
from colonnade.conversations.schedule import Round, Schedule
from colonnade.conversations.window import Window
from colonnade.errors import JobError, SumError
from colonnade.models.linear import rows_of
from colonnade.optim.estimators import Saga, Svrg
from colonnade.secure.streams import Stream

REVEALED = 20  # bits of a weight that its owner is told, counted from the length of all weights
SMALLEST = 0.25  # alpha before all coefficients are sent anew
_ROUNDING = 20  # the purpose of the generator that rounds


@dataclass
class Factors:
    """w = alpha p + gamma q."""

    alpha: float = 1.0
    gamma: float = 0.0

    def shrink(self, by: float) -> None:
        """Let the penalty act."""
        self.alpha *= 1 - by
        self.gamma *= 1 - by


@dataclass(frozen=True)
class Asking:
    """The weights at which a batch was scored: their factors, how far they had moved, the own scores."""

    factors: Factors
    p_moved: float
    q_moved: float
    own: Floats


_NOTHING = np.zeros(0)


def lasting(shrink: float, rounds: int) -> int:
    """Rounds after which alpha is so small that all coefficients are sent anew: a power of two.

    Every round takes this part of it. In a run of so many rounds without a penalty it is never.

    >>> lasting(0.001, 5000), lasting(0.0, 5000)
    (1024, 5000)
    """
    if not shrink:
        return rounds
    if not shrink < 1 - SMALLEST:
        raise JobError(f"train.step times train.l2 is {shrink:g}; blind training needs it below 0.75")
    lasts = math.log(SMALLEST) / math.log1p(-shrink)
    return int(2 ** math.floor(math.log2(min(max(lasts, 1.0), 2.0**40))))


class Desk:
    """The label holder's side of a blind run."""

    def __init__(self, context: Context[LinearSettings], schedule: Schedule) -> None:
        self.context, self.schedule = context, schedule
        self.holder = context.label_holder
        self.block: Block = block_of(context, schedule)
        self.window = Window(context.plan.pace.ahead, schedule.rounds)
        self.steps = StepSizes(
            context.plan,
            schedule,
            self.window,
            Delays(context.plan.pace.ahead - 1),
            lambda: min(1.0, self.window.finished / schedule.rounds),
        )
        self.rng = context.rng(_ROUNDING)
        self.factors = Factors()
        shape = (schedule.rows, *context.plan.objective.shape)
        self.C, self.D = np.zeros(shape), np.zeros(shape)
        self.slope = np.zeros(shape)  # scores of svrg's mean gradient
        self.length = 0.0  # of all the owners' weights, when they were last measured
        self._before: tuple[Floats, Floats] | None = None  # coefficients and scores that were last measured

    @property
    def saga(self) -> bool:
        return isinstance(self.block.estimator, Saga)

    # -- beginning ----------------------------------------------------------------------------------

    def begin(self, lengths: Lengths) -> None:
        """Choose how numbers are written, from the lengths of the owners' rows and the size of a step."""
        self.lengths = lengths
        n, rate = self.schedule.rows, self.steps.rate()
        theta = self.holder.theta(self.own_scores(), np.arange(n))
        self._usual = math.sqrt(float(np.vdot(theta, theta)) / theta.size)  # size of a theta at the start
        self.p = self._slot(self._room(rate), np.zeros(n))
        self.q = self._slot(4 * lengths.reach(theta.size * self._usual**2), np.zeros(n))
        self._coarse = self.p.coarse(self._usual * rate / self.schedule.largest)

    def _room(self, rate: float) -> float:
        """Room for the scores of p: those of now, and what some epochs may add."""
        per_row = self._usual * rate / self.schedule.largest
        return ROOM * self.lengths.reach(self.C.size * per_row**2)

    def _slot(self, largest: float, read: Floats) -> Slot:
        return Slot(self.lengths, bits_for(largest), self.rng, read)

    # -- a round ------------------------------------------------------------------------------------

    def ask(self, batch: Round) -> Asking:
        """Note at which weights a batch is scored, those of the own block too."""
        return Asking(replace(self.factors), self.p.moved, self.q.moved, self.block.scores(batch))

    def step(self, batch: Round, total: Words, asked: Asking) -> Words:
        """Take in the scores of a batch: step the own block, and return what is added to p (and q)."""
        rows = self.schedule.rows_of(batch)
        z = self.others(rows, total, asked) + asked.own
        theta = self.holder.theta(z, rows, batch.number)
        rate, memory = self.steps.faded_rate(), self.block.estimator.memory
        c = theta - memory.theta[rows] if len(memory.theta) else theta
        words: list[Words] = []
        if self.saga:
            written, c = self.q.write(c)
            words.append(written)
            theta = memory.theta[rows] + c
        whole = memory.unseen <= 0  # SAGA steps along its mean once it has seen every row
        self.block.step([(batch, theta)], rate)
        self.window.finish([batch.number])
        return np.concatenate([self._moved(rows, c, rate, batch.size, whole), *words])

    def _moved(self, rows: Rows, c: Floats, rate: float, size: int, whole: bool) -> Words:
        """Let the factors follow a step, and return what it adds to p."""
        factors, n = self.factors, self.schedule.rows
        factors.shrink(rate * self.context.plan.objective.l2)
        take = 0.0
        if self.saga:
            factors.gamma -= rate / n if whole else 0.0
            take = factors.gamma
            self.D[rows] += c
        elif isinstance(self.block.estimator, Svrg) and len(self.block.estimator.memory.theta):
            factors.gamma -= rate
        words, sent = self.p.write(-(rate / size + take) / factors.alpha * c, coarse=self._coarse)
        self.C[rows] += sent
        return words

    # -- scores -------------------------------------------------------------------------------------

    def others(self, rows: Rows, total: Words, asked: Asking | None = None) -> Floats:
        """The owners' scores of training rows, from the words of p, or of p and q; of now, or as asked."""
        width = max(1, self.context.plan.objective.classes)
        now = asked or Asking(self.factors, self.p.moved, self.q.moved, _NOTHING)
        alpha, gamma = now.factors.alpha, now.factors.gamma
        z = alpha * self._shaped(self.p.value(total[:width], rows, asked=now.p_moved))
        if len(total) > width:
            return z + gamma * self._shaped(self.q.value(total[width:], rows, asked=now.q_moved))
        return z + gamma * self.slope[rows] if gamma else z

    def others_new(self, total: Words) -> Floats:
        """The owners' scores of rows that are not trained on."""
        width = max(1, self.context.plan.objective.classes)
        reach = [self.lengths.reach(float(np.vdot(each, each))) for each in (self.C, self.D)]
        z = self.factors.alpha * self._shaped(self.p.value(total[:width], reach=reach[0]))
        if len(total) > width:
            z = z + self.factors.gamma * self._shaped(self.q.value(total[width:], reach=reach[1]))
        return z

    def own_scores(self) -> Floats:
        """The own block's scores of all training rows."""
        return self.block.all_rows.scores(0, self.schedule.rows, self.block.w)

    def own_test_scores(self) -> Floats:
        """The own block's scores of all test rows."""
        test = self.context.test
        if test is None:
            raise RuntimeError("there are no test rows")
        return rows_of(test.X).scores(0, test.rows, self.block.w)

    def penalty(self, others: Floats) -> float:
        """The penalty of all weights: |w|^2 of the owners' is the product of coefficients and scores."""
        squared = float(np.vdot(self.coefficients(), others))
        self.length = math.sqrt(max(squared, 0.0))
        return self.block.penalty.value(self.block.w) + 0.5 * self.context.plan.objective.l2 * squared

    def fits(self, others: Floats) -> None:
        """See that scores of all rows fit those that were measured before.

        Weights X'C and X'D have scores z and y with C'y = D'z, so whoever sends other words than the protocol
        says is found out.
        """
        C = self.coefficients()
        if self._before is not None:
            D, y = self._before
            one, other = float(np.vdot(C, y)), float(np.vdot(D, others))
            scale = float(np.linalg.norm(C) * np.linalg.norm(y) + np.linalg.norm(D) * np.linalg.norm(others))
            if abs(one - other) > 1e-7 * scale:
                raise SumError("the scores of two measurements do not fit: a party sent other words than due")
        self._before = C, others

    def _shaped(self, z: Floats) -> Floats:
        return z if self.context.plan.objective.shape else z[:, 0]

    # -- sending coefficients anew --------------------------------------------------------------------

    def coefficients(self) -> Floats:
        """What the owners' weights are made of: w = X' of this."""
        return self.factors.alpha * self.C + self.factors.gamma * self.D

    def renew(self, *, final: bool = False) -> Words:
        """Begin p anew with all coefficients, so that alpha is 1 and gamma 0; returns them for all rows.

        In the end there is room for new rows, some times as long as those of training.
        """
        every, whole = np.arange(self.schedule.rows), self.coefficients()
        read = self.factors.alpha * self.p.bounds(every) + abs(self.factors.gamma) * self._q_bounds(every)
        room = max(self._room(self.steps.rate()), ROOM / 4 * float(read.max(initial=0.0)))
        self.p = self._slot(LONGER * self.lengths.longest * self.length if final else room, read)
        words, self.C = self.p.write(whole)
        self.p.moved = 0.0  # scores have not moved by this
        self.factors = Factors()
        return words

    def _q_bounds(self, rows: Rows) -> Floats:
        if self.saga:
            return self.q.bounds(rows)
        slope = np.abs(self.slope[rows])
        return slope.max(axis=1) if slope.ndim > 1 else slope

    def snapshot(self, z: Floats) -> Words:
        """Take svrg's snapshot at these scores of all rows; returns the coefficients of p and q."""
        n, estimator = self.schedule.rows, self.block.estimator
        if not isinstance(estimator, Svrg):
            raise TypeError(f"{type(estimator).__name__} takes no snapshots")
        theta = self.holder.theta(z, np.arange(n), self.window.base)
        estimator.snapshot(theta, self.block.all_rows.gradient(0, n, theta) / n)
        renewed = self.renew()
        D = theta / n
        self.q = self._slot(2 * self.lengths.reach(float(np.vdot(D, D))), np.zeros(n))
        words, self.D = self.q.write(D)
        return np.concatenate([renewed, words])

    def take_slope(self, total: Words) -> None:
        """Take in the scores of the snapshot's mean gradient."""
        self.slope = self._shaped(self.q.value(total, np.arange(self.schedule.rows)))

    def blurred(self, parts: Iterable[Words]) -> list[Words]:
        """The own parts of the owners' weights as they may be told: weights get 20 bits, by random low ones.

        Exact weights are sums of whole numbers, one for every row, and lattice reduction could solve them.
        """
        reach = max(1, int(2.0**-REVEALED * self.length / self.unit))
        noise = Stream(own_key(self.context, "blur"))
        told = []
        for number, part in enumerate(parts):
            random = noise.words(number, part.size).reshape(part.shape) % np.uint64(2 * reach + 1)
            told.append(part + random - np.uint64(reach))
        return told

    @property
    def unit(self) -> float:
        """What one of p's words stands for, times alpha: w in units of the ring."""
        return self.factors.alpha * 2.0 ** -(BITS + self.p.bits)
