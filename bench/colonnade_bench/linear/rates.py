"""How fast the algorithms converge: claims with their limits, and sub-optimality against rounds.

Rounds are secure sums of training, one after another, whatever they are for: scores of a batch with all
that rides with them, products to find the step or the steepest directions, pairs. SVRG's full passes count
as the batches they replace. Bytes are all bytes of training.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from colonnade_bench.common import Bench, Grid, Panel, Say
from colonnade_bench.linear import tuned
from colonnade_bench.linear.trials import Trace, problem, train
from colonnade_bench.linear.tuned import Way

GAPS = (1e-3, 1e-4, 1e-5)
# rounds to 1e-3 / 1e-4 / 1e-5 of pooled prototypes
FIRST_ORDER = "635 / 3309 / 7769"
# what joint pairs have to keep, by set, batch and gap
JOINT_ROUNDS = {
    ("a9a", 256, 1e-4): 1200, ("uci-credit", 256, 1e-4): 1200, ("a9a", 256, 1e-5): 1600,
    ("uci-credit", 256, 1e-5): 1600, ("a9a", 1024, 1e-4): 400,
}  # fmt: skip
TUNED = ("a9a", "uci-credit")  # sets on which settings are chosen; the others have automatic ones alone
CHOOSING = 1_000  # batches of every run that settings are chosen by
FEWER = f"{CHOOSING:,} batches"
Traces = dict[tuple[str, int, str, str], Trace]  # by set, batch, kind of pair and setting
Found = tuple[str, Way, tuned.Setting, float]


class Claims:
    """A table of measured figures, each beside the limit that it has to keep."""

    def __init__(self, bench: Bench, title: str, say: Say) -> None:
        self.rows: list[list[Any]] = []
        self.say = say
        bench.grids.append(Grid(title, ["claim", "limit", "measured", "holds"], self.rows))

    def at_most(self, claim: str, limit: float, measured: float | None) -> None:
        """Claim that a figure does not exceed a limit."""
        self.note(claim, f"<= {limit:g}", measured, measured is not None and measured <= limit)

    def above(self, claim: str, limit: float, measured: float) -> None:
        """Claim that a figure exceeds a limit."""
        self.note(claim, f"> {limit:g}", measured, measured > limit)

    def note(self, claim: str, limit: str, measured: Any, holds: bool) -> None:
        """Add a row and say it."""
        self.rows.append([claim, limit, measured, "yes" if holds else "NO"])
        self.say(f"{claim}: {measured} ({limit}) {'holds' if holds else 'DOES NOT HOLD'}")


def first_order(bench: Bench, say: Say, *, quick: bool) -> None:
    """Checks that SVRG and SAGA converge, SGD with a constant step does not, and delays do no harm."""
    claims = Claims(bench, "Convergence, 8 parties, simulated world", say)
    data = problem("a9a")
    saga = train(data, "vfb2-saga", train={"batch": 32, "ahead": 1, "epochs": 12})
    claims.at_most("a9a, SAGA, batch 32, no delay: epochs to 1e-4", 8, saga.epochs_to(1e-4))
    claims.at_most("a9a, SAGA, batch 32, no delay: epochs to 1e-5", 12, saga.epochs_to(1e-5))
    far: tuple[tuple[str, int, str, int], ...] = (
        ("phishing", 32, "plain", 60),
        ("a9a", 256, "lbfgs", 60),
        ("a9a", 32, "plain", 120),
    )
    for name, batch, direction, epochs in far[:2] if quick else far:
        for estimator in ("svrg", "saga"):
            terms = {"batch": batch, "ahead": 1, "epochs": epochs, "direction": direction}
            trace = train(problem(name), f"vfb2-{estimator}", target=1e-8, train=terms)
            how = f"{estimator.upper()}, batch {batch}, {direction}"
            claims.at_most(f"{name}, {how}, {trace.moments[-1].epoch} epochs: gap", 1e-8, trace.best)
    sgd = train(data, "vfb2-sgd", train={"batch": 32, "ahead": 1, "epochs": 12, "step": 0.5})
    claims.above("a9a, SGD, constant step 0.5, 12 epochs: gap stays", 1e-4, sgd.gaps[-1])
    for delay, ahead in ((20, 6), (110, 33)):
        terms = {"batch": 32, "ahead": ahead, "max_delay": delay, "epochs": 12 if delay == 20 else 30}
        trace = train(data, "vfb2-svrg", target=1e-3, train=terms)
        claims.at_most(f"a9a, SVRG, delay at most {delay}, automatic step: gap", 1e-3, trace.best)
        claims.at_most(f"a9a, SVRG, delay at most {delay}: largest rise an epoch", 2.0, _largest_rise(trace))


def quasi_newton(bench: Bench, say: Say, *, sets: Sequence[str], quick: bool) -> None:
    """Rounds to three gaps in the backward conversation, for every kind of pair and for first order."""
    claims = Claims(bench, "Quasi-Newton on the backward conversation, SVRG gradients", say)
    traces: Traces = {}
    found: list[Found] = []
    for name, batch in [*((name, 256) for name in sets), *((name, 1024) for name in sets if name == "a9a")]:
        per_epoch = -(-problem(name).rows // batch)
        for pairs in ("first order", "joint", "hvp", "batch", "paper"):
            if (quick or batch == 1024) and pairs in ("hvp", "batch", "paper"):
                continue
            most = 1700 if pairs == "joint" or quick else 10_000
            way = _backward(pairs)
            settings = [tuned.AUTOMATIC]
            if name in TUNED and not quick:
                settings.append(_choose(way, name, batch, found, say))
            for setting in settings:
                terms = {"batch": batch, "epochs": most // per_epoch + 1, "evaluate_every": 0.125}
                trace = way.run(problem(name), setting, terms, target=GAPS[-1])
                traces[name, batch, pairs, tuned.words(setting)] = trace
                say(f"{name}, batch {batch}, {pairs}, {tuned.words(setting)}: rounds {_rounds(trace)}")
    for (name, batch, gap), limit in JOINT_ROUNDS.items():
        if name in sets:
            measured = traces[name, batch, "joint", "automatic"].rounds_to(gap)
            claims.at_most(f"{name}, batch {batch}, joint: rounds to {gap:g}", limit, measured)
    bench.grids.append(_rounds_table(traces))
    if found:
        bench.grids.append(tuned.grid_table(found, FEWER))
    for name in sets:
        of = {key[2:]: trace for key, trace in traces.items() if key[:2] == (name, 256)}
        lines = {", ".join(key): trace.line("rounds") for key, trace in of.items()}
        bench.panels.append(Panel(f"Figure 2: {name}, backward", "rounds", "gap", lines, log=True))


def _choose(way: Way, name: str, batch: int, found: list[Found], say: Say) -> tuned.Setting:
    """Choose settings for a way on another split and fewer rows."""
    part = tuned.sample(problem(name, seed=tuned.SPLIT))
    epochs = -(-CHOOSING * batch // part.rows)
    setting, gap = way.chosen(part, {"batch": batch, "epochs": epochs}, say)
    found.append((f"{name}, batch {batch}", way, setting, gap))
    return setting


def _rounds_table(traces: Traces) -> Grid:
    """Rounds to every gap, and what a round costs, a row for each run."""
    rows = [
        [
            *key,
            *(trace.rounds_to(gap) for gap in GAPS),
            _largest_rise(trace),
            _bytes_a_round(trace),
            _end(trace),
        ]
        for key, trace in traces.items()
    ]
    columns = ["set", "batch", "pairs", "setting", *(f"rounds to {gap:g}" for gap in GAPS)]
    columns += ["largest rise", "bytes a round", "final gap"]
    note = (
        "Measured eight times an epoch, so rounds are upper bounds. They count every secure sum of training: "
        "batches, snapshots (as many as a pass has batches), tuning, and for joint the 11 sums at the start "
        "and 7 after 1, 3, 7 ... epochs that find the steepest directions; its inner products and pairs "
        "ride with the scores. The largest rise of the gap from one measurement to the next includes the "
        f"noise between snapshots. Pooled prototypes, a9a, batch 256: {FIRST_ORDER} first order, "
        "597 / 1066 / 1381 joint. Above the start: the loss ended above that without training."
    )
    return Grid("Rounds to a sub-optimality, backward conversation", columns, rows, note)


def _backward(pairs: str) -> Way:
    """SVRG in the backward conversation, with one kind of pair and what is tried for it."""
    terms: dict[str, Any] = {"ahead": 1}
    if pairs == "first order":
        return Way(pairs, "vfb2-svrg", tuned.STEPS, terms)
    grid = {"joint": tuned.JOINT, "paper": tuned.PAPERS}.get(pairs, tuned.ADDED)
    return Way(pairs, "vfb2-svrg", grid, {**terms, "direction": "lbfgs"}, pairs=pairs)


PULLED = (
    Way("first order (AFSVRG-VP)", "afsvrg-vp", tuned.STEPS),
    Way("ours: hvp", "asysqn-svrg", tuned.ADDED, pairs="hvp"),
    Way("the paper's pairs", "asysqn-svrg", tuned.PAPERS, pairs="paper"),
)


def pulled(bench: Bench, say: Say, *, sets: Sequence[str], target: float, aggregations: int) -> None:
    """Aggregations to three gaps in the paper's own scheme: all parties hold the label and pull."""
    rows: list[list[Any]] = []
    found: list[Found] = []
    for name in sets:
        per_epoch = -(-problem(name).rows // 256) * 8
        lines = {}
        for way in PULLED:
            settings = [tuned.AUTOMATIC]
            if name in TUNED and target < GAPS[0]:
                settings.append(_choose(way, name, 256, found, say))
            for setting in settings:
                terms = {"batch": 256, "epochs": max(4, aggregations // per_epoch)}
                trace = way.run(problem(name), setting, terms, target=target)
                reached = [trace.rounds_to(gap) for gap in GAPS]
                label = f"{way.label}, {tuned.words(setting)}"
                each = _bytes_a_round(trace)
                rows.append([name, way.label, tuned.words(setting), *reached, each, _end(trace)])
                lines[label] = trace.line("rounds")
                say(f"pull, {name}, {label}: aggregations {reached}, final gap {_end(trace)}")
        bench.panels.append(Panel(f"Figure 2: {name}, pull", "aggregations", "gap", lines, log=True))
    columns = ["set", "direction", "setting", *(f"aggregations to {gap:g}" for gap in GAPS), "bytes each"]
    columns.append("final gap")
    note = (
        "Batch 256, 8 parties, every aggregation updates one block. hvp and the paper's pairs send nothing "
        "for their curvature. Above the start: the loss ended above that without training. Pooled "
        "prototypes, a9a: 4161 / 21945 / 34113 first order, 3153 / 7185 / 18921 hvp."
    )
    bench.grids.append(Grid("Aggregations to a sub-optimality, pull conversation", columns, rows, note))
    if found:
        bench.grids.append(tuned.grid_table(found, FEWER))


def _end(trace: Trace) -> str:
    """Return the gap at the end in words; a run that ended badly has none."""
    return f"{trace.gaps[-1]:.2e}" if trace.bad is None else "above the start"


def _bytes_a_round(trace: Trace) -> int:
    if not trace.moments:
        return 0
    last = trace.moments[-1]
    return round(last.bytes / max(1, last.rounds))


def _rounds(trace: Trace) -> str:
    return " / ".join(str(trace.rounds_to(gap) or "-") for gap in GAPS)


def _largest_rise(trace: Trace) -> float:
    """The largest quotient of a gap and the one measured before it."""
    return max((b / a for a, b in itertools.pairwise(trace.gaps)), default=0.0)
