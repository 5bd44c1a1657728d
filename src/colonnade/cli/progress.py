"""Progress of a run: a bar on a terminal, a line now and then anywhere else. Always on standard error."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

from colonnade.report.summary import duration, losses, moment_line, size
from colonnade.result import Moment

EVERY_S = 5.0  # between two lines of a log
PATIENCE_S = 1.0  # before a log says what takes so long


@dataclass
class Reporter:
    """Who is told how a run goes: what is done before training, in words, and every evaluation."""

    tell: Callable[[str], None] = lambda words: None
    moment: Callable[[Moment], None] = lambda moment: None

    def __call__(self, moment: Moment) -> None:
        """Report an evaluation."""
        self.moment(moment)


@contextmanager
def progress(epochs: int, *, quiet: bool = False) -> Iterator[Reporter]:
    """The reporter of a run of `epochs` epochs. `quiet` drops the lines, never the bar."""
    console = Console(stderr=True)
    if console.is_terminal:
        with _bar(console) as bar:
            yield _on_bar(bar, epochs)
    elif quiet:
        yield Reporter()
    else:
        lines = Lines(console, epochs)
        try:
            yield Reporter(lines.tell, lines.moment)
            lines.end()
        finally:
            lines.hush()


@dataclass
class Lines:
    """Lines of a log: the first evaluation and the last, and between them one every few seconds.

    What is done before training is named once it takes longer than a moment.
    """

    console: Console
    epochs: int
    every: float = EVERY_S
    patience: float = PATIENCE_S
    _shown: float = float("-inf")
    _waiting: Moment | None = None
    _timer: threading.Timer | None = None

    def tell(self, words: str) -> None:
        """Name what is done now, if it goes on for a while."""
        self.hush()
        self._timer = threading.Timer(self.patience, self._print, [f"{words} ..."])
        self._timer.daemon = True
        self._timer.start()

    def hush(self) -> None:
        """Do not name any more what was being done."""
        if self._timer is not None:
            self._timer.cancel()

    def moment(self, moment: Moment) -> None:
        """Show an evaluation, or keep it until it is known to be the last."""
        self.hush()
        now = time.monotonic()
        if now - self._shown < self.every:
            self._waiting = moment
            return
        self._shown, self._waiting = now, None
        self._print(moment_line(moment, self.epochs))

    def end(self) -> None:
        """Show the last evaluation, if it was not."""
        if self._waiting is not None:
            self._print(moment_line(self._waiting, self.epochs))
            self._waiting = None

    def _print(self, line: str) -> None:
        self.console.print(line, highlight=False, soft_wrap=True, markup=False)


def _bar(console: Console) -> Progress:
    """Return an empty progress bar."""
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[status]}"),
        TimeElapsedColumn(),
        console=console,
        transient=True,
    )


def _on_bar(bar: Progress, epochs: int) -> Reporter:
    """Return the reporter that shows a run on the bar."""
    # no total yet: the bar pulses while data is read, the pooled model trained, the parties started
    task: TaskID = bar.add_task("starting", total=None, status="")

    def moment(moment: Moment) -> None:
        status = f"{losses(moment)}  {size(moment.bytes)}"
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

    return Reporter(lambda words: bar.update(task, description=words), moment)
