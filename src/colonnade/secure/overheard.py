"""A secure sum around another: a listener hears the totals that its party gets; nothing else changes.

Of numbers that two parties have in parts nobody gets a total: there the listener hears the own parts.
"""

from __future__ import annotations

from collections.abc import Callable

from colonnade.arrays import Floats, Words
from colonnade.secure.protocol import N, SecureSum

Total = Callable[[int, Floats | Words], None]
"""Hears of a total and the tag of its sum."""
Part = Callable[[str, Floats], None]
"""Hears of what a party's own part of some numbers is, and of which numbers."""


class OverheardSum:
    """Does what the sum inside it does; `heard` is told of every total that is collected,
    `kept` of every part."""

    def __init__(self, secure: SecureSum, heard: Total, kept: Part = lambda name, part: None) -> None:
        self._secure, self._heard, self._kept = secure, heard, kept

    async def give(self, piece: Floats | Words, *, root: str, tag: int) -> None:
        await self._secure.give(piece, root=root, tag=tag)

    async def collect(self, piece: N, *, tag: int) -> N:
        total = await self._secure.collect(piece, tag=tag)
        self.told(tag, total)
        return total

    def told(self, tag: int, total: Floats | Words) -> None:
        """Let the listener hear of a total."""
        self._heard(tag, total.copy())

    def keeps(self, name: str, part: Floats) -> None:
        """Let the listener hear of the own part of numbers that nobody knows."""
        self._kept(name, part)

    async def settle(self) -> None:
        await self._secure.settle()

    async def drop(self, tag: int) -> None:
        await self._secure.drop(tag)

    async def close(self) -> None:
        await self._secure.close()


def opened(secure: SecureSum, tag: int, total: Floats) -> None:
    """Tell a listener, where there is one, of what was opened to this party by other means than a sum."""
    if isinstance(secure, OverheardSum):
        secure.told(tag, total)


def holds(secure: SecureSum, name: str, part: Callable[[], Floats]) -> None:
    """Tell a listener, where there is one, of this party's part of numbers that nobody knows."""
    if isinstance(secure, OverheardSum):
        secure.keeps(name, part())
