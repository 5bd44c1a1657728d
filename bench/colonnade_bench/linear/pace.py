"""Time-based figures of both papers, simulated with calibrated compute cost and a free network.

The papers' times are compute times of one machine, so links are ideal here; what is charged is every
party's own kernels (`network.us_per_call`, `ns_per_value`, divided by the party's speed). `charge_forward`
decides the accounting: the papers serve forwards for free; charged, a party pays for every score it sends.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

from colonnade.job import job_from
from colonnade.run.federate import federate
from colonnade_bench.calibrate import Calibration
from colonnade_bench.common import Bench, Grid, Panel, Say
from colonnade_bench.linear import tuned
from colonnade_bench.linear.trials import (
    PARTIES,
    Problem,
    Trace,
    both_reach,
    closed_form,
    problem,
    straggler,
    train,
)
from colonnade_bench.papers import VFB2_FIGURE_2

Costs = Mapping[str, Calibration]
ESTIMATORS = ("sgd", "svrg", "saga")


def machines(costs: Costs, problem: Problem, speeds: Sequence[float], *, forwards: bool) -> dict[str, Any]:
    """The [network] section: this machine's kernels at the parties' speeds."""
    sparse = hasattr(next(iter(problem.train.values())).X, "indptr")
    cost = costs["sparse" if sparse else "dense"].network()
    return {**cost, "speeds": list(speeds), "charge_forward": forwards}


def crui(
    bench: Bench, costs: Costs, say: Say, *, estimators: Sequence[str], speeds: Sequence[float], rows: int
) -> None:
    """Synchronous over asynchronous compute time for the same number of updates, beside the closed form."""
    data = problem("mnist-4v9").part(rows)
    batch = rows // 192  # so that the ends of a run hardly count
    table = []
    for estimator in estimators:
        for s in speeds:
            expected = closed_form(PARTIES, s)
            cells: list[Any] = []
            for forwards in (False, True):
                slow, fast = pull_pair(data, costs, estimator, s, batch, forwards=forwards)
                cells += [slow.seconds / fast.seconds, f"{max(fast.updates)} / {fast.updates[-1]}"]
            off = abs(cells[0] / expected - 1)
            table.append([estimator, s, expected, *cells, "yes" if off <= 0.02 else "NO"])
            say(f"CRUI, {estimator}, straggler {s}: {cells[0]:.3f} of {expected:.3f}; charged {cells[2]:.3f}")
    columns = ["estimator", "straggler", "closed form", "free forwards", "updates: most / straggler"]
    columns += ["charged forwards", "updates: most / straggler", "within 2%"]
    note = (
        f"Pull conversation, first order, {PARTIES} parties with equal blocks ({rows} rows of MNIST 4 "
        f"against 9, batch {batch}, one pass, SVRG four), one of them slow. "
        "Closed form ((q-1)+s)/(q s). Synchronous parties pull the same rows, so a score serves all of them; "
        "asynchronous ones pull their own, so with forwards charged every update costs q forwards instead of "
        "one. The paper's 2.7-3.1 are the closed form at s = 0.30-0.34 with forwards for free."
    )
    bench.grids.append(Grid("CRUI: synchronous over asynchronous compute time", columns, table, note))


def pull_pair(
    data: Problem, costs: Costs, estimator: str, s: float, batch: int, *, forwards: bool
) -> tuple[Trace, Trace]:
    """A synchronous and an asynchronous run with one party at speed s."""
    network = machines(costs, data, straggler(s, len(data.train)), forwards=forwards)
    # SVRG needs three passes to have a snapshot and steps after it
    terms: dict[str, Any] = {"batch": batch, "epochs": 4 if estimator == "svrg" else 1, "step": 1e-3}
    terms |= {"estimator": estimator, "evaluate_every": 0}
    slow = train(data, "synsqn-sgd", train={**terms, "direction": "plain"}, network=network)
    fast = train(data, "asysqn-sgd", train={**terms, "direction": "plain"}, network=network)
    return slow, fast


def crui_of_processes(
    bench: Bench,
    say: Say,
    *,
    speeds: Sequence[float] = (0.3,),
    parties: int = 4,
    work_ms: float = 20.0,
    batch: int = 4,
) -> None:
    """CRUI of real processes over mutual TLS; an update is computing, far longer than kernels really take."""
    rows = []
    for s in speeds:
        slow, _ = _timed_work("synsqn-sgd", s, parties, work_ms, batch)
        for ahead in IN_FLIGHT:
            fast, pace = _timed_work("asysqn-sgd", s, parties, work_ms, batch, ahead)
            measured = [slow / fast, f"{min(pace):.1f} / {max(pace):.1f}", slow, fast]
            rows.append([parties, s, ahead, closed_form(parties, s), *measured])
            say(f"CRUI of processes, straggler {s}, {ahead} in flight: {slow / fast:.2f}")
    note = (
        f"{parties} processes, mutual TLS on loopback, quasi-Newton on, {work_ms:g} ms of computing for "
        "every update (over the party's speed), forwards for free: a party is one thread and answers between "
        "pieces of a millisecond. With one pull in flight it waits for its own scores before every update; "
        "the default is two. Synchronous rounds wait for messages, too, which the closed form does not count."
    )
    columns = ["parties", "straggler", "pulls in flight", "closed form", "measured"]
    columns += ["ms an update: fastest / slowest", "synchronous [s]", "asynchronous [s]"]
    bench.grids.append(Grid("CRUI with real processes", columns, rows, note))


IN_FLIGHT = (1, 2, 8)


def _timed_work(
    algorithm: str, s: float, parties: int, work_ms: float, batch: int, ahead: int = 1
) -> tuple[float, list[float]]:
    """Seconds of one pass, and every party's milliseconds an update."""
    terms = {"batch": batch, "epochs": 1, "step": 1e-3, "evaluate_every": 0, "tolerance": 0.0}
    job = job_from(
        {
            "algorithm": algorithm,
            "world": "network",
            "compare": False,
            "data": {"train": "breast-cancer", "parties": parties, "active": parties, "intercept": True},
            "train": {**terms, "ahead": ahead},
            "network": {"speeds": straggler(s, parties), "work_ms": work_ms, "charge_forward": False},
            "secure": {"labels": "clear"},
        }
    )
    cost = federate(job).result.cost
    return cost.seconds, [1e3 * cost.seconds / updates for updates in cost.updates_by_party.values()]


