"""Records of many cases: made one after the other or side by side, and kept as files.

A case runs in this process or, with `python -m colonnade_bench.czofo.records FILE DEVICE SECONDS`, in one of
its own, and leaves a record in JSON. Tables are made from records, wherever those were made.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from colonnade_bench.common import Say
from colonnade_bench.czofo.case import Case, Record, measure

Measure = Callable[[Sequence[Case]], Mapping[str, Record]]
"""Makes the records of all cases, or finds them, and returns them by name."""


def record_of(case: Case, folder: Path) -> Record | None:
    """The record that an earlier run left of the same case, whatever number of epochs it had."""
    path = folder / f"{case.slug}.json"
    if not path.is_file():
        return None
    found = msgspec.json.decode(path.read_bytes(), type=Record)
    return found if found.case.shortened(case.epochs) == case else None


def store(record: Record, folder: Path) -> None:
    """Write a record, whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    draft = folder / f"{record.case.slug}.part"
    draft.write_bytes(msgspec.json.format(msgspec.json.encode(record), indent=1))
    draft.replace(folder / f"{record.case.slug}.json")


def records(
    cases: Sequence[Case],
    folder: Path,
    say: Say,
    *,
    device: str = "cpu",
    processes: int = 1,
    seconds: float | None = None,
) -> dict[str, Record]:
    """Records of all cases by name: those that are there, and the others made now.

    A limit is for all that are made now; whatever starts later has what is left of it.
    """
    missing = [case for case in cases if record_of(case, folder) is None]
    end = None if seconds is None else time.monotonic() + seconds

    def left() -> float | None:
        return None if end is None else max(0.0, end - time.monotonic())

    if processes > 1:
        _side_by_side(missing, folder, say, device, processes, left)
    else:
        for case in missing:
            say(f"{case.part}: {case.name}")
            record = measure(case, device, left())
            store(record, folder)
            say(f"    {record.accuracy:.2f}%, {record.megabytes:.2f} MB, {record.seconds:.0f} s")
    found = {case.name: record_of(case, folder) for case in cases}
    return {name: record for name, record in found.items() if record is not None}


def _side_by_side(
    cases: Sequence[Case],
    folder: Path,
    say: Say,
    device: str,
    processes: int,
    left: Callable[[], float | None],
) -> None:
    """Make the records in processes, so many at a time."""
    folder.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    waiting = list(cases)
    running: dict[str, subprocess.Popen[bytes]] = {}
    while waiting or running:
        while waiting and len(running) < processes:
            case = waiting.pop(0)
            say(f"{case.part}: {case.name}")
            order, limit = folder / f"{case.slug}.case", left()
            order.write_bytes(msgspec.json.encode(case))
            words = [str(order), device, "" if limit is None else str(limit)]
            running[case.slug] = subprocess.Popen(  # noqa: S603  ourselves
                [sys.executable, "-m", "colonnade_bench.czofo.records", *words], env=environment
            )
        for slug, process in list(running.items()):
            if process.poll() is not None:
                del running[slug]
                say(f"    {slug}: {'done' if process.returncode == 0 else 'failed'}")
        time.sleep(0.2)


def main(order: str, device: str, seconds: str) -> None:
    """Make the record of a case that is in a file, beside that file."""
    case = msgspec.json.decode(Path(order).read_bytes(), type=Case)
    store(measure(case, device, float(seconds) if seconds else None), Path(order).parent)
    Path(order).unlink()


if __name__ == "__main__":
    main(*sys.argv[1:4])
