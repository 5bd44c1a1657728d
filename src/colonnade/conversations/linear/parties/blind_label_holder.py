"""What only the label holder of a blind run has: labels, its own block, and the coefficients of all weights.

The owners' weights are w = alpha p + gamma q. p = X'C and q = X'D are shared vectors, of which nobody has
the whole; the label holder knows the coefficients C and D, one number a row (and class), and both factors. A
step

    w <- (1 - step l2) w - step (X'c / batch + m)

shrinks the factors and adds to p, so nothing has to be multiplied by a fraction while it is shared:

    sgd     D is empty, m = 0
    svrg    q = m is the mean gradient of a snapshot, D = theta / n; gamma falls by `step` in every round
    saga    q = n m is the sum of the thetas in the memory, D is the memory; gamma falls by step / n

c, whether m is stepped along, and how the memory changes are the estimator's answers, as in clear. Where the
memory changes, that is added to q as well, and gamma of it taken out of p. What it keeps is what was sent,
rounded.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from colonnade.arrays import Floats, Rows, Words
from colonnade.conversations.blind.columns import own_key
from colonnade.conversations.blind.fixed_point import ROOM, Lengths, Slot, bits_for
from colonnade.conversations.blind.low_bits import blurred, told_bits
from colonnade.conversations.blind.predict import LONGER
from colonnade.conversations.context import Context
from colonnade.conversations.linear.block import Block, block_of
from colonnade.conversations.linear.parties.word_size import Headroom
from colonnade.conversations.linear.settings import LinearSettings
from colonnade.conversations.linear.step_sizes import StepSizes
from colonnade.conversations.pacing.delays import Delays
from colonnade.conversations.pacing.one_order import OneOrder
from colonnade.conversations.pacing.schedule import Round, Schedule
from colonnade.errors import SumError
from colonnade.models.linear import rows_of
from colonnade.optim.estimators import Coefficients
from colonnade.state import Declared

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
class ScoredAt:
    """The weights at which a batch was scored: their factors, how long vectors may be, the own scores."""

    factors: Factors
    p: Floats
    q: Floats
    own: Floats


@dataclass(frozen=True)
class OwnersScores:
    """The owners' scores of some rows: of p, of q where they were asked for, and of the weights."""

    p: Floats
    q: Floats | None
    z: Floats


_NOTHING = np.zeros(0)