# -- asynchronous against synchronous, to a target ------------------------------------------------------


# algorithm, [train], and whether open rounds and waiting thetas are joined
Schedule = tuple[str, dict[str, Any], bool]
SCHEDULES: dict[str, Schedule] = {
    "synchronous": ("vfb-svrg", {}, True),
    "asynchronous, every theta an update": ("vfb2-svrg", {}, False),
    "joined (default)": ("vfb2-svrg", {}, True),
    "joined, all shares ahead that are used": ("vfb2-svrg", {"stale": 64}, True),
    "joined, no share beyond the window": ("vfb2-svrg", {"stale": 0}, True),
    "joined, 2 rounds each, none beyond": ("vfb2-svrg", {"ahead": 6, "stale": 0}, True),
}


class Straggling(NamedTuple):
    """What schedules are compared by: the time to a sub-optimality of `gap` with one party at speed `s`."""

    gap: float
    s: float
    epochs: int
    batches: Sequence[int] = (32,)
    seeds: int = 1


def straggling(bench: Bench, costs: Costs, say: Say, terms: Straggling, forwards_cost: Sequence[str]) -> None:
    """Add the time to a sub-optimality for every schedule of the backward conversation."""
    gap, s, epochs, batches, seeds = terms
    data = problem("a9a")
    rows: list[list[Any]] = []
    for batch, what in product(batches, forwards_cost):
        machinery = machines(costs, data, straggler(s), forwards=what == "charged")
        base = None
        for name, schedule in SCHEDULES.items():
            traces = _scheduled(data, schedule, machinery, gap, batch, epochs, range(seeds))
            seconds = _mean_time_to(traces, gap)
            base = seconds if base is None else base
            ratio = base / seconds if base is not None and seconds else None
            rows.append([batch, what, name, _ms(seconds), ratio, _us_a_round(traces), min(traces[0].updates)])
            say(f"straggler {s}, batch {batch}, forwards {what}, {name}: {_ms(seconds)} ms")
    columns = ["batch", "forwards", "schedule", f"ms to {gap:g}", "over synchronous", "us a round"]
    columns.append("updates, least")
    note = (
        f"a9a, SVRG, automatic step, 8 parties, the last at {s:.0%} of the others' speed, mean of {seeds} "
        "seeds. The model is measured four times an epoch, and times between two measurements are "
        "interpolated by the logarithm of the gap. Pushing ahead alone gains nothing where the network is "
        "free: the slow party's calls are what all wait for, and joining them (all open rounds one product, "
        "all waiting thetas one update) is what makes them fewer. By default a party gives every dominator "
        "as many shares beyond its window as that uses while the party makes one update, "
        "where a call costs far more than a batch's numbers."
    )
    bench.grids.append(Grid("Asynchronous over synchronous with one slow party", columns, rows, note))


