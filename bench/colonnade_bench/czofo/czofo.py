"""VFL-CZOFO's experiments: Tables 2-11 and Figures 2-8 of the supplement, ours beside the paper's.

Every row is a case (`czofo.case`) whose record stays in OUT/records: what is there is not run again, so a
bench can be made in pieces, also on several machines, and the tables say where each row comes from. The
server is a party of its own without columns. Accuracy is that of the test rows after the last epoch, the
mean of three seeds and their standard deviation. All rows of a table have as many epochs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
from msgspec.structs import replace

from colonnade.data.datasets.loading import available
from colonnade.errors import JobError
from colonnade_bench.common import Bench, Grid, Panel, Say
from colonnade_bench.czofo import paper
from colonnade_bench.czofo.case import Case, Measurement, Record
from colonnade_bench.czofo.cases import BETWEEN_PROCESSES, cases_of
from colonnade_bench.czofo.paper import FRAMEWORKS, REACHED, THRESHOLDS, Printed
from colonnade_bench.czofo.privacy import privacy
from colonnade_bench.czofo.records import Measure, records
from colonnade_bench.czofo.slow import NAMES, Asked, slow
from colonnade_bench.czofo.steps import with_step_of, zoo_trials
from colonnade_bench.czofo.time import times

TITLES = {
    "a9a": "Table 7 and Figure 6: a9a, 2 clients",
    "gmsc": "Table 6 and Figure 5: GiveMeSomeCredit, 2 clients",
    "mnist2": "MNIST, 2 clients",
    "mnist4": "Table 9 and Figure 7: MNIST, 4 clients",
    "mnist8": "Table 10 and Figure 8: MNIST, 8 clients",
    "cifar10": "Table 3 and Figure 2: CIFAR-10, 2 clients",
}
NOTES = {
    "linear": "Linear clients with 2 outputs, linear server, batch 64, q = 10 (zoo: 1), automatic steps.",
    "mnist": (
        "Clients and server have 128 hidden units, d = 64, batch 64, q = 100 (zoo: 1), Rademacher "
        "directions, steps that fall (Adam; zoo and per sample SGD), chosen on a tenth of the training rows."
    ),
    "cifar10": (
        "Convnets with 10 outputs, server with 64 hidden units, batch 128, q = 1000 (zoo: 1), 4 bits both "
        "ways where nothing else is said, few bits with a range for every column, Adam with a step that "
        "falls and was chosen on a tenth of the training rows, no augmentation."
    ),
}
PARTS = {
    **TITLES,
    "slow": "a slow client beside none, over several seeds of every set and framework",
    "time": "Tables 2 and 11: processor time of an epoch",
    "privacy": "Table 8: accuracy under differential privacy",
}
SEEDS = 3  # runs of every row of a table
QUICK = tuple(part for part in PARTS if part not in ("mnist2", "mnist8"))
BYTES = (
    "MB are 10^6 bytes as the meter counted them: all that was sent in training, framing and the first pass "
    "over all rows included; what of it is payload; our own framing and TLS records in per cent of that "
    "(the local world has no TLS). The paper counts payload, in MB or MiB. MB to a threshold are until the "
    "test accuracy is first measured there; the paper's may be until training accuracy is."
)


def named(part: str, quick: bool) -> Sequence[str]:
    """What may be named of a part: its cases; of slow clients sets and frameworks."""
    if part == "slow":
        return NAMES
    return [case.name for case in cases_of(part, quick=quick)] if part in TITLES else ()


def run(
    quick: bool,
    out: Path,
    say: Say,
    *,
    only: Sequence[str] = (),
    device: str = "cpu",
    processes: int = 1,
    seconds: float | None = None,
    epochs: int | None = None,
    seeds: int | None = None,
) -> list[Path]:
    """Make the tables of all parts, or of some; cases that have a record are not run again.

    Other epochs and seeds than usual are those of the tables and of `slow`.
    """
    parts = {piece.partition(":")[0] for piece in only}
    if (epochs or seeds) and (not only or not parts <= {"slow", *TITLES}):
        raise JobError(
            "--epochs, --seeds: of czofo these are for its tables and for slow clients; add --only slow, or "
            f"--only {', '.join(TITLES)}"
        )
    bench = Bench("czofo", "VFL-CZOFO: split networks in few bytes", quick)

    def measure(cases: Sequence[Case]) -> Mapping[str, Record]:
        return records(cases, out / "records", say, device=device, processes=processes, seconds=seconds)

    for piece in only or (QUICK if quick else PARTS):
        name, *named = piece.split(":")  # of a part some cases, if they are named behind a colon
        if name == "time":
            times(bench, measure, say, quick=quick)
        elif name == "privacy":
            privacy(bench, measure, say, quick=quick)
        elif name == "slow":
            slow(bench, measure, out / "records", say, Asked(named, epochs, seeds, quick))
        else:
            tables(bench, name, measure, say, named, quick=quick, epochs=epochs, seeds=seeds)
        bench.write(out)  # a full run takes long, and what is there can be read meanwhile
    return bench.write(out)


def frameworks(bench: Bench, part: str, found: Mapping[str, Sequence[Record]], note: str) -> None:
    """Add one of Tables 3, 6, 7, 9 and 10, and the figure that goes with it; of several seeds the means."""
    threshold, rows = THRESHOLDS[part], []
    reached = REACHED.get(part, threshold)
    for name, seeds in found.items():
        theirs, record = FRAMEWORKS[part].get(name, Printed(float("nan"))), seeds[0]
        rows.append([
            name, record.last.epochs, len(seeds), theirs.accuracy,
            mean(each.accuracy for each in seeds), deviation(each.accuracy for each in seeds),
            mean(each.train_accuracy for each in seeds), theirs.to_threshold,
            mean(each.megabytes_to(reached) for each in seeds),
            theirs.total, record.megabytes, record.payload_megabytes, record.case.steps, _where(record),
        ])  # fmt: skip
    heads = [
        "framework", "epochs", "seeds", "paper %", "ours %", "+-", "training rows %",
        f"paper MB to {threshold:g}%", f"MB to {reached:g}%", "paper MB", "MB", "payload MB",
        "step", "made on",
    ]  # fmt: skip
    bench.grids.append(Grid(TITLES[part], heads, rows, f"{note} {BYTES}"))
    drawn = FRAMEWORKS[part] or FRAMEWORKS["mnist4"]  # more than the paper's lines nobody can tell apart
    title = TITLES[part].rpartition(": ")[2]
    curves(bench, title, {name: found[name][0] for name in drawn if name in found})


def between_processes(bench: Bench, part: str, found: Mapping[str, Sequence[Record]]) -> None:
    """Add what messages cost between processes, from short runs that are there for their bytes."""
    rows = [
        [name, record.last.epochs, record.megabytes, record.payload_megabytes, *record.framing]
        for name, (record, *_) in found.items()
    ]
    heads = ["framework", "epochs", "MB", "payload MB", "framing %", "TLS %"]
    if rows:
        bench.grids.append(Grid(f"{TITLES[part]}, between processes", heads, rows))


def mean(values: Iterable[float | None]) -> float | None:
    """Return the mean of some numbers; None where one of them is not known.

    >>> mean([1.0, 2.0]), mean([1.0, None])
    (1.5, None)
    """
    known = list(values)
    return None if None in known else float(np.mean(np.array(known, dtype=np.float64)))


def deviation(values: Iterable[float]) -> float | None:
    """Return the standard deviation of some numbers; None of a single one."""
    known = list(values)
    return float(np.std(known, ddof=1)) if len(known) > 1 else None


def curves(bench: Bench, title: str, found: Mapping[str, Record]) -> None:
    """Add test accuracy against epochs and against bytes (the paper draws training accuracy)."""
    where: dict[str, Callable[[Measurement], float]] = {
        "epochs": lambda p: p.epochs,
        "MB sent": lambda p: p.bytes / 1e6,
    }
    for x, of in where.items():
        lines = {
            name: [(of(p), p.accuracy) for p in thinned(r.points)] for name, r in found.items() if r.points
        }
        if lines:
            bench.panels.append(Panel(title, x, "test accuracy, %", lines))


def thinned(points: Sequence[Measurement], most: int = 25) -> list[Measurement]:
    """About so many of the measurements at most, the last among them."""
    step = max(1, len(points) // most)
    return [*points[:-1:step], points[-1]]


def tables(
    bench: Bench,
    part: str,
    measure: Measure,
    say: Say,
    named: Sequence[str],
    *,
    quick: bool,
    epochs: int | None = None,
    seeds: int | None = None,
) -> None:
    """Measure all cases of a part, or those that are named, and add its tables and figures."""
    cases = [case for case in cases_of(part, quick=quick) if not named or case.name in named]
    if epochs is not None:
        cases = [replace(case, train={**case.train, "epochs": epochs}) for case in cases]
    if not available(dataset := cases[0].dataset):
        say(f"{dataset} is not on this machine, left out")
        return
    if not quick:
        cases = tuned(cases, measure)
    found = of_seeds(cases, measure, seeds or (1 if quick else SEEDS))
    note = "linear" if part in ("a9a", "gmsc") else part.rstrip("248")
    few = f"{cases[0].rows} training rows. " if cases[0].rows else ""
    apart = {name: found.pop(name) for name in list(found) if name.endswith(BETWEEN_PROCESSES)}
    shown = {name: records for name, records in found.items() if "q =" not in name}
    frameworks(bench, part, shown, few + NOTES[note])
    between_processes(bench, part, apart)
    if part == "cifar10" and not quick:
        ablations(bench, {name: first for name, (first, *_) in found.items()})


def tuned(cases: Sequence[Case], measure: Measure) -> list[Case]:
    """Return the cases; those of zeroth-order networks have the step of the grid that was most accurate.

    The steps of all others were chosen in the same way by `steps`, and stand there.
    """
    trials = {case.name: zoo_trials(case) for case in cases if _zeroth(case)}
    found = measure([trial for some in trials.values() for trial in some])

    def accuracy(trial: Case) -> float:
        record = found.get(trial.name)
        return record.accuracy if record is not None and record.complete else 0.0

    return [
        with_step_of(case, max(trials[case.name], key=accuracy)) if case.name in trials else case
        for case in cases
    ]


def _zeroth(case: Case) -> bool:
    """Whether a case is a network that learns from function values."""
    return case.algorithm in ("zoo-vfl", "syn-zoo-vfl") and case.dataset in ("mnist", "cifar10")


def of_seeds(cases: Sequence[Case], measure: Measure, seeds: int) -> dict[str, list[Record]]:
    """Return the records of every case, of so many seeds; of what is there for its bytes alone of one."""
    each = {
        case.name: [
            replace(case, seed=seed, name=f"{case.name}, seed {seed}" if seed else case.name)
            for seed in range(1 if "q =" in case.name or case.world == "network" else seeds)
        ]
        for case in cases
    }
    found = measure([case for some in each.values() for case in some])
    records = {name: [found[case.name] for case in some if case.name in found] for name, some in each.items()}
    return {name: some for name, some in records.items() if some}


def ablations(bench: Bench, found: Mapping[str, Record]) -> None:
    """Add Tables 4 and 5, Figures 3 and 4: fewer directions, and fewer bits up or down."""
    both = "q = 1000, 32/32 bits"
    by_q = {0: "vafl", 1000: both, 500: "q = 500, 32/32 bits", 100: "q = 100, 32/32 bits"}
    by_bits = {
        ways: both if ways == (32, 32) else f"q = 1000, {ways[0]}/{ways[1]} bits" for ways in paper.BITS
    }
    rows = [
        [q or "gradient", *paper.DIRECTIONS[q], found[name].accuracy, _down(found[name])]
        for q, name in by_q.items()
        if name in found
    ]
    note = f"32 bits both ways. MB down is the payload of replies. {BYTES}"
    heads = ["directions", "paper %", "paper MB down", "ours %", "MB down"]
    bench.grids.append(Grid("Table 4: CIFAR-10, number of directions", heads, rows, note))
    rows = [
        [f"{up}/{down}", *paper.BITS[up, down], found[name].accuracy, _up(found[name]), _down(found[name])]
        for (up, down), name in by_bits.items()
        if name in found
    ]
    heads = ["bits up/down", "paper %", "paper MB that way", "ours %", "MB up", "MB down"]
    bench.grids.append(Grid("Table 5: CIFAR-10, bits of a number", heads, rows, "q = 1000. Payload."))
    drawn = {
        "directions": {f"q = {q}" if q else "gradient": name for q, name in by_q.items()},
        "bits up": {str(up): name for (up, down), name in by_bits.items() if down == 32},
        "bits down": {str(down): name for (up, down), name in by_bits.items() if up == 32},
    }
    for what, chosen in drawn.items():
        lines = {label: found[name] for label, name in chosen.items() if name in found}
        curves(bench, f"CIFAR-10, {what}", lines)


def _up(record: Record) -> float | None:
    """Megabytes that clients sent to the server."""
    return record.payload_megabytes_of("upload", "embeddings")


def _down(record: Record) -> float | None:
    """Megabytes that the server sent to clients."""
    return record.payload_megabytes_of("reply")


def _where(record: Record) -> str:
    """The machine a record was made on, and why it ended early if it did."""
    place = record.machine.partition(",")[0] + (", GPU" if record.device == "cuda" else "")
    return place if record.complete else f"{place}; {record.ended}"
