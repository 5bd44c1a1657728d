"""`colonnade bench`: reproduce a paper's tables and figures, ours beside the paper's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from inspect import signature
from pathlib import Path
from types import ModuleType
from typing import Any

import click

from colonnade.cli.machine import JSON, print_json
from colonnade.errors import JobError

BENCHES = {
    "asyrevel": "black-box models: Tables 3-4, Figures 3-4, private replies and the attack",
    "asysqn": "quasi-Newton directions: Figures 2-4 and Tables 3-5",
    "czofo": "split networks: Tables 2-11 and Figures 2-8 of VFL-CZOFO's supplement",
    "defaults": "files, label and id and no other setting: beside a scikit-learn pipeline",
    "engines": "workers inside a party: time by their number, weights beside one process",
    "faults": "parties that die and go on: simulated faults, real kills, the price of checkpoints",
    "fdskl": "kernels over split columns: Figures 3-6 and Table 4",
    "large": "data beyond the memory: rows a second and the peak of memory, beside fewer rows",
    "peers": "beside scikit-learn, XGBoost and SPU, each in an environment of its own, run live",
    "soak": "four daemons with trainings, scores, restarts and strangers: do they stay as they were",
    "theorems": "the papers' theorems on convergence: slopes with their intervals",
    "trees": "boosted trees: beside scikit-learn and XGBoost, cost and growth",
    "vfb2": "theta sent back to every party: Figures 2-4 and Table 2, beside pooled training",
}

LEFT_OUT: Mapping[str, Sequence[str]] = {
    "asysqn": ("processes", "slow", "sweep"),
    "czofo": ("slow",),
    "trees": ("accuracy", "attacks", "bytes", "cost", "growth", "large", "slow", "told"),
    "vfb2": ("slow",),
}
"""What `all` leaves out: hours for what is no table of the five papers, or is one again between processes."""
ON_A_GPU = ("cifar10",)
"""What of czofo `all` leaves out without a GPU, where it takes days."""


@click.command()
@click.argument("name", required=False, type=click.Choice(["all", *sorted(BENCHES)]))
@click.option(
    "--list", "listed", is_flag=True, help="Name all benches and their parts, and how long they take."
)
@click.option("--quick", is_flag=True, help="Less data and fewer trials: minutes instead of an hour.")
@click.option(
    "--out", "-o", type=click.Path(path_type=Path), help="Where results go. [default: runs/bench-NAME]"
)
@click.option("--only", multiple=True, metavar="PART", help="Only this part of it; may be repeated.")
@click.option("--device", type=click.Choice(["cpu", "cuda", "auto"]), help="Where networks compute (czofo).")
@click.option("--processes", type=click.IntRange(1), help="Runs at the same time (czofo, faults).")
@click.option("--jobs", type=click.IntRange(1), help="Pieces at the same time (the other papers).")
@click.option(
    "--resume", is_flag=True, help="Leave out pieces that ended in an earlier run; `all` always does."
)
@click.option("--seconds", type=float, help="A limit for every run, which then has fewer epochs (czofo).")
@click.option("--minutes", type=click.FloatRange(0.1), help="How long it goes on (soak).")
@click.option("--rows", type=click.IntRange(1), help="Number of rows (large).")
@click.option("--columns", type=click.IntRange(1), help="Number of columns (large).")
@click.option("--seeds", type=click.IntRange(1), help="Number of seeds (faults; czofo).")
@click.option("--epochs", type=click.IntRange(1), help="Epochs of a run (czofo).")
@click.option("--kill", type=click.IntRange(1), help="Number of kills of every conversation (faults).")
@JSON
def bench(
    name: str | None,
    listed: bool,
    quick: bool,
    out: Path | None,
    jobs: int | None,
    resume: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Reproduce a paper's experiments: JSON, tables and a figure, ours beside the paper's.

    `all` runs the papers' benches and all others that have pieces, each into a folder of its own, but for
    long parts that it names; cut off, it goes on where it was with the same command.

    \b
    Example:
      colonnade bench fdskl --quick
      colonnade bench all --jobs 2
    """
    if listed:
        click.echo("\n".join(_lines([name] if name else sorted(BENCHES))))
        return
    if name is None:
        raise click.UsageError("which bench? `colonnade bench --list` names them and their parts")
    jobs = 1 if jobs is None and (resume or name == "all") else jobs
    if name == "all":
        _all(out or Path("runs") / "bench-all", jobs or 1, options, quick=quick, as_json=as_json)
        return
    module, say = _bench(name), partial(click.echo, err=as_json)
    given = {option: value for option, value in options.items() if value}
    parts = getattr(module, "PARTS", {})
    for option in given:
        if option not in signature(module.run).parameters:
            raise click.UsageError(f"--{option}: {name} has no such option; drop it, or run czofo")
    if pieces := import_module("colonnade_bench.only").meant(name, given.get("only", ()), quick=quick):
        given["only"] = tuple(pieces)
    folder = out or Path("runs") / f"bench-{name}"
    if not quick and (minutes := getattr(module, "MINUTES", None)):
        say(_expected(minutes, parts, given.get("only", ())))
    if jobs is None:
        files = module.run(quick, folder, say, **given)
    elif not hasattr(module, "pieces"):
        raise click.UsageError(f"--jobs: {name} cannot be taken apart; drop it")
    elif others := given.keys() - {"only"}:
        raise click.UsageError(f"--jobs: {name} in pieces has no --{min(others)}; drop it")
    else:
        some = [f"{name}:{piece}" for piece in pieces]
        side_by_side = import_module("colonnade_bench.pieces").side_by_side
        files = side_by_side({name: folder}, say, quick=quick, jobs=jobs, only=some, resume=resume)
    if as_json:
        print_json({"written": [str(file) for file in files]})
    else:
        click.echo(f"written: {', '.join(str(file) for file in files)}")