STEPPED = ("synchronous", "asynchronous, every theta an update", "joined (default)")
"""The schedules that `stepped` compares."""


def stepped(bench: Bench, costs: Costs, say: Say, terms: Straggling) -> None:
    """Add the same where every schedule has the step of a grid that is best for it."""
    gap, s, epochs, batches, seeds = terms
    data, apart = problem("a9a"), problem("a9a", seed=tuned.SPLIT)
    steps = [setting["train.step"] for setting in tuned.STEPS]
    others = [seed for seed in range(seeds + 1) if seed != tuned.SPLIT]
    rows: list[list[Any]] = []
    for batch in batches:
        base = None
        for name in STEPPED:
            how = (SCHEDULES[name], machines(costs, data, straggler(s), forwards=False), gap, batch, epochs)
            tried = {step: _mean_time_to(_scheduled(apart, *how, [tuned.SPLIT], step), gap) for step in steps}
            step = min(steps, key=lambda each: tried[each] or math.inf)
            seconds = _mean_time_to(_scheduled(data, *how, others, step), gap)
            base = seconds if base is None else base
            rows.append([batch, name, step, _ms(seconds), base / seconds if base and seconds else None])
            say(f"straggler {s}, batch {batch}, {name}, step {step:g}: {_ms(seconds)} ms")
    note = (
        f"a9a, SVRG, 8 parties, the last at {s:.0%} of the others' speed, forwards free. Steps "
        f"{', '.join(f'{step:g}' for step in steps)}, chosen by the time of seed {tuned.SPLIT} on another "
        f"split of the columns; what is reported is the mean of {seeds} other seeds."
    )
    columns = ["batch", "schedule", "step", f"ms to {gap:g}", "over synchronous"]
    bench.grids.append(Grid("Asynchronous over synchronous, steps of a grid", columns, rows, note))


def _scheduled(
    data: Problem,
    schedule: Schedule,
    machinery: Mapping[str, Any],
    gap: float,
    batch: int,
    epochs: int,
    seeds: Iterable[int],
    step: float | str = "auto",
) -> list[Trace]:
    """The runs of a schedule, one for every seed."""
    algorithm, more, join = schedule
    terms = {"batch": batch, "epochs": epochs, "evaluate_every": 0.25, "step": step, **more}
    how: dict[str, Any] = {"target": gap, "train": terms, "network": {**machinery, "join": join}}
    return [train(data, algorithm, seed=seed, keep_bad=step != "auto", **how) for seed in seeds]


def _mean_time_to(traces: Sequence[Trace], gap: float) -> float | None:
    """Mean seconds to the gap, if every run meets it."""
    found = [trace.time_to(gap) for trace in traces]
    return sum(t for t in found if t) / len(traces) if all(found) else None


def _us_a_round(traces: Sequence[Trace]) -> float:
    """Mean microseconds of a round."""
    each = [1e6 * trace.seconds / max(trace.moments[-1].rounds, 1) for trace in traces]
    return sum(each) / len(traces)


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else round(1e3 * seconds, 3)


# -- loss against time, epochs and rounds -----------------------------------------------------------------


def loss_curves(
    bench: Bench,
    costs: Costs,
    say: Say,
    *,
    sets: Sequence[str],
    regularizers: Sequence[str],
    epochs: int,
    s: float = 0.6,
) -> None:
    """The gap against time, asynchronous and synchronous, one party slower in both (VFB2 Figures 3 and 4)."""
    rows = []
    for name in sets:
        for regularizer in regularizers:
            data = problem(name)
            lines: dict[str, Trace] = {}
            for prefix in ("vfb2", "vfb"):
                for estimator in ESTIMATORS:
                    network = machines(costs, data, straggler(s), forwards=False)
                    terms = {"batch": 64, "epochs": epochs, "regularizer": regularizer}
                    trace = train(data, f"{prefix}-{estimator}", train=terms, network=network)
                    lines[f"{prefix}-{estimator}"] = trace
            for estimator in ESTIMATORS:
                fast, slow = lines[f"vfb2-{estimator}"], lines[f"vfb-{estimator}"]
                gap = both_reach(fast, slow)
                times = [_ms(trace.time_to(gap)) for trace in (fast, slow)]
                ratio = times[1] / times[0] if times[0] and times[1] else None
                rows.append([name, regularizer, estimator, f"{gap:.1e}", *times, ratio])
                say(f"loss curves, {name}, {regularizer}, {estimator}: async {times[0]} sync {times[1]} ms")
            figure = "Figure 3" if regularizer == "l2" else "Figure 4"
            for axis, label in (("seconds", "simulated seconds"), ("epoch", "epochs"), ("rounds", "rounds")):
                points = {key: trace.line(axis) for key, trace in lines.items()}
                bench.panels.append(Panel(f"{figure}: {name}", label, "gap", points, log=True))
    columns = ["set", "problem", "estimator", "gap both reach", "async [ms]", "sync [ms]", "ratio"]
    note = f"One of 8 parties at {s:.0%} of the others' speed, batch 64, {epochs} epochs, forwards for free."
    bench.grids.append(Grid("Loss against time (VFB2 Figures 3 and 4)", columns, rows, note))


