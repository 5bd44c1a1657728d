"""A slow client: accuracies of the asynchronous frameworks between processes, every run twice.

In one run of a pair all clients have the same speed, in the other one of them computes everything 1 / 0.4
times as long, by work and not by waiting; it is another client for every seed. Both have one seed, which
draws the order of rows, the directions and the first weights. Settings are those of the tables, with fewer
epochs, or with as many as are asked for, which have records of their own. Every run leaves a record, as all
do; `slow:kept` makes the table of those that are there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from colonnade.data.datasets.loading import available
from colonnade_bench.common import Bench, Grid, Say
from colonnade_bench.czofo.case import Case, Record
from colonnade_bench.czofo.cases import cases_of
from colonnade_bench.czofo.records import Measure, record_of
from colonnade_bench.pairs import HEADS, LIMIT, SPEED, Pairs


class Extent(NamedTuple):
    """How long and how often a part is run: its frameworks, the epochs of a run, and the seeds."""

    frameworks: tuple[str, ...]
    epochs: int
    seeds: int


FRAMEWORKS = ("czofo", "czofo-ef", "vafl", "zoo-vfl")  # the asynchronous ones
EXTENTS = {
    "a9a": Extent(FRAMEWORKS, 20, 5),
    "gmsc": Extent(FRAMEWORKS, 20, 15),  # about 4,200 test rows: single runs differ most here
    "mnist2": Extent(("czofo",), 5, 4),
    "mnist4": Extent(("czofo",), 5, 4),
    "mnist8": Extent(("czofo",), 3, 4),
    "cifar10": Extent(("czofo",), 5, 2),
}
QUICK = ("a9a",)
NAMES = (*EXTENTS, *FRAMEWORKS, "kept")


class Asked(NamedTuple):
    """What was asked for: parts and frameworks by name, or `kept`, and other epochs and seeds than usual."""

    named: Sequence[str] = ()
    epochs: int | None = None
    seeds: int | None = None
    quick: bool = False

    @property
    def parts(self) -> Sequence[str]:
        """The parts that are named, or all."""
        return [part for part in EXTENTS if part in self.named] or (QUICK if self.quick else tuple(EXTENTS))

    def extent(self, part: str) -> Extent:
        """How long and how often a part is run."""
        usual = EXTENTS[part]
        chosen = tuple(name for name in FRAMEWORKS if name in self.named) or usual.frameworks
        if self.quick:
            usual, chosen = usual._replace(epochs=1, seeds=1), chosen[:1]
        return Extent(chosen, self.epochs or usual.epochs, self.seeds or usual.seeds)


def pairs_of(part: str, asked: Asked) -> list[Case]:
    """The runs of a part, a pair for every seed and framework; first those of the first seed."""
    extent = asked.extent(part)
    known = {case.name: case for case in cases_of(part, quick=asked.quick)}
    pairs = [
        _between(known[name], extent.epochs, seed, speed)
        for seed, name, speed in product(range(extent.seeds), extent.frameworks, (1.0, SPEED))
    ]
    if asked.epochs is None:
        return pairs
    # a record's file is named by its part, so that runs of another length leave the usual ones as they are
    return [msgspec.structs.replace(case, part=f"{case.part}, {asked.epochs} epochs") for case in pairs]


def _between(case: Case, epochs: int, seed: int, speed: float) -> Case:
    """The same case between processes, one client at this speed."""
    # a long run need not be measured more often than a short one
    train = {**case.train, "epochs": epochs, "evaluate_every": max(1.0, epochs / 20)}
    name = f"{case.name}, seed {seed}, {'all at 1' if speed == 1 else f'one at {speed:g}'}"
    return msgspec.structs.replace(
        case, part=f"slow {case.part}", name=name, world="network", train=train, seed=seed, speed=speed
    )


def slow(bench: Bench, measure: Measure, folder: Path, say: Say, asked: Asked) -> None:
    """Add the table: of all parts and frameworks, of those named, or with `kept` of what has a record."""
    rows = []
    for part in asked.parts:
        cases = pairs_of(part, asked)
        if not available(cases[0].dataset):
            say(f"{cases[0].dataset} is not on this machine, left out")
            continue
        made = {} if "kept" in asked.named else measure(cases)
        found = made or {case.name: there for case in cases if (there := record_of(case, folder))}
        rows += _rows(part, cases, found)
    heads = ["part", "framework", "clients", "epochs", "seeds", *HEADS, f"within {LIMIT}"]
    note = (
        "Test accuracy in per cent after the last epoch, a process for the server and for every client, TLS; "
        f"means over seeds. The slow client takes 1 / {SPEED} times as long for everything and is another "
        "one for every seed."
    )
    bench.grids.append(Grid("Accuracy with a slow client", heads, rows, note))


def _rows(part: str, cases: Sequence[Case], found: Mapping[str, Record]) -> list[list[Any]]:
    """A row for every framework with a whole pair, of as many seeds as have one."""
    rows = []
    for name in dict.fromkeys(case.name.partition(", seed ")[0] for case in cases):
        own = [case for case in cases if case.name.partition(", seed ")[0] == name]
        ended = [found[case.name].accuracy if _ended(case, found) else None for case in own]
        twins = zip(ended[::2], ended[1::2], strict=True)
        whole = [(a, b) for a, b in twins if a is not None and b is not None]
        if whole:
            pairs = Pairs([a for a, _ in whole], [b for _, b in whole])
            rows.append([part, name, own[0].clients, own[0].epochs, len(whole), *pairs.cells(), pairs.within])
    return rows


def _ended(case: Case, found: Mapping[str, Record]) -> bool:
    """Whether a case was run to its end, with all of its epochs."""
    record = found.get(case.name)
    return record is not None and record.complete and record.case == case
