"""VFL-CZOFO's experiments: Tables 2-11 and Figures 2-8 of the supplement, ours beside the paper's.

Every row is a case (`czofo_case`) whose record stays in OUT/records: what is there is not run again, so a
bench can be made in pieces, also on several machines, and the tables say where each row comes from. The
server is a party of its own without columns. Accuracy is that of the test rows after the last epoch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from colonnade.bench.common import Bench, Grid, Panel, Say
from colonnade.bench.czofo_case import Case, Point, Record, records
from colonnade.bench.czofo_cases import TABULAR, tabular
from colonnade.bench.czofo_paper import FRAMEWORKS, THRESHOLDS, Printed
from colonnade.data.datasets import available

Measure = Callable[[Sequence[Case]], Mapping[str, Record]]

TITLES = {
    "a9a": "Table 7: a9a, 2 clients",
    "gmsc": "Table 6: GiveMeSomeCredit, 2 clients",
}
BYTES = (
    "MB are 10^6 bytes as the meter counted them: all that was sent in training, framing and the first pass "
    "over all rows included, and what of it is payload. The paper counts payload, in MB or MiB."
)


def run(
    quick: bool,
    out: Path,
    say: Say,
    *,
    only: Sequence[str] = (),
    device: str = "cpu",
    processes: int = 1,
    seconds: float | None = None,
) -> list[Path]:
    bench = Bench("czofo", "VFL-CZOFO: split networks in few bytes", quick)

    def measure(cases: Sequence[Case]) -> Mapping[str, Record]:
        return records(cases, out / "records", say, device=device, processes=processes, seconds=seconds)

    for name, part in PARTS.items():
        if not only or name in only:
            part(bench, name, measure, say, quick=quick)
            bench.write(out)  # a full run takes long, and what is there can be read meanwhile
    return bench.write(out)


def frameworks(bench: Bench, part: str, found: Mapping[str, Record], note: str) -> None:
    """One of Tables 3, 6, 7, 9 and 10, and the figure that goes with it."""
    threshold, rows = THRESHOLDS[part], []
    for name, record in found.items():
        paper = FRAMEWORKS[part].get(name, Printed(float("nan")))
        rows.append([
            name, record.case.world, record.points[-1].epochs, paper.accuracy, record.accuracy,
            paper.to_threshold, record.megabytes_to(threshold),
            paper.total, record.megabytes, record.payload_megabytes, _where(record),
        ])  # fmt: skip
    heads = [
        "framework", "world", "epochs", "paper %", "ours %",
        f"paper MB to {threshold:g}%", f"MB to {threshold:g}%", "paper MB", "MB", "payload MB", "made on",
    ]  # fmt: skip
    bench.grids.append(Grid(TITLES[part], heads, rows, f"{note} {BYTES}"))
    curves(bench, TITLES[part], {name: r for name, r in found.items() if r.case.world == "local"})


def curves(bench: Bench, title: str, found: Mapping[str, Record]) -> None:
    """Test accuracy against epochs and against bytes (the paper draws training accuracy)."""
    where: dict[str, Callable[[Point], float]] = {
        "epochs": lambda p: p.epochs,
        "MB sent": lambda p: p.bytes / 1e6,
    }
    for x, of in where.items():
        lines = {name: [(of(p), p.accuracy) for p in thinned(r.points)] for name, r in found.items()}
        if lines:
            bench.panels.append(Panel(title.partition(":")[2].strip(), x, "test accuracy, %", lines))


def thinned(points: Sequence[Point], most: int = 25) -> list[Point]:
    """At most about so many, the last among them."""
    step = max(1, len(points) // most)
    return [*points[:-1:step], points[-1]]


def tables_of_linear(bench: Bench, part: str, measure: Measure, say: Say, *, quick: bool) -> None:
    if not present(TABULAR[part], say):
        return
    found = measure(tabular(part, quick=quick))
    frameworks(bench, part, found, "Linear clients with 2 outputs, linear server, batch 64, automatic steps.")


def present(dataset: str, say: Say) -> bool:
    if not available(dataset):
        say(f"{dataset} is not on this machine, left out")
    return available(dataset)


def _where(record: Record) -> str:
    place = record.machine.partition(",")[0] + (", GPU" if record.device == "cuda" else "")
    return place if record.complete else f"{place}; stopped by its time limit"


PARTS: dict[str, Callable[..., None]] = {"a9a": tables_of_linear, "gmsc": tables_of_linear}
