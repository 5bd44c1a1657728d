"""Numbers that two parties have in parts, and nobody knows: multiples of them, and sums of their products.

A part is a word of `cut` bits, as both ends of an inner product have one (`secure.lattice.columns`); the
words of both add up to the number, but for a whole multiple of 2^cut. How often the sum wraps around is in
the highest bits alone, if the number lies within a quarter of the range either way: the first party adds a
quarter, and then the sum has wrapped around if either word has its highest bit set:

    wraps = a + b - a b,  a and b being these bits

One product of a row, under encryption (`encrypted.encrypted_products`), makes parts of it modulo t. From
then on both can multiply by any public number, locally and as often as they like (`Parted.times`). Nothing is
opened, nothing fails by chance; a multiple is off by a unit and a half at the most.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from colonnade.arrays import Words
from colonnade.conversations.linear.encrypted.encrypted_products import answer_rows, ask_rows
from colonnade.conversations.peer_line import PeerLine
from colonnade.secure.lattice.ciphertexts import centred
from colonnade.secure.lattice.parameters import SlotParameters
from colonnade.secure.lattice.portable import times


@dataclass(frozen=True, eq=False)
class Parted:
    """One party's words, and its part of how often those of both wrap around."""

    words: Words
    wraps: Words  # modulo t
    cut: int
    plain: int
    first: bool

    def times(self, factor: float) -> Words:
        """Return the own part, modulo t, of the number times a factor; both must name the same."""
        t = self.plain
        m = round(abs(factor) * 2.0**self.cut)
        low = _shifted(self.words, m, self.cut) % np.uint64(t)
        if self.first:  # a unit more: both lose half a one as they round down
            less = (m + 2) // 4 - 1
            low = (low + np.uint64(-less % t)) % np.uint64(t)
        found = (low + np.uint64(t) - times(self.wraps, m % t, t)) % np.uint64(t)
        return found if factor > 0 else (np.uint64(t) - found) % np.uint64(t)


def _shifted(words: Words, m: int, cut: int) -> Words:
    """Return words times m, divided by 2^cut."""
    if cut + m.bit_length() <= 64:
        return words * np.uint64(m) >> np.uint64(cut)
    return np.array([(word * m) >> cut for word in words.tolist()], dtype=np.uint64)


async def parted(line: PeerLine, slots: SlotParameters, cut: int, words: Words, *, first: bool) -> Parted:
    """Return the own words with the own part of their wraps; the first party asks."""
    if first:
        words = (words + np.uint64(2 ** (cut - 2))) & np.uint64(2**cut - 1)
    high = words >> np.uint64(cut - 1)
    both = await _products(line, slots, high.astype(np.int64)[None], first=first)
    t = np.uint64(slots.plain)
    return Parted(words, (high + t - both) % t, cut, slots.plain, first)


async def dot_product(line: PeerLine, slots: SlotParameters, one: Words, other: Words, *, first: bool) -> int:
    """Return the own part, modulo t, of the inner product of two vectors that both have in parts modulo t."""
    t = slots.plain
    rows = np.vstack([centred(one, t), centred(other, t)])
    both = await _products(line, slots, rows if first else rows[::-1], first=first)
    own = times(one, other, t)
    return int((sum(own.tolist()) + sum(both.tolist())) % t)


async def _products(line: PeerLine, slots: SlotParameters, rows: NDArray[np.int64], *, first: bool) -> Words:
    rows = np.ascontiguousarray(rows)
    return await (ask_rows(line, slots, rows) if first else answer_rows(line, slots, rows))
