"""Stragglers that compute: asynchronous against synchronous runs, with real processes and virtual ones.

    python -m colonnade_bench.micro.stragglers PART ... [--work-ms 4] [--epochs 4] [--json FILE]
                                               [--worlds simulated network] [--sets a9a uci-credit]
                                               [--algorithms vfb2-svrg] [--counts 1 2 4] [--choices 1]

Parts:
- rounds: 4 parties, one at speed 0.2: a dominator of three; the same party without its label, so that the
  other two launch alone; or the passive one beside three dominators. Time for the same rounds beside the
  synchronous twin's, every dominator's share of the launches, and the delays;
- launches: the same on real sets on the virtual clock, where numbers cost time as well: every dominator's
  share of the launches, with a dominator at 0.2, forwards for free or charged;
- target: time to a sub-optimality of 1e-3, 8 parties, one at 0.4, either a dominator or a passive one;
- schedules: the same on the virtual clock, by what is in flight, also with nobody slow and one at 0.2;
- algorithms: VFB2, AsySQN, AsyREVEL and VFL-CZOFO, each beside its synchronous twin: how much longer a run
  takes with a party at 0.4. Cascades have a server apart, which is one process more;
- parties: time for the same columns cut among 1, 2, 4, 8 and 16 parties;
- accuracy: test accuracy with and without a party at 0.4.

A slow party computes everything 1 / speed times as long, by work and not by waiting. `--work-ms` is computing
that every call on columns takes on top, since blocks of a small file are computed faster than a message is
sent; with `parties` it is that of all columns, and every party has its part. Whatever waits together is one
update where `join` is on, which is ours; where it is off every theta is an update of its own, as in VFB2's
paper. Every process needs a core of its own, or all are slow.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from colonnade.data.table import Table
from colonnade.job import job_from
from colonnade.job.presets import PRESETS
from colonnade.result import Result
from colonnade.run.federate import Finished, Tables, federate, run_tables

Row = dict[str, Any]
WORLDS = ("simulated", "network")
# of the parts that need real data; on UCI credit a few rows outweigh all, and small batches need small steps
TARGETS: dict[str, Row] = {
    "a9a": {"batch": 256, "epochs": 40, "target": 1e-3, "evaluate_every": 0.25},
    "uci-credit": {"batch": 1024, "epochs": 150, "target": 1e-3, "evaluate_every": 0.25},
}
SETS = tuple(TARGETS)


@dataclass(frozen=True)
class Effort:
    """How long runs are: computing for every update, and passes; in which worlds, on which sets."""

    work_ms: float
    epochs: int
    worlds: Sequence[str] = WORLDS
    sets: Sequence[str] = SETS
    algorithms: Sequence[str] = ("vfb2-svrg", "asysqn-saga", "czofo")  # of `accuracy`
    counts: Sequence[int] = (1, 2, 4, 8, 16)  # of `parties`
    choices: int | None = None  # of `rounds`: so many of what may be in flight, the defaults first


def network(effort: Effort, speeds: Sequence[float], **more: Any) -> Row:
    """The `[network]` section: on the virtual clock an update takes as long as with real processes."""
    return {
        "speeds": list(speeds),
        "charge_forward": False,
        "work_ms": effort.work_ms,
        "us_per_call": 1e3 * effort.work_ms,
        "ns_per_value": 0.0,
        **more,
    }


def tables(
    parties: int, active: Sequence[int], rows: int = 3840, columns: int = 64, *, apart: bool = False
) -> Tables:
    """Random columns, cut among so many parties, and a label that depends on all, held by the active ones.

    With a server `apart` it alone has the label, and no columns.
    """
    rng = np.random.default_rng(7)
    X = rng.standard_normal((rows, columns))
    y = np.where(X @ rng.standard_normal(columns) + rng.standard_normal(rows) >= 0, 1.0, -1.0)
    names = [f"party{i:02}" for i in range(parties)]
    cuts = np.array_split(np.arange(columns), parties)
    train = {
        name: Table(
            name, tuple(f"c{j}" for j in own), np.ascontiguousarray(X[:, own]), y if k in active else None
        )
        for k, (name, own) in enumerate(zip(names, cuts, strict=True))
    }
    if apart:
        server = Table("server", (), np.empty((rows, 0)), y)
        return Tables("random", {"server": server, **train}, None, ("server",))
    return Tables("random", train, None, tuple(names[k] for k in active))


def trained(algorithm: str, world: str, data: Tables, train: Row, net: Row, **sections: Any) -> Result:
    """The result of one run on these tables."""
    return finished(algorithm, world, data, train, net, **sections).result


def finished(algorithm: str, world: str, data: Tables, train: Row, net: Row, **sections: Any) -> Finished:
    """One run on these tables."""
    net = {key: value for key, value in net.items() if world == "network" or key != "work_ms"}
    plain = {
        "algorithm": algorithm,
        "world": world,
        "compare": False,
        "data": {"train": "random", "parties": len(data.train), "active": len(data.active)},
        "train": {"loss": "logistic", "step": 0.01, "evaluate_every": 0, "tolerance": 0.0, **train},
        "network": net,
        **clear(algorithm),
        **sections,
    }
    return run_tables(job_from(plain), data)


def clear(algorithm: str) -> Row:
    """Labels as in the paper, where they could be blind: theta crosses in clear."""
    return {"secure": {"labels": "clear"}} if algorithm.startswith("vfb") else {}


def seconds(result: Result) -> float:
    """What a run took, on its own clock."""
    virtual = result.cost.virtual_seconds
    return result.cost.seconds if virtual is None else virtual


# whether calls are joined, and what else a job says: nothing, no share beyond the window, a wide window
IN_FLIGHT: tuple[tuple[bool, Row], ...] = (
    (True, {}),
    (True, {"stale": 0}),
    (True, {"ahead": 6, "stale": 0}),
    (True, {"ahead": 24, "stale": 0}),
    (True, {"max_delay": 300}),
    (True, {"max_delay": 600}),
    (False, {}),
    (False, {"ahead": 24}),
)


# of a party: VFB2's threads
PROCESSORS = (1, 2, 3, 4, 8)


# which party is slow, and who holds the label
PLACES: dict[str, tuple[int, tuple[int, ...]]] = {
    "dominator": (1, (0, 1, 2)),
    "the same, passive": (1, (0, 2)),
    "another, passive": (3, (0, 1, 2)),
}


def rounds(effort: Effort) -> Iterator[Row]:
    """Time for the same rounds, asynchronous over synchronous, with one slow party of four."""
    train = {"batch": 64, "epochs": effort.epochs}
    for world, (who, (slow, active)) in product(effort.worlds, PLACES.items()):
        speeds = [0.2 if k == slow else 1.0 for k in range(4)]
        data = tables(4, active)
        sync = trained("vfb-sgd", world, data, train, network(effort, speeds))
        for join, choice in IN_FLIGHT[: effort.choices]:
            found = trained("vfb2-sgd", world, data, {**train, **choice}, network(effort, speeds, join=join))
            launched, late = found.cost.launched_by_party, found.staleness
            yield {
                "world": world,
                "slow": who,
                "join": join,
                "choice": choice or "defaults",
                "synchronous s": seconds(sync),
                "asynchronous s": seconds(found),
                "over": seconds(sync) / seconds(found),
                "launched": [round(each / sum(launched.values()), 3) for each in launched.values()],
                "delay mean": late.mean,
                "delay max": late.max,
                "tau_1": late.tau_1,
                "tau_2": late.tau_2,
                "bound": late.bound,
            }


def bilevel(effort: Effort) -> Iterator[Row]:
    """Time for the same rounds, asynchronous over synchronous, by processors a party: the slow one is a
    dominator."""
    train, slow = {"batch": 64, "epochs": effort.epochs}, [1.0, 0.2, 1.0, 1.0]
    data = tables(4, (0, 1, 2))
    sync = trained("vfb-sgd", "simulated", data, train, network(effort, slow))
    for join, ahead, processors in product((False, True), (None, 24), PROCESSORS):
        net = network(effort, slow, join=join, processors=processors)
        found = trained("vfb2-sgd", "simulated", data, {**train, "ahead": ahead}, net)
        launched, late = found.cost.launched_by_party, found.staleness
        yield {
            "join": join,
            "ahead": ahead or "default",
            "processors": processors,
            "over": seconds(sync) / seconds(found),
            "launched": [round(each / sum(launched.values()), 3) for each in launched.values()],
            "delay mean": late.mean,
            "delay max": late.max,
        }


def bilevel_target(effort: Effort) -> Iterator[Row]:
    """Time to 1e-3 with SVRG by processors a party, one of eight at 0.4, synchronous over asynchronous."""
    for name, (who, slow) in product(effort.sets, {"dominator": 1, "passive": 7}.items()):
        net = network(effort, [0.4 if k == slow else 1.0 for k in range(8)])
        net.pop("work_ms")
        base = None
        for algorithm, join, processors in (
            ("vfb-svrg", True, 1),
            *(("vfb2-svrg", *how) for how in product((False, True), PROCESSORS)),
        ):
            job = {
                "algorithm": algorithm,
                "world": "simulated",
                "data": {"train": name, "parties": 8, "active": 3},
                "train": TARGETS[name],
                "network": {**net, "join": join, "processors": processors},
                **clear(algorithm),
            }
            result = federate(job_from(job)).result
            base = base or seconds(result)
            yield {
                "data": name,
                "slow": who,
                "algorithm": algorithm,
                "join": join,
                "processors": processors,
                "over synchronous": base / seconds(result),
                "gap": result.metrics["suboptimality"],
                "delay mean": result.staleness.mean,
                "delay max": result.staleness.max,
            }


def launches(effort: Effort) -> Iterator[Row]:
    """Every dominator's share of the launches, one of three at 0.2, with what kernels usually cost."""
    for name, batch, charged in product(effort.sets, (32, 256), (False, True)):
        net = {"speeds": [1.0, 0.2, 1.0, 1.0], "charge_forward": charged}
        took = []
        for algorithm in ("vfb-sgd", "vfb2-sgd"):
            job = {
                "algorithm": algorithm,
                "world": "simulated",
                "compare": False,
                "data": {"train": name, "parties": 4, "active": 3},
                "train": {"batch": batch, "epochs": effort.epochs, "step": 0.01, "evaluate_every": 0},
                "network": net,
                **clear(algorithm),
            }
            result = federate(job_from(job)).result
            took.append(seconds(result))
        launched = result.cost.launched_by_party
        yield {
            "data": name,
            "batch": batch,
            "forwards": "charged" if charged else "free",
            "over synchronous": took[0] / took[1],
            "launched": [round(each / sum(launched.values()), 3) for each in launched.values()],
            "delay mean": result.staleness.mean,
            "delay max": result.staleness.max,
        }


