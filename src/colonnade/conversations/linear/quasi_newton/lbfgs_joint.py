"""One H over all blocks (`pairs = "joint"`): every party has its part of the vectors, all have the table.

Every party keeps its own parts of s and y and computes its part of H v; what is summed is plain numbers:
inner products of the stored vectors, and scores of a fixed sample of rows. These ride with the scores of
the next round (see `piggyback`), so a round stays one secure sum, and a step comes `ahead` rounds after its
gradient. A pair rides twice: X s and X w of the sample go out, L'' X s comes back and gives y; then the
inner products of s and y.

The steepest directions are found by Lanczos iterations on the sample, where training pauses to tune
itself: at the start and after 1, 3, 7, ... epochs. They are pinned in the memory and say how large H_0 may
be; all other pairs come from the way that the weights take.

A round makes two steps. The first-order one, as it would be without any H, is taken at once. What H adds to
it comes when the inner products do: gamma (H - I / L) v, which is nothing along the steepest direction, of
curvature L, and more the flatter it gets. So no direction is served worse than by first order, and where the
pairs turn out wrong less is added (`caution`) and first order remains.

One H must be the same H everywhere. Delays, and with them steps, differ from party to party, so the step of
a round's dominator holds for all. Near the optimum s and v become smaller than the fixed-point step of the
secure sums; they are brought to a length near 1 first, by factors that all parties derive from the inner
products before.

What each side learns: the totals of X s and X q on the sample (as in tuning) and inner products over all
blocks.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from colonnade.arrays import Floats, Rows
from colonnade.conversations.context import Context
from colonnade.conversations.linear.block import Block
from colonnade.conversations.linear.quasi_newton.caution import LEAP, Caution, Watch
from colonnade.conversations.linear.quasi_newton.heavy_columns import hidden_curvature
from colonnade.conversations.linear.quasi_newton.joint_questions import (
    CurvatureQuestion,
    JointQuestion,
    ProductsQuestion,
    StepQuestion,
)
from colonnade.conversations.linear.quasi_newton.piggyback import Riders
from colonnade.conversations.linear.settings import LinearSettings
from colonnade.conversations.linear.step_sizes import StepSizes
from colonnade.conversations.linear.tune import MARGIN, sum_to_all
from colonnade.conversations.pacing.schedule import Round
from colonnade.messages import Topic
from colonnade.models.linear import longest_row, rows_of
from colonnade.net.expect import floats
from colonnade.optim.lanczos import Lanczos
from colonnade.optim.lbfgs import LimitedMemory
from colonnade.optim.steps import Smoothness
from colonnade.state import Declared

SAMPLE = 2048
STEEPEST = 4  # pinned directions
FIRST, AGAIN = 10, 6  # products to find them, from a random vector and from those found before


@dataclass
class JointState:
    """What rounds change: the pairs of the common H, the questions under way, the factors of s and v."""

    memory: LimitedMemory
    caution: Caution
    riders: Riders[JointQuestion]
    last_w: Floats
    steepest: Floats | None = None
    smoothness: Smoothness | None = None  # how steep the objective is, once the steepest directions are found
    zoom_s: float = 1.0
    zoom_v: float = 1.0
    changes: int = 0  # how often the memory has changed
    exchanges: int = 0  # secure sums at pauses


@dataclass
class Joint:
    """One party's part of the common H: its parts of all vectors, and the steps that it takes with them."""

    STATE = Declared(kept=("state", "watch"), remade=("_bent_most",))

    context: Context[LinearSettings]
    block: Block
    sample: Rows
    steps: StepSizes
    state: JointState = field(init=False)

    def __post_init__(self) -> None:
        settings = self.context.plan.settings
        memory = LimitedMemory(settings.memory, settings.delta)
        w = self.block.w.copy()
        self.state = JointState(memory, Caution(w), Riders(self.context.plan.pace.ahead), w)
        per_epoch = self.steps.schedule.per_epoch
        # noise that only shorter steps take out is larger than a rise in every pass
        self.watch = Watch(math.inf, LEAP) if settings.kind.fades else Watch(per_epoch)
        self.sample = self.sample[:SAMPLE]
        self._rows = rows_of(self.block.X, self.sample)
        batch, smoothness = self.context.plan.pace.batch, self.context.loss.smoothness
        self._hidden = hidden_curvature(self.block.X, self.sample, batch, smoothness)
        self._worst = longest_row(self.block.X)
        self._bent_most = 0.0  # the largest L'' of the sample's rows at the weights last looked at

    # -- rounds -------------------------------------------------------------------------------------

    def load(self, batch: Round, share: Floats) -> Floats:
        """Return the share of a round's scores, with the questions that ride along appended."""
        return self.state.riders.load(batch.number, share)

    def reply(self, batch: Round, total: Floats, theta_of: Callable[[Floats], Floats]) -> Floats:
        """Return what a dominator sends back: theta of the round, and the answers to what rode with its
        scores."""
        z, ridden = self._split(batch, total)
        answers = self.state.riders.answers(batch.number, ridden, self._answer)
        return np.concatenate([theta_of(z).ravel(), answers])

    def take(self, batch: Round, reply: Floats) -> None:
        """Act on a round's reply: take the step that is answered now, ask for that of the new gradient."""
        theta, answers = self._split(batch, reply)
        v = self.block.estimate([(batch, theta)])
        self.state.riders.settle(
            batch.number, answers, lambda question, part: self._act(batch, question, part)
        )
        self.block.w -= self.steps.faded_rate() * v
        self._ask_step(batch.number, v)
        if (batch.number + 1) % self.context.plan.settings.pair_every == 0:
            self._ask_pair(batch.number)

    def reply_size(self, batch: Round) -> int:
        """Return how many numbers a round's reply has: its theta, and the answers to what rode with its
        scores."""
        riding = self.state.riders.under_way.get(batch.number, [])
        theta = int(batch.size * math.prod(self.block.w.shape[1:]))
        return theta + sum(each.answer_size for each in riding)

    def values(self, batch: Round) -> int:
        """Return how many stored numbers a step on a batch touches beyond the batch: the pairs, and a new
        one."""
        pairs = int(self.state.memory.vectors.size)
        due = (batch.number + 1) % self.context.plan.settings.pair_every == 0
        # X s, X w and then X' L'' X s of the sample, and the products of s and y with all vectors
        return 2 * pairs + (2 * pairs + 3 * self._rows.values(0, len(self.sample)) if due else 0)

    def _split(self, batch: Round, values: Floats) -> tuple[Floats, Floats]:
        classes = self.block.w.shape[1:]
        size = batch.size * math.prod(classes)
        return values[:size].reshape(batch.size, *classes), values[size:]

    def _answer(self, question: JointQuestion, total: Floats) -> Floats:
        match question:
            case StepQuestion():
                return np.append(
                    total, [self.state.caution.factor * self.steps.faded_gamma(), self.watch.said()]
                )
            case CurvatureQuestion():
                along, z = total.reshape(question.scores.shape)
                return self._bend(self._theta(z), along).ravel()
            case ProductsQuestion():
                return np.array(total)

    def _act(self, batch: Round, question: JointQuestion, answer: Floats) -> None:
        match question:
            case StepQuestion():
                self._take_step(question, answer)
            case CurvatureQuestion():
                self._ask_products(batch.number, question, answer)
            case ProductsQuestion():
                self._add_pair(question, answer)

    # -- steps --------------------------------------------------------------------------------------

    def _ask_step(self, number: int, v: Floats) -> None:
        state, inverse = self.state, self.state.memory.inverse
        v = state.zoom_v * v
        steepest = math.inf if state.smoothness is None else state.smoothness.mean
        state.riders.add(number, StepQuestion(v, state.zoom_v, inverse, steepest, inverse.dots(v)[:, 0]))

    def _take_step(self, asked: StepQuestion, answer: Floats) -> None:
        products, (squared_length, gamma, word) = answer[:-3], answer[-3:]
        state = self.state
        state.zoom_v = _zoomed(asked.zoom, squared_length)
        if state.caution.heed(word, self.block.w):
            state.memory.forget()
            state.changes += 1
            state.last_w = self.block.w.copy()
        else:
            surplus = asked.inverse.direction(asked.v, products) - asked.v / asked.steepest
            self.block.w -= (gamma / asked.zoom) * surplus

    # -- pairs --------------------------------------------------------------------------------------

    def _ask_pair(self, number: int) -> None:
        """Ask for the y of a new pair: X s and X w of the sample ride with a later round."""
        state, n = self.state, len(self.sample)
        s = state.zoom_s * (self.block.w - state.last_w)  # a pair of any length gives the same H
        state.last_w = self.block.w.copy()
        scores = np.array([self._rows.scores(0, n, each) for each in (s, self.block.w)])
        state.riders.add(number, CurvatureQuestion(s, state.zoom_s, self._penalty(s), scores))

    def _ask_products(self, number: int, asked: CurvatureQuestion, bent: Floats) -> None:
        """Ask for the inner products of a pair whose y is now known."""
        state = self.state
        y = self._gradient(bent.reshape(asked.scores[0].shape)) + asked.penalty
        dots = state.memory.dots(asked.s, y)
        state.riders.add(number, ProductsQuestion(asked.s, y, asked.zoom, dots, state.changes))

    def _add_pair(self, asked: ProductsQuestion, answer: Floats) -> None:
        state, products = self.state, answer.reshape(asked.dots.shape)
        state.zoom_s = _zoomed(asked.zoom, products[-2, 0])
        # others may have been pinned meanwhile, and the products would be those of other vectors
        if state.changes == asked.changes and state.memory.add(asked.s, asked.y, products, 0.0):
            state.changes += 1

    # -- pauses -------------------------------------------------------------------------------------

    async def pin(self) -> None:
        """Find the steepest directions at the present weights, and pin them in the memory.

        How steep the other directions are at most says how large H_0 may be.
        """
        state = self.state
        if state.steepest is None:
            start = np.asarray(self.context.rng(2).standard_normal(self.block.w.shape))
            if start.ndim > 1:  # the same for every class moves no probability: no gradient knows of it
                start -= start.mean(axis=1, keepdims=True)
            values, pairs = await self._lanczos(start, FIRST)
        else:
            values, pairs = await self._lanczos(state.steepest, AGAIN)
        state.steepest = np.array([s for s, _ in pairs]).sum(axis=0)
        vectors = [vector for pair in pairs for vector in pair]
        state.memory.unpin()
        dots = state.memory.dots(*vectors)
        piece = np.append(dots.ravel(), self._worst)
        *products, worst = await self._exchange(piece, self._said_with_products, piece.size)
        mean = MARGIN * values[0]
        state.smoothness = Smoothness(mean=mean, worst_row=max(worst, mean))
        # with several classes a direction is steep once for each of them, and only one of these is found:
        # H_0 is left with the others
        below = values[-1] if self.block.w.ndim == 1 else values[0]
        state.memory.pin(vectors, np.reshape(products, dots.shape), max(below, 0.01 * values[0]))
        state.changes += 1

    def _said_with_products(self, total: Floats) -> Floats:
        """Return the products and a bound of the worst row's curvature; at the evaluator."""
        *products, worst = total
        most = float(self.context.label_holder.steepest.max())
        return np.array([*products, worst * (most if math.isfinite(most) else self._bent_most)])

    async def _lanczos(self, start: Floats, steps: int) -> tuple[list[float], list[tuple[Floats, Floats]]]:
        """Return the largest eigenvalues of the Hessian on the sample, and pairs (s, y) along their
        directions."""
        n, iteration = len(self.sample), Lanczos(start)
        weights = self._rows.scores(0, n, self.block.w)
        theta: Floats | None = None

        def multiply(total: Floats) -> Floats:
            """Return L'' X q of the unit vector q, the length before it was one, and q'Aq; at the
            evaluator."""
            nonlocal theta
            squared_length, penalty = total[-2:]
            scores = total[:-2].reshape(-1, *weights.shape)
            if theta is None:
                theta = self._theta(scores[1])
                self._bent_most = float(self.context.label_holder.curvature(scores[1], self.sample).max())
            length = float(np.sqrt(squared_length)) if squared_length > 0 else 1.0
            q = scores[0] / length
            # at first the largest curvature that the loss has anywhere: it may be flat where we start
            first = self.state.steepest is None
            bent = self._steepest(theta, q) if first else self._bend(theta, q)
            alpha = float(np.vdot(bent, q)) / n + penalty / length**2
            return np.append(bent.ravel(), [np.sqrt(max(squared_length, 0.0)), alpha])

        for step in range(steps):
            vector = iteration.vector
            piece = [self._rows.scores(0, n, vector).ravel(), *([weights.ravel()] if step == 0 else [])]
            numbers = [np.vdot(vector, vector), np.vdot(vector, self._penalty(vector))]
            answer = await self._exchange(np.concatenate([*piece, numbers]), multiply, weights.size + 2)
            bent, (length, alpha) = answer[:-2].reshape(weights.shape), answer[-2:]
            if iteration.ends(length):
                break
            q = iteration.unit(length)
            iteration.take(length, alpha, self._gradient(bent) + self._penalty(q))
        return iteration.steepest(STEEPEST)

    async def _exchange(self, piece: Floats, answer: Callable[[Floats], Floats], size: int) -> Floats:
        """Sum all parties' pieces at the evaluator; returns its answer to the total."""
        self.state.exchanges += 1
        return await sum_to_all(
            self.context, piece, self.state.exchanges - 1, answer, floats(size), Topic.CURVATURE
        )

    # -- the quadratic ------------------------------------------------------------------------------

    def _theta(self, z: Floats) -> Floats:
        """Return dL/dz of the sample; only a label holder can compute it."""
        return self.context.label_holder.theta(z, self.sample, self.state.exchanges)

    def _bend(self, theta: Floats, along: Floats) -> Floats:
        """Return L'' times the scores `along`; only a label holder can compute it."""
        return self.context.label_holder.bend(theta, along, self.sample)

    def _steepest(self, theta: Floats, along: Floats) -> Floats:
        """Return the same with the largest L'' that a row has anywhere, or near its theta if there is no
        largest."""
        return self.context.label_holder.bend_most(theta, along, self.sample)

    def _gradient(self, bent: Floats) -> Floats:
        """Return X_l' times these numbers of the sample, divided by its rows."""
        return self._rows.gradient(0, len(self.sample), bent) / len(self.sample)

    def _penalty(self, s: Floats) -> Floats:
        """Return the Hessian times s of all that needs no other party: the penalty, and heavy columns."""
        return self.block.penalty.bend(self.block.w, s) + (s.T * self._hidden).T


def _zoomed(zoom: float, squared_length: float) -> float:
    """Return the factor that gives the next vector a length near 1, if it is about as long as the one before.

    Weights that have not moved yet give a vector of length zero, for which the factor grows slowly.

    >>> _zoomed(1.0, 0.25), _zoomed(4.0, 4.0), _zoomed(1.0, 0.0)
    (2.0, 2.0, 256.0)
    """
    return float(min(zoom / np.sqrt(max(squared_length, 2.0**-16)), 2.0**64))
