"""L-BFGS between two blocks from gradients with noise: slopes alone, by inner products of few bits.

No loss is known and no line is searched. Each party measures lengths by its own first matrix (X'X c / n +
l2)^-1, c being how curved a row is, so that a first step of length 1 is about right, and only what lies
between the blocks is left to learn. Noise sets three limits, as both know how loud it is:

- the first matrix is damped where the noise is as large as what a column says;
- a pair is taken where its slope is well above what noise makes of it;
- once gradients are nothing but noise, weights are the mean of the last few, and no longer the last ones.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from colonnade.arrays import Floats
from colonnade.conversations.linear.noisy.product_forms import LEAST_REACH
from colonnade.optim.lbfgs import LimitedMemory
from colonnade.regularizers import Penalty
from colonnade.state import Declared

BITS = 5  # of an inner product's mantissa: what more would say is told to nobody
MEMORY = 20  # pairs
DAMPING = 3.0  # times the noise of a column's gradient
CLEAR = 3.0  # times its noise: what a slope must be
RIGHT_ANGLE = 1e-3  # a pair whose cosine is smaller says nothing
QUIET = 4.0  # times the expected square of noise: a gradient of less is mostly noise
SHORTER = 0.25  # times its length: a step after which scores reach too far
SETTLED = 1e-5  # of the first gradient's square: what is left where a run may end
LAST = 4  # weights whose mean is taken, at the most
_TINY = 1e-9


def few_bits(values: Floats, bits: int = BITS) -> Floats:
    """Return numbers rounded to this many bits.

    >>> few_bits(np.array([1.0, 0.3, -1000.0, 0.0])).tolist()
    [1.0, 0.296875, -992.0, 0.0]
    """
    mantissa, exponent = np.frexp(values)
    rounded: Floats = np.ldexp(np.rint(mantissa * 2**bits) / 2**bits, exponent)
    return rounded


class FirstMatrix:
    """A block's own second moments: lengths are measured by their root, in which a first matrix is 1."""

    def __init__(self, gram: Floats, penalty: Floats, spread: Floats) -> None:
        matrix = gram + np.diag(penalty + DAMPING * spread)
        small = _TINY * max(float(np.diag(matrix).max(initial=0.0)), _TINY)
        self._root = np.linalg.cholesky(matrix + small * np.eye(len(matrix)))
        noise = np.linalg.solve(self._root, np.diag(spread)) if len(matrix) else np.zeros((0, 0))
        self.noise: Floats = noise @ noise.T
        """The covariance of noise, measured so."""

    def gradient(self, g: Floats) -> Floats:
        """Return a gradient, measured so."""
        found: Floats = np.linalg.solve(self._root, g)
        return found

    def step(self, d: Floats) -> Floats:
        """Return the change of weights that a direction is, measured so."""
        found: Floats = np.linalg.solve(self._root.T, d)
        return found


@dataclass
class NoisyState:
    """What steps change."""

    w: Floats  # of columns that are kept
    gradient: Floats
    direction: Floats
    memory: LimitedMemory = field(default_factory=lambda: LimitedMemory(MEMORY, 0.0))
    last: list[Floats] = field(default_factory=list)  # weights of the last steps
    quiet: int = 0  # gradients that were mostly noise
    squares: list[float] = field(default_factory=list)  # of gradients, over both blocks
    length: float = 1.0  # of the last step, where it was shortened
    reach: int = LEAST_REACH  # how far scores reached in the last pass, as a code: the further of both
    steps: int = 0


class NoisyLbfgs:
    """One party's part; both take the same decisions, since they see the same totals."""

    STATE = Declared(kept=("state",))

    def __init__(self, first: FirstMatrix, penalty: Penalty, w: Floats) -> None:
        self.first, self.penalty = first, penalty
        self.state = NoisyState(w, np.zeros_like(w), np.zeros_like(w))

    def told(self, gradient: Floats) -> Floats:
        """Return this block's inner products, rounded, for both to add up: the last row is about noise.

        Rows are the vectors of all pairs, the newest s and y, and the gradient v; columns s, y and v.
        """
        state = self.state
        v = self.first.gradient(gradient + self.penalty.bend(state.w, state.w))
        s, y = state.direction, (v - state.gradient) / state.length
        self._new = s, y, v
        noise = [s @ self.first.noise @ s, np.trace(self.first.noise), 0.0]
        return few_bits(np.vstack([state.memory.dots(s, y, v), noise]))

    def step(self, totals: Floats) -> None:
        """Move the own weights, all inner products being known."""
        state, (s, y, v) = self.state, self._new
        (of_s, of_noise, _), totals = totals[-1], totals[:-1]
        with_v = totals[:-1, 2]
        ss, sy, yy = totals[-3, 0], totals[-3, 1], totals[-2, 1]
        clear = sy > max(CLEAR * np.sqrt(2 * of_s) / state.length, RIGHT_ANGLE * np.sqrt(ss * yy))
        if ss > 0 and yy > 0 and clear:
            state.memory.append(s, y, totals[:-1, :2], gamma=float(yy / sy))
        else:
            with_v = with_v[:-2]
        with_v = with_v[len(with_v) - len(state.memory.vectors) :]  # the oldest pair may have gone
        if state.memory.pairs:
            state.direction = -state.memory.direction(v, with_v)
        else:
            state.direction = -v
        state.gradient = v
        state.quiet += int(totals[-1, 2] < QUIET * of_noise)
        state.squares.append(float(totals[-1, 2]))
        state.w = state.w + self.first.step(state.direction)
        state.length = 1.0
        state.steps += 1
        state.last = [*state.last, state.w][-max(1, min(LAST, state.quiet)) :]

    @property
    def settled(self) -> bool:
        """Whether nothing is left of the first gradient that another pass could find."""
        squares = self.state.squares
        return bool(squares) and squares[-1] <= SETTLED * squares[0]

    def shorten(self) -> None:
        """Go back most of the last step, after which scores reached too far; both parties do."""
        state = self.state
        state.w = state.w - (1 - SHORTER) * state.length * self.first.step(state.direction)
        state.length *= SHORTER
        state.last[-1] = state.w

    @property
    def weights(self) -> Floats:
        """The weights that a run ends with."""
        mean: Floats = np.mean(self.state.last, axis=0) if self.state.last else self.state.w
        return mean
