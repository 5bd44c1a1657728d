"""Data beyond the memory: one pass of vfb2-sgd over made-up rows, beside a pass over fewer of them.

    colonnade bench large --rows 10000000 --columns 20 [--only csv | blind | trees]

With `--only` the file is CSV, or labels are blind, or two trees are grown instead. Rows are made in blocks,
single precision; the label follows a linear score with noise. Every run is a process of its own, whose memory
is looked at all the while: the resident memory of it and of all that it starts, together. What is compared
is the time from the first batch to the last measurement, without reading, and the CPU time that went by
meanwhile: that says the same on a machine that has other things to do. The few rows are trained on before
and after the many, and the better of both counts.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from colonnade.errors import JobError

FEW, PARTIES, BATCH, MEMORY = 1_000_000, 4, 1024, "2GB"
BLOCK = 2**20
PARTS = {
    "csv": "from a CSV file",
    "blind": "with blind labels of one party",
    "trees": "two trees of secureboost",
}
JOB = """
algorithm = "{algorithm}"
world = "local"
compare = false
[data]
train = "{file}"
label = "y"
parties = {parties}
active = {active}
test_fraction = 0.01
memory = "{memory}"
[secure]
labels = "{labels}"
[train]
{train}
"""


def run(
    quick: bool,
    out: Path,
    say: Callable[[str], None],
    rows: int | None = None,
    columns: int | None = None,
    only: tuple[str, ...] = (),
) -> list[Path]:
    """Make the data, train on few rows and on many, and write what both took."""
    if len(only) > 1:
        raise JobError(
            f"--only: large makes one thing at a time, not {' and '.join(only)}; run it once for each"
        )
    part = only[0] if only else ""
    rows, columns = rows or (2_000_000 if quick else 10_000_000), columns or 20
    few = min(FEW, rows // 4)
    made = []
    with tempfile.TemporaryDirectory(prefix="colonnade-large-") as scratch:
        for n in (few, rows, few):
            file = Path(scratch) / ("rows.csv" if part == "csv" else "rows.parquet")
            began = time.perf_counter()
            make_rows(file, n, columns)
            say(f"{n:,} rows x {columns} made in {time.perf_counter() - began:.0f} s")
            made.append(measured(Path(scratch), file, n, columns, part))
            say(told(made[-1]))
            file.unlink()
    before, large, after = made
    ratio = max(before["rows_per_second"], after["rows_per_second"]) / large["rows_per_second"]
    cpu = large["cpu_seconds"] / rows / (min(before["cpu_seconds"], after["cpu_seconds"]) / few)
    say(
        f"rows a second, {few:,} rows over {rows:,}: {ratio:.2f}; "
        f"CPU of training a row, {rows:,} over {few:,}: {cpu:.2f}"
    )
    out.mkdir(parents=True, exist_ok=True)
    path = out / "large.json"
    path.write_text(
        json.dumps({"runs": made, "few_over_many": ratio, "cpu_many_over_few": cpu}, indent=2) + "\n"
    )
    return [path]


def make_rows(file: Path, rows: int, columns: int, seed: int = 0) -> None:
    """Write a Parquet or CSV file of rows, a block at a time: normal columns, a label of two classes."""
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet as pq

    w = np.random.default_rng([seed, 0]).standard_normal(columns).astype(np.float32)
    names = [f"x{j}" for j in range(columns)]
    schema = pa.schema([*((name, pa.float32()) for name in names), ("y", pa.int8())])
    with (
        pa.csv.CSVWriter(file, schema)
        if file.suffix == ".csv"
        else pq.ParquetWriter(file, schema, compression="none", use_dictionary=False)
    ) as writer:
        for number, start in enumerate(range(0, rows, BLOCK)):
            rng = np.random.default_rng([seed, 1, number])
            X = rng.standard_normal((columns, min(BLOCK, rows - start)), dtype=np.float32)
            noise = rng.standard_normal(X.shape[1], dtype=np.float32)
            y = (w @ X + noise > 0).astype(np.int8)
            writer.write_table(pa.table([*X, y], schema=schema))


def measured(scratch: Path, file: Path, rows: int, columns: int, part: str = "") -> dict[str, float]:
    """One pass over the rows of a file in a process of its own."""
    job, result = scratch / "job.toml", scratch / "run"
    job.write_text(
        JOB.format(
            algorithm="secureboost" if part == "trees" else "vfb2-sgd",
            file=file,
            parties=PARTIES,
            active=1 if part in ("blind", "trees") else 2,
            memory=MEMORY,
            labels="blind" if part == "blind" else "clear",
            train="epochs = 2" if part == "trees" else f"epochs = 1\nbatch = {BATCH}",
        )
    )
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "TMPDIR": str(scratch)}
    began = time.perf_counter()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    process = subprocess.Popen(  # noqa: S603  our own interpreter, our own module
        [sys.executable, "-m", "colonnade", "run", str(job), "--out", str(result)],
        env=environment,
        stdout=subprocess.DEVNULL,
    )
    peak = Peak(process.pid)
    watch = threading.Thread(target=peak.watch, args=(process,))
    watch.start()
    watch.join()
    if process.returncode:
        raise SystemExit(f"the run of {rows:,} rows ended with status {process.returncode}")
    told = json.loads((result / "result.json").read_text())
    shutil.rmtree(result)
    trained = told["data"]["rows"]["train"]
    return {
        "rows": rows,
        "columns": columns,
        "seconds": told["cost"]["seconds"],
        "seconds_in_all": time.perf_counter() - began,
        "rows_per_second": trained / told["cost"]["seconds"],
        "cpu_seconds": peak.cpu_of_last(told["cost"]["seconds"]),
        "cpu_seconds_in_all": _cpu(resource.getrusage(resource.RUSAGE_CHILDREN)) - _cpu(before),
        "peak_mb": peak.most / 1e6,
        "prepared_mb": 4e-6 * rows * (columns + 1),
        "train_loss": told["metrics"]["train_loss"],
        "test_auc": told["metrics"]["test_auc"],
    }


class Peak:
    """What a process and its descendants use, looked at five times a second: memory, and CPU time."""

    def __init__(self, pid: int) -> None:
        self.pid, self.most = pid, 0
        self._spent: list[tuple[float, float]] = []  # when, and the CPU time until then

    def watch(self, process: subprocess.Popen[bytes]) -> None:
        """Look until the process has ended."""
        while process.poll() is None:
            alive = family(self.pid)
            self.most = max(self.most, sum(resident(pid) for pid in alive))
            self._spent.append((time.perf_counter(), sum(spent(pid) for pid in alive)))
            time.sleep(0.2)

    def cpu_of_last(self, seconds: float) -> float:
        """The CPU time of the last so many seconds: of training, which all but ends a run."""
        last = [(at, cpu) for at, cpu in self._spent if cpu > 0]
        began = next(cpu for at, cpu in last if at >= last[-1][0] - seconds)
        return last[-1][1] - began


def family(pid: int) -> list[int]:
    """A process and all that it started, and so on."""
    found = [pid]
    for parent in found:
        for task in Path(f"/proc/{parent}/task").glob("*/children"):
            try:
                found += [int(child) for child in task.read_text().split()]
            except OSError:
                continue
    return found


def resident(pid: int) -> int:
    """The resident memory of a process in bytes; 0 where it is gone."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def spent(pid: int) -> float:
    """The CPU time of a process in seconds; 0 where it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _cpu(used: resource.struct_rusage) -> float:
    return used.ru_utime + used.ru_stime


def told(made: dict[str, float]) -> str:
    """A line about a run."""
    return (
        f"{made['rows']:,.0f} rows: {made['seconds']:.1f} s ({made['rows_per_second']:,.0f} rows/s), "
        f"{made['cpu_seconds']:.1f} s of CPU; "
        f"{made['seconds_in_all']:.0f} s and {made['cpu_seconds_in_all']:.0f} s of CPU in all; "
        f"peak {made['peak_mb']:,.0f} MB, "
        f"prepared columns {made['prepared_mb']:,.0f} MB ({made['peak_mb'] / made['prepared_mb']:.2f}); "
        f"loss {made['train_loss']:.4f}, AUC {made['test_auc']:.4f}"
    )
