"""Two companies and nobody else: `lbfgs` under encryption beside clear, what it costs, and what audits find.

    python -m colonnade_bench.micro.two [--sets a9a uci-credit givemesomecredit breast-cancer] [--repeat 3]
    python -m colonnade_bench.micro.two --wan 0 40
    python -m colonnade_bench.micro.two --grow 30000x20 200000x40 20000x2000@0.01
    python -m colonnade_bench.micro.two --memory 1000000x8 2000000x8 --modes blind never    # Linux
    python -m colonnade_bench.micro.two --audit a9a breast-cancer --modes blind never

A set may also be FILE:LABEL, a CSV file, whose columns are prepared as a user's are (outliers capped); or
FILE.toml, a job of two companies' files. Columns of one table are dealt to two parties, of which the first
holds the label; everything else is as a job has it that says nothing. CPU seconds are those of both parties
in one process, with their columns' set-up, reading and the comparison with pooled columns apart; `set-up` is
a run of one pass without theta. --wan prints the time of a simulated network with this latency, one way, in
ms. --memory has a process for each party, and prints the most that each has had of its own, as MiB.
Blind runs differ in their noise: of `--repeat` runs the mean is printed. --way says how polynomials are
multiplied: without it as fast as the machine can.
"""

from __future__ import annotations

import argparse
import os
import tomllib
from pathlib import Path
from threading import Event, Thread
from typing import Any

import numpy as np
from scipy.sparse import csr_array, hstack
from threadpoolctl import threadpool_limits

from colonnade.attacks.audit import audit
from colonnade.data.table import INTERCEPT, Table
from colonnade.job import Job, job_from
from colonnade.run.federate import Finished, Tables, federate, run_tables
from colonnade.secure.lattice.arithmetic import WAYS, using

SETS = ("a9a", "uci-credit", "givemesomecredit", "breast-cancer")
MODES: dict[str, dict[str, str]] = {
    "clear": {"labels": "clear"},
    "blind": {"labels": "blind"},
    "never": {"labels": "blind", "reveal": "never"},
}


def job_of(data: str, mode: str, **sections: Any) -> Job:
    """A job of two parties that says nothing but what is hidden; data is a set, FILE:LABEL or a job."""
    return job_from(
        {
            "algorithm": "lbfgs",
            "world": "local",
            "data": data_of(data),
            "secure": MODES[mode],
            **sections,
        }
    )


def data_of(data: str) -> dict[str, Any]:
    """Whose columns a job is about."""
    if data.endswith(".toml"):
        found: dict[str, Any] = tomllib.loads(Path(data).read_text(encoding="utf-8"))["data"]
        return found
    path, _, label = data.partition(":")
    return {"train": path, "parties": 2, **({"label": label} if label else {})}


def cpu_of(done: Finished) -> float:
    """CPU seconds of both parties."""
    return sum(share.cpu_seconds or 0.0 for share in done.shares.values())


def sets(names: list[str], repeat: int, modes: list[str]) -> None:
    """Accuracy, AUC and loss beside clear, and what a run takes."""
    heads = ("set", "mode", "accuracy", "AUC", "loss above optimum", "CPU s", "set-up", "MB", "s")
    print("".join(f"{head:>20}" if k in (0, 4) else f"{head:>10}" for k, head in enumerate(heads)))
    for name in names:
        for mode in modes:
            runs = [federate(job_of(name, mode)) for _ in range(1 if mode == "clear" else repeat)]
            once = federate(job_of(name, mode, compare=False, train={"epochs": 1}))
            told = [run.result for run in runs]
            mean = {key: np.mean([each.metrics[key] for each in told]) for key in told[0].metrics}
            above = mean["suboptimality"] / (mean["objective"] - mean["suboptimality"])
            cpu, setting_up = min(cpu_of(run) for run in runs), cpu_of(once)
            sent = np.mean([each.cost.bytes_sent for each in told]) / 1e6
            print(
                f"{name:>20}{mode:>10}{mean['test_accuracy']:10.4f}{mean['test_auc']:10.4f}{above:20.3%}"
                f"{cpu:10.2f}{setting_up:10.2f}{sent:10.1f}"
                f"{np.mean([each.cost.seconds for each in told]):10.2f}",
                flush=True,
            )


def wan(latencies: list[float], names: list[str], modes: list[str]) -> None:
    """Seconds of a simulated network, on which computing is charged by a cost model."""
    for name in names:
        for latency in latencies:
            for mode in modes:
                network = {"latency_ms": latency, "bandwidth_mbps": 1000.0}
                job = job_of(name, mode, world="simulated", compare=False, network=network)
                done = federate(job).result
                print(f"{name:>20}{mode:>10}{latency:8.0f} ms{done.cost.virtual_seconds or 0.0:10.2f} s")


