"""Which rows a client of the cascade asks about: passes in orders of its own, or in one order for all.

With `replaced` the rows of a "pass" are drawn independently, as the papers have it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from colonnade.arrays import Rows
from colonnade.conversations.cascade.settings import CascadeSettings
from colonnade.job.plan import Plan
from colonnade.state import Declared


@dataclass(frozen=True)
class Passes:
    """Which rows a client asks about: every pass has a new order, which the server knows as well."""

    rows: int
    batch: int
    seed: tuple[int, ...]
    replaced: bool = False

    @property
    def per_pass(self) -> int:
        """Batches of one pass."""
        return -(-self.rows // self.batch)

    def order(self, number: int) -> Rows:
        """Return the rows of a pass in their order."""
        rng = np.random.default_rng([*self.seed, number])
        return rng.integers(self.rows, size=self.rows) if self.replaced else rng.permutation(self.rows)


def passes_of(plan: Plan[CascadeSettings], party: str, rows: int) -> Passes:
    """Return the passes of a party: in the synchronous schedule one order for all, otherwise its own."""
    own = sorted(plan.parties).index(party) + 1 if plan.pace.schedule == "async" else 0
    return Passes(rows, plan.pace.batch, (plan.seed, own), plan.settings.sampling == "replacement")


class BatchRows:
    """Gives the rows of one batch after another, and keeps the order of the current pass."""

    STATE = Declared(remade=("_pass", "_order"))

    def __init__(self, passes: Passes) -> None:
        self._passes = passes
        self._pass = -1
        self._order = np.zeros(0, dtype=np.int64)

    def batch(self, number: int) -> Rows:
        """Return the rows of a client's question with this number."""
        of, position = divmod(number, self._passes.per_pass)
        if of != self._pass:
            self._pass, self._order = of, self._passes.order(of)
        size = self._passes.batch
        return self._order[position * size : (position + 1) * size]
