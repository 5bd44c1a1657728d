"""AsySQN's own experiments with quasi-Newton on: Figures 2, 3 and 4 and Table 5, from its presets.

Every party holds the label and pulls. What a quasi-Newton direction computes (the pairs, and the products
that make one) is charged in simulated time like the kernels of a batch; links are free, as the papers' times
are compute times of one machine. Forwards are free as well, which is how the papers count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from colonnade.errors import Diverged, FixedPointOverflow
from colonnade_bench.common import Bench, Grid, Panel, Say
from colonnade_bench.linear.pace import PAPER_CRUI, Costs, machines
from colonnade_bench.linear.trials import PARTIES, Problem, Trace, closed_form, problem, straggler, train

PASSES = 21  # the paper's 21 n iterations


def crui_on(
    bench: Bench, costs: Costs, say: Say, *, estimators: Sequence[str], speeds: Sequence[float], rows: int
) -> None:
    """Table 5 with quasi-Newton on: synchronous over asynchronous compute time of 21 passes."""
    data = problem("mnist-4v9").part(rows)
    terms = {"batch": 8, "epochs": PASSES, "evaluate_every": 0}
    table = []
    for estimator in estimators:
        for s in speeds:
            network = machines(costs, data, straggler(s), forwards=False)
            slow, fast = (
                train(data, f"{kind}-{estimator}", train=terms, network=network)
                for kind in ("synsqn", "asysqn")
            )
            ratio, expected = slow.seconds / fast.seconds, closed_form(PARTIES, s)
            least, most = fast.updates[-1], max(fast.updates)
            gaps = [f"{trace.gaps[-1]:.1e}" for trace in (slow, fast)]
            table.append([estimator, s, expected, ratio, f"{most} / {least}", *gaps, PAPER_CRUI[estimator]])
            say(f"CRUI, quasi-Newton on, {estimator}, straggler {s}: {ratio:.3f} of {expected:.3f}")
    columns = ["estimator", "straggler", "closed form", "quasi-Newton on", "updates: most / straggler"]
    columns += ["gap, synchronous", "gap, asynchronous", "paper"]
    note = (
        f"{PASSES} passes over {rows} rows of MNIST 4 against 9, batch 8, {PARTIES} parties that pull, one "
        "of them slow, automatic steps, forwards for free, L-BFGS charged. Tuning and SVRG's snapshots are "
        "in both times; all wait for the straggler there."
    )
    bench.grids.append(Grid(f"CRUI with quasi-Newton on, {PASSES} passes (Table 5)", columns, table, note))


def figure_2(
    bench: Bench, say: Say, *, sets: Sequence[str], estimators: Sequence[str], epochs: int, rows: int
) -> None:
    """Sub-optimality against communication rounds, for all three estimators, beside first order."""
    table: list[list[Any]] = []
    for name in sets:
        data = _part(name, rows)
        for estimator in estimators:
            traces: dict[str, Trace] = {}
            for label, algorithm, direction in (
                (f"af{estimator}-vp", f"af{estimator}-vp", {}),
                (f"asysqn-{estimator}", f"asysqn-{estimator}", {"pairs": "hvp"}),
                (f"asysqn-{estimator}, paper's pairs", f"asysqn-{estimator}", {"pairs": "paper"}),
            ):
                terms = {"batch": 128, "epochs": epochs}
                try:
                    traces[label] = train(data, algorithm, train=terms, direction=direction)
                except (Diverged, FixedPointOverflow):
                    say(f"Figure 2, {name}, {label}: ends worse than it began")
                    table.append([name, label, None, None, None])
            first = next(iter(traces.values()))
            for label, trace in traces.items():
                # rounds to where first order ends: what the direction saves
                reached = trace.rounds_to(1.000001 * first.gaps[-1])
                table.append([name, label, trace.gaps[-1], trace.best, reached])
                say(f"Figure 2, {name}, {label}: final gap {trace.gaps[-1]:.2e}, rounds {reached}")
            lines = {label: trace.line("rounds") for label, trace in traces.items()}
            bench.panels.append(
                Panel(f"Figure 2: {name}, {estimator}", "aggregations", "gap", lines, log=True)
            )
    columns = ["set", "algorithm", "final gap", "best gap", "aggregations to first order's final gap"]
    note = (
        f"Batch 128, {epochs} passes, {PARTIES} parties, every aggregation updates one block, automatic "
        f"steps, at most {rows} rows. A row of dashes ended worse than it began."
    )
    bench.grids.append(Grid("Sub-optimality against rounds (Figure 2)", columns, table, note))


def figure_3(
    bench: Bench,
    costs: Costs,
    say: Say,
    *,
    sets: Sequence[str],
    estimators: Sequence[str],
    epochs: int,
    rows: int,
    s: float = 0.4,
) -> None:
    """Sub-optimality against training time, AsySQN and SynSQN, one party slow in both."""
    table: list[list[Any]] = []
    for name in sets:
        data = _part(name, rows)
        network = machines(costs, data, straggler(s), forwards=False)
        for estimator in estimators:
            traces = {
                kind: train(
                    data, f"{kind}-{estimator}", train={"batch": 64, "epochs": epochs}, network=network
                )
                for kind in ("asysqn", "synsqn")
            }
            gap = 1.05 * max(trace.best for trace in traces.values())
            fast, slow = (traces[kind].time_to(gap) for kind in ("asysqn", "synsqn"))
            ratio = slow / fast if fast and slow else None
            table.append([name, estimator, f"{gap:.1e}", _ms(fast), _ms(slow), ratio])
            say(f"Figure 3, {name}, {estimator}: to {gap:.1e} async {_ms(fast)} ms, sync {_ms(slow)} ms")
            lines: Mapping[str, Any] = {f"{kind}-{estimator}": trace.line() for kind, trace in traces.items()}
            bench.panels.append(
                Panel(f"Figure 3: {name}, {estimator}", "simulated seconds", "gap", lines, log=True)
            )
    columns = ["set", "estimator", "gap both reach", "AsySQN [ms]", "SynSQN [ms]", "ratio"]
    note = (
        f"One of {PARTIES} parties at {s:.0%} of the others' speed, batch 64, {epochs} passes over at most "
        f"{rows} rows, forwards for free, L-BFGS charged. Closed form of the time a pass takes: "
        f"{closed_form(PARTIES, s):.2f}."
    )
    bench.grids.append(Grid("Sub-optimality against time (Figure 3)", columns, table, note))


def figure_4(
    bench: Bench, costs: Costs, say: Say, *, counts: Sequence[int], epochs: int, rows: int, s: float = 0.6
) -> None:
    """Time to a sub-optimality with one party over that with q; synchronous runs have a slow party."""
    terms = {"batch": 64, "epochs": epochs}
    whole = problem("mnist-4v9", q=1).part(rows)
    single = train(whole, "synsqn-svrg", train=terms, network=machines(costs, whole, [1.0], forwards=False))
    gap, base = 1.01 * single.best, single.time_to(1.01 * single.best)
    points: dict[str, list[tuple[float, float]]] = {}
    for kind, speed in (("asysqn-svrg", 1.0), ("asysqn-svrg", s), ("synsqn-svrg", s)):
        label = kind if speed == 1 else f"{kind}, one slow"
        points[label] = [(1, 1.0)]
        for q in counts[1:]:
            data = problem("mnist-4v9", q=q).part(rows)
            network = machines(costs, data, straggler(speed, q), forwards=False)
            more = {**terms, "epochs": 3 * epochs}
            trace = train(data, kind, target=gap, train=more, network=network)
            seconds = trace.time_to(gap)
            points[label].append((q, base / seconds if base and seconds else float("nan")))
            say(f"Figure 4, {label}, {q} parties: {points[label][-1][1]:.2f}")
    bench.panels.append(Panel("Figure 4: speed-up", "parties", "speed-up", points))
    table = [[label, f"{gap:.1e}", *(ratio for _, ratio in line)] for label, line in points.items()]
    note = (
        f"MNIST 4 against 9, {rows} rows (stands in for epsilon), batch 64, SVRG, forwards for free, L-BFGS "
        f"charged; the slow party has {s:.0%} of the others' speed. The gap is what one party reaches in "
        f"{epochs} passes. A block's H knows its own columns alone, so q blocks take more rounds, too."
    )
    columns = ["algorithm", "gap", *(f"q = {q}" for q in counts)]
    bench.grids.append(Grid("Speed-up (Figure 4)", columns, table, note))


def _part(name: str, rows: int) -> Problem:
    data = problem(name)
    return data if data.rows <= rows else data.part(rows)


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else round(1e3 * seconds, 3)
