"""Epsilon as the VFL-CZOFO paper computes it: a number for its Table 8, and no guarantee of anything.

The paper (supplement, Theorems C.4 and C.6) takes the randomness of the directions u for the noise of a
Gaussian mechanism. It is not one:

- the client must know u to use a reply, and given u the reply is a deterministic function of the labels: two
  labels that give different replies are told apart with certainty, and no finite epsilon holds;
- the sensitivity of a reply is 2 zeta, not 2 zeta / N: the client knows that the row is in the batch;
- the "noise" is proportional to the very gradient that it should hide (tr Psi = (d + 1) |g|^2);
- Equation 21 compares a variance (times a step) with what Lemma C.3 asks of a standard deviation.

`tests/attacks/test_audit.py` finds a lower bound on the true epsilon far above the claim, in an experiment.
What does hold is in `privacy.labels` and `privacy.mechanisms`.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, inf, log, sqrt

import numpy as np

from colonnade.arrays import Numbers


@dataclass(frozen=True)
class Observed:
    """What the formulas need to know of a run, from the gradients g_i = df_i/dh_i of single rows."""

    zeta: float  # the largest |g_i|
    trace: float  # the mean of tr Psi, the covariance of an estimate along one direction

    @staticmethod
    def of(gradients: Numbers) -> Observed:
        """From gradients g_i, one a row; along a Gaussian direction tr Psi = (d + 1) |g|^2."""
        squares = np.square(gradients).sum(axis=1)
        return Observed(float(sqrt(squares.max())), (gradients.shape[1] + 1) * float(squares.mean()))


def claimed_epsilon_of_a_reply(seen: Observed, *, rows: int, q: int, d: int, delta: float = 1e-5) -> float:
    """The claim for one reply: Theorem C.4 (Equation 15), for q directions, d outputs and N = `rows`."""
    return 2 * seen.zeta * sqrt(2 * log(1.25 / delta)) / (rows * sqrt(seen.trace / (q * d)))


def claimed_epsilon(
    seen: Observed, *, rows: int, q: int, d: int, step: float, replies: int, delta: float = 1e-5
) -> float:
    """The claim for all T = `replies`: Theorem C.6 (Equation 21, then Lemma C.5), with delta' = delta.

    Lemma C.5 is applied as in its source, sqrt(2 T ln(1 / delta')) epsilon + T epsilon (e^epsilon - 1); the
    supplement has epsilon under the root by a misprint.
    """
    one = 2 * seen.zeta * sqrt(2 * log(1.25 / delta)) / (rows * step * seen.trace / (q * d))
    if one > 700:
        return inf  # e^epsilon overflows
    return sqrt(2 * replies * log(1 / delta)) * one + replies * one * (exp(one) - 1)
