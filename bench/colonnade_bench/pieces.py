"""Benches in pieces, side by side: every piece is a process of its own, and the tables grow as they end.

    python -m colonnade_bench.pieces vfb2 asysqn fdskl --jobs 14 --minutes 13 --resume --out runs/papers

A piece is a part of a bench, or less than a part: `figure2:a9a`, `lossless:a9a:l2:3`. A bench that can be
taken apart is a module with `pieces(quick)`, the longest first, and `run(..., only, tables)`; its `LAST`
pieces put together what others left in OUT, and run when those have ended. What a piece tabulates lies in
OUT/pieces; tables of one title are joined row by row. Pieces that are still under way when time is up are
stopped, and the tables have what there is; with `--resume` a later run goes on with those that are missing.
Times of the real clock are those of a busy machine.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import signal
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from itertools import chain, zip_longest
from multiprocessing import get_context
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any, Protocol

from threadpoolctl import threadpool_limits

from colonnade.errors import JobError
from colonnade_bench import BENCHES
from colonnade_bench.common import Bench, Grid, Panel, Say
from colonnade_bench.only import begins, meant

OWN = ("bench", "quick", "machine", "tables", "lines")
"""What of a piece's JSON is not data of the bench."""


class InPieces(Protocol):
    """A bench that can be taken apart."""

    TITLE: str
    PARTS: dict[str, str]
    LAST: tuple[str, ...]

    def pieces(self, quick: bool) -> list[str]:
        """All pieces but the last ones, the longest first."""
        ...


@dataclass(frozen=True)
class Piece:
    """A piece of a bench, and where it writes."""

    bench: str
    name: str
    out: Path
    quick: bool
    module: str  # of the bench

    @property
    def folder(self) -> Path:
        """Its tables and its log."""
        return folder_of(self.name, self.out)

    @property
    def ended(self) -> bool:
        """Whether its tables are there; they are written when all of it is measured."""
        return (self.folder / f"{self.bench}.json").is_file()

    def start(self) -> SpawnProcess:
        """Run it in a process of its own."""
        process = get_context("spawn").Process(target=self.run)
        process.start()
        return process

    def run(self) -> None:
        """Measure it here; what is printed goes to the log."""
        os.setsid()  # whatever it starts ends with it
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "log").open("w") as log, threadpool_limits(1):
            for stream in (sys.stdout, sys.stderr):
                os.dup2(log.fileno(), stream.fileno())
            run = import_module(self.module).run
            run(self.quick, self.out, _print, only=(self.name,), tables=self.folder)
        who = resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN
        spent = sum(used.ru_utime + used.ru_stime for used in map(resource.getrusage, who))
        (self.folder / "took").write_text(f"{spent:.0f}", encoding="utf-8")

    @property
    def took(self) -> str:
        """Its seconds of processor time, which say more than the clock of a busy machine."""
        path = self.folder / "took"
        return f", {path.read_text(encoding='utf-8')} s of processor" if path.is_file() else ""


def folder_of(piece: str, out: Path) -> Path:
    """Where a piece of a bench writes its tables."""
    return out / "pieces" / re.sub(r"[^a-z0-9.]+", "-", piece.lower()).strip("-")


def side_by_side(
    folders: Mapping[str, Path],
    say: Say,
    *,
    quick: bool = False,
    jobs: int = 2,
    minutes: float | None = None,
    only: Sequence[str] = (),
    resume: bool = False,
) -> list[Path]:
    """Run all pieces of these benches, so many at a time, each bench in its folder; returns the files.

    With `resume` those that ended in an earlier run are left as they are.
    """
    end = None if minutes is None else time.monotonic() + 60 * minutes
    modules: dict[str, InPieces] = {name: _module(name) for name in folders}
    waiting = in_turns(folders, quick=quick, only=only)
    if resume:
        waiting = [piece for piece in waiting if not piece.ended]
    last = [
        Piece(name, p, folders[name], quick, BENCHES[name])
        for name, module in modules.items()
        for p in module.LAST
    ]
    for piece in _ended(waiting, jobs, end, say):
        joined(modules[piece.bench], piece.bench, piece.out, quick=quick)
    for _ in _ended(last, jobs, None, say):  # they measure nothing
        pass
    return [
        path for name, module in modules.items() for path in joined(module, name, folders[name], quick=quick)
    ]


