"""What rounds change of an object: its class says so, and a checkpoint has what it says.

A class names its own attributes and nobody else's:

    STATE = Declared(kept=("w",), parts=("estimator",), remade=("_shuffled",))

`kept` are plain values, which a checkpoint has and a run that goes on has back; a property will do, where the
value itself is not plain. `parts` are objects with a state of their own, whose classes say what it is, and
random generators; None has none, and a class without a declaration is refused: one that nothing changes says
so (`UNCHANGED`). `remade` is what changes and need not be stored: copies, caches, links and clocks, which
every session of a run makes for itself.

Rounds change nothing else. `tests/conversations/test_declared.py` runs every conversation and looks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from numpy.random import Generator


@dataclass(frozen=True)
class Declared:
    """The attributes of a class that rounds change."""

    kept: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    remade: tuple[str, ...] = ()

    def __add__(self, more: Declared) -> Declared:
        """Return what a class has and what one that is made from it adds."""
        return Declared(self.kept + more.kept, self.parts + more.parts, self.remade + more.remade)


UNCHANGED = Declared()
"""Rounds change nothing of it."""


def declared(thing: object) -> Declared:
    """Return what the class of an object declares; TypeError if it declares nothing."""
    found: Declared | None = getattr(type(thing), "STATE", None)
    if found is None:
        name = type(thing).__name__
        raise TypeError(f"{name} does not say what rounds change of it: it needs a STATE (colonnade.state)")
    return found


def values_of(thing: object, *names: str) -> Iterator[tuple[str, Any, str]]:
    """Yield every value that is kept of an object: its path from there, and whose attribute it is.

    With `names` only those of its kept values and its parts.
    """
    state = declared(thing)
    if unknown := set(names) - {*state.kept, *state.parts}:
        raise ValueError(f"{type(thing).__name__} does not declare {', '.join(sorted(unknown))}")
    for name in state.kept:
        if not names or name in names:
            yield name, thing, name
    for name in state.parts:
        if not names or name in names:
            part = getattr(thing, name)
            if isinstance(part, Generator):
                yield name, thing, name
            elif part is not None:
                for path, holder, last in values_of(part):
                    yield f"{name}.{path}", holder, last
