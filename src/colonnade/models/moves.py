"""A client's outputs moved along many directions at once, and what such a move costs the server.

    point 0:  h_b            point (s, k):  h_b + steps[s, k, b] * bases[k, b]

Where all rows share a base and differ only in the step, the first layer of a server's model sees K new
vectors and not K B: a linear layer turns bases into changes [K, H] once, and the rest is one multiplication
and addition for every hidden unit. `Moving` models do that; any other is evaluated at the moved outputs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from colonnade.losses import Loss

Floats = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Moves:
    """K moves of B rows, to one side or to both."""

    bases: Floats  # [K, B, d], or [K, 1, d] where all rows share them
    steps: Floats  # [sides, K, B]

    @property
    def points(self) -> int:
        """How often the server's model is evaluated: unmoved, and once for every move."""
        return 1 + int(np.prod(self.steps.shape[:2]))

    def of(self, x: Floats, changes: Floats | None = None) -> Floats:
        """[points, B, width]: x [B, width] unmoved, then moved along the bases or what became of them."""
        moved = x + self.steps[..., None] * (self.bases if changes is None else changes)
        return np.concatenate([x[None], moved.reshape(-1, *x.shape)])


@runtime_checkable
class Moving(Protocol):
    """An F0 that need not start again when one client's embeddings are moved."""

    def losses_moved(self, w: Floats, C: Floats, own: slice, moves: Moves, loss: Loss, y: Floats) -> Floats:
        """[points, rows] for C with its columns `own` moved."""
        ...
