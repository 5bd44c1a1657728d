"""The folder of a run: checked before the run, filled after it.

    DIR/result.json        every number of the run
    DIR/models/PARTY       every party's share of the model (`run.run_shares`)
    DIR/test_scores.csv    the scores of the test rows, beside their labels
    DIR/job.toml           the job as it was run, to run it again
    DIR/forgotten.json     hashes of rows that it was trained without, after `colonnade forget`
    DIR/audit.json         what attacks on the run found, after `colonnade audit`

A folder that holds something else is refused before any work is done, and so is one that cannot be written,
or that another run is being written to. An earlier run is moved aside, to DIR.1, DIR.2 and so on; nothing of
it stays beside the new result; what a run that was cut off left is no obstacle. result.json comes last: where
it is, all else is complete.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from colonnade import findings, search, test_scores
from colonnade.cli.machine import note
from colonnade.errors import DataError, JobError
from colonnade.result import Result
from colonnade.timeline import FILE as TIMELINE
from colonnade.timeline import Timeline

try:
    import fcntl
except ModuleNotFoundError:  # Windows: runs are not kept from each other's folders
    fcntl = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from colonnade.run.federate import Finished

RESULT = "result.json"
MODELS, TEST_SCORES = "models", test_scores.FILE
BEST = "best.toml"
FIGURE = "loss.svg"
OLD_FIGURE = "loss.png"  # which 0.2 drew as well
REPORT = "report.html"
SHEET = "sheet.html"  # what leaves, on one side
JOB = "job.toml"
FORGOTTEN = "forgotten.json"  # hashes of rows that the model was trained without (`run.forget`)
OF_A_RUN = (
    RESULT,
    JOB,
    TEST_SCORES,
    BEST,
    search.FILE,
    FIGURE,
    OLD_FIGURE,
    REPORT,
    SHEET,
    TIMELINE,
    findings.FILE,
    FORGOTTEN,
    MODELS,
)
DRAFT = ".run.part"
LEFT_BY_PARTIES = {"parties"}  # the network world leaves it, also where a run failed
WRITTEN = "# The job of this run, as it was run; `colonnade run` wrote this file and will replace it.\n"


def claim(folder: Path, also: Iterable[str] = ()) -> Path:
    """Return the folder, if a run may be written there; JobError if not. `also` names more files to
    replace."""
    if folder.exists() and not folder.is_dir():
        raise JobError(f"{folder}: this is a file; give --out a folder")
    if folder.is_dir() and not _free(folder, {*LEFT_BY_PARTIES, *also}):
        raise JobError(f"{folder}: holds files that are not an earlier run; choose another folder with --out")
    nearest = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not _writable(nearest):
        raise JobError(f"{folder}: cannot be written, {nearest} does not allow it; choose another with --out")
    return folder


@contextmanager
def claimed(folder: Path, also: Iterable[str] = ()) -> Iterator[Path]:
    """The folder, kept from all other runs until this one ends; a new one is gone again if it stays empty."""
    claim(folder, also)
    new = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    with _locked(folder):
        try:
            yield folder
        finally:
            with suppress(OSError):  # it is not empty
                for path in new:
                    path.rmdir()


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """A lock on a folder itself, which the system lets go of however this process ends."""
    if fcntl is None:
        yield
        return
    opened = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # some network disks have no locks, and runs go on there as they are
            try:
                fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise JobError(
                    f"{folder}: another run is writing there; wait, or choose another --out"
                ) from None
        yield
    finally:
        os.close(opened)


def check_file(path: Path) -> None:
    """Refuse a file that cannot be written, before any work is done for it."""
    if path.is_dir():
        raise DataError(f"{path}: this is a folder; name a file")
    if not path.absolute().parent.is_dir():
        raise DataError(f"{path}: there is no folder {path.parent}; make it, or choose another --out")
    if not _writable(path.parent):
        raise DataError(f"{path}: cannot be written, {path.parent} does not allow it; choose another --out")


def _writable(folder: Path) -> bool:
    """Return whether something can be made in a folder: tried, as permissions say nothing of read-only
    disks."""
    try:
        with tempfile.TemporaryDirectory(dir=folder, prefix=".colonnade-"):
            return True
    except OSError:
        return False


def store_run(folder: Path, done: Finished, *, plot: bool) -> list[Path]:
    """Write all that a run keeps; an earlier run is moved aside. Returns what was written."""
    from colonnade.job.writing import as_toml
    from colonnade.run.run_shares import keep

    folder.mkdir(parents=True, exist_ok=True)
    draft = folder / DRAFT
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(mode=0o700)
    try:
        (draft / JOB).write_text(WRITTEN + as_toml(done.job), encoding="utf-8")
        if done.test is not None:
            done.test.write(draft / TEST_SCORES)
            (draft / TEST_SCORES).chmod(0o600)  # labels and scores of single rows
        keep(draft / MODELS, done)
    except (OSError, DataError) as error:
        shutil.rmtree(draft, ignore_errors=True)
        raise JobError(f"{folder}: the run cannot be kept there: {error}") from error
    move_aside(folder)
    # the result first: half of an earlier run is none
    for name in (RESULT, JOB, TEST_SCORES, BEST, FORGOTTEN, search.FILE):
        (folder / name).unlink(missing_ok=True)
    shutil.rmtree(folder / MODELS, ignore_errors=True)
    kept = [path.rename(folder / path.name) for path in sorted(draft.iterdir())]
    draft.rmdir()
    return [*store(folder, done.result, plot=plot, timeline=done.timeline), *kept]


def move_aside(folder: Path) -> Path | None:
    """Move an earlier run out of a folder, with its report and its model; returns where to."""
    if not _is_run(folder / RESULT):
        return None
    number = 1
    while (aside := folder.with_name(f"{folder.name}.{number}")).exists():
        number += 1
    aside.mkdir()
    for name in OF_A_RUN:  # the result first: half of an earlier run is none
        if (folder / name).exists():
            (folder / name).rename(aside / name)
    note(f"the run that was in {folder} is now in {aside}")
    return aside


def store(folder: Path, result: Result, *, plot: bool, timeline: Timeline | None = None) -> list[Path]:
    """Write the result, and its figure and timeline if there are any. Returns the files that were written."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in (FIGURE, OLD_FIGURE, REPORT, SHEET, TIMELINE, findings.FILE):
        (folder / name).unlink(missing_ok=True)
    from colonnade.report.facts import ReportFacts
    from colonnade.report.sheet import of_facts, write_sheet

    result.write(folder / RESULT)
    written = [folder / RESULT]
    if result.opened:
        written.append(write_sheet(of_facts(ReportFacts(result)), folder / SHEET))
    if timeline is not None:
        timeline.write(folder / TIMELINE)
        written.append(folder / TIMELINE)
    if not plot:
        return written
    from colonnade.report.figures import loss_figure, save

    return [*written, save(loss_figure(result), folder / FIGURE)]


def _free(folder: Path, ours: set[str]) -> bool:
    """Return whether a folder holds an earlier run, what is left of one, or nothing but files of these
    names."""
    job = folder / JOB
    if JOB not in ours and job.exists() and not job.read_bytes().startswith(WRITTEN.encode()):
        return False  # somebody else's
    return all(path.name in ours or _left(path) for path in folder.iterdir()) or _is_run(folder / RESULT)


def _left(path: Path) -> bool:
    """Return whether this is what remains of a run that was cut off while it wrote its files."""
    if path.name == MODELS:
        return path.is_dir() and all((share / "manifest.json").is_file() for share in path.iterdir())
    return path.name in (DRAFT, JOB, TEST_SCORES)


def _is_run(path: Path) -> bool:
    """Return whether a file is the result of a run."""
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return False
    return isinstance(found, dict) and {"algorithm", "metrics", "history"} <= set(found)