def target(effort: Effort) -> Iterator[Row]:
    """Time to 1e-3 of the pooled optimum on the credit sets, with one of eight parties at 0.4."""
    for name, world, (who, slow) in product(
        effort.sets, effort.worlds, {"dominator": 1, "passive": 7}.items()
    ):
        speeds = [0.4 if k == slow else 1.0 for k in range(8)]
        base = None
        for algorithm, join in (("vfb-svrg", True), ("vfb2-svrg", False), ("vfb2-svrg", True)):
            net = network(effort, speeds, join=join)
            if world == "simulated":
                net.pop("work_ms")
            job = {
                "algorithm": algorithm,
                "world": world,
                "data": {"train": name, "parties": 8, "active": 3},
                "train": TARGETS[name],
                "network": net,
                **clear(algorithm),
            }
            result = federate(job_from(job)).result
            base = base or seconds(result)
            yield {
                "data": name,
                "world": world,
                "slow": who,
                "algorithm": algorithm,
                "join": join,
                "seconds to 1e-3": seconds(result),
                "over synchronous": base / seconds(result),
                "gap": result.metrics["suboptimality"],
                "delay max": result.staleness.max,
            }


# what a job says of batches in flight; the first is the default
SCHEDULES: tuple[Row, ...] = ({}, {"stale": 0}, {"ahead": 6, "stale": 0}, {"stale": 2})
# the slow party's speed and place
SLOW = {
    "nobody": (1.0, 0), "dominator, 0.2": (0.2, 1), "passive, 0.2": (0.2, 7), "dominator, 0.4": (0.4, 1),
    "passive, 0.4": (0.4, 7),
}  # fmt: skip


