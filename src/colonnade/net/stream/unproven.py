"""Guests at a port that have not proven yet who they are: at most a certain number of them.

A crowd of strangers must not keep out those who belong here. So a guest that comes when the place is full is
let in, and another one has to leave: the first of those that have said nothing, or the first of all where
every guest has spoken.
"""

from __future__ import annotations

from typing import Generic, TypeVar

T = TypeVar("T")


class UnprovenGuests(Generic[T]):
    """Guests in the order in which they came, the silent ones and those that have spoken apart."""

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
        """Note that a guest has said something."""
        if guest in self._silent:
            del self._silent[guest]
            self._speaking[guest] = None

    def leave(self, guest: T) -> None:
        """Forget a guest that is gone, or proven."""
        self._silent.pop(guest, None)
        self._speaking.pop(guest, None)
