"""How late thetas are applied, counted in updates: what an automatic step follows from."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

FIRST_LOOK = 16
"""Updates of an epoch after which delays that grow are seen first; then after twice as many, and so on."""


@dataclass
class Delays:
    """How old the weights behind a theta were when the theta was applied, counted in updates."""

    expected: int  # in the first epoch an assumption, later what the epoch before had
    counts: Counter[int] = field(default_factory=Counter)
    read_at: dict[int, int] = field(default_factory=dict)
    updates: int = 0  # of this epoch
    squares: int = 0  # of their delays, summed
    look: int = FIRST_LOOK  # after this many updates of this epoch

    def read(self, number: int, finished: int) -> None:
        """Note that the weights are read for a round, after this many updates."""
        self.read_at[number] = finished

    def apply(self, numbers: Iterable[int], finished: int) -> None:
        """Note that the thetas of some rounds are applied together, after this many updates."""
        read_at, counts = self.read_at, self.counts
        for number in numbers:
            delay = finished - read_at.pop(number)
            counts[delay] += 1
            self.updates += 1
            self.squares += delay * delay
            if self.updates >= self.look:
                self.expected = max(self.expected, self.usual())
                self.look *= 2

    def recent(self) -> int:
        """Return the usual delay of the last epoch, or of this one so far if that is longer."""
        return self.expected

    def usual(self) -> int:
        """Return the delay that a step must survive in this epoch: the root of the mean square.

        Of all that have the same mean, delays that are all alike bear the smallest step; where few are long
        the mean hides them, and a quantile sees all or nothing of them.

        >>> delays = Delays(expected=2, updates=10, squares=9 * 1 + 1 * 31)
        >>> delays.usual()
        2
        """
        return math.ceil(math.sqrt(self.squares / self.updates)) if self.updates else 0

    def turn(self) -> None:
        """Begin another epoch."""
        self.expected = self.usual()
        self.updates, self.squares, self.look = 0, 0, FIRST_LOOK


@dataclass(frozen=True)
class Lateness:
    """How many updates late gradients may be, and the two parts of a delay that theorems bound apart.

    `bound` is None where nothing was bounded. Of `tau_1`, from the reading of weights to theta, and `tau_2`,
    from theta to the update, the largest are kept; None where they are not measured.
    """

    bound: int | None = None
    tau_1: int | None = None
    tau_2: int | None = None
