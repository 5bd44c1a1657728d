"""Whether a finished model is an optimum: own columns explain next to nothing of what its scores leave.

A model whose gradient vanishes is the right one, no matter how it was found. So one more gradient, of the
finished model and out of new words, shows a word that was wrong in any pass, the last one too. It is made of
theta that the label holder computes by itself, from the total scores that it hears in the end.

Sums that were wrong by the same number in every pass would be wrong by it once more, and look right. So the
label holder turns the sign of theta by chance, and tells it when all words are dealt. A dealer that adds a
number to every sum has to guess the sign, each time.

The measure is v, the gradient in the block's first matrix: v'v beside what theta was in the beginning is
about the part of its mean square that own columns explain by least squares. Noise of a gradient explains a
part as well, in some directions more than in others; it is known how much.

A column of few rows has next to no gradient however far its weight is off, but its rows have a loss without
bound. So the label holder looks for rows whose scores are far on the wrong side.
"""

from __future__ import annotations

import numpy as np

from colonnade.arrays import Floats
from colonnade.conversations.linear.noisy.noisy_lbfgs import NoisyLbfgs
from colonnade.errors import SumError
from colonnade.secure.shared_logistic import REACH

EXPLAINED = 0.001  # of theta, that a direction of own columns may explain in the end, beside noise
TAIL = 14.0  # noise is more than is granted in one of e^14 gradients
LOST = 0.01  # of the loss, that rows far on the wrong side may have
TWICE = 2.0  # the noise of a gradient: that of the last pass is in the weights


def used(lbfgs: NoisyLbfgs, gradient: Floats, whole: float) -> tuple[float, float]:
    """Return the part of theta that the direction furthest beyond an optimum explains, and what is granted to
    it; `whole` is all of theta."""
    w = lbfgs.weights
    v = lbfgs.first.gradient(gradient + lbfgs.penalty.bend(w, w))
    noise, directions = np.linalg.eigh(lbfgs.first.noise)
    found = (directions.T @ v) ** 2 / whole
    tail = 2 * (TAIL + np.log(len(v)))  # of a normal number's square, and of as many of them
    granted = EXPLAINED + TWICE * tail * np.maximum(noise, 0.0) / whole
    worst = int(np.argmax(found / granted))
    return float(found[worst]), float(granted[worst])


def check(lbfgs: NoisyLbfgs, gradient: Floats, whole: float) -> None:
    """Raise SumError if own columns still explain more than an optimum leaves."""
    found, granted = used(lbfgs, gradient, whole)
    if not found <= granted:
        raise SumError(
            f"secure.proofs: the model is no optimum: own columns explain {found:.2%} of what it has wrong, "
            f"and {granted:.2%} is the most; a dealer's or owner's word was wrong, or train.epochs too few"
        )


def check_rows(margins: Floats) -> None:
    """Raise SumError if rows far on the wrong side have much of a logistic loss; y z are their margins."""
    losses = np.logaddexp(0.0, -margins)
    lost = float(losses[margins < -REACH].sum() / losses.sum())
    if lost > LOST:
        raise SumError(
            f"secure.proofs: rows whose scores are far on the wrong side have {lost:.1%} of the loss, and "
            f"{LOST:.0%} is the most; a dealer's or owner's word was wrong"
        )
