"""HTML that cannot be broken out of: text is escaped unless it was made here.

>>> tag("p", "a < b", tag("b", "!"), title='"quoted"')
'<p title="&quot;quoted&quot;">a &lt; b<b>!</b></p>'
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

EMPTY = frozenset({"meta", "link", "input", "br", "path"})


class Html(str):
    """Text that is HTML already, made by `tag` and `join`; anything else is escaped when put into it."""

    __slots__ = ()


def join(parts: Iterable[str]) -> Html:
    """Several pieces one after the other; those that are not HTML are escaped."""
    return Html("".join(part if isinstance(part, Html) else escape(part) for part in parts))


def tag(name: str, /, *children: str, **attributes: str | bool) -> Html:
    """Return an element; a true attribute has no value, a false one is left out, `_` stands for `-`.

    The names `class_` and `for_` stand for the words that Python keeps for itself.
    """
    written = "".join(
        f" {_spelt(key)}" if value is True else f' {_spelt(key)}="{escape(str(value))}"'
        for key, value in attributes.items()
        if value is not False
    )
    if name in EMPTY:
        return Html(f"<{name}{written}>")
    return Html(f"<{name}{written}>{join(children)}</{name}>")


def _spelt(key: str) -> str:
    """Return the name of an attribute as HTML has it."""
    return key.rstrip("_").replace("_", "-")
