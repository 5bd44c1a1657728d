"""A party of L-BFGS on all rows that is told theta in clear: it scores directions and moves along them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from colonnade.arrays import Floats
from colonnade.conversations.context import Context, Outcome
from colonnade.conversations.evaluate import MEGA, Evaluation, Mark
from colonnade.conversations.linear.block import scored_by
from colonnade.conversations.linear.parties.full_evaluator import LineSearcher
from colonnade.conversations.linear.quasi_newton.directions import Directions, FullState
from colonnade.conversations.linear.settings import FullSettings
from colonnade.conversations.linear.tune import sum_to_all
from colonnade.conversations.pieces import messages
from colonnade.errors import ProtocolError
from colonnade.messages import Topic
from colonnade.models.linear import rows_of
from colonnade.net.expect import floats
from colonnade.optim.lbfgs import LimitedMemory
from colonnade.optim.second_moments import OwnMetric, first_matrix
from colonnade.secure.ring import finely
from colonnade.state import Declared

LONGER = 3  # times as many pairs as 0.2 keeps, where no party is of that version
CALLED = "FullConversation"  # in checkpoints, as 0.2 has it
UNBOUNDED = 1.0  # what stands for the curvature of a loss that has no bound, where scores are zero


@dataclass
class ClearFullParty:
    """One party's side; at the evaluator with a searcher, which knows how far to go."""

    STATE = Declared(kept=("state", "unit", "theta", "own"), remade=("first",))

    context: Context[FullSettings]
    evaluation: Evaluation = field(init=False)
    state: FullState = field(init=False)
    unit: float = 1.0  # of scores and weights
    theta: Floats = field(default_factory=lambda: np.zeros(0))  # at the present weights
    own: bool = False  # whether every party has a first matrix of its own, and they remember longer
    first: OwnMetric = field(init=False)

    def __post_init__(self) -> None:
        plan, X = self.context.plan, self.context.train.X
        self.penalty = self.context.penalty
        w = np.zeros((int(X.shape[1]), *plan.objective.shape))
        self.state = FullState(w, np.zeros_like(w), np.zeros_like(w), self._no_pairs())
        self.evaluation = self.context.evaluation()
        self.rows = self.context.engine.rows(X)
        scribe = self.evaluation.scribe
        self.searcher = LineSearcher(self.context, self.state, scribe) if scribe is not None else None
        told_by = self.context.net.peers if self.searcher is not None else [self.context.evaluator]
        self.directions = Directions(self.state, self._summed, len(plan.parties), told_by)
        self.context.gates.keep(self, name=CALLED, older={"own": False})
        self.first = self._first_matrix()
        if self.searcher is not None:
            self.context.gates.keep(self.searcher, name=f"{CALLED}.judge")

    async def begin(self) -> None:
        """Hear in which unit scores are counted, whether all begin with matrices of their own, and theta."""
        news, self.theta = await self._ask(np.ones(1), lambda said: self._searcher.begin(float(said[0])))
        self.unit, self.own = news[0], news[1] == 1.0
        self.first = self._first_matrix()
        self.state.memory = self._no_pairs()

    async def turn(self) -> None:
        """Find the own part of the direction, from the gradient and inner products over all blocks."""
        await self.directions.turn(await self._gradient(self.theta))
        self._begin_at_start()

    async def move(self) -> None:
        """Move along the direction as far as the evaluator says; none of theta is left where it ends."""
        state = self.state
        news, self.theta = await self._ask(self._piece(), lambda total: self._searcher.go(total))
        state.step, state.converged = news[0], {0.0: False, 1.0: True}.get(news[1])
        state.w += state.step * self.first.of(state.direction)
        state.steps += 1

    async def _gradient(self, theta: Floats) -> Floats:
        """Return the gradient at the present weights, in coordinates in which the first matrix is 1."""
        n = self.context.train.rows
        await self._charge()
        by_weights = self.rows.gradient(0, n, theta.reshape(n, *self.state.w.shape[1:])) / n
        return self.first.of(by_weights + self._penalty(self.state.w))

    def _begin_at_start(self) -> None:
        """Make the first step lead to the weights that parties begin with, as far as is best."""
        start, state = self.context.start, self.state
        if start is None or state.steps:
            return
        state.direction = (
            self.first.back(start / self.unit) if start.shape == state.w.shape else 0.0 * state.w
        )
        state.natural = 1.0

    def _piece(self) -> Floats:
        """Return what this party tells of its direction: its scores, and how the penalty changes along it."""
        state, n = self.state, self.context.train.rows
        w, d = state.w, self.first.of(state.direction)
        along = self.rows.scores(0, n, d)
        penalties = np.array([np.vdot(a, self._penalty(b)) for a, b in ((w, w), (w, d), (d, d))])
        sent = self.evaluation.sent_bytes() / MEGA
        return np.concatenate([along.ravel(), finely(penalties), [sent]])

    def _no_pairs(self) -> LimitedMemory:
        """Return an H of which only the first matrix is known."""
        return LimitedMemory(self.context.plan.settings.memory * (LONGER if self.own else 1), 0.0)

    def _first_matrix(self) -> OwnMetric:
        """Return what this party knows of its own block's curvature; 1, where not all begin so."""
        X = self.context.train.X
        ones = np.ones(int(X.shape[1]))
        if not self.own:
            return OwnMetric(ones)
        steepest = self.context.loss.smoothness
        curvature = steepest if math.isfinite(steepest) else UNBOUNDED
        return first_matrix(X, curvature, self._penalty(ones))

    def _penalty(self, v: Floats) -> Floats:
        """Return the penalty's Hessian times v; it is a quadratic."""
        return self.penalty.bend(v, v)

    async def _summed(self, table: Floats) -> Floats:
        """Return the totals of a table of numbers over all parties, which all learn."""
        return (await self._sum(table.ravel(), np.copy, table.size)).reshape(table.shape)

    async def _ask(self, piece: Floats, answer: Callable[[Floats], Floats]) -> tuple[list[float], Floats]:
        """Sum all parties' pieces; returns two numbers of the evaluator's answer, and its theta if any."""
        await self._charge()
        news = await self._sum(piece, answer, None)
        theta = self.context.train.rows * math.prod(self.state.w.shape[1:])
        if news.size not in (2, 2 + theta):
            who = self.context.evaluator
            raise ProtocolError(f"{who} sent {news.size} numbers; 2 and theta of all rows, or 2, were due")
        return news[:2].tolist(), news[2:]

    async def _sum(self, piece: Floats, answer: Callable[[Floats], Floats], size: int | None) -> Floats:
        state, first = self.state, self.state.tags
        state.sums += 1
        longest = self.context.train.rows * math.prod(state.w.shape[1:]) + 2  # what the evaluator answers
        state.tags += messages(max(longest, piece.size))
        return await sum_to_all(self.context, piece, first, answer, floats(size), Topic.TRAIN, longest)

    async def _charge(self) -> None:
        await self.context.charge(self.rows.values(0, self.context.train.rows))

    @property
    def _searcher(self) -> LineSearcher:
        if self.searcher is None:
            raise RuntimeError(f"{self.context.me} is not the evaluator")
        return self.searcher

    async def measure(self) -> None:
        """Measure the finished model, on test rows too."""
        state, test = self.state, self.context.test
        state.w *= self.unit
        tables = [self.context.train, *([test] if test is not None else [])]
        scored = [scored_by(rows_of(table.X), table.rows, state.w) for table in tables]
        penalty = self.penalty.value(state.w)
        await self.evaluation.measure(
            scored, penalty, Mark(state.steps, state.sums, final=True), unit=self.unit
        )

    def outcome(self) -> Outcome:
        """Return what this party returns."""
        state = self.state
        return Outcome(
            weights={"w": state.w},
            step=state.step,
            rounds=state.sums,
            updates=state.steps,
            evaluation=self.evaluation,
            delays=Counter({0: state.steps}),
            converged=state.converged,
        )
