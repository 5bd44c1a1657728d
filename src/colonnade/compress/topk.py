"""Only the k largest numbers of an array are sent; what is left out is added to the next array.

    send the k largest of x_t + e_t by size,    e_{t+1} = x_t + e_t - what was sent     (error feedback)

so nothing is lost, only late: the sum of all that was sent is the sum of all that was meant, less the last
error (Stich et al. 2018). That makes sense only for arrays about the same thing: `compress.rows` keeps an
error for every row. It does not go through a masked sum: which places are sent depends on the values.

On the wire: k places of 4 bytes and k values of 4 bytes. What each side learns: k values, and that the
others were smaller.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

import numpy as np

from colonnade.arrays import Numbers
from colonnade.compress.protocol import State, bytes_due
from colonnade.errors import MalformedMessage
from colonnade.state import UNCHANGED


@dataclass(frozen=True)
class TopK:
    """Sends the k largest numbers; the state is the error, what has been left out so far."""

    STATE = UNCHANGED

    k: float  # how many numbers of a message; below 1, this part of them

    def init(self, shape: tuple[int, ...]) -> State:
        return np.zeros(shape)

    def size(self, shape: tuple[int, ...]) -> int:
        """Return the number of bytes on the wire."""
        return 8 * self._kept(int(np.prod(shape)))

    def _kept(self, size: int) -> int:
        return min(ceil(self.k * size) if self.k < 1 else int(self.k), size)

    def encode(self, state: State, x: Numbers) -> tuple[Numbers, State]:
        due = x + (0.0 if state is None else state)
        flat = due.ravel()
        k = self._kept(flat.size)
        places = np.sort(np.argpartition(np.abs(flat), flat.size - k)[flat.size - k :])
        values = flat[places].astype("<f4")
        left = flat.astype(np.float64)
        # the rounding to single precision stays behind as well
        left[places] -= values
        packed = np.concatenate([places.astype("<u4").view(np.uint8), values.view(np.uint8)])
        return packed, left.reshape(x.shape)

    def decode(self, packed: Numbers, shape: tuple[int, ...]) -> Numbers:
        bytes_due(packed, self.size(shape), "the largest numbers")
        half = packed.size // 2
        places, values = packed[:half].view("<u4"), packed[half:].view("<f4")
        size = int(np.prod(shape))
        if places.size and (int(places[-1]) >= size or (np.diff(places.astype(np.int64)) <= 0).any()):
            raise MalformedMessage("places of the largest numbers are not in order within the array")
        found = np.zeros(size)
        found[places] = values
        return found.reshape(shape)
