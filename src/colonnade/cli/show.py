"""Tables on the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from colonnade.report import summary
from colonnade.result import Described, Result

WIDE = 140


def console() -> Console:
    """Return a console on standard output that does not colour what looks like a number or a name."""
    terminal = Console(highlight=False, emoji=False)
    if not terminal.is_terminal:
        terminal.width = WIDE  # a pipe has no width; lines that are whole are easier to search
    return terminal


def table(
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    right: Sequence[int] = (),
    title: str | None = None,
) -> Table:
    """Return a plain table; the columns numbered in `right` are aligned to the right."""
    made = Table(box=None, title=title, title_justify="left", title_style="bold", padding=(0, 2, 0, 0))
    for number, name in enumerate(columns):
        made.add_column(name, justify="right" if number in right else "left", overflow="fold")
    for row in rows:
        made.add_row(*(Text(cell) for cell in row))
    return made


def show_result(out: Console, result: Result) -> None:
    """Print metrics beside pooled training, the cost, and what the parties learn of each other."""
    show_data(out, result.data)
    out.print(Text(summary.headline(result), style="bold"))
    out.print()
    head, rows = summary.metric_table(result)
    out.print(table(head, rows, right=range(1, len(head))))
    out.print()
    if result.worth is not None:
        head, rows = summary.worth_table(result.worth)
        title = summary.worth_line(result.worth)
        out.print(table(head, rows, right=range(1, len(head)), title=title))
        out.print()
    pairs = Table.grid(padding=(0, 2, 0, 0))
    gain = [("partners add", line)] if (line := summary.gain_line(result)) else []
    for name, value in [*gain, *summary.cost_rows(result), *summary.privacy_rows(result)]:
        pairs.add_row(Text(name, style="dim"), Text(value))
    for note in result.privacy.notes:
        pairs.add_row(Text("note", style="bold yellow"), Text(note))
    out.print(pairs)


def show_data(out: Console, data: Described) -> None:
    """Print what was done to the data before training, and what its owners should look at."""
    if not data.done and not data.warnings:
        return
    lines = Table.grid(padding=(0, 2, 0, 0))
    for party, said in data.done.items():
        for number, sentence in enumerate(said):
            lines.add_row(Text("" if number else party, style="dim"), Text(sentence))
    for warning in data.warnings:
        lines.add_row(Text("look at", style="bold yellow"), Text(warning))
    out.print(lines)
    out.print()