class BlindLabelHolder:
    """The label holder's side of a blind run."""

    STATE = Declared(
        kept=("factors", "C", "D", "slope", "length", "p", "q", "_usual", "_coarse", "_before"),
        parts=("rng", "block", "window", "steps"),
    )

    def __init__(self, context: Context[LinearSettings], schedule: Schedule) -> None:
        self.context, self.schedule = context, schedule
        self.labels = context.label_holder
        self.block: Block = block_of(context, schedule)
        self.window = OneOrder(context.plan.pace.ahead, schedule.rounds)
        self.steps = StepSizes(
            context.plan,
            schedule,
            self.window,
            Delays(context.plan.pace.ahead - 1),
            lambda: min(1.0, self.window.finished / schedule.rounds),
        )
        self.headroom = Headroom(context.plan, schedule)
        self.rng = context.rng(_ROUNDING)
        self.factors = Factors()
        shape = (schedule.rows, *context.plan.objective.shape)
        self.C, self.D = np.zeros(shape), np.zeros(shape)
        self.parts = schedule.rows if self.block.estimator.remembers else 1  # m is so small a part of q
        self.slope = np.zeros(shape)  # scores of svrg's mean gradient
        self.length = 0.0  # of all the owners' weights, when they were last measured
        self._before: tuple[Floats, Floats] | None = None  # coefficients and scores that were last measured

    # -- beginning ----------------------------------------------------------------------------------

    def begin(self, lengths: Lengths) -> None:
        """Choose how numbers are written, from the lengths of the owners' rows and the size of a step."""
        self.lengths = lengths
        theta = self.labels.theta(self.own_scores(), np.arange(self.schedule.rows))
        self._usual = math.sqrt(float(np.vdot(theta, theta)) / theta.size)  # size of a theta at the start
        nothing = np.zeros(self.context.plan.objective.shape)
        self.p = self._slot(lengths.longest * self._room, nothing)
        self.q = self._slot(lengths.longest * float(np.max(lengths.reach(theta))), nothing)
        self._coarse = self._is_coarse

    @property
    def _is_coarse(self) -> bool:
        """Whether what steps add to p is rounded at random; an error if it would be lost."""
        usual = self._usual * self.steps.rate() / self.schedule.largest
        return self.p.coarse(usual, self.schedule.rows)

    @property
    def _room(self) -> float:
        """The length that p is given room for, beyond that of now: what steps may add until an epoch ends."""
        return self.headroom.of_an_epoch(self.lengths, self._usual, self.steps.rate())

    def _slot(self, largest: float, squares: Floats) -> Slot:
        bits = bits_for(largest, self.lengths.bits)
        return Slot(self.lengths, bits, self.rng, squares, self.context.plan.pace.ahead)

    # -- a round ------------------------------------------------------------------------------------

    def ask(self, batch: Round) -> ScoredAt:
        """Note at which weights a batch is scored, those of the own block too."""
        return replace(self._now, factors=replace(self.factors), own=self.block.scores(batch))

    @property
    def _now(self) -> ScoredAt:
        return ScoredAt(self.factors, self.p.length, self.q.length, _NOTHING)

    def step(self, batch: Round, total: Words, asked: ScoredAt) -> Words:
        """Take in the scores of a batch: step the own block, and return what is added to p (and q)."""
        rows = self.schedule.rows_of(batch)
        read = self.others(rows, total, asked)
        theta = self.labels.theta(read.z + asked.own, rows, batch.number)
        rate, estimator = self.steps.faded_rate(), self.block.estimator
        found, words = estimator.coefficients(rows, theta), []
        if found.change is not None and read.q is not None:
            # most are small in the end, and would be rounded to nothing all alike if it were not at random
            written, change = self.q.write(found.change, read.q, coarse=True)
            words.append(written)
            theta = estimator.memory.theta[rows] + change
            found = estimator.coefficients(rows, theta)._replace(change=change)
        self.block.step([(batch, theta)], rate)
        self.window.finish([batch.number])
        return np.concatenate([self._moved(rows, found, read.p, rate), *words])

    def _moved(self, rows: Rows, found: Coefficients, scores: Floats, rate: float) -> Words:
        """Let the factors follow a step, and return what it adds to p."""
        factors, (c, along, change) = self.factors, found
        factors.shrink(rate * self.context.plan.objective.l2)
        factors.gamma -= rate / self.parts if along else 0.0
        take = 0.0 if change is None else factors.gamma  # of what q grows by, which the weights do not
        t = -(rate / len(rows) + take) / factors.alpha * c
        if change is not None:
            self.D[rows] += change
            if not np.array_equal(change, c):
                t = t - take / factors.alpha * (change - c)
        words, sent = self.p.write(t, scores, coarse=self._coarse)
        self.C[rows] += sent
        return words

    def settle(self) -> bool:
        """End an epoch, or a part of one; returns whether there is no room for another one like it."""
        self.p.settle()
        self.q.settle()
        return not self.p.fits(float(np.max(self.p.length)) + max(self._room / ROOM, 2 * self.p.grew))

    # -- scores -------------------------------------------------------------------------------------

    def others(self, rows: Rows, total: Words, asked: ScoredAt | None = None) -> OwnersScores:
        """Return the owners' scores of training rows, from the words of p, or of p and q; of now, or as
        asked."""
        now = asked or self._now
        read = self._read(total, now)
        gamma = now.factors.gamma
        if read.q is None and gamma:
            return replace(read, z=read.z + gamma * self.slope[rows])
        return read

    def all_others(self, total: Words) -> Floats:
        """Return the owners' scores of all training rows; they tell how long vectors are."""
        read = self.others(np.arange(self.schedule.rows), total)
        self.p.settle((self.C * read.p).sum(axis=0))
        if read.q is not None:
            self.q.settle((self.D * read.q).sum(axis=0))
        return read.z

    def others_new(self, total: Words) -> Floats:
        """Return the owners' scores of rows that are not trained on."""
        return self._read(total, self._now).z

    def _read(self, total: Words, now: ScoredAt) -> OwnersScores:
        width = max(1, self.context.plan.objective.classes)
        p, q = self._shaped(self.p.value(total[:width], now.p)), None
        z = now.factors.alpha * p
        if len(total) > width:
            q = self._shaped(self.q.value(total[width:], now.q))
            z = z + now.factors.gamma * q
        return OwnersScores(p, q, z)

    def own_scores(self) -> Floats:
        """Return the own block's scores of all training rows."""
        return self.block.all_rows.scores(0, self.schedule.rows, self.block.w)

    def own_test_scores(self) -> Floats:
        """Return the own block's scores of all test rows."""
        test = self.context.test
        if test is None:
            raise RuntimeError("there are no test rows")
        return rows_of(test.X).scores(0, test.rows, self.block.w)

    def penalty(self, others: Floats) -> float:
        """Return the penalty of all weights: |w|^2 of the owners' is the product of coefficients and
        scores."""
        squared = float(np.vdot(self.coefficients(), others))
        self.length = math.sqrt(max(squared, 0.0))
        return self.block.penalty.value(self.block.w) + 0.5 * self.context.plan.objective.l2 * squared

    def fits(self, others: Floats) -> None:
        """See that scores of all rows fit those that were measured before.

        Weights X'C and X'D have scores z and y with C'y = D'z, so an owner that sends other words than the
        protocol says is found out.
        """
        C = self.coefficients()
        if self._before is not None:
            self._check_alike(C, others, *self._before)
        self._before = C, others

    @staticmethod
    def _check_alike(C: Floats, z: Floats, D: Floats, y: Floats) -> None:
        """Refuse scores z = X X'C and y = X X'D that say different things of each other."""
        one, other = float(np.vdot(C, y)), float(np.vdot(D, z))
        scale = float(np.linalg.norm(C) * np.linalg.norm(y) + np.linalg.norm(D) * np.linalg.norm(z))
        if abs(one - other) > 1e-7 * scale:
            raise SumError("the scores of two measurements do not fit: a party sent other words than due")

    def _shaped(self, z: Floats) -> Floats:
        return z if self.context.plan.objective.shape else z[:, 0]

    # -- sending coefficients again --------------------------------------------------------------------

    def coefficients(self) -> Floats:
        """Return what the owners' weights are made of: w = X' of this."""
        return self.factors.alpha * self.C + self.factors.gamma * self.D

    def renew(self, *, final: bool = False) -> Words:
        """Begin p again with all coefficients, so that alpha is 1 and gamma 0; returns them for all rows.

        In the end there is room for new rows, some times as long as those of training.
        """
        whole, factors = self.coefficients(), self.factors
        length = factors.alpha * self.p.length + abs(factors.gamma) * self.q.length
        room = 2 * float(np.max(length)) + self._room
        self.p = self._slot(self.lengths.longest * (LONGER * self.length if final else room), length)
        words, self.C = self.p.written(whole)
        self.p.settle((length + self.lengths.reach(self.C - whole)) ** 2)
        self.factors = Factors()
        if not final:
            self._coarse = self._is_coarse
        return words

    def snapshot(self, z: Floats) -> Words:
        """Take svrg's snapshot at these scores of all rows; returns the coefficients of p and q."""
        n, estimator = self.schedule.rows, self.block.estimator
        theta = self.labels.theta(z, np.arange(n), self.window.base)
        estimator.snapshot(theta, self.block.all_rows.gradient(0, n, theta) / n)
        renewed = self.renew()
        D = theta / (n / self.parts)
        self.q = self._slot(self.lengths.longest * float(np.max(self.lengths.reach(D))), np.zeros(0))
        words, self.D = self.q.written(D)
        self.q.settle(self.lengths.reach(self.D) ** 2)
        return np.concatenate([renewed, words])

    def take_slope(self, total: Words) -> None:
        """Take in the scores of the snapshot's mean gradient."""
        self.slope = self._shaped(self.q.value(total))
        self.q.settle((self.D * self.slope).sum(axis=0))

    def drawn(self, number: int) -> Words:
        """Begin q with coefficients drawn by chance, which nobody can foretell; returns them for all rows."""
        key = own_key(self.context, f"proof {number}")
        rng = np.random.default_rng(np.frombuffer(key, dtype=np.uint32))
        D = rng.standard_normal(self.D.shape) / self.schedule.rows
        self.q = self._slot(self.lengths.longest * float(np.max(self.lengths.reach(D))), np.zeros(0))
        words, self.D = self.q.written(D)
        self.q.settle(self.lengths.reach(self.D) ** 2)
        return words

    def proves(self, total: Words) -> None:
        """See that p is what its coefficients make it: measured against those of q."""
        width = max(1, self.context.plan.objective.classes)
        p, q = self.p.value(total[:width], self.p.length), self.q.value(total[width:], self.q.length)
        self._check_alike(self.C, self._shaped(p), self.D, self._shaped(q))

    def as_told(self, parts: Iterable[Words]) -> list[Words]:
        """Return the own parts of the owners' weights as they may be told: to some bits of the length of all
        and, where owners are not the caller's, no more finely than their standard error."""
        parts = list(parts)
        apart, columns = self.context.apart, sum(part.shape[1] for part in parts)
        fine = 2.0 ** -told_bits(self.schedule.rows, apart=apart) * self.length
        error = math.sqrt(columns) / self.lengths.all if apart and self.lengths.all else 0.0
        return blurred(self.context, parts, max(1, int(max(fine, error) / self.unit)))

    @property
    def unit(self) -> float:
        """What one of p's words stands for, times alpha: w in units of the ring."""
        return self.factors.alpha * 2.0 ** -(self.lengths.bits + self.p.bits)