# -- speed-up ---------------------------------------------------------------------------------------------


# conversation: what one party alone runs, and the lines of the figure with the slow party's speed; the
# estimator's name follows
SPEEDUPS: dict[str, tuple[str, dict[str, tuple[str, float]]]] = {
    "backward": (
        "vfb-{}",
        {
            "asynchronous": ("vfb2-{}", 1.0),
            "asynchronous, one slow": ("vfb2-{}", 0.6),
            "synchronous, one slow": ("vfb-{}", 0.6),
        },
    ),
    "pull": (
        "fd-svrg",
        {
            "asynchronous": ("afsvrg-vp", 1.0),
            "asynchronous, one slow": ("afsvrg-vp", 0.6),
            "synchronous, one slow": ("fd-svrg", 0.6),
        },
    ),
}


def speedup(
    bench: Bench,
    costs: Costs,
    say: Say,
    name: str,
    *,
    counts: Sequence[int],
    epochs: int,
    estimators: Sequence[str] = ESTIMATORS,
    regularizers: Sequence[str] = ("l2", "nonconvex"),
) -> None:
    """Time to a sub-optimality with 1 party over that with q (VFB2 Figure 2).

    The sub-optimality is the one that a single party reaches in so many epochs.
    """
    rows: list[list[Any]] = []
    for (conversation, (alone, lines)), estimator, regularizer in product(
        SPEEDUPS.items(), estimators, regularizers
    ):
        if conversation == "pull" and estimator != "svrg":
            continue  # its synchronous twin has SVRG alone
        what = f"{conversation}, {estimator.upper()}, {regularizer}"
        terms = {"batch": 256, "epochs": epochs, "regularizer": regularizer}
        whole = problem(name, q=1)
        network = machines(costs, whole, [1.0], forwards=False)
        single = train(whole, alone.format(estimator), train=terms, network=network)
        gap, base = single.gaps[-1], single.seconds
        points: dict[str, list[tuple[float, float]]] = {}
        for line, (algorithm, s) in lines.items():
            points[line] = [(1, 1.0)]
            for q in counts[1:]:
                data = problem(name, q=q)
                network = machines(costs, data, straggler(s, q), forwards=False)
                how: dict[str, Any] = {"active": 2, "target": gap, "network": network}
                how["train"] = {**terms, "epochs": 2 * epochs}
                seconds = train(data, algorithm.format(estimator), **how).time_to(gap)
                points[line].append((q, base / seconds if seconds else float("nan")))
                say(f"speed-up, {what}, {line}, {q} parties: {points[line][-1][1]:.2f}")
            of_line = (ratio for _, ratio in points[line])
            rows.append([conversation, estimator, regularizer, line, f"{gap:.1e}", *of_line])
        bench.panels.append(Panel(f"Speed-up, {what}", "parties", "speed-up", points))
    stand_in = "" if name == VFB2_FIGURE_2[0] else f" (the paper: {VFB2_FIGURE_2[0]})"
    note = (
        f"{name}{stand_in}, batch 256, forwards for free; backward: 2 parties with the label, pull: "
        "all; the slow party has 60% of the others' speed. The papers show curves, with a slow party in "
        "synchronous runs only: near linear for asynchronous, clearly below for synchronous ones. In the "
        "pull conversation a slow party makes fewer updates and holds up nobody. In the backward "
        "conversation every round updates every block, so a slow party's block is behind in both schedules; "
        "joined calls help where calls cost more than values, and with batches of 256 dense rows they do not."
    )
    columns = ["conversation", "estimator", "penalty", "q =", "gap", *map(str, counts)]
    bench.grids.append(Grid("Speed-up in the number of parties", columns, rows, note))
