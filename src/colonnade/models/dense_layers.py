"""Fully connected layers with ReLU on NumPy, for machines without torch: the same function as `network.mlp`.

Parameters lie in one vector in the order that torch has them, each layer's weights and then its biases, and
start from the same distribution. So a share that was trained with torch gives the same scores without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from colonnade.arrays import Matrix, Numbers
from colonnade.losses import Loss
from colonnade.models.blackbox import Perturbations, dense, losses_of

STRETCH = 2**20  # hidden numbers computed at one time: what stays in a cache
# what runs away is infinite, as with torch: the run says so, and how to mend it
_QUIET = np.errstate(over="ignore", invalid="ignore")


@dataclass(frozen=True)
class DenseLayers:
    """Layers of these widths, the first of which is the number of columns and the last that of outputs."""

    widths: tuple[int, ...]
    precision: str = "float32"

    @property
    def parameters(self) -> int:
        return sum((before + 1) * after for before, after in pairwise(self.widths))

    @property
    def layout(self) -> list[tuple[str, tuple[int, ...]]]:
        """Names and shapes of the tensors in the parameter vector, as torch has them."""
        found: list[tuple[str, tuple[int, ...]]] = []
        for at, (before, after) in enumerate(pairwise(self.widths)):
            found += [(f"{2 * at}.weight", (after, before)), (f"{2 * at}.bias", (after,))]
        return found

    def buffers(self) -> dict[str, Numbers]:
        """Return nothing: all tensors are trained."""
        return {}

    def restore(self, buffers: dict[str, Numbers]) -> None:
        """Do nothing: there are no others."""

    def initial(self, rng: np.random.Generator) -> Numbers:
        parts = []
        for before, after in pairwise(self.widths):
            bound = 1 / np.sqrt(before)
            parts.append(rng.uniform(-bound, bound, (before + 1) * after))
        return np.concatenate(parts).astype(self.precision)

    @_QUIET
    def forward(self, W: Numbers, X: Matrix) -> Numbers:
        rows = self._cast(dense(X))
        return np.stack([self._passed(self._layers(w), rows)[-1] for w in W])

    @_QUIET
    def gradient(self, w: Numbers, X: Matrix, d_out: Numbers) -> Numbers:
        parts, _ = self._back(w, X, d_out)
        return np.concatenate([part.ravel() for part in parts])

    @_QUIET
    def input_gradient(self, w: Numbers, X: Matrix, d_out: Numbers) -> Numbers:
        return self._back(w, X, d_out)[1]

    @_QUIET
    def forward_replaced(self, w: Numbers, C: Numbers, own: slice, outputs: Numbers) -> Numbers:
        (weights, bias), *above = self._layers(w)
        first = self._cast(C) @ weights.T + bias
        moved = self._cast(outputs - C[:, own]) @ weights[:, own].T
        return _above(above, moved + first)

    @_QUIET
    def losses_perturbed(
        self, w: Numbers, C: Numbers, own: slice, points: Perturbations, loss: Loss, y: Numbers
    ) -> Numbers:
        (weights, bias), *above = self._layers(w)
        first = self._cast(C) @ weights.T + bias
        changes = self._cast(points.bases) @ weights[:, own].T
        some, found = max(1, STRETCH // max(1, first.size)), []
        for at in range(0, len(points.steps), some):
            steps = self._cast(points.steps[at : at + some])
            moved = Perturbations(points.bases[at : at + some], steps).of(first, changes[at : at + some])
            found.append(losses_of(loss, _above(above, moved), y))
        return np.concatenate(found)

    def _cast(self, array: Any) -> Numbers:
        found: Numbers = np.asarray(array, dtype=self.precision)
        return found

    def _layers(self, w: Numbers) -> list[tuple[Numbers, Numbers]]:
        """Return weights and biases of every layer."""
        w, at, found = self._cast(w), 0, []
        for before, after in pairwise(self.widths):
            end = at + before * after
            found.append((w[at:end].reshape(after, before), w[end : end + after]))
            at = end + after
        return found

    def _passed(self, layers: Sequence[tuple[Numbers, Numbers]], rows: Numbers) -> list[Numbers]:
        """Return what goes into every layer, and the outputs last."""
        found = [rows]
        for at, (weights, bias) in enumerate(layers):
            out = found[-1] @ weights.T + bias
            found.append(out if at + 1 == len(layers) else np.maximum(out, 0))
        return found

    def _back(self, w: Numbers, X: Matrix, d_out: Numbers) -> tuple[list[Numbers], Numbers]:
        """Return the gradients of sum(d_out * output) by weights and biases, in order, and by the rows."""
        layers = self._layers(w)
        known, back, found = self._passed(layers, self._cast(dense(X))), self._cast(d_out), list[Numbers]()
        for at in reversed(range(len(layers))):
            found = [back.T @ known[at], back.sum(axis=0), *found]
            back = back @ layers[at][0]
            if at:
                back = back * (known[at] > 0)
        return found, back


def _above(layers: Sequence[tuple[Numbers, Numbers]], hidden: Numbers) -> Numbers:
    """Apply the layers above the first to what comes out of it, [points, rows, hidden]."""
    for weights, bias in layers:
        hidden = np.maximum(hidden, 0) @ weights.T + bias
    return hidden