def schedules(effort: Effort) -> Iterator[Row]:
    """Simulated time to 1e-3 by what is in flight, with one of eight parties at 0.2 or 0.4, or none slow."""
    for name, (who, (speed, place)) in product(effort.sets, SLOW.items()):
        net = network(effort, [speed if k == place else 1.0 for k in range(8)])
        net.pop("work_ms")
        base = None
        for algorithm, choice in (("vfb-svrg", {}), *(("vfb2-svrg", how) for how in SCHEDULES)):
            job = {
                "algorithm": algorithm,
                "world": "simulated",
                "data": {"train": name, "parties": 8, "active": 3},
                "train": {**TARGETS[name], **choice},
                "network": net,
                **clear(algorithm),
            }
            result = federate(job_from(job)).result
            base, launched = base or seconds(result), result.cost.launched_by_party
            yield {
                "data": name,
                "slow": who,
                "algorithm": algorithm,
                "choice": choice or "defaults",
                "over synchronous": base / seconds(result),
                "gap": result.metrics["suboptimality"],
                "epochs": result.cost.epochs,
                "launched": [round(each / sum(launched.values()), 3) for each in launched.values()],
                "delay max": result.staleness.max,
            }


PAIRS = {
    "VFB2": ("vfb2-saga", "vfb-saga"),
    "AsySQN": ("asysqn-saga", "synsqn-saga"),
    "AsyREVEL": ("asyrevel-gau", "synrevel-gau"),
    "VFL-CZOFO": ("czofo", "syn-czofo"),
}
# speed of a server apart: its answers touch no columns, and must not take long on the virtual clock
SERVER = 1e6


