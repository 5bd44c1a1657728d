"""The step of doubly stochastic gradients, in function space.

k(x, x) = 1 for the kernels here, so a step needs no other scale than the loss: its curvature times the
largest eigenvalue of the kernel, plus the noise of B rows and M features.
"""

from __future__ import annotations

from typing import Literal

# the Frobenius norm that stands for the eigenvalue is about three times as large
EAGERNESS = 3.0


def function_step(smoothness: float, spread: float, batch: int, block: int, delay: int = 0) -> float:
    """gamma for a loss of this smoothness; `spread` bounds the kernel's largest eigenvalue.

    Scores that are tau rounds old allow 1 / (2 tau + 1) of it (see `colonnade.optim.steps`). One row and
    one feature a step leave no room for eagerness:

    >>> function_step(1.0, 1.0, batch=1, block=1) == 1 / 3
    True
    """
    noise = 1 / batch + 1 / block
    eagerness = 1 + (EAGERNESS - 1) * max(0.0, 1 - noise)
    return eagerness / (smoothness * (spread + noise)) / (2 * delay + 1)


def rate(gamma: float, kind: Literal["constant", "falling"], number: int, rounds: int) -> float:
    """gamma_t: constant as in the paper, or falling to nothing, which takes the noise out of the end.

    >>> rate(8.0, "falling", number=3, rounds=4)
    2.0
    """
    return gamma if kind == "constant" else gamma * (1 - number / rounds)
