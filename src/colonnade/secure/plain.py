"""The baseline without protection: the root sees every party's piece in clear.

What each side learns: the root learns every addend, not only the total. Only for measuring what
protection costs; a run with it says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

import numpy as np

from colonnade.arrays import Floats, Words
from colonnade.errors import Diverged
from colonnade.messages import Piece
from colonnade.net.expect import MOST, floats, words
from colonnade.net.network import Network
from colonnade.secure.protocol import N, SumKind, UsedTags, is_words


class PlainSum(SumKind):
    """A `SecureSum` in name only: pieces are sent as they are."""

    name = "plain"
    hides_pieces = False
    metered = True
    baseline = True

    def __init__(self, net: Network) -> None:
        self._net = net
        self._used = UsedTags()

    @staticmethod
    def gives_away(parties: int) -> str:
        return "the dominators see every party's partial scores in clear"

    @classmethod
    def among(cls, net: Network, secrets: Mapping[str, bytes]) -> Self:
        return cls(net)

    async def give(self, piece: Floats | Words, *, root: str, tag: int) -> None:
        self._used.use(tag)
        if not is_words(piece) and not np.abs(piece).max(initial=0.0) < MOST:  # NaN is never smaller
            raise Diverged("a number to be added up is too large or not finite; use a smaller step")
        await self._net.send(root, Piece(tag, piece))

    async def collect(self, piece: N, *, tag: int) -> N:
        self._used.use(tag)
        due = words(*piece.shape) if is_words(piece) else floats(*piece.shape)
        pieces = await self._net.gather(Piece, tag, values=due)
        total = piece.copy()
        # a fixed order of addition: floating point sums depend on it, and replays must not
        for peer in self._net.peers:
            total += pieces[peer].values
        return total
