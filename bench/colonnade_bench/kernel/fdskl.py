"""FDSKL's experiments: Figures 3-6 and Table 4, with the data that can be had.

Every algorithm gets the same 3:1 split of the same columns. Seconds of Table 4 are what the parties of one
process spent on training, without reading files and without measuring. Processor seconds, which other
programs on the machine change less, are those of the whole run. `fdskl` is the paper's algorithm, new random
features in every round and a constant step; `fdskl-capped` is ours. `dsg` is doubly stochastic gradients on
pooled columns, with the settings of each; `svc` is LIBSVM on all pooled rows, where it ends within the hour;
`pp-svmv` is LIBSVM on the securely summed kernel matrix, where its rows are few enough; `fd-svrg` is the
linear model; `secureboost` is boosted trees with blind labels, as by default. The sets are those of the paper
that are on this machine (`papers`); MNIST 4 against 9, with its own test rows, stands in for gisette.

The quick form draws 1,000 training rows and as many test rows of every set, and makes one split. Of the full
form the other splits come last, and what there is is written after every part, so a run that is cut short has
all figures, of fewer splits. What a split gave stays in OUT/splits, a point of Figure 3 in OUT/figure3.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, product
from pathlib import Path

from threadpoolctl import threadpool_limits

from colonnade.data.datasets.loading import available
from colonnade_bench.common import Bench, Say
from colonnade_bench.kernel.curves import figure_3
from colonnade_bench.kernel.growth import figure_5
from colonnade_bench.kernel.made_up import SETS as MADE_UP
from colonnade_bench.kernel.splits import GRIDS, Splits
from colonnade_bench.kernel.topologies import figure_4
from colonnade_bench.kernel.traffic import COMPARED, bits_compared, traffic
from colonnade_bench.papers import FDSKL, here

TITLE = "FDSKL: kernels over split columns"
PARTS = {
    "grid": "settings of Figure 6, on a split that is not reported",
    "first": "Figure 6 and Table 4 of the first split",
    "figure3": "test error against processor time",
    "bits": "projections of 16 and of 32 bits",
    "figure5": "how training time grows",
    "traffic": "bytes pass by pass",
    "figure4": "stars, trees and rings",
    "splits": "Figure 6 and Table 4 of all splits",
}
LAST = ("splits:kept",)
# of one core, by processor time; `splits` is counted from what a first split takes
MINUTES = {"figure3": 12, "bits": 2, "figure5": 1, "traffic": 0.2, "figure4": 0.4, "splits": 225}
SPLITS = 10  # as in the paper
QUICK_ROWS = 1_000
LONG = ("givemesomecredit", "cod-rna", "uci-credit", "a9a")  # begun first


def pieces(quick: bool) -> list[str]:
    """What can run side by side, the longest first."""
    names, splits = _names(), 1 if quick else SPLITS
    longest = sorted(names, key=lambda name: LONG.index(name) if name in LONG else len(LONG))
    first, *others = [
        [f"splits:{name}:{seed}:{kind}" for name in longest for kind in Splits.kinds(seed)]
        for seed in range(splits)
    ]
    compared = [f"bits:{name}" for name in _compared()]
    curves = [f"figure3:{name}" for name in _curved(names, quick)]
    grids = [
        f"grid:{name}:{algorithm}:{at}"
        for name in longest
        for algorithm, settings in GRIDS.items()
        for at in range(len(settings))
    ]
    return [*grids, *first, "figure5", *compared, *curves, "traffic", "figure4", *chain.from_iterable(others)]


def run(
    quick: bool, out: Path, say: Say, *, only: Sequence[str] = (), tables: Path | None = None
) -> list[Path]:
    """Measure on the data sets that are on this machine, and write what there is after every part."""
    bench, names = Bench("fdskl", TITLE, quick), _names()
    if missing := here(FDSKL).missing:
        say(f"not on this machine, left out or stood in for: {', '.join(missing)}")
    splits = Splits(out, QUICK_ROWS if quick else None)
    with threadpool_limits(1):
        for piece in only or PARTS:
            _piece(bench, piece, splits, names, say)
            bench.write(tables or out)
    return bench.write(tables or out)


def _piece(bench: Bench, piece: str, splits: Splits, names: Sequence[str], say: Say) -> None:
    """Measure a part, or what of it is named behind a colon."""
    part, *which = piece.split(":")
    quick = bench.quick
    match part:
        case "grid" if which:
            name, algorithm, at = which
            say(f"{name}, {algorithm}: {splits.error_held_back(name, algorithm, int(at)):.4f}")
        case "grid":
            for name, algorithm in product(names, GRIDS):
                say(f"{name}, {algorithm}: {splits.setting(name, algorithm)}")
            bench.grids.append(splits.grid(names))
        case "first":
            splits.add(bench, names, 1, say)
        case "figure3":
            figure_3(bench, which or _curved(names, quick), splits, say, quick=quick)
        case "bits":
            bench.grids.append(bits_compared(which or _compared(), splits.rows, say))
        case "figure5":
            figure_5(bench, names[0] if quick or "cod-rna" not in names else "cod-rna", say, quick=quick)
        case "traffic":
            traffic(bench, say)
        case "figure4":
            say("sums and results over stars and trees")
            figure_4(bench, 2**14 if quick else 2**18)
        case "splits" if which == ["kept"]:
            splits.kept().add(bench, names, SPLITS, say)
        case "splits" if which:
            name, seed, kind = which
            say(f"{name}, split {int(seed) + 1}, {kind}: {splits.measured(name, int(seed), kind)}")
        case "splits":
            splits.add(bench, names, 1 if quick else SPLITS, say)


def _names() -> list[str]:
    return here(FDSKL).found


def _curved(names: Sequence[str], quick: bool) -> Sequence[str]:
    return names[:1] if quick else names


def _compared() -> list[str]:
    return [name for name in COMPARED if name in MADE_UP or available(name)]
