"""What `--only` may name, in any bench: a part and, behind colons, some of it.

A bench that can be taken apart (`pieces`) has pieces: a name stands for all that begin with it, word by word.
One with `named(part, quick)` lets any of these names follow a part. Others have parts and nothing behind.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import Any

from colonnade.errors import JobError
from colonnade_bench import BENCHES


def meant(bench: str, only: Iterable[str], *, quick: bool) -> list[str]:
    """The parts and pieces that some names stand for; JobError if one of them stands for nothing."""
    module = import_module(BENCHES[bench])
    return [piece for name in only for piece in _pieces(bench, module, name, quick=quick)]


def begins(piece: str, name: str) -> bool:
    """Whether a piece is, or is part of, what a name stands for.

    >>> begins("figure2:a9a:sgd", "figure2:a9a"), begins("figure2:a9a:sgd", "figure2:a9")
    (True, False)
    """
    return f"{piece}:".startswith(f"{name}:")


def _pieces(bench: str, module: Any, name: str, *, quick: bool) -> list[str]:
    """What one name stands for: a part as it is, of pieces all that begin so."""
    part, *words = name.split(":")
    if part not in module.PARTS:
        raise _unknown(bench, name, "", module.PARTS)
    if not words or not hasattr(module, "pieces"):
        names = module.named(part, quick) if words and hasattr(module, "named") else ()
        if not set(words) <= set(names):
            raise _unknown(bench, name, part, names)
        return [name]
    known, asked = [*module.pieces(quick), *module.LAST], part
    for word in words:
        if not any(begins(piece, f"{asked}:{word}") for piece in known):
            depth = asked.count(":") + 1
            longer = [piece.split(":") for piece in known if begins(piece, asked) and piece != asked]
            raise _unknown(bench, name, asked, [piece[depth] for piece in longer])
        asked = f"{asked}:{word}"
    return [piece for piece in known if begins(piece, name)]


def _unknown(bench: str, name: str, behind: str, known: Iterable[str]) -> JobError:
    listed = [repr(word) if "," in word else word for word in dict.fromkeys(known)]
    where = f"behind {behind} it has" if behind else "it has"
    return JobError(f"--only: {bench} has no {name!r}; {where} {', '.join(listed) or 'nothing'}")
