"""Who stands at a port and has not yet proven to be anybody: there is room for so many, and no more.

A crowd must not keep out those who belong here. So whoever comes on top of it is let in, and somebody else
has to go: of those who have said nothing the one that came first, and only where all have spoken, of these.
"""

from __future__ import annotations

from typing import Generic, TypeVar

T = TypeVar("T")


class Crowd(Generic[T]):
    """Guests in the order in which they came, the silent and those who speak apart."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._silent: dict[T, None] = {}
        self._speaking: dict[T, None] = {}

    def __len__(self) -> int:
        return len(self._silent) + len(self._speaking)

    def everybody(self) -> list[T]:
        return [*self._silent, *self._speaking]

    def enter(self, guest: T) -> T | None:
        """Let somebody in; returns who has to go for it, if anybody."""
        leaves = None
        if len(self) >= self._most:
            leaves = next(iter(self._silent or self._speaking))
            self.leave(leaves)
        self._silent[guest] = None
        return leaves

    def spoke(self, guest: T) -> None:
        """A guest has said something."""
        if guest in self._silent:
            del self._silent[guest]
            self._speaking[guest] = None

    def leave(self, guest: T) -> None:
        """A guest is gone, or proven."""
        self._silent.pop(guest, None)
        self._speaking.pop(guest, None)
