"""What `fit` shows of a run, and whom it tells: a bar in a terminal or a notebook, lines anywhere else."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from colonnade.report.summary import moment_line
from colonnade.result import Moment

Callback = Callable[[Moment], object]


@dataclass
class Telling:
    """Passes every evaluation on, and says whether a callback has seen enough."""

    listeners: Sequence[Callback]
    stopped: bool = False

    def __call__(self, moment: Moment) -> bool:
        for listener in self.listeners:  # all are told, also if one says that it is enough
            self.stopped |= listener(moment) is True
        return self.stopped


@contextmanager
def told(epochs: int, verbose: int, callbacks: Sequence[Callback]) -> Iterator[Telling]:
    """What is called after every evaluation: it shows it and tells the callbacks."""
    with _shown(epochs, verbose) as show:
        yield Telling((show, *callbacks))


@contextmanager
def _shown(epochs: int, verbose: int) -> Iterator[Callback]:
    """The function that shows an evaluation."""
    if not verbose:
        yield lambda moment: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    if verbose > 1 or not (console.is_terminal or console.is_jupyter):
        yield lambda moment: console.print(moment_line(moment, epochs), highlight=False, soft_wrap=True)
        return
    columns = TextColumn("{task.description}"), BarColumn(bar_width=24), TimeElapsedColumn()
    with Progress(*columns, console=console) as bar:
        task = bar.add_task("starting parties", total=None)
        yield lambda moment: bar.update(
            task, total=epochs, completed=moment.epoch, description=moment_line(moment, epochs)
        )