def algorithms(effort: Effort) -> Iterator[Row]:
    """How much longer runs of each paper's algorithm take with one of four parties at 0.4."""
    for world, (name, pair) in product(effort.worlds, PAIRS.items()):
        apart = PRESETS[pair[0]].conversation == "cascade"
        data = tables(4, () if apart else range(3), rows=1920, apart=apart)
        for algorithm, kind in zip(pair, ("asynchronous", "synchronous"), strict=True):
            train: Row = {"batch": 64, "epochs": effort.epochs}
            if name == "AsySQN":
                train |= {"labels_at": 4}
            times = []
            for slow in (1.0, 0.4):
                speeds = [*([SERVER] if apart else []), 1, 1, 1, slow]
                result = trained(algorithm, world, data, train, network(effort, speeds))
                times.append(seconds(result))
            yield {
                "world": world,
                "paper": name,
                "algorithm": algorithm,
                "kind": kind,
                "all at 1 s": times[0],
                "one at 0.4 s": times[1],
                "times as long": times[1] / times[0],
            }


def parties(effort: Effort) -> Iterator[Row]:
    """Time for the same columns cut among 1 to 16 parties, two of them dominators."""
    for world, algorithm in product(effort.worlds, ("vfb2-sgd", "vfb-sgd")):
        alone = None
        for q in effort.counts:
            if world == "network" and q > (os.cpu_count() or 1):
                continue
            share = replace(effort, work_ms=effort.work_ms * 4 / q)
            data = tables(q, range(min(q, 2)))
            result = trained(
                algorithm, world, data, {"batch": 64, "epochs": effort.epochs}, network(share, [1.0] * q)
            )
            alone = alone or seconds(result)
            yield {
                "world": world,
                "algorithm": algorithm,
                "q": q,
                "seconds": seconds(result),
                "speed-up": alone / seconds(result),
            }


# VFL-CZOFO has a server of its own, which is the fifth process
ACCURATE: dict[str, Row] = {
    "vfb2-svrg": {"data": {"parties": 8, "active": 3}},
    "asysqn-saga": {"data": {"parties": 8, "active": 8}},
    "czofo": {
        "data": {"parties": 4, "server": "apart"},
        "model": {"outputs": 2, "server": {"kind": "linear"}},
        "cascade": {"directions": 10},
    },
}


def accuracy(effort: Effort) -> Iterator[Row]:
    """Test accuracy with and without a party at 0.4."""
    for name, world, algorithm in product(effort.sets, effort.worlds, effort.algorithms):
        found, sections = [], ACCURATE[algorithm]
        count = sections["data"]["parties"] + ("server" in sections["data"])
        for slow in (1.0, 0.4):
            net = network(effort, [1.0] * (count - 1) + [slow])
            if world == "simulated":
                net.pop("work_ms")
            job = {
                "algorithm": algorithm,
                "world": world,
                "compare": False,
                "train": {"epochs": 20, "batch": 256, "evaluate_every": 0, "tolerance": 0.0},
                "network": net,
                **clear(algorithm),
                **sections,
                "data": {"train": name, **sections["data"]},
            }
            found.append(federate(job_from(job)).result.metrics["test_accuracy"])
        yield {
            "data": name,
            "world": world,
            "algorithm": algorithm,
            "all at 1": found[0],
            "one at 0.4": found[1],
            "points": 100 * (found[1] - found[0]),
        }


PARTS: dict[str, Callable[[Effort], Iterator[Row]]] = {
    "rounds": rounds,
    "bilevel": bilevel,
    "bilevel-target": bilevel_target,
    "launches": launches,
    "target": target,
    "schedules": schedules,
    "algorithms": algorithms,
    "parties": parties,
    "accuracy": accuracy,
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="+", choices=PARTS)
    parser.add_argument("--work-ms", type=float, default=4.0)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--worlds", nargs="+", choices=WORLDS, default=WORLDS)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SETS)
    parser.add_argument("--algorithms", nargs="+", choices=ACCURATE, default=list(ACCURATE))
    parser.add_argument("--counts", nargs="+", type=int, default=Effort.counts)
    parser.add_argument("--choices", type=int)
    parser.add_argument("--json", type=Path)
    given = vars(parser.parse_args())
    parts, file = given.pop("parts"), given.pop("json")
    effort = Effort(**given)
    found: dict[str, list[Row]] = {}
    for part in parts:
        print(f"# {part}", flush=True)
        found[part] = []
        for row in PARTS[part](effort):
            found[part].append(row)
            words = (
                f"{key} {value:.4g}" if isinstance(value, float) else f"{key} {value}"
                for key, value in row.items()
            )
            print("  ".join(words), flush=True)
            if file:
                file.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
