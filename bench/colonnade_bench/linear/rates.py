"""How fast the algorithms converge: claims with their limits, and sub-optimality against rounds.

Rounds are secure sums of training, one after another, whatever they are for: scores of a batch with all
that rides with them, products to find the step or the steepest directions, pairs. SVRG's full passes count
as the batches they replace. Bytes are all bytes of training.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from colonnade.errors import Diverged, FixedPointOverflow
from colonnade_bench.common import Bench, Grid, Panel, Say
from colonnade_bench.linear.trials import Trace, problem, train

GAPS = (1e-3, 1e-4, 1e-5)
# rounds to 1e-3 / 1e-4 / 1e-5 of pooled prototypes
FIRST_ORDER = "635 / 3309 / 7769"
# what joint pairs have to keep, by set, batch and gap
JOINT_ROUNDS = {
    ("a9a", 256, 1e-4): 1200, ("uci-credit", 256, 1e-4): 1200, ("a9a", 256, 1e-5): 1600,
    ("uci-credit", 256, 1e-5): 1600, ("a9a", 1024, 1e-4): 400,
}  # fmt: skip
Traces = dict[tuple[str, int, str], Trace]  # by set, batch and kind of pair


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
    for name, batch in [*((name, 256) for name in sets), *((name, 1024) for name in sets if name == "a9a")]:
        per_epoch = -(-problem(name).rows // batch)
        for pairs in ("first order", "joint", "hvp", "batch", "paper"):
            if (quick or batch == 1024) and pairs in ("hvp", "batch", "paper"):
                continue
            most = 1700 if pairs == "joint" else 1700 if quick else 10_000
            try:
                traces[name, batch, pairs] = _backward(name, batch, pairs, most // per_epoch + 1)
            except (Diverged, FixedPointOverflow) as error:
                say(f"{name}, batch {batch}, {pairs}: {error}")
                continue
            say(f"{name}, batch {batch}, {pairs}: rounds {_rounds(traces[name, batch, pairs])}")
    for (name, batch, gap), limit in JOINT_ROUNDS.items():
        if name in sets:
            measured = traces[name, batch, "joint"].rounds_to(gap)
            claims.at_most(f"{name}, batch {batch}, joint: rounds to {gap:g}", limit, measured)
    bench.grids.append(_rounds_table(traces))
    for name in sets:
        lines = {pairs: t.line("rounds") for (n, b, pairs), t in traces.items() if (n, b) == (name, 256)}
        bench.panels.append(Panel(f"Figure 2: {name}, backward", "rounds", "gap", lines, log=True))


def _rounds_table(traces: Traces) -> Grid:
    """Rounds to every gap, and what a round costs, a row for each run."""
    rows = [
        [
            name,
            batch,
            pairs,
            *(trace.rounds_to(gap) for gap in GAPS),
            _largest_rise(trace),
            _bytes_a_round(trace),
            trace.gaps[-1],
        ]
        for (name, batch, pairs), trace in traces.items()
    ]
    columns = ["set", "batch", "pairs", *(f"rounds to {gap:g}" for gap in GAPS)]
    columns += ["largest rise", "bytes a round", "final gap"]
    note = (
        "Measured eight times an epoch, so rounds are upper bounds. They count every secure sum of training: "
        "batches, snapshots (as many as a pass has batches), tuning, and for joint the 11 sums at the start "
        "and 7 after 1, 3, 7 ... epochs that find the steepest directions; its inner products and pairs "
        "ride with the scores. The largest rise of the gap from one measurement to the next includes the "
        f"noise between snapshots. Pooled prototypes, a9a, batch 256: {FIRST_ORDER} first order, "
        "597 / 1066 / 1381 joint. What is not in the table ended worse than it began: `paper` takes "
        "gradients of two different batches, which is noise."
    )
    return Grid("Rounds to a sub-optimality, backward conversation", columns, rows, note)


def _backward(name: str, batch: int, pairs: str, epochs: int) -> Trace:
    """One run of SVRG in the backward conversation."""
    terms: dict[str, Any] = {"batch": batch, "ahead": 1, "epochs": epochs, "evaluate_every": 0.125}
    sections: dict[str, Any] = {}
    if pairs != "first order":
        terms["direction"] = "lbfgs"
        sections["direction"] = {"pairs": pairs}
    return train(problem(name), "vfb2-svrg", target=GAPS[-1], train=terms, **sections)


def pulled(bench: Bench, say: Say, *, sets: Sequence[str], target: float, aggregations: int) -> None:
    """Aggregations to three gaps in the paper's own scheme: all parties hold the label and pull."""
    rows: list[list[Any]] = []
    for name in sets:
        per_epoch = -(-problem(name).rows // 256) * 8
        lines = {}
        for label, algorithm, direction in (
            ("first order (AFSVRG-VP)", "afsvrg-vp", {}),
            ("hvp (AsySQN-SVRG)", "asysqn-svrg", {"pairs": "hvp"}),
            ("paper (AsySQN-SVRG as published)", "asysqn-svrg", {"pairs": "paper"}),
        ):
            epochs = max(4, aggregations // per_epoch)
            terms = {"batch": 256, "epochs": epochs}
            try:
                trace = train(problem(name), algorithm, target=target, train=terms, direction=direction)
            except (Diverged, FixedPointOverflow) as error:
                rows.append([name, label, *(None for _ in GAPS), None, None])
                say(f"pull, {name}, {label}: {error}")
                continue
            reached = [trace.rounds_to(gap) for gap in GAPS]
            rows.append([name, label, *reached, _bytes_a_round(trace), trace.best])
            lines[label] = trace.line("rounds")
            say(f"pull, {name}, {label}: aggregations {reached}, best gap {trace.best:.1e}")
        bench.panels.append(Panel(f"Figure 2: {name}, pull", "aggregations", "gap", lines, log=True))
    columns = ["set", "direction", *(f"aggregations to {gap:g}" for gap in GAPS), "bytes each", "best gap"]
    note = (
        "Batch 256, 8 parties, every aggregation updates one block, automatic steps. hvp and paper send "
        "nothing for their curvature; a row of dashes ended worse than it began. Pooled prototypes, a9a: "
        "4161 / 21945 / 34113 first order, "
        "3153 / 7185 / 18921 hvp."
    )
    bench.grids.append(Grid("Aggregations to a sub-optimality, pull conversation", columns, rows, note))


def _bytes_a_round(trace: Trace) -> int:
    last = trace.moments[-1]
    return round(last.bytes / max(1, last.rounds))


def _rounds(trace: Trace) -> str:
    return " / ".join(str(trace.rounds_to(gap) or "-") for gap in GAPS)


def _largest_rise(trace: Trace) -> float:
    """The largest quotient of a gap and the one measured before it."""
    return max((b / a for a, b in itertools.pairwise(trace.gaps)), default=0.0)
