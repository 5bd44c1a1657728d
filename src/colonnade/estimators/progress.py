"""What `fit` shows of a run, and whom it tells: a bar in a terminal or a notebook, lines anywhere else."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from colonnade.report.summary import moment_line
from colonnade.result import Moment

Callback = Callable[[Moment], object]


@contextmanager
def told(epochs: int, verbose: int, callbacks: Sequence[Callback]) -> Iterator[Callback]:
    """The function to call after every evaluation; it returns True if a callback wants the run to end."""
    with _shown(epochs, verbose) as show:

        def tell(moment: Moment) -> bool:
            show(moment)
            # all are told, whoever says that it is enough
            return any([callback(moment) is True for callback in callbacks])

        yield tell


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
