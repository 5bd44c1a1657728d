"""Lets Python's garbage collector run seldom while parties do: rounds make hardly any cycles of references.

By default it runs after 700 new objects, which the messages of a few rounds are, and goes through everything
that is in memory again and again: several hundredths of a run's processor time.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

YOUNG = 20_000  # new objects after which it looks

_lock = threading.Lock()
_before: list[tuple[int, int, int]] = []  # when it looked as each run of this process began


@contextmanager
def looked_for_seldom() -> Iterator[None]:
    """Let the collector run seldom in the block; its old setting is back once no run goes on here."""
    with _lock:
        _before.append(gc.get_threshold())
        if 0 < _before[-1][0] < YOUNG:
            gc.set_threshold(YOUNG)
    try:
        yield
    finally:
        with _lock:
            earliest = _before.pop()  # if it is the last that is left
            if not _before:
                gc.set_threshold(*earliest)
