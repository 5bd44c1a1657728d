"""Proofs of `lbfgs` with hidden scores: false alarms of honest runs, and wrong words that they find.

    python -m colonnade_bench.micro.proofs [--honest 50] [--runs 20]

Honest runs first: how many end by a proof, how much of what a proof grants was used at the most, and bytes.
Then, of UCI credit, one wrong word in what is dealt for the products of a pass, the last or one drawn by
chance. It counts in rows: by how many rows of largest theta a sum is wrong. Of runs that end well the rise of
the training loss above an honest one stands beside that of runs without proofs. Last a dealer that is wrong
by the same number in every pass and every proof.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from unittest import mock

import numpy as np

from colonnade.arrays import Floats, Words
from colonnade.conversations.linear.noisy import optimum, whole_columns
from colonnade.conversations.linear.noisy.noisy_lbfgs import NoisyLbfgs
from colonnade.conversations.linear.parties import dealt
from colonnade.errors import ColonnadeError, SumError
from colonnade.job import Job, job_from
from colonnade.run.federate import Tables, prepare, run_tables
from colonnade.run.resolve import compose
from colonnade.secure.product import Dealer, Lot
from colonnade.secure.streams import Roles

PASSES, PARTIES = 12, 4
Wrong = Callable[[Words], None]
"""Spoils the sums of a lot, [1, passes, columns]."""


def trained(tables: Tables, proofs: int, wrong: Wrong | None = None) -> float | str:
    """Return the training loss of a run, or the first words of its error."""
    due, spoilt_for = Dealer.deal, set[Roles]()

    def deal(self: Dealer, lot: Lot) -> tuple[list[Words], Words]:
        scores, sums = due(self, lot)
        if wrong is not None and not spoilt_for and self.roles.asker == tables.active[0]:
            spoilt_for.add(self.roles)
            wrong(sums)
        return scores, sums

    with mock.patch.object(Dealer, "deal", deal):
        try:
            return float(run_tables(_job(tables, proofs), tables).result.metrics["train_loss"])
        except ColonnadeError as error:
            return str(error).split(":")[0].split("secure.")[-1]


def honest(tables: Tables, runs: int) -> str:
    """Return a line on honest runs: how many ended by a proof, and how near they came."""
    near, ended = [0.0], 0

    def noted(lbfgs: NoisyLbfgs, gradient: Floats, whole: float) -> None:
        found, granted = optimum.used(lbfgs, gradient, whole)
        near.append(found / granted)
        optimum.check(lbfgs, gradient, whole)

    with mock.patch.object(dealt, "check", noted):
        for _ in range(runs):
            ended += isinstance(trained(tables, 2), str)
    sent = " | ".join(f"{megabytes(tables, proofs):.1f}" for proofs in (0, 2))
    return f"| {tables.dataset} | {_rows(tables):,} | {runs} | {ended} | {max(near):.0%} | {sent} |"


def megabytes(tables: Tables, proofs: int) -> float:
    """Return what all parties send in a run."""
    shares = run_tables(_job(tables, proofs), tables).shares
    return sum(share.traffic.bytes_sent for share in shares.values()) / 1e6


def spoilt(tables: Tables, rows: float, runs: int, usual: float, *, last: bool) -> str:
    """Return a line on runs with one word that is wrong by so many rows."""
    rng, row = np.random.default_rng(0), _row(tables)

    def wrong(sums: Words) -> None:
        at = PASSES - 1 if last else rng.integers(PASSES)
        sums[0, at, rng.integers(sums.shape[2])] += np.uint64(round(rows * row))

    found = {proofs: [trained(tables, proofs, wrong) for _ in range(runs)] for proofs in (0, 2)}
    rises = {
        proofs: max((100 * (each / usual - 1) for each in losses if not isinstance(each, str)), default=0.0)
        for proofs, losses in found.items()
    }
    ended = [each for each in found[2] if isinstance(each, str)]
    proven, beyond = (sum(word in each for each in ended) for word in ("proofs", "scores"))
    where = "the last" if last else "any"
    return f"| {rows:,.0f} | {where} | {runs} | {proven} | {beyond} | {rises[2]:.2f}% | {rises[0]:.2f}% |"


def the_same(tables: Tables, rows: float, proofs: int, runs: int) -> str:
    """Return a line on a dealer that is wrong by the same in every pass and every proof."""
    row = _row(tables)

    def wrong(sums: Words) -> None:
        sums[0, :, 0] += np.uint64(round(rows * row))

    ended = sum("proofs" in str(trained(tables, proofs, wrong)) for _ in range(runs))
    return f"| {rows:,.0f} | {proofs} | {runs} | {ended} |"


def read(name: str) -> Tables:
    """Return the training rows of a set, dealt to some parties."""
    data = {"train": name, "parties": PARTIES, "active": 1}
    _, order = prepare(compose(job_from({"algorithm": "lbfgs", "data": data, "secure": {"labels": "clear"}})))
    made = {party: each.prepare().train for party, each in order.data.items()}
    return Tables(name, made, None, order.plan.label_holders)


def _job(tables: Tables, proofs: int) -> Job:
    plain = {
        "algorithm": "lbfgs",
        "world": "local",
        "data": {"train": "dealt", "parties": len(tables.train), "active": 1},
        "secure": {"labels": "blind", "scores": "hidden", "proofs": proofs},
        "compare": False,
    }
    return job_from(plain)


def _rows(tables: Tables) -> int:
    return tables.train[tables.active[0]].rows


def _row(tables: Tables) -> float:
    """Return what a row of largest theta and a column's largest number adds to a sum, in words."""
    return float(2.0 ** (whole_columns.BITS + dealt.theta_bits(_rows(tables))))


def main() -> None:
    """Print three tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--honest", type=int, default=50)
    parser.add_argument("--runs", type=int, default=20)
    given = parser.parse_args()
    print("| honest | rows | runs | ended by a proof | used of what is granted | MB | with proofs |")
    print("|---|---|---|---|---|---|---|")
    for name in ("uci-credit", "a9a", "diabetes"):
        print(honest(read(name), given.honest), flush=True)
    tables = read("uci-credit")
    usual = trained(tables, 0)
    if isinstance(usual, str):
        raise SumError(usual)
    print("\n| wrong by rows | in pass | runs | proofs end | scores end | loss above | without proofs |")
    print("|---|---|---|---|---|---|---|")
    for rows in (300.0, 1000.0, 3000.0):
        for last in (False, True):
            print(spoilt(tables, rows, given.runs, usual, last=last), flush=True)
    print("\n| wrong by the same, rows | proofs | runs | proofs end |\n|---|---|---|---|")
    for proofs in (1, 2, 4):
        print(the_same(tables, 300.0, proofs, given.runs), flush=True)


if __name__ == "__main__":
    main()
