"""The steepest directions of a quadratic, from a few products with its matrix (Lanczos 1950).

The vectors may be split over blocks: a block needs its own parts, and of all blocks together only two
numbers a step, the length of the vector it made and the curvature along it. Ten steps give the few largest
eigenvalues of a spectrum that falls off, as those of data do, to some per cent.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from colonnade.arrays import Floats


@dataclass
class Lanczos:
    """One block's part of the iteration; `vector` is its part of the vector to multiply by A next."""

    vector: Floats
    alphas: list[float] = field(default_factory=list)  # q'Aq
    betas: list[float] = field(default_factory=list)  # lengths of the vectors before they were scaled to 1
    _q: list[Floats] = field(default_factory=list)
    _Aq: list[Floats] = field(default_factory=list)

    def unit(self, length: float) -> Floats:
        """Return q: the vector scaled to length 1."""
        return self.vector / length

    def take(self, length: float, alpha: float, Aq: Floats) -> None:
        """Do one step and leave the next vector in `vector`.

        Given are the vector's length over all blocks, alpha = q'Aq over all blocks, and this block's part
        of A q.
        """
        q = self.unit(length)
        self.betas.append(length)
        self.alphas.append(alpha)
        self._q.append(q)
        self._Aq.append(Aq)
        self.vector = Aq - alpha * q
        if len(self._q) > 1:
            self.vector = self.vector - length * self._q[-2]

    def ends(self, length: float) -> bool:
        """Return whether the iteration is complete: the next vector is so short that it is only rounding."""
        return len(self._q) > 0 and length <= 1e-6 * max(map(abs, self.alphas))

    def steepest(self, count: int) -> tuple[list[float], list[tuple[Floats, Floats]]]:
        """Return estimates of the `count` largest eigenvalues, and the pair (s, A s) of each eigenvector
        s."""
        beside = np.array(self.betas[1:])
        T = np.diag(self.alphas) + np.diag(beside, 1) + np.diag(beside, -1)
        values, weights = np.linalg.eigh(T)
        chosen = np.argsort(values)[::-1][:count]
        pairs = [(_combined(weights[:, i], self._q), _combined(weights[:, i], self._Aq)) for i in chosen]
        return [float(values[i]) for i in chosen], pairs


def _combined(weights: Floats, vectors: list[Floats]) -> Floats:
    total: Floats = sum((w * v for w, v in zip(weights, vectors, strict=True)), np.zeros_like(vectors[0]))
    return total
