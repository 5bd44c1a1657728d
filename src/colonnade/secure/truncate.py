"""Numbers that two parties share, divided by a power of two: exactly, and neither learns them.

The asker A and the owner P hold words that add up to x, a number of size below 2^62. The dealer T knows rho,
random words of which A and P have a part each, and deals words that add up to rho >> k and to its highest bit
times 2^(64-k). P sends A its part of x + rho; A opens c = x + 2^62 + rho, which is uniform, and tells P:

    x >> k  =  (c >> k) - (rho >> k) + [c < 2^63 <= rho] 2^(64-k) - (2^62 >> k)

up to one unit, as a carry of the low bits is lost with a chance that makes up for the fraction. (x + 2^62 is
below 2^63, so the sum wraps around only if rho's highest bit is set and c's is not; then the term in brackets
mends it. SPU's TruncAPr; Dalskov, Escudero and Keller 2019.)

What each side learns: nothing.
"""

from __future__ import annotations

import numpy as np

from colonnade.arrays import Words
from colonnade.secure.streams import PairStreams, Roles

RHO, SHIFTED = "rho", "shifted"  # the purposes of streams


class Truncation:
    """One party's side of divisions by 2^bits, in a ring of `width` bits."""

    def __init__(self, streams: PairStreams, roles: Roles, bits: int) -> None:
        self.roles, self.bits, self.me = roles, np.uint64(bits), streams.me
        peers = {roles.asker: (roles.dealer,), roles.owner: (roles.dealer,)}
        self._rho = [
            streams.shared(peer, RHO, roles) for peer in peers.get(self.me, (roles.asker, roles.owner))
        ]
        with_asker = self.me in (roles.asker, roles.dealer)
        other = roles.dealer if self.me == roles.asker else roles.asker
        self._shifted = streams.shared(other, SHIFTED, roles) if with_asker else None

    def hidden(self, tag: int, part: Words) -> Words:
        """Return the own part of x, hidden by the own part of rho."""
        found: Words = part + self._rho[0].once(tag, part.size).reshape(part.shape)
        return found

    def deal(self, tag: int, count: int) -> Words:
        """Return, at T, P's words of what is dealt, [2, numbers]."""
        first, second = (stream.once(tag, count) for stream in self._rho)
        return dealt_of(first + second, self.bits) - self.own(tag, count)

    def own(self, tag: int, count: int) -> Words:
        """Return A's words of what is dealt, [2, numbers]; A and T can make them."""
        if self._shifted is None:
            raise RuntimeError(f"{self.me} is sent its words")
        return self._shifted.once(tag, 2 * count).reshape(2, count)

    def finish(self, opened: Words, dealt: Words) -> Words:
        """Return the own part of x >> k, from c = x + 2^62 + rho and the words that were dealt."""
        return finished(opened, dealt, self.bits, first=self.me == self.roles.asker)


def opening(first: Words, second: Words) -> Words:
    """Return c, from the hidden parts of both."""
    opened: Words = first + second + HALF
    return opened


HALF = np.uint64(2**62)
_TOP = np.uint64(63)
_ALL = np.uint64(64)


def dealt_of(rho: Words, bits: np.uint64) -> Words:
    """Return rho >> k, and its highest bit times 2^(64-k)."""
    return np.stack([rho >> bits, (rho >> _TOP) << (_ALL - bits)])


def finished(opened: Words, dealt: Words, bits: np.uint64, *, first: bool) -> Words:
    """Return a part of x >> k; the first party adds what both know."""
    below = np.uint64(1) - (opened >> _TOP)
    part: Words = below * dealt[1] - dealt[0]
    if first:
        part += (opened >> bits) - (HALF >> bits)
    return part
