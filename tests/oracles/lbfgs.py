"""Damped L-BFGS with H as a matrix: what the two-loop recursion over inner products must equal."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from colonnade.arrays import Floats


@dataclass
class DenseLbfgs:
    """Keeps the last `memory` pairs, each damped when added; H is built anew whenever it is needed."""

    memory: int
    delta: float
    pairs: list[tuple[Floats, Floats]] = field(default_factory=list)
    gamma: float = 1.0
    pinned: list[tuple[Floats, Floats]] = field(default_factory=list)

    def pin(self, pairs: list[tuple[Floats, Floats]], gamma: float) -> None:
        """Replace the pairs that are kept for good; `gamma` is 1 / H_0."""
        self.pinned, self.gamma = [(s.ravel(), y.ravel()) for s, y in pairs], gamma

    def add(self, s: Floats, y: Floats, floor: float) -> bool:
        """Damp a pair and keep it; False if s is zero."""
        s, y = s.ravel(), y.ravel()
        if not s @ s > 0:
            return False
        if not self.pinned:
            self.gamma = float(max(y @ y / (s @ y) if s @ y > 0 else 0.0, self.delta, floor))
        B0_s = self.gamma * s
        if s @ y < 0.3 * (s @ B0_s):
            theta = 0.7 * (s @ B0_s) / (s @ B0_s - s @ y)
            y = theta * y + (1 - theta) * B0_s
        self.pairs = [*self.pairs, (s, y)][-self.memory :]
        return True

    def matrix(self) -> Floats:
        """H, by the BFGS formula over all pairs."""
        pairs = self.pinned + self.pairs
        d = len(pairs[0][0])
        H = np.eye(d) / self.gamma
        for s, y in pairs:
            rho = 1 / (s @ y)
            V = np.eye(d) - rho * np.outer(y, s)
            H = V.T @ H @ V + rho * np.outer(s, s)
        return H

    def direction(self, v: Floats) -> Floats:
        """H v, in the shape of v."""
        direction: Floats = (self.matrix() @ v.ravel()).reshape(v.shape)
        return direction