def grow(shapes: list[str], mode: str) -> None:
    """CPU and bytes by rows and columns, of made-up columns."""
    for shape in shapes:
        done = grown(shape, mode)
        above = done.result.metrics["suboptimality"] / done.result.metrics["objective"]
        sent = done.result.cost.bytes_sent / 1e6
        print(
            f"{shape:>18}{cpu_of(done):10.2f} CPU s{sent:10.1f} MB{above:10.3%} above the optimum", flush=True
        )


def grown(shape: str, mode: str, **sections: Any) -> Finished:
    """A run on made-up columns."""
    job = job_from(
        {
            "algorithm": "lbfgs",
            "data": {"train": "made-up", "parties": 2},
            "train": {"loss": "logistic"},
            "secure": MODES[mode],
            **sections,
        }
    )
    return run_tables(job, Tables("made-up", made_up(shape), None, ("party0",)))


def memory(shapes: list[str], mode: str) -> None:
    """The most memory of its own that each party's process has had."""
    for shape in shapes:
        most: dict[int, int] = {}
        done = Event()
        watch = Thread(target=watched, args=(most, done))
        watch.start()
        try:
            grown(shape, mode, world="network")
        finally:
            done.set()
            watch.join()
        two = sorted(sorted(most, key=lambda process: most[process])[-2:])  # the other is their server
        print(f"{shape:>18}{mode:>8}" + "".join(f"{most[each]:8} MiB" for each in two), flush=True)


def watched(most: dict[int, int], done: Event) -> None:
    """Note again and again how much memory of its own every process has that this one has started."""
    while not done.wait(0.05):
        below = {os.getpid()}
        for folder in sorted(Path("/proc").glob("[0-9]*"), key=lambda each: int(each.name)):
            try:
                lines = (folder / "status").read_text().splitlines()
            except OSError:
                continue  # it has ended
            found = dict(line.split(":", 1) for line in lines)
            process = int(folder.name)
            if int(found["PPid"]) in below and "RssAnon" in found:
                below.add(process)
                most[process] = max(most.get(process, 0), int(found["RssAnon"].split()[0]) // 1024)


def made_up(shape: str) -> dict[str, Table]:
    """Normal columns of two parties or, with a density, sparse ones of ones; labels of a linear model."""
    size, _, density = shape.partition("@")
    rows, columns = map(int, size.split("x"))
    rng = np.random.default_rng(0)
    if density:  # as of words or codes: the k-th column is k times as rare as the first
        parts = np.minimum(1.0, float(density) * columns / np.log(columns) / np.arange(1, columns + 1))
        X = csr_array(rng.random((rows, columns), dtype=np.float32) < rng.permutation(parts), dtype=float)
        usual = float(np.sqrt(X.sum(axis=1).mean()))
    else:
        X, usual = rng.standard_normal((rows, columns)), columns**0.5
    y = np.where(X @ rng.standard_normal(columns) / usual + rng.standard_normal(rows) > 0, 1.0, -1.0)
    half, ones = columns // 2, np.ones((rows, 1))
    own = hstack([X[:, :half], ones], format="csr") if density else np.hstack([X[:, :half], ones])
    return {
        "party0": Table("party0", (*(f"a{j}" for j in range(half)), INTERCEPT), own, y),
        "party1": Table("party1", tuple(f"b{j}" for j in range(columns - half)), X[:, half:].copy()),
    }


def audits(names: list[str], modes: list[str]) -> None:
    """What every party reads, in clear and blind."""
    for name in names:
        for mode in modes:
            for each in audit(job_of(name, mode, compare=False)).findings:
                reached = f"{each.success}; guessing {each.guessing}"
                print(f"{name:>20}{mode:>8}  {each.by:>8}  {each.attack:<36}{reached}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", nargs="*", default=list(SETS))
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--wan", nargs="*", type=float)
    parser.add_argument("--grow", nargs="*")
    parser.add_argument("--memory", nargs="*")
    parser.add_argument("--audit", nargs="*")
    parser.add_argument("--modes", nargs="*", choices=list(MODES), default=list(MODES))
    parser.add_argument("--way", choices=WAYS, default=WAYS[-1])
    given = parser.parse_args()
    with threadpool_limits(1), using(given.way):
        if given.wan is not None:
            wan(given.wan, given.sets, given.modes)
        elif given.grow is not None:
            for mode in given.modes:
                grow(given.grow, mode)
        elif given.memory is not None:
            for mode in given.modes:
                memory(given.memory, mode)
        elif given.audit is not None:
            audits(given.audit, given.modes)
        else:
            sets(given.sets, given.repeat, given.modes)


if __name__ == "__main__":
    main()
