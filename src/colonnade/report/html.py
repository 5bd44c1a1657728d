"""Markup from Python values: text is escaped unless it is markup already, so no name can become a tag."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

EMPTY = {"rect", "line", "path", "circle", "col", "meta"}


class Html(str):
    """Text that is markup already and is taken as it is."""

    __slots__ = ()


def safe(text: str) -> Html:
    """Any text as markup that shows exactly this text."""
    return text if isinstance(text, Html) else Html(escape(text))


def joined(*parts: str) -> Html:
    """Parts one after another; whatever is no markup yet is escaped."""
    return Html("".join(safe(part) for part in parts))


def tag(name: str, *inside: str, **attributes: str | float | None) -> Html:
    """Return an element. `class_` stands for `class`, `stroke_width` for `stroke-width`; None leaves one out.

    >>> tag("p", "a < b", tag("b", "bold"), class_="note")
    '<p class="note">a &lt; b<b>bold</b></p>'
    """
    words = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Html(f"<{name}{words}/>" if name in EMPTY else f"<{name}{words}>{joined(*inside)}</{name}>")


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
    """Tables and short sections next to each other, as far as there is room."""
    return tag("div", *parts, class_="row")


def section(title: str, *inside: str, level: int = 2, id_: str | None = None) -> Html:
    """Return a part of the page under a heading."""
    return tag("section", tag(f"h{level}", title), *inside, id_=id_)


def notes(sentences: Iterable[str], class_: str = "note") -> Html:
    """Sentences that must not be overlooked."""
    return joined(*(tag("p", sentence, class_=class_) for sentence in sentences))


def bullets(items: Iterable[str]) -> Html:
    """Return a list, an item a line."""
    return tag("ul", *(tag("li", item) for item in items))
