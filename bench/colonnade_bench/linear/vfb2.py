"""VFB2's experiments: Table 2, Figures 2-4, convergence, and the comparison with pooled training.

Simulated figures charge compute cost that was measured on this machine (`calibrate`), and nothing for
the network. Every part uses those of the paper's sets that are on this machine (`papers`); where webspam is
not, the speed-up is that of MNIST 4 against 9, whose 784 dense columns can be dealt to 16 parties.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from colonnade.data.datasets.loading import available
from colonnade_bench.calibrate import calibrated, kernel_times, words
from colonnade_bench.common import Bench, Say
from colonnade_bench.linear.against import against_pooled
from colonnade_bench.linear.lossless import Lossless
from colonnade_bench.linear.pace import ESTIMATORS, Straggling, loss_curves, speedup, stepped, straggling
from colonnade_bench.linear.rates import first_order
from colonnade_bench.linear.slow_party import SPLITS as SLOW_SPLITS
from colonnade_bench.linear.slow_party import SlowParty
from colonnade_bench.papers import (
    MORE,
    VFB2,
    VFB2_FIGURE_2,
    VFB2_TABLE_2,
    first_here,
    here_or_bundled,
    nothing_here,
)

TITLE = "VFB2: label holders send theta back"
PARTS = {
    "calibration": "what kernels cost here",
    "against": "beside a pooled L-BFGS fit, by the real clock",
    "straggling": "time to 1e-3 with one slow party, every schedule",
    "steps": "the same, every schedule with the step of a grid that is best for it",
    "speedup": "Figure 2",
    "curves": "Figures 3 and 4: loss against time, epochs and rounds",
    "convergence": "epochs to a sub-optimality, with delays and without",
    "lossless": "Table 2",
    "slow": "Table 2 between processes, without a slow party and with one",
}
LAST = ("lossless:kept", "slow:kept")
# of one core, by processor time; the fits of `against` are timed by the clock
MINUTES = {
    "calibration": 0.1, "straggling": 5, "steps": 3, "speedup": 5, "curves": 6, "convergence": 3,
    "lossless": 33,
}  # fmt: skip
FORWARDS = ("free", "charged")


def table_2(quick: bool) -> Lossless:
    """Table 2 on the sets that are here."""
    names = ("a9a", "phishing") if quick else (*VFB2, *MORE)
    algorithms, trials = ("vfb2-svrg", "vfb2-saga"), 1 if quick else 10
    return Lossless(here_or_bundled(names), algorithms, _problems(quick), trials, VFB2_TABLE_2)


def table_2_slow(quick: bool) -> SlowParty:
    """Table 2 with a slow party and without, on the same sets."""
    return SlowParty(table_2(quick), 1 if quick else SLOW_SPLITS)


def pieces(quick: bool) -> list[str]:
    """What can run side by side, the longest first."""
    curves = [f"curves:{name}:{problem}" for name in _curved(quick) for problem in _problems(quick)]
    figure_2 = [f"speedup:{kind}:{penalty}" for kind in ESTIMATORS for penalty in _problems(quick)]
    batches = [f"straggling:{batch}:{cost}" for batch in _batches(quick) for cost in FORWARDS]
    steps = [f"steps:{batch}" for batch in _batches(quick)]
    return [
        *batches, *figure_2, *curves, *steps, "convergence", "calibration", "against",
        *table_2_slow(quick).pieces(), *table_2(quick).pieces(),
    ]  # fmt: skip


def run(
    quick: bool, out: Path, say: Say, *, only: Sequence[str] = (), tables: Path | None = None
) -> list[Path]:
    """Measure every part, or some, and write what there is after each."""
    bench = Bench("vfb2", TITLE, quick)
    return bench.made(only or PARTS, lambda piece: _piece(bench, piece, say, out, quick=quick), tables or out)


def _piece(bench: Bench, piece: str, say: Say, out: Path, *, quick: bool) -> None:
    """Measure a part, or what of it is named behind a colon."""
    part, *which = piece.split(":")
    terms = Straggling(gap=1e-3, s=0.4, epochs=12, batches=_batches(quick), seeds=1 if quick else 5)
    match part:
        case "calibration":
            costs = calibrated(out)
            say(words(costs))
            bench.grids.append(kernel_times(costs))
        case "against" | "straggling" | "steps" | "convergence" if not available("a9a"):
            say(nothing_here(part, ["a9a"]))
        case "against":
            against_pooled(bench, say, repeats=2 if quick else 5)
        case "straggling":
            if which:
                terms = terms._replace(batches=[int(which[0])])
            straggling(bench, calibrated(out), say, terms, which[1:] or FORWARDS)
        case "steps":
            batches = [int(word) for word in which] or terms.batches
            stepped(bench, calibrated(out), say, terms._replace(batches=batches))
        case "speedup" if name := first_here(VFB2_FIGURE_2):
            counts, epochs = ((1, 4, 16), 4) if quick else ((1, 2, 4, 8, 16), 20)
            estimators, problems = (which[:1], which[1:]) if which else (ESTIMATORS, _problems(quick))
            how: dict[str, Any] = {"estimators": estimators, "regularizers": problems}
            speedup(bench, calibrated(out), say, name, counts=counts, epochs=epochs, **how)
        case "speedup":
            say(nothing_here("Figure 2", VFB2_FIGURE_2))
        case "curves":
            sets, problems = (which[:1], which[1:]) if which else (_curved(quick), _problems(quick))
            loss_curves(
                bench, calibrated(out), say, sets=sets, regularizers=problems, epochs=4 if quick else 10
            )
        case "convergence":
            first_order(bench, say, quick=quick)
        case "lossless":
            table_2(quick).add(bench, say, out, which)
        case "slow":
            table_2_slow(quick).add(bench, say, out, which)


def _curved(quick: bool) -> Sequence[str]:
    return here_or_bundled(("a9a",) if quick else ("a9a", *VFB2)).found


def _problems(quick: bool) -> Sequence[str]:
    return ("l2",) if quick else ("l2", "nonconvex")


def _batches(quick: bool) -> Sequence[int]:
    return (64,) if quick else (32, 64)
