"""The full conversation: L-BFGS on all rows at once, each step as long as is best; for data nobody knows yet.

A step takes two secure sums. First inner products over all blocks: every party then knows its part of the
direction d = -H g, where H comes from the latest pairs (s, y) of the way so far. Then u = X d of all rows:
the evaluator knows the scores z of all rows, so it knows z + t u for every t, and looks for the best t
without asking anybody (`optim.line_search`). It answers with t and theta = dL/dz there; every party moves and
has its next gradient.

Every party begins with an H of its own block (`optim.second_moments`), which it tells nobody: it counts its
directions and gradients in coordinates in which that is 1. Parties say in the first sum that they do; where
one is of version 0.2, nobody does.

No step size is assumed: the loss falls with every step, with any columns, and the run ends when
it stops falling. A step costs as many bytes as one epoch of `backward`, in two messages each way, where an
epoch has hundreds.

What is summed has a length near 1: near the optimum gradients and steps become smaller than the fixed-point
step of the secure sums. Nobody knows how long a gradient is before it is summed, and it can be far longer
than the one before: products beyond the range are cut to its edge, all see that, and sum shorter vectors.
Scores and weights are counted in units of the labels, where these are numbers; penalties are summed finely,
as the loss may be next to nothing in that unit. A run ends where gradients are nothing but rounding, or what
they gain is, at the latest.

What each side learns: the evaluator learns the total score of every row; every party learns theta of every
row, and with it, for the logistic loss, the label and the total score, as in `backward`; all learn inner
products over all blocks and, where labels are numbers, how large they are.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from colonnade.arrays import Floats
from colonnade.conversations.context import Context, Outcome
from colonnade.conversations.evaluate import MEGA, Evaluation, Mark
from colonnade.conversations.linear.algorithm.full_evaluator import FullState, LineSearcher
from colonnade.conversations.linear.block import scored_by
from colonnade.conversations.linear.settings import FullSettings
from colonnade.conversations.linear.tune import sum_to_all
from colonnade.conversations.pieces import messages
from colonnade.errors import ProtocolError
from colonnade.messages import Topic
from colonnade.models.linear import rows_of
from colonnade.net.expect import floats
from colonnade.optim.lbfgs import LimitedMemory
from colonnade.optim.second_moments import OwnMetric, first_matrix
from colonnade.secure.ring import finely, limit
from colonnade.state import Declared

RIGHT_ANGLE = 1e-10  # a pair whose cosine is smaller says nothing
LONGER = 3  # times as many pairs as 0.2 keeps, where no party is of that version
UNBOUNDED = 1.0  # what stands for the curvature of a loss that has no bound, where scores are zero
SHORTER = 1e-4  # what does not fit the range of the sums is tried again so much shorter, or longer


async def converse(context: Context[FullSettings]) -> Outcome:
    """Train the party's block from all rows at once."""
    conversation = FullConversation(context)
    await conversation.run()
    return conversation.outcome()


