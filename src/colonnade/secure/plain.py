"""The baseline without protection: the root sees every party's piece in clear.

What each side learns: the root learns every addend, not only the total. Only for measuring what
protection costs; a run with it says so.
"""

from __future__ import annotations

import numpy as np

from colonnade.arrays import Floats
from colonnade.errors import SumError
from colonnade.messages import Piece
from colonnade.net.network import Network
from colonnade.secure.protocol import UsedTags


class PlainSum:
    def __init__(self, net: Network) -> None:
        self._net = net
        self._used = UsedTags()

    async def sum(self, piece: Floats, *, root: str, tag: int) -> Floats | None:
        self._used.use(tag)
        if root != self._net.me:
            await self._net.send(root, Piece(tag, piece))
            return None
        pieces = await self._net.gather(Piece, tag)
        total = piece.copy()
        # a fixed order of addition: floating point sums depend on it, and replays must not
        for peer in self._net.peers:
            values = pieces[peer].values
            if values.dtype != np.float64 or values.shape != piece.shape:
                raise SumError(f"{peer} sent {values.shape} {values.dtype} values, {piece.shape} were due")
            total += values
        return total

    async def settle(self) -> None:
        """Nothing is done for others here."""

    async def close(self) -> None:
        """Nothing is under way between two sums."""
