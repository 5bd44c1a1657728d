"""How long a network run takes from the command to its result, and what all its processes compute for it.

    python -m colonnade_bench.micro.startup [--parties 4] [--repeat 5] [--beside PATH/src]

Runs `colonnade run` on UCI credit with a process per party, five epochs, no pooled comparison, and prints
the best time on the clock, the best CPU time of all processes together, and the time that training took of
it. With `--beside` another version of the code runs in turns with this one.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import colonnade

JOB = """
algorithm = "vfb2-sgd"
world = "network"
compare = false
[data]
train = "uci-credit"
parties = {parties}
active = 2
[train]
epochs = 5
batch = 256
[secure]
labels = "clear"
"""


@dataclass(frozen=True)
class Taken:
    """What one run took: on the clock, of CPU in all processes, and on the clock for training alone."""

    seconds: float
    cpu: float
    training: float


def run(source: Path, folder: Path, parties: int) -> Taken:
    """Run the job with the code that lies here."""
    job = folder / "job.toml"
    job.write_text(JOB.format(parties=parties))
    elsewhere = os.environ.get("PYTHONPATH", "")  # where the packages may be that it needs
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(source), elsewhere])}
    before, began = _cpu(), time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "colonnade", "run", str(job), "--out", str(folder / "out")],
        env=environment,
        cwd=folder,
        check=True,
        capture_output=True,
    )
    seconds, cpu = time.perf_counter() - began, _cpu() - before
    result = json.loads((folder / "out" / "result.json").read_text())
    return Taken(seconds, cpu, result["cost"]["seconds"])


def _cpu() -> float:
    """CPU seconds of all children that have ended."""
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("--parties", type=int, default=4)
    arguments.add_argument("--repeat", type=int, default=5)
    arguments.add_argument("--beside", type=Path)
    given = arguments.parse_args()
    sources = {"this": Path(colonnade.__file__).parents[1]}
    if given.beside is not None:
        sources["beside"] = given.beside.resolve()
    taken: dict[str, list[Taken]] = {name: [] for name in sources}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(given.repeat):
            for name, source in sources.items():
                taken[name].append(run(source, Path(folder), given.parties))
    print(f"UCI credit, {given.parties} parties, best of {given.repeat}")
    print(f"{'':10}{'seconds':>10}{'CPU s':>10}{'training s':>12}")
    for name, runs in taken.items():
        seconds, cpu = min(each.seconds for each in runs), min(each.cpu for each in runs)
        print(f"{name:10}{seconds:10.2f}{cpu:10.2f}{min(each.training for each in runs):12.2f}")


if __name__ == "__main__":
    main()
