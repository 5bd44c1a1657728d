"""How often a peer may do something: counts within the last hour or day, in memory or on disk.

What a restart may forget (proposals, refreshes) is kept in memory. What must outlast one, because it tells a
peer about this party's ids, is on disk before it is told (`membership.py`).
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from colonnade.errors import Refused

HOUR = 3600.0


@dataclass
class Quota:
    """At most `most` events within `window` seconds, each key for itself; `name` is what a refusal says."""

    name: str
    most: int
    window: float = HOUR
    clock: Callable[[], float] = time.monotonic
    _events: dict[str, deque[float]] = field(default_factory=dict)

    def take(self, key: str = "") -> None:
        """Count one event; Refused if there were too many, which does not count again."""
        if not self.has_room(key):
            raise Refused(f"limits.{self.name} = {self.most} is reached here; try again later")
        self._events[key].append(self.clock())

    def has_room(self, key: str = "") -> bool:
        """Return whether one more event may be counted now."""
        events, now = self._events.setdefault(key, deque()), self.clock()
        while events and events[0] <= now - self.window:
            events.popleft()
        return len(events) < self.most
