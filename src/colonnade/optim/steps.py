"""How large a step may be: from smoothness, batch size and delay, for linear models and for kernels.

Without delay the step is 1 / L_b, where L_b is the expected smoothness of a batch of b out of n rows
(Gower et al. 2019): it lies between the smoothness L of the whole objective (b = n) and that of the
worst row (b = 1). A gradient that is tau updates old is stable only below pi / ((2 tau + 1) L), the
classical bound for delayed gradient descent; we stay at four fifths of it, 2.5 / ((2 tau + 1) L).

Doubly stochastic gradients of a kernel machine step in function space. k(x, x) = 1 for the kernels here, so
their step needs no other scale than the loss: its curvature times the largest eigenvalue of the kernel, plus
the noise of B rows and M features.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from colonnade.losses import Loss

# losses of classes are curved as much as their bound says only near the boundary of the classes
EAGERNESS = 3.0
# A row that is alone in its direction, such as the only one of a category, is met by SAGA once a pass with
# a = step L_row / b. What it remembers of the row has by then moved the weights by as much again, so theta
# goes from t to (1 - 2a) t + a t', where t' is the one before. That is stable below a = 2/3, and below 0.65
# where passes are shuffled; at a = 1, as far as others may go, theta grows by 1.6 a pass. It does where
# numbers are predicted. Rows of classes are less curved the further off they are, and lose by a shorter step.
LONE_ROW = 0.6


@dataclass(frozen=True)
class Smoothness:
    """L of the mean loss and of the worst single row, regulariser included."""

    mean: float
    worst_row: float

    def of_batch(self, batch: int, rows: int) -> float:
        """Return the expected smoothness of a batch out of this many rows.

        >>> s = Smoothness(mean=1.0, worst_row=9.0)
        >>> s.of_batch(1, 100), s.of_batch(100, 100)
        (9.0, 1.0)
        """
        if rows == 1:
            return self.worst_row
        b, n = min(batch, rows), rows
        return ((n - b) * self.worst_row + n * (b - 1) * self.mean) / (b * (n - 1))


def quasi_newton_step(batch: int, delay: int) -> float:
    """Return the step along H v. H takes out the curvature, so only noise and delay limit the step.

    >>> quasi_newton_step(1024, 0), quasi_newton_step(256, 0)
    (1.0, 0.5)
    """
    return min(1.0, math.sqrt(batch / 1024), 1.5 / (2 * delay + 1))


def own_newton_step(batch: int, delay: int, *, blocks: int, ahead: int) -> float:
    """Return the step along H v where every block has an H of its own, with this many batches in flight.

    Blocks do not see each other's curvature and must be more careful. Where columns of all of them say the
    same, each takes the whole step, and all together take it `blocks` times: that is stable below 2 / blocks
    if all step at once on scores of the present weights, and with older ones as much less as for any delay.

    >>> own_newton_step(256, 0, blocks=8, ahead=1), own_newton_step(256, 0, blocks=8, ahead=2)
    (0.125, 0.0625)
    """
    return min(quasi_newton_step(batch, 0) / 4, 1.5 / (2 * delay + 1), 1.5 / (blocks * (2 * ahead - 1)))


def automatic_step(
    smoothness: Smoothness,
    batch: int,
    rows: int,
    delay: int,
    *,
    remembers: bool = False,
    numbers: bool = False,
) -> float:
    """Return the step of a first-order method, from the smoothness of the objective.

    `remembers` is whether its estimator goes by thetas of the pass before, as SAGA does, and `numbers`
    whether labels are numbers and not classes.

    >>> automatic_step(Smoothness(1.0, 1.0), batch=10, rows=100, delay=8) == 2.5 / 17
    True
    """
    bound = 2.5 / (2 * delay + 1)
    if remembers and delay:
        bound = _delayed_saga(delay, -(-rows // batch))
    step = min(1 / smoothness.of_batch(batch, rows), bound / smoothness.mean)
    lone = remembers and numbers and batch < rows
    return min(step, LONE_ROW * batch / smoothness.worst_row) if lone else step


def _delayed_saga(delay: int, batches: int) -> float:
    """Return the step of delayed SAGA times L; it is smaller as what SAGA remembers is one pass old, too.

    Followed batch by batch on a quadratic, delayed SAGA is stable below 1.6 / (tau + 1.65) and
    2.2 / (2 tau + 1) while the delay is a small part of a pass; from about a third of a pass on, memory
    and delay resonate and no more than 1.15 / (2 tau + 1) is left.
    """
    if 10 * delay <= 3 * (batches - 4):
        return min(1.35 / (delay + 1.65), 2 / (2 * delay + 1))
    return 1 / (2 * delay + 1)


def kernel_step(
    loss: Loss, spread: float, batch: int, block: int, delay: int = 0, *, falling: bool = True
) -> float:
    """Return gamma for doubly stochastic gradients; `spread` bounds the kernel's largest eigenvalue.

    Scores that are tau rounds old allow 1 / (2 tau + 1) of it. A step that falls in the end may be eager
    before; one row and one feature a step leave no room for that:

    >>> from colonnade.losses import SmoothHinge
    >>> kernel_step(SmoothHinge(), 1.0, batch=1, block=1) == 1 / 3
    True
    """
    noise = 1 / batch + 1 / block
    calm = loss.task == "regression" or not falling
    eagerness = 1.0 if calm else 1 + (EAGERNESS - 1) * max(0.0, 1 - noise)
    return eagerness / (loss.smoothness * (spread + noise)) / (2 * delay + 1)


def step_of_round(gamma: float, kind: Literal["constant", "falling"], number: int, rounds: int) -> float:
    """Return gamma_t: constant as in the paper, or falling to 0, which takes the noise out of the end.

    >>> step_of_round(8.0, "falling", number=3, rounds=4)
    2.0
    """
    return gamma if kind == "constant" else gamma * (1 - number / rounds)
