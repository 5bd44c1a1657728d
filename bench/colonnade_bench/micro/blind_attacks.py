"""What attacks find in clear and blind runs: labels in owners' transcripts, columns in the label holder's.

    python -m colonnade_bench.micro.blind_attacks labels [--parties 4 8] [--epochs 2]
    python -m colonnade_bench.micro.blind_attacks columns [--sets a9a uci-credit] [--epochs 30]
    python -m colonnade_bench.micro.blind_attacks lattice [--repeat 8]
    python -m colonnade_bench.micro.blind_attacks turns

`labels` runs a9a in clear and blind and lets every party attack all that it heard. `columns` measures four
times an epoch, so that the label holder has more scores of every row than there are columns, and looks for
columns of two values and for independent directions. `lattice` looks for whole-numbered columns in totals of
ten normal ones of one owner, of eight of two owners, and of eight of UCI credit, with and without the owners'
rotations, which are new every time; `nearly in place` are columns that a rotation of few leaves as they are,
to a correlation over 0.9. `turns` says how many that are by the number of columns, and how many a guess would
find if owners drew again until none is: more, as whoever knows that rule guesses better.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np
from msgspec import structs
from threadpoolctl import threadpool_limits

from colonnade.arrays import Floats
from colonnade.attacks.audit import Audited, audit, audit_run
from colonnade.attacks.registry import ATTACKS, Attack
from colonnade.conversations.blind.columns import Turn
from colonnade.data.table import Table
from colonnade.job import Job, job_from
from colonnade.run.federate import Tables, plan_for, prepare
from colonnade.run.gather_result import DataFacts
from colonnade.run.resolve import compose
from colonnade.run.world import Launch

LABELS = ("labels from theta", "labels from veiled words", "labels from its own weights")
SPACE, EXACT = "columns from the space of scores", "columns from exact scores"
REAL = ("LIMIT_BAL", "AGE", "PAY_AMT1", "PAY_AMT2", "PAY_AMT3", "PAY_AMT4", "PAY_AMT5", "PAY_AMT6")
PARTIES = ("bank", "shop", "telecom")
STEPS = {"a9a": 1.0, "uci-credit": 0.05}
NEAR = 0.9  # the correlation from which on a column counts as found
MODES: dict[str, dict[str, Any]] = {
    "clear": {"labels": "clear"},
    "blind, not turned": {"labels": "blind"},
    "blind": {"labels": "blind"},
    "scores hidden": {"labels": "blind", "scores": "hidden"},
}
HEARD = {name: MODES[name] for name in ("clear", "blind")} | {
    "never revealed": {"labels": "blind", "reveal": "never"}
}


def job_of(data: str, parties: int, secure: dict[str, Any], **train: Any) -> Job:
    """One run of plain SGD with fixed steps."""
    return job_from(
        {
            "algorithm": "vfb-sgd",
            "world": "local",
            "compare": False,
            "data": {"train": data, "parties": parties},
            "train": {"batch": 256, "tolerance": 0.0, "step": STEPS.get(data, 0.1), **train},
            "secure": secure,
        }
    )


def of_names(*names: str) -> tuple[Attack, ...]:
    return tuple(attack for attack in ATTACKS if attack.name in names)


@contextmanager
def not_turned() -> Iterator[None]:
    """Owners leave out their rotation."""
    with mock.patch.object(Turn, "secret", lambda width, key: Turn.none(width)):
        yield


def mode(name: str) -> Any:
    return not_turned() if name == "blind, not turned" else nullcontext()


def labels(parties: list[int], epochs: int) -> None:
    """The part of labels that every party reads off what it heard."""
    print(f"{'a9a, all rows':28}{'by':10}{'attack':30}{'right':>7}{'AUC over 0.5':>14}{'guessing':>10}")
    for count in parties:
        for name, secure in HEARD.items():
            job = job_of("a9a", count, secure, epochs=epochs, evaluate_every=0)
            for found in audit(job, attacks=of_names(*LABELS)).findings:
                if found.value is not None and found.baseline is not None:
                    print(
                        f"{f'{count} parties, {name}':28}{found.by:10}{found.attack:30}{found.value:7.3f}"
                        f"{'yes' if found.found else 'no':>14}{found.baseline:10.3f}"
                    )


def columns(names: list[str], epochs: int, modes: list[str]) -> None:
    """What the label holder finds in the scores of many measurements."""
    for data in names:
        for name in modes:
            job = job_of(data, 4, MODES[name], epochs=epochs, evaluate_every=0.25)
            with mode(name):
                say(data, name, audit(job, attacks=of_names(SPACE)))


def lattice(epochs: int, repeat: int) -> None:
    """The attack on whole numbers, on columns of one owner, beside whom a neutral party helps, and of two."""
    for title, tables, how in (
        ("10 normal, 1 owner", of_normal_columns(4, 10, 0), {"helper": PARTIES[2]}),
        ("8 normal, 2 owners", of_normal_columns(4, 4, 4), {}),
        ("8 of UCI credit", of_real_columns(), {}),
    ):
        for name in ("blind, not turned", "blind"):
            job = job_of("uci-credit", 3, MODES[name] | how, epochs=epochs, evaluate_every=0.25)
            for _ in range(repeat if name == "blind" else 1):
                plan, data = plan_for(job, tables)
                with mode(name), noting_turns() as turns:
                    run = Launch(plan, data)
                    say(title, name, audit_run(job, DataFacts(title), run, attacks=of_names(EXACT)))
                if name == "blind":
                    stayed = sum(in_place(part).sum() for turn in turns for part in turn.parts if part.size)
                    print(f"{'':40}{stayed} nearly in place", flush=True)


def in_place(turns: Floats) -> Any:
    """Which columns some rotations leave nearly in place, or lay onto another."""
    return np.abs(turns).max(axis=-1) > NEAR


def turns(draws: int = 20_000, guesses: int = 300) -> None:
    """What rotations of few columns leave, and what a guess finds if they are drawn until none is left."""
    print(f"{'columns':>8}{'left nearly in place':>22}{'drawn again: the best guess finds':>36}")
    for width in range(1, 13):
        drawn = np.array([Turn.secret(width, f"{k:032}".encode()).parts[0] for k in range(draws)])
        hiding = drawn[~in_place(drawn).any(axis=1)]
        # who guesses a rotation turns what it found back by it
        found = [in_place(hiding @ guess).mean() for guess in drawn[:guesses]] if len(hiding) else [1.0]
        print(f"{width:8}{in_place(drawn).mean():22.1%}{max(found):36.1%}", flush=True)


@contextmanager
def noting_turns() -> Iterator[list[Turn]]:
    """The rotations of the owners of a run."""
    found: list[Turn] = []
    secret = Turn.secret

    def noted(width: int, key: bytes) -> Turn:
        found.append(secret(width, key))
        return found[-1]

    with mock.patch.object(Turn, "secret", noted):
        yield found


def of_normal_columns(*widths: int) -> Tables:
    """Normal columns, in which nothing but the fixed-point grid can be found: so many at every party."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, sum(widths)))
    y = np.where(X @ rng.standard_normal(sum(widths)) > 0, 1.0, -1.0)
    dealt = np.split(np.arange(sum(widths)), np.cumsum(widths)[:-1])
    train = {
        party: Table(party, tuple(f"c{j}" for j in mine), X[:, mine].copy(), None)
        for party, mine in zip(PARTIES, dealt, strict=True)
    }
    return Tables("normal", train | {"bank": replace(train["bank"], y=y)}, None, ("bank",))


