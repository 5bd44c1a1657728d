"""VFB2's experiments: Table 2, Figures 2-4, convergence, and the comparison with pooled training.

Simulated figures charge compute cost that was measured on this machine (`calibrate`), and nothing for
the network. Every part uses those of the paper's sets that are on this machine (`papers`); the speed-up
is that of MNIST 4 against 9, whose 784 dense columns can be dealt to 16 parties.
"""

from __future__ import annotations

from pathlib import Path

from colonnade_bench.calibrate import calibrate, words
from colonnade_bench.common import Bench, Grid, Say
from colonnade_bench.linear.against import against_pooled
from colonnade_bench.linear.lossless import lossless
from colonnade_bench.linear.pace import loss_curves, speedup, straggling
from colonnade_bench.linear.rates import first_order
from colonnade_bench.papers import MORE, VFB2, VFB2_TABLE_2, here


def run(quick: bool, out: Path, say: Say) -> list[Path]:
    """Measure every part, and write what there is after each."""
    bench = Bench("vfb2", "VFB2: label holders send theta back", quick)
    costs = calibrate()
    say(words(costs))
    rows = [[p.kind, p.kernel, p.batch, p.values, p.us] for cost in costs.values() for p in cost.points]
    columns = ["block", "kernel", "batch", "values", "us a call"]
    bench.grids.append(Grid("Calibration", columns, rows, words(costs)))
    # what is measured by the real clock goes first, before the machine has grown warm
    against_pooled(bench, say, repeats=2 if quick else 5)
    bench.write(out)
    batches, seeds = ((64,), 1) if quick else ((32, 64), 5)
    straggling(bench, costs, say, gap=1e-3, s=0.4, epochs=12, batches=batches, seeds=seeds)
    bench.write(out)
    speedup(bench, costs, say, counts=(1, 4, 16) if quick else (1, 2, 4, 8, 16), epochs=4 if quick else 20)
    bench.write(out)
    sets = ("a9a",) if quick else here(("a9a", *VFB2)).found
    problems = ("l2",) if quick else ("l2", "nonconvex")
    loss_curves(bench, costs, say, sets=sets, regularizers=problems, epochs=4 if quick else 10)
    bench.write(out)
    first_order(bench, say, quick=quick)
    bench.write(out)
    names = ("a9a", "phishing") if quick else (*VFB2, *MORE)
    trials = 1 if quick else 10
    lossless(bench, names, ("vfb2-svrg", "vfb2-saga"), problems, trials, VFB2_TABLE_2, say, out)
    return bench.write(out)
