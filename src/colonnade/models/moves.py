"""A client's outputs moved along many directions at once, and what such a move costs the server.

    row b of point p:  h_b + steps[p, b] * bases[p, b]

Where all rows share a base and differ only in the step, the first layer of a server's model sees P new
vectors and not P B: a linear layer turns bases into changes [P, H] once, and the rest is one multiplication
and addition for every hidden unit. `Moving` models do that; any other is evaluated at the moved outputs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from colonnade.arrays import Numbers
from colonnade.losses import Loss


@dataclass(frozen=True, eq=False)
class Moves:
    """Where B rows of d outputs each are moved to."""

    bases: Numbers  # [points, B, d], or [points, 1, d] where all rows share them
    steps: Numbers  # [points, B]

    def of(self, x: Numbers, changes: Numbers | None = None) -> Numbers:
        """[points, B, width]: x [B, width] moved along the bases, or along what became of them."""
        moved: Numbers = x + self.steps[..., None] * (self.bases if changes is None else changes)
        return moved


@runtime_checkable
class Moving(Protocol):
    """An F0 that need not start again when one client's embeddings are moved."""

    def losses_moved(
        self, w: Numbers, C: Numbers, own: slice, moves: Moves, loss: Loss, y: Numbers
    ) -> Numbers:
        """[points, rows] for C with its columns `own` moved."""
        ...