def of_real_columns() -> Tables:
    """UCI credit with a label holder and two owners, of four real columns each."""
    job = job_of("uci-credit", 1, {"labels": "clear"})
    _, order = prepare(compose(structs.replace(job, algorithm="vfb-sgd")))
    whole = next(iter(order.ready().data.values())).prepare().train
    chosen = {name: whole.columns.index(name) for name in REAL}
    rest = [j for j, name in enumerate(whole.columns) if name not in chosen][:4]
    dealt = (rest, list(chosen.values())[:4], list(chosen.values())[4:])
    places = dict(zip(PARTIES, dealt, strict=True))

    def table(party: str) -> Table:
        X: Floats = np.ascontiguousarray(np.asarray(whole.X)[:, places[party]])
        names = tuple(whole.columns[j] for j in places[party])
        return replace(whole, name=party, columns=names, X=X, y=whole.y if party == "bank" else None)

    return Tables("credit", {party: table(party) for party in places}, None, ("bank",))


def say(data: str, name: str, audited: Audited) -> None:
    for found in audited.findings:
        if found.value is not None:
            print(f"{data:20}{name:20}{found.success}; {found.note}; guessing {found.guessing}", flush=True)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("what", choices=["labels", "columns", "lattice", "turns"])
    arguments.add_argument("--parties", type=int, nargs="+", default=[4, 8])
    arguments.add_argument("--sets", nargs="+", default=list(STEPS))
    arguments.add_argument("--epochs", type=int, default=None)
    arguments.add_argument("--repeat", type=int, default=8)
    arguments.add_argument("--modes", nargs="+", choices=list(MODES), default=list(MODES))
    given = arguments.parse_args()
    with threadpool_limits(1):
        if given.what == "labels":
            labels(given.parties, given.epochs or 2)
        elif given.what == "columns":
            columns(given.sets, given.epochs or 30, given.modes)
        elif given.what == "turns":
            turns()
        else:
            lattice(given.epochs or 6, given.repeat)


if __name__ == "__main__":
    main()
