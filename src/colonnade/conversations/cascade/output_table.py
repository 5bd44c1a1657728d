"""The server's table of outputs: what every client sent last about every row, and how long ago.

One array per client, updated in place. The age of an entry is the number of answers given since it came;
an answer to a client uses the entries of all others, and their ages are counted.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from colonnade.arrays import Numbers, Rows
from colonnade.state import Declared


@dataclass
class LatestOutputs:
    """The latest outputs of every client, one array each, and when each entry was made."""

    STATE = Declared(kept=("outputs", "made", "ages"))

    outputs: dict[str, Numbers]
    made: dict[str, Rows] = field(init=False)
    columns: dict[str, slice] = field(init=False)
    ages: Rows = field(default_factory=lambda: np.zeros(1, dtype=np.int64))

    def __post_init__(self) -> None:
        self.made = {client: np.zeros(len(out), dtype=np.int64) for client, out in self.outputs.items()}
        ends = np.cumsum([out.shape[1] for out in self.outputs.values()]).tolist()
        starts = [0, *ends[:-1]]
        self.columns = {c: slice(a, b) for c, a, b in zip(self.outputs, starts, ends, strict=True)}

    def store(self, client: str, rows: Rows, outputs: Numbers, now: int) -> None:
        """Replace a client's outputs of some rows; `now` counts the answers given so far."""
        self.outputs[client][rows] = outputs
        self.made[client][rows] = now

    def read(self, rows: Rows) -> Numbers:
        """Return the latest outputs of some rows, all clients side by side."""
        return np.concatenate([out[rows] for out in self.outputs.values()], axis=1)

    def note_ages(self, client: str, rows: Rows, now: int) -> None:
        """Count how old the other clients' outputs are that an answer to this client uses."""
        others = [now - made[rows] for name, made in self.made.items() if name != client]
        if others:
            counts = np.bincount(np.concatenate(others))
            if len(counts) > len(self.ages):
                self.ages = np.pad(self.ages, (0, len(counts) - len(self.ages)))
            self.ages[: len(counts)] += counts

    def delays(self) -> Counter[int]:
        """Return how often an entry of each age was used."""
        return Counter({age: int(count) for age, count in enumerate(self.ages) if count})
