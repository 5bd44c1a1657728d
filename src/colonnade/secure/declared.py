"""A secure sum around another, which opens no more than its run has declared."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from colonnade.arrays import Floats, Words
from colonnade.messages import TOPIC_SHIFT
from colonnade.openings.limits import OpeningLimits
from colonnade.openings.opening import TOTAL
from colonnade.secure.protocol import N, SecureSum


class DeclaredSum:
    """Does what the sum inside it does, once it has counted what that opens to the sum's root.

    Every party counts what it gives, and so refuses to take part in a sum more than there should be.
    """

    def __init__(self, secure: SecureSum, limits: OpeningLimits) -> None:
        self._secure, self._limits = secure, limits
        self.settle, self.drop, self.close = secure.settle, secure.drop, secure.close

    # these return the inner sum's own coroutines: one more around each would cost time for nothing

    def give(self, piece: Floats | Words, *, root: str, tag: int) -> Coroutine[Any, Any, None]:
        self._limits.count(TOTAL, tag >> TOPIC_SHIFT, root, piece.size)
        return self._secure.give(piece, root=root, tag=tag)

    def collect(self, piece: N, *, tag: int) -> Coroutine[Any, Any, N]:
        self._limits.count(TOTAL, tag >> TOPIC_SHIFT, self._limits.me, piece.size)
        return self._secure.collect(piece, tag=tag)
