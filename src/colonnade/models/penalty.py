"""The penalty lambda of a kernel machine, chosen on the sampled rows that its bandwidth is chosen on.

A third of the sample is held back, the machine is fitted to the rest with its own loss and with every one of
a few ridges, and so with each third; the ridge whose fits have the least loss on what they did not see is
taken. A large ridge makes scores small, which costs loss and changes no decision: where labels are classes,
the scores of a ridge are first multiplied by what suits them best. A ridge r stands beside the sum of all
rows' losses, as in sum_i L(f(x_i), y_i) + r/2 ||f||^2, so for n rows lambda = r / n: what one row can do
against the norm of f is the same in the sample and in all rows.

Nothing is asked of the other parties: k of every two sampled rows follows from the distances that choose the
bandwidth.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from colonnade.arrays import Floats
from colonnade.losses import Loss, labels_of, weights_of

RIDGES = tuple(4.0**k for k in range(3, -8, -1))  # 64 to 6e-5; each fit starts where the one before ended
FOLDS = 3
SCALES = tuple(2.0 ** (k / 2) for k in range(-4, 9))  # 1/4 to 16: what scores are multiplied by
STEPS = 40
EXACT = 1e-4  # a step that moves no score by more ends a fit


def best_ridge(K: Floats, y: Floats, loss: Loss, classes: int = 1) -> float:
    """Return the ridge with the least loss on rows held back; K is the kernel of all rows, y may have
    weights.

    With fewer rows than there are parts nothing can be held back, and a label is taken to be half noise: 1.
    """
    part = np.arange(len(K)) % FOLDS
    if len(K) < FOLDS:
        return 1.0
    weight, labels = weights_of(y), labels_of(y)
    counted = np.ones(len(K)) if weight is None else weight
    scores = np.zeros((len(RIDGES), len(K), *(() if classes == 1 else (classes,))))
    for fold in range(FOLDS):
        scores[:, part == fold] = held_back_scores(K, labels, counted, loss, part == fold, scores.shape[2:])
    scales = (1.0,) if loss.task == "regression" else SCALES
    losses = [min(np.sum(counted * loss.value(a * z, labels)) for a in scales) for z in scores]
    return RIDGES[int(np.argmin(losses))]


def held_back_scores(
    K: Floats,
    y: Floats,
    counted: Floats,
    loss: Loss,
    out: NDArray[np.bool_],
    outputs: tuple[int, ...],
) -> Floats:
    """Return the scores of the rows `out` under fits to all others that count, for every ridge."""
    inside = ~out & (counted > 0)
    fits = fitted(K[np.ix_(inside, inside)], y[inside], counted[inside], loss, outputs)
    K_out = K[np.ix_(out, inside)]
    return np.stack([K_out @ dual for dual in fits])


def fitted(K: Floats, y: Floats, weight: Floats, loss: Loss, outputs: tuple[int, ...]) -> list[Floats]:
    """Return the machines f = sum_i dual_i k(x_i, .) that fit weighted rows best, one for every ridge.

    With s the root of the weights, scores are counted as u = s f. The loss of u is curved by L, the loss's
    smoothness, at most, so it lies below a parabola that touches it at the present u; to go where that is
    least costs two products, once the eigenvalues of s K s are known. Steps gather momentum, and lose
    it where it points uphill.
    """
    from scipy.linalg import eigh  # only where a penalty is chosen; it takes long to load

    trailing = (1,) * len(outputs)
    s = np.sqrt(weight).reshape(-1, *trailing)
    root = s.reshape(-1, 1)
    values, Q = eigh(root * K * root.T, check_finite=False)
    values, L = np.maximum(values, 0.0).reshape(-1, *trailing), loss.smoothness
    u: Floats = np.zeros((len(K), *outputs))
    found = []
    for ridge in RIDGES:
        ahead, speed = u, 1.0
        for _ in range(STEPS):
            dual = (Q.T @ (L * ahead - s * loss.dz(ahead / s, y))) / (L * values + ridge)
            before, u = u, Q @ (values * dual)
            if np.abs(u - ahead).max() < EXACT:
                break
            uphill = np.sum((ahead - u) * (u - before)) > 0
            faster = 1.0 if uphill else (1 + np.sqrt(1 + 4 * speed**2)) / 2
            ahead = u if uphill else u + (speed - 1) / faster * (u - before)
            speed = faster
        found.append(s * (Q @ dual))
    return found