@dataclass
class FullConversation:
    """One party's side: it scores directions and moves along them."""

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
        self.context.gates.keep(self, older={"own": False})
        self.first = self._first_matrix()
        if self.searcher is not None:
            self.context.gates.keep(self.searcher, name="FullConversation.judge")

    async def run(self) -> None:
        """Step until the loss stops falling, or as often as the plan allows; measure the model at the end."""
        state, gates = self.state, self.context.gates
        gates.begin(1)
        if not gates.position:
            news, self.theta = await self._ask(np.ones(1), lambda said: self._searcher.begin(float(said[0])))
            self.unit, self.own = news[0], news[1] == 1.0
            self.first = self._first_matrix()
            state.memory = self._no_pairs()
        while len(self.theta):
            await self._turn(self.theta)
            self._begin_at_start()
            news, self.theta = await self._ask(self._piece(), lambda total: self._searcher.go(total))
            state.step, state.converged = news[0], {0.0: False, 1.0: True}.get(news[1])
            state.w += state.step * self.first.of(state.direction)
            state.steps += 1
            if len(self.theta) and gates.due(state.steps):
                await gates.reached(state.steps)
        state.w *= self.unit
        await self._measure(self.unit)

    async def _turn(self, theta: Floats) -> None:
        """Find the direction to go from the gradient that theta gives, and the pair of the step before."""
        state, n = self.state, self.context.train.rows
        await self._charge()
        by_weights = self.rows.gradient(0, n, theta.reshape(n, *state.w.shape[1:])) / n
        gradient = self.first.of(by_weights + self._penalty(state.w))
        # a pair of any length gives the same H: that of a step of length 1 stays in the range of the sums
        s, y = state.direction, (gradient - state.gradient) / (state.step or 1.0)
        state.gradient = gradient
        s, y, v, totals = await self._products(s, y, gradient / state.length)
        with_v = totals[:-1, 2]
        if not self._add_pair(s, y, totals[:-1, :2]):
            with_v = with_v[:-2]
        with_v = with_v[len(with_v) - len(state.memory.vectors) :]  # the oldest pair may have gone
        along, squared_length = state.memory.inverse.measures(with_v, totals[-1, 2])
        if not (along > 0 and squared_length > 0):  # rounded away: H is of no use any more
            state.memory = self._no_pairs()
            with_v, squared_length = with_v[:0], totals[-1, 2]
        length = math.sqrt(squared_length) or 1.0
        state.direction = -state.memory.direction(v, with_v) / length
        state.natural = length * state.length
        state.length *= math.sqrt(totals[-1, 2]) or 1.0
        state.longest = max(state.longest, state.length)

    def _begin_at_start(self) -> None:
        """Make the first step lead to the weights that parties begin with, as far as is best."""
        start, state = self.context.start, self.state
        if start is None or state.steps:
            return
        state.direction = (
            self.first.back(start / self.unit) if start.shape == state.w.shape else 0.0 * state.w
        )
        state.natural = 1.0

    async def _products(self, s: Floats, y: Floats, v: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """Return the inner products over all blocks of a pair and v with each other and with the pairs
        before.

        Where they do not fit the range of the sums all three vectors are shortened alike, and returned so;
        where v is so short that its products are rounded to nothing, it is lengthened. The products of
        vectors with themselves tell: no party's part of these takes from another's, and no other product is
        larger.
        """
        edge = limit(len(self.context.plan.parties)) / 2
        while True:
            dots = np.clip(self.state.memory.dots(s, y, v), -edge, edge)
            totals = (await self._sum(dots.ravel(), np.copy, dots.size)).reshape(dots.shape)
            squares = totals[-3:].diagonal()
            if squares.min() < 0:
                told = [self.context.evaluator] if self.searcher is None else self.context.net.peers
                raise ProtocolError(f"{', '.join(told)} told inner products that no vectors have")
            if squares.max() >= edge:
                s, y, v = SHORTER * s, SHORTER * y, SHORTER * v
                self.state.length /= SHORTER
            elif not squares[-1] and not self.state.flat:  # one step may lead from far away to the optimum
                v = v / SHORTER
                self.state.length *= SHORTER
            else:
                return s, y, v, totals

    def _add_pair(self, s: Floats, y: Floats, products: Floats) -> bool:
        """Take a pair into H; False where there was no step before, or it says nothing."""
        ss, sy, yy = products[-2, 0], products[-2, 1], products[-1, 1]
        if not (self.state.step > 0 and yy > 0 and sy > RIGHT_ANGLE * math.sqrt(ss * yy)):
            return False
        self.state.memory.append(s, y, products, gamma=float(yy / sy))
        return True

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

    async def _measure(self, unit: float) -> None:
        """Measure the finished model, on test rows too."""
        state, test = self.state, self.context.test
        tables = [self.context.train, *([test] if test is not None else [])]
        scored = [scored_by(rows_of(table.X), table.rows, state.w) for table in tables]
        penalty = self.penalty.value(state.w)
        await self.evaluation.measure(scored, penalty, Mark(state.steps, state.sums, final=True), unit=unit)

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