def _all(out: Path, jobs: int, options: Mapping[str, Any], *, quick: bool, as_json: bool) -> None:
    """Run the papers' benches and all others that have pieces, but for what ended in an earlier run."""
    if given := [option for option, value in options.items() if value]:
        raise click.UsageError(f"--{given[0]}: `all` has no such option; run a bench by its name")
    pieces, say = import_module("colonnade_bench.pieces"), partial(click.echo, err=as_json)
    apart = {name: _bench(name).PARTS for name in BENCHES if pieces.can(name)}
    kept = {name: [part for part in parts if part not in _left_out(name)] for name, parts in apart.items()}
    folders = {name: out / name for name, parts in kept.items() if parts}
    only = [f"{name}:{part}" for name in folders for part in kept[name]]
    left = [f"{name} --only {part}" for name in (*apart, "czofo") for part in _left_out(name)]
    say(f"left out, as they take hours; run them by name: {', '.join(left)}")
    files = pieces.side_by_side(folders, say, quick=quick, jobs=jobs, only=only, resume=True)
    czofo = _bench("czofo")
    tables = [part for part in (czofo.QUICK if quick else czofo.PARTS) if part not in _left_out("czofo")]
    # what has a record is not run again
    files += czofo.run(quick, out / "czofo", say, processes=jobs, only=tuple(tables))
    if as_json:
        print_json({"written": [str(file) for file in files]})
    else:
        click.echo(f"written: {', '.join(str(file) for file in files)}")


def _left_out(name: str) -> Sequence[str]:
    """Return the parts of a bench that `all` leaves out on this machine."""
    without = LEFT_OUT.get(name, ())
    return without if name != "czofo" or _sees_gpu() else (*without, *ON_A_GPU)


def _sees_gpu() -> bool:
    """Return whether torch is here and sees a GPU."""
    try:
        return bool(import_module("torch").cuda.is_available())
    except ModuleNotFoundError:
        return False


def _lines(names: Iterable[str]) -> Iterator[str]:
    """Yield a line for every bench and every part of it, with the minutes of one core that a part takes."""
    for name in names:
        if name == "all":
            yield from _lines(sorted(BENCHES))
            return
        yield f"{name}: {BENCHES[name]}"
        module = _bench(name)
        minutes = getattr(module, "MINUTES", {})
        parts = getattr(module, "PARTS", {})
        for part, what in parts.items() if isinstance(parts, Mapping) else ((part, "") for part in parts):
            time = f", about {minutes[part]:g} min" if part in minutes else ""
            yield f"  {part:14}{what}{time}"


def _expected(minutes: Mapping[str, float], parts: Iterable[str], only: Sequence[str]) -> str:
    """Return how long it will take, by what its parts took where the pages' figures come from.

    >>> _expected({"lossless": 120, "curves": 30}, ["lossless", "curves", "pace"], ["curves:a9a", "pace"])
    'minutes of one core, for the whole part: curves about 30, pace not known'
    """
    asked = {part.partition(":")[0] for part in only} or set(parts)
    each = [
        f"{part} {f'about {minutes[part]:g}' if part in minutes else 'not known'}"
        for part in parts
        if part in asked
    ]
    return f"minutes of one core, for the whole part: {', '.join(each)}"


def _bench(name: str) -> ModuleType:
    """Return the module of a bench, from the package of benches that lies beside the product."""
    try:
        return import_module(import_module("colonnade_bench").BENCHES[name])
    except ModuleNotFoundError as error:
        if error.name != "colonnade_bench":
            raise
        raise JobError(
            "bench: the package colonnade-bench is not installed; it lies beside the source, "
            "`pip install ./bench` in a checkout"
        ) from None