def in_turns(folders: Mapping[str, Path], *, quick: bool, only: Sequence[str] = ()) -> list[Piece]:
    """The pieces of these benches, or those whose names begin so, one of each bench in turn.

    So every bench has something where time runs out.
    """
    asked = [
        [
            Piece(name, piece, folder, quick, BENCHES[name])
            for piece in _module(name).pieces(quick)
            if not only or any(begins(f"{name}:{piece}", asked) for asked in only)
        ]
        for name, folder in folders.items()
    ]
    return [piece for piece in chain.from_iterable(zip_longest(*asked)) if piece is not None]


def _ended(pieces: Iterable[Piece], jobs: int, end: float | None, say: Say) -> Iterator[Piece]:
    """Every piece when it has ended; those that have not when time is up are stopped."""
    waiting, running = list(pieces), dict[Piece, tuple[SpawnProcess, float]]()
    try:
        while waiting or running:
            if end is not None and time.monotonic() > end:
                say(f"out of time: {len(running)} pieces stopped, {len(waiting)} not begun")
                return
            while waiting and len(running) < jobs:
                piece = waiting.pop(0)
                running[piece] = (piece.start(), time.monotonic())
            for piece, (process, began) in list(running.items()):
                if process.exitcode is not None:
                    del running[piece]
                    how = "" if process.exitcode == 0 else f"FAILED, see {piece.folder / 'log'}: "
                    say(f"{how}{piece.bench} {piece.name}: {time.monotonic() - began:.0f} s{piece.took}")
                    yield piece
            time.sleep(0.1)
    finally:
        for process, _ in running.values():
            _stop(process)


def _stop(process: SpawnProcess) -> None:
    """End a piece and whatever it has started."""
    if process.pid is not None:
        with suppress(ProcessLookupError):  # it has ended, or has no group of its own yet
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.join()


def joined(module: InPieces, name: str, out: Path, *, quick: bool) -> list[Path]:
    """Write the tables of all pieces as those of one bench, in the order of its parts."""
    bench = Bench(name, module.TITLE, quick)
    order = list(module.PARTS)
    pieces = [*module.pieces(quick), *module.LAST]
    grids: dict[str, Grid] = {}
    for piece in sorted(pieces, key=lambda each: order.index(each.partition(":")[0])):
        path = folder_of(piece, out) / f"{name}.json"
        if not path.is_file():
            continue
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        for plain in found["tables"]:
            grid = Grid(**plain)
            before = grids.get(grid.title)
            if before is not None and list(before.columns) == list(grid.columns):
                grid = Grid(grid.title, grid.columns, [*before.rows, *grid.rows], before.note)
            grids[grid.title] = grid
        bench.panels += [Panel(**plain) for plain in found["lines"]]
        bench.data |= {key: value for key, value in found.items() if key not in OWN}
    bench.grids = list(grids.values())
    return bench.write(out)


def can(name: str) -> bool:
    """Whether a bench can be taken apart, and all that it needs is installed."""
    try:
        return hasattr(import_module(BENCHES[name]), "pieces")
    except ModuleNotFoundError:
        return False


def _module(name: str) -> Any:
    return import_module(BENCHES[name])


def _print(line: str) -> None:
    print(line, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("benches", nargs="+", choices=[name for name in BENCHES if can(name)])
    parser.add_argument("--out", type=Path, default=Path("runs") / "papers")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", nargs="+", default=(), help="how pieces begin: vfb2:lossless:a9a")
    parser.add_argument("--resume", action="store_true", help="leave out what ended in an earlier run")
    given = parser.parse_args()
    for asked in given.only:
        bench, _, piece = asked.partition(":")
        if bench not in given.benches:
            parser.error(f"--only: {asked!r} is of no bench here, which are {', '.join(given.benches)}")
        try:
            meant(bench, [piece] if piece else (), quick=given.quick)
        except JobError as error:
            parser.error(str(error))
    folders = {name: given.out / name for name in given.benches}
    side_by_side(
        folders,
        _print,
        quick=given.quick,
        jobs=given.jobs,
        minutes=given.minutes,
        only=given.only,
        resume=given.resume,
    )


if __name__ == "__main__":
    main()
