"""The step of doubly stochastic gradients, in function space.

k(x, x) = 1 for the kernels here, so a step needs no other scale than the loss: its curvature times the
largest eigenvalue of the kernel, plus the noise of B rows and M features.
"""

from __future__ import annotations

from typing import Literal

from colonnade.losses import Loss

# losses of classes are curved as much as their bound says only near the boundary of the classes
EAGERNESS = 3.0


def function_step(loss: Loss, spread: float, batch: int, block: int, delay: int = 0) -> float:
    """gamma for a loss; `spread` bounds the kernel's largest eigenvalue.

    Scores that are tau rounds old allow 1 / (2 tau + 1) of it (see `colonnade.optim.steps`). One row and
    one feature a step leave no room for eagerness:

    >>> from colonnade.losses import SmoothHinge
    >>> function_step(SmoothHinge(), 1.0, batch=1, block=1) == 1 / 3
    True
    """
    noise = 1 / batch + 1 / block
    eagerness = 1.0 if loss.task == "regression" else 1 + (EAGERNESS - 1) * max(0.0, 1 - noise)
    return eagerness / (loss.smoothness * (spread + noise)) / (2 * delay + 1)


def rate(gamma: float, kind: Literal["constant", "falling"], number: int, rounds: int) -> float:
    """gamma_t: constant as in the paper, or falling to nothing, which takes the noise out of the end.

    >>> rate(8.0, "falling", number=3, rounds=4)
    2.0
    """
    return gamma if kind == "constant" else gamma * (1 - number / rounds)
