"""AsySQN's own experiments with quasi-Newton on: Figures 2, 3 and 4 and Table 5, from its presets.

Every party holds the label and pulls. What a quasi-Newton direction computes (the pairs, and the products
that make one) is charged in simulated time like the kernels of a batch; links are free, as the papers' times
are compute times of one machine. Forwards are free as well, which is how the papers count.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

from colonnade_bench.common import Bench, Grid, Panel, Say
from colonnade_bench.linear import tuned
from colonnade_bench.linear.pace import ESTIMATORS, Costs, machines
from colonnade_bench.linear.trials import (
    KNOWN_TO,
    PARTIES,
    Problem,
    Trace,
    both_reach,
    closed_form,
    problem,
    straggler,
    train,
)
from colonnade_bench.linear.tuned import Way
from colonnade_bench.papers import ASYSQN_FIGURE_4, ASYSQN_TABLE_5, WORDS, stands_for

PASSES = 21  # the paper's 21 n iterations


def crui_on(
    bench: Bench,
    costs: Costs,
    say: Say,
    *,
    sets: Sequence[str],
    estimators: Sequence[str],
    speeds: Sequence[float],
    rows: int | None = None,
) -> None:
    """Table 5 with quasi-Newton on: synchronous over asynchronous compute time of 21 passes over a set."""
    table = []
    for name in sets:
        data = _part(name, rows)
        batch = math.isqrt(data.rows)  # the paper's, where it counts complexity
        terms = {"batch": batch, "epochs": PASSES, "evaluate_every": 0}
        for estimator, s in product(estimators, speeds):
            network = machines(costs, data, straggler(s), forwards=False)
            slow, fast = (
                train(data, f"{kind}-{estimator}", train=terms, network=network)
                for kind in ("synsqn", "asysqn")
            )
            ratio, expected = slow.seconds / fast.seconds, closed_form(PARTIES, s)
            updates = f"{max(fast.updates)} / {fast.updates[-1]}"
            gaps = [f"{trace.gaps[-1]:.1e}" for trace in (slow, fast)]
            paper = ASYSQN_TABLE_5.get(stands_for(name))
            theirs = None if paper is None else paper[ESTIMATORS.index(estimator)]
            table.append([name, data.rows, batch, estimator, s, expected, ratio, updates, *gaps, theirs])
            say(f"CRUI, quasi-Newton on, {name}, {estimator}, straggler {s}: {ratio:.3f} of {expected:.3f}")
    columns = ["set", "rows", "batch", "estimator", "straggler", "closed form", "quasi-Newton on"]
    columns += ["updates: most / straggler", "gap, synchronous", "gap, asynchronous", "paper, at 0.3 to 0.6"]
    note = (
        f"{PASSES} passes over so many rows, {PARTIES} parties that pull, one of them slow, automatic steps, "
        "forwards for free, L-BFGS charged. Tuning and SVRG's snapshots are in both times; all wait for the "
        "straggler there. The paper has one figure for a set and does not say at which straggler. "
        + "".join(f"{name} {WORDS[name]}. " for name in sets if name in WORDS)
    )
    bench.grids.append(Grid(f"CRUI with quasi-Newton on, {PASSES} passes (Table 5)", columns, table, note))


def figure_2(
    bench: Bench, say: Say, *, sets: Sequence[str], estimators: Sequence[str], epochs: int, rows: int
) -> None:
    """Sub-optimality against communication rounds, for all three estimators, beside first order.

    Every algorithm has the settings that its grid chose and, as a further row, automatic ones.
    """
    table: list[list[Any]] = []
    found = []
    terms = {"batch": 128, "epochs": epochs}
    for name, estimator in product(sets, estimators):
        data = _part(name, rows)
        part = tuned.sample(_part(name, rows, seed=tuned.SPLIT))
        traces: dict[str, Trace] = {}
        how: dict[str, tuned.Setting] = {}
        for way in _ways(estimator):
            setting, gap = way.chosen(part, terms, say)
            found.append((f"{name}, {estimator}", way, setting, gap))
            for each in (setting, tuned.AUTOMATIC):
                label = f"{way.label}, {'automatic' if each is tuned.AUTOMATIC else 'chosen'}"
                traces[label], how[label] = way.run(data, each, terms), each
        first = next(iter(traces.values()))
        goal = max(1.000001 * first.gaps[-1], KNOWN_TO)
        for label, trace in traces.items():
            reached = trace.rounds_to(goal)  # what the direction saves
            end = f"{trace.gaps[-1]:.2e}" if trace.bad is None else "above the start"
            best = trace.best if trace.gaps else None
            table.append([name, estimator, label, tuned.words(how[label]), end, best, reached])
            say(f"Figure 2, {name}, {label}, {tuned.words(how[label])}: final gap {end}, rounds {reached}")
        lines = {label: trace.line("rounds") for label, trace in traces.items()}
        bench.panels.append(Panel(f"Figure 2: {name}, {estimator}", "aggregations", "gap", lines, log=True))
    columns = ["set", "estimator", "algorithm", "setting", "final gap", "best gap"]
    columns.append("aggregations to the final gap of first order as chosen")
    note = (
        f"Batch 128, {epochs} passes, {PARTIES} parties, every aggregation updates one block, at most {rows} "
        "rows. Above the start: the loss ended above that without any training."
    )
    bench.grids.append(Grid("Sub-optimality against rounds (Figure 2)", columns, table, note))
    bench.grids.append(tuned.grid_table(found))


def _ways(estimator: str) -> tuple[Way, ...]:
    """The algorithms of Figure 2: first order, ours, and the paper's to the letter."""
    asysqn = f"asysqn-{estimator}"
    return (
        Way("first order", f"af{estimator}-vp", tuned.STEPS),
        Way("ours (hvp)", asysqn, tuned.ADDED, pairs="hvp"),
        Way("the paper's pairs", asysqn, tuned.PAPERS, pairs="paper"),
    )


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
            gap = both_reach(*traces.values())
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
    bench: Bench,
    costs: Costs,
    say: Say,
    name: str,
    *,
    counts: Sequence[int],
    epochs: int,
    rows: int,
    s: float = 0.6,
) -> None:
    """Time with one party over that with q: to a sub-optimality, which is Figure 4, and of a pass.

    One party alone takes the same steps in the same time asynchronously and synchronously.
    """
    terms = {"batch": 64, "epochs": epochs}
    whole = _part(name, rows, q=1)
    single = train(whole, "asysqn-svrg", train=terms, network=machines(costs, whole, [1.0], forwards=False))
    gap = 1.01 * single.best
    alone = _to_gap_and_pass(single, gap)
    lines: dict[tuple[str, str], list[float]] = {}
    for kind, speed in (("asysqn-svrg", 1.0), ("asysqn-svrg", s), ("synsqn-svrg", s)):
        label = kind if speed == 1 else f"{kind}, one slow"
        to_gap, of_pass = (lines.setdefault((label, what), [1.0]) for what in ("to the gap", "of a pass"))
        for q in counts[1:]:
            data = _part(name, rows, q)
            network = machines(costs, data, straggler(speed, q), forwards=False)
            more = {**terms, "epochs": 3 * epochs}
            trace = train(data, kind, target=gap, train=more, network=network)
            reached, a_pass = _to_gap_and_pass(trace, gap)
            to_gap.append(alone[0] / reached)
            of_pass.append(alone[1] / a_pass)
            say(f"Figure 4, {label}, {q} parties: {to_gap[-1]:.2f} to the gap, {of_pass[-1]:.2f} of a pass")
    points = {", ".join(key): list(zip(map(float, counts), line, strict=True)) for key, line in lines.items()}
    bench.panels.append(Panel(f"Figure 4: {name}, speed-up", "parties", "speed-up", points))
    table = [[*key, *line] for key, line in lines.items()]
    stand_in = "" if name == ASYSQN_FIGURE_4[0] else f" (the paper: {ASYSQN_FIGURE_4[0]})"
    note = (
        f"{name}, {whole.rows} rows{stand_in}, batch 64, SVRG, forwards for free, L-BFGS charged; the slow "
        f"party has {s:.0%} of the others' speed. The gap is {gap:.1e}, what one party reaches in {epochs} "
        "passes. Of a pass no more than q can be gained. To a gap more can: an H of fewer columns is nearer "
        "the truth after as many pairs, so that smaller blocks need fewer passes."
    )
    columns = ["algorithm", "time", *(f"q = {q}" for q in counts)]
    bench.grids.append(Grid("Speed-up (Figure 4)", columns, table, note))


def _to_gap_and_pass(trace: Trace, gap: float) -> tuple[float, float]:
    """Seconds until the gap is met, and of one pass; not a number where it is never met."""
    seconds = trace.time_to(gap)
    return math.nan if seconds is None else seconds, trace.seconds / trace.moments[-1].epoch


def _part(name: str, rows: int | None, q: int = PARTIES, seed: int = 0) -> Problem:
    """A set, or its first rows where it has more."""
    data = problem(name, q=q, seed=seed)
    return data if rows is None or data.rows <= rows else data.part(rows)


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else round(1e3 * seconds, 3)
