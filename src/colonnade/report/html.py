"""Markup from Python values: text is escaped unless it is markup already, so no name can become a tag."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from html import escape
from importlib.resources import files

EMPTY = frozenset({"br", "circle", "col", "input", "line", "link", "meta", "path", "rect"})


class Html(str):
    """Text that is markup already and is taken as it is."""

    __slots__ = ()


def safe(text: str) -> Html:
    """Return any text as markup that shows exactly this text."""
    return text if isinstance(text, Html) else Html(escape(text))


def joined(*parts: str) -> Html:
    """Return parts one after another; those that are no markup yet are escaped."""
    return Html("".join(safe(part) for part in parts))


def tag(name: str, /, *inside: str, **attributes: str | float | bool | None) -> Html:
    """Return an element. `class_` stands for `class`, `stroke_width` for `stroke-width`.

    An attribute that is None or False is left out, one that is True has no value.

    >>> tag("p", "a < b", tag("b", "bold"), class_="note", title='"quoted"', hidden=True)
    '<p class="note" title="&quot;quoted&quot;" hidden>a &lt; b<b>bold</b></p>'
    """
    words = "".join(
        f" {_spelt(key)}" if value is True else f' {_spelt(key)}="{escape(str(value))}"'
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    return Html(f"<{name}{words}/>" if name in EMPTY else f"<{name}{words}>{joined(*inside)}</{name}>")


def _spelt(key: str) -> str:
    """Return the name of an attribute as HTML has it."""
    return key.rstrip("_").replace("_", "-")


def table(caption: str, head: Sequence[str], rows: Iterable[Sequence[str]], *, class_: str = "") -> Html:
    """Return a table whose first column names its rows; wide ones scroll by themselves. A cell may be a
    `td`."""
    top = [tag("thead", tag("tr", *(tag("th", cell, scope="col") for cell in head)))] if head else []
    body = [tag("tr", _cell(row[0], "th"), *(_cell(cell, "td") for cell in row[1:])) for row in rows]
    inner = tag("table", tag("caption", caption), *top, tag("tbody", *body), class_=class_ or None)
    return tag("div", inner, class_="table")


def _cell(cell: str, name: str) -> Html:
    if isinstance(cell, Html) and cell.startswith("<td"):
        return cell
    return tag(name, cell, scope="row" if name == "th" else None)


def beside(*parts: str) -> Html:
    """Return tables and short sections next to each other, as far as there is room."""
    return tag("div", *parts, class_="row")


def section(title: str, *inside: str, level: int = 2, id_: str | None = None) -> Html:
    """Return a part of the page under a heading."""
    return tag("section", tag(f"h{level}", title), *inside, id_=id_)


def notes(sentences: Iterable[str], class_: str = "note") -> Html:
    """Return sentences that must not be overlooked, a paragraph each."""
    return joined(*(tag("p", sentence, class_=class_) for sentence in sentences))


def bullets(items: Iterable[str]) -> Html:
    """Return a list, an item a line."""
    return tag("ul", *(tag("li", item) for item in items))


def whole_page(title: str, body: Html, versions: str) -> str:
    """Return a page that needs nothing else, with the reports' style in it."""
    foot = tag("footer", f"Written by Colonnade {versions}. This page loads nothing and runs nothing.")
    head = joined(
        Html('<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'),
        tag("title", title),
        tag("style", Html(_style())),
    )
    whole = tag("html", tag("head", head), tag("body", tag("main", body), foot), lang="en")
    return f"<!doctype html>\n{whole}\n"


@cache
def _style() -> str:
    return files("colonnade.report").joinpath("style.css").read_text(encoding="utf-8")
