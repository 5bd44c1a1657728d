"""Progress of a run: a bar on a terminal, one line per evaluation anywhere else. Always on standard error."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from colonnade.report.summary import duration, moment_line, size
from colonnade.result import Moment

Report = Callable[[Moment], None]


@contextmanager
def progress(epochs: int, *, quiet: bool = False) -> Iterator[Report]:
    """The function to call after every evaluation, which shows it. `quiet` drops the lines, never the bar."""
    console = Console(stderr=True)
    if console.is_terminal:
        with _bar(console) as bar:
            yield _on_bar(bar, epochs)
    elif quiet:
        yield lambda moment: None
    else:
        yield lambda moment: console.print(moment_line(moment, epochs), highlight=False, soft_wrap=True)


def _bar(console: Console) -> Progress:
    """An empty progress bar."""
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[status]}"),
        TimeElapsedColumn(),
        console=console,
        transient=True,
    )


def _on_bar(bar: Progress, epochs: int) -> Report:
    """The function that shows an evaluation on the bar."""
    # no total yet: the bar pulses while data is read, the pooled model trained, the parties started
    task = bar.add_task("reading data, starting parties", total=None, status="")

    def report(moment: Moment) -> None:
        status = f"loss {moment.loss:.6f}  {size(moment.bytes)}"
        if moment.seconds > 0:
            status += f"  {moment.rounds / moment.seconds:,.0f} rounds/s"
        if moment.virtual_seconds is not None:
            status += f"  simulated {duration(moment.virtual_seconds)}"
        bar.update(
            task,
            description=f"epoch {moment.epoch}/{epochs}",
            total=epochs,
            completed=moment.epoch,
            status=status,
        )

    return report
