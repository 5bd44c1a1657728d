"""The folder of a run: checked before the run, filled after it.

A folder that holds something else is refused before any work is done, and so is one that cannot be
written. An earlier run is replaced; a figure or page of the earlier run must not stay beside the new result.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path

from colonnade.errors import JobError
from colonnade.result import Result
from colonnade.timeline import FILE as TIMELINE
from colonnade.timeline import Timeline

RESULT = "result.json"
FIGURES = ("loss.png", "loss.svg")
REPORT = "report.html"
LEFT_BY_PARTIES = {"parties"}  # the network world leaves it, also where a run failed


def claim(folder: Path, also: Iterable[str] = ()) -> Path:
    """The folder, if a run may be written there; JobError if not. `also` names more files to replace."""
    if folder.exists() and not folder.is_dir():
        raise JobError(f"{folder}: this is a file; give --out a folder")
    if folder.is_dir() and not _free(folder, {*LEFT_BY_PARTIES, *also}):
        raise JobError(f"{folder}: holds files that are no earlier run; choose another folder with --out")
    nearest = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not nearest.is_dir() or not os.access(nearest, os.W_OK | os.X_OK):
        raise JobError(f"{folder}: cannot be written, {nearest} does not allow it; choose another with --out")
    return folder


def store(folder: Path, result: Result, *, plot: bool, timeline: Timeline | None = None) -> list[Path]:
    """Write the result, and its figure and timeline if there are any. Returns the files that were written."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in (*FIGURES, REPORT, TIMELINE):
        (folder / name).unlink(missing_ok=True)
    result.write(folder / RESULT)
    written = [folder / RESULT]
    if timeline is not None:
        timeline.write(folder / TIMELINE)
        written.append(folder / TIMELINE)
    if not plot:
        return written
    from colonnade.report.figures import loss_figure, save

    figure = loss_figure(result)
    return [*written, *(save(figure, folder / name) for name in FIGURES)]


def _free(folder: Path, ours: set[str]) -> bool:
    """Whether a folder holds an earlier run, or nothing but files of these names."""
    return {path.name for path in folder.iterdir()} <= ours or _is_run(folder / RESULT)


def _is_run(path: Path) -> bool:
    """Whether a file is the result of a run."""
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return False
    return isinstance(found, dict) and {"algorithm", "metrics", "history"} <= set(found)
