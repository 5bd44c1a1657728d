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


def store(folder: Path, result: Result, *, plot: bool) -> list[Path]:
    """Write the result, and its figure if asked for. Returns the files that were written."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in (*FIGURES, REPORT):
        (folder / name).unlink(missing_ok=True)
    result.write(folder / RESULT)
    if not plot:
        return [folder / RESULT]
    from colonnade.report.figures import loss_figure, save

    figure = loss_figure(result)
    return [folder / RESULT, *(save(figure, folder / name) for name in FIGURES)]


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
