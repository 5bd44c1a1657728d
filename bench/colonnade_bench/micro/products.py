"""A pass of `lbfgs` by dealers' words, beside the same products under encryption, of three parties and more.

    python -m colonnade_bench.micro.products [--data a9a 200000x40] [--parties 3 4 8] [--repeat 3]

Dealt: a real run, of whose passes the last twenty are counted, with all that a pass has. Encrypted: products
alone, so that `times` are the least. Where scores are open the label holder A knows theta, and asks every
owner. Where they are hidden A and its mate have a word of every score; A asks the mate for twelve products a
row, which make parts of a sum of sines, and then both ask every owner, with a part of theta each.

CPU seconds of all parties in this process, the least of some; bytes are written and read again. Gradients
are compared with those in clear. Setting up is apart.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from colonnade.arrays import Words
from colonnade.conversations.linear.encrypted.encrypted_products import modulo
from colonnade.conversations.linear.encrypted.home_columns import HomeColumns, theta_bits
from colonnade.conversations.linear.parted import wave_theta
from colonnade.data.table import Table
from colonnade.engines.engine import INLINE
from colonnade.job import job_from
from colonnade.run.federate import Tables, plan_for
from colonnade.run.launch import launch
from colonnade.run.world import Launch
from colonnade.secure.lattice.arithmetic import WAYS, using
from colonnade.secure.lattice.columns import opened
from colonnade.secure.lattice.parameters import LEAN, coefficients_beside
from colonnade_bench.linear.trials import L2, problem
from colonnade_bench.micro import dealt
from colonnade_bench.micro.lattice import inner, products

FIRST, PASSES = 4, 24
SPREAD = 1.5  # of scores
OFF = 0.25  # how far a gradient may be off, in lengths of its column; noise is a few times as much
MEMORY = 2**34
RING = coefficients_beside(LEAN)


class EncryptedPass:
    """What all parties know before a pass: columns, and scores in the open or in two words."""

    def __init__(self, tables: dict[str, Table], *, hidden: bool) -> None:
        """Transform all columns, and draw weights."""
        self.hidden, self.rng = hidden, np.random.default_rng(0)
        X = [table.X for table in tables.values()]
        self.blocks = [HomeColumns(each, LEAN, RING, MEMORY, INLINE, self.rng) for each in X]
        self.y = np.asarray(next(iter(tables.values())).y)
        z = np.sum([each @ self.rng.standard_normal(each.shape[1]) for each in X], axis=0)
        self.z = z * (SPREAD / z.std())
        self.bits = 2 * theta_bits(LEAN, len(z))
        mask = np.uint64(2**RING.cut - 1)
        words = np.rint(self.z * (2.0**RING.cut / wave_theta.PERIOD)).astype(np.int64).view(np.uint64)
        self.mates = self.rng.integers(0, 2**RING.cut, len(z), dtype=np.uint64)
        self.holders = (words - self.mates) & mask

    def run(self) -> tuple[list[Any], int]:
        """Return the gradients that owners learn, None where one is known, and how many bytes crossed."""
        return self._hidden() if self.hidden else self._open()

    def check(self, gradients: list[Any]) -> None:
        """Compare with gradients in clear."""
        theta = (wave_theta.theta_of(self.z) if self.hidden else np.tanh(self.z / 2) / 2) - self.y / 2
        for block, found in zip(self.blocks, gradients, strict=True):
            if found is not None:
                off = np.abs(found - block.gradient(theta)) * block.rows
                assert (off < OFF * block.length / block.scale).all(), off.max()

    def _open(self) -> tuple[list[Any], int]:
        theta = np.tanh(self.z / 2) / 2 - self.y / 2
        t = modulo(np.rint(np.ldexp(theta, self.bits)).astype(np.int64), LEAN.plain)
        told = [self._gradient(block, [t], None) for block in self.blocks[1:]]
        return [None, *(found for found, _ in told)], sum(size for _, size in told)

    def _hidden(self) -> tuple[list[Any], int]:
        half, t = self.bits // 2, np.uint64(LEAN.plain)
        f = wave_theta.holder(wave_theta.angles(self.holders, RING.cut), self.y, None)
        g = wave_theta.owner(wave_theta.angles(self.mates, RING.cut))
        asks = f.whole(self.bits, self.bits - half, self.rng)
        part, mates, size = products(LEAN, asks.products, g.whole(self.bits, half, self.rng).products)
        holders = (part + modulo(asks.own, LEAN.plain)) % t
        first, mate, *others = self.blocks
        told = [
            self._gradient(first, [mates], holders),
            self._gradient(mate, [holders], mates),
            *(self._gradient(block, [holders, mates], None) for block in others),
        ]
        return [found for found, _ in told], size + sum(more for _, more in told)

    def _gradient(self, block: HomeColumns, asked: list[Words], own: Words | None) -> tuple[Any, int]:
        """Return what an owner learns of these askers, each of which gives its part back, and the bytes."""
        (table,), mask = block.tables, np.uint64(2**RING.cut - 1)
        back, words = np.zeros((2, table.width), dtype=np.uint64)
        size = 0
        for t in asked:
            part, word, more = inner(table, t, own)
            back, words, size = back + part, words + word, size + more + 8 * table.width
        return opened(RING, words & mask, back & mask) / block.scale / block.rows * 2.0**-self.bits, size


def encrypted(tables: dict[str, Table], *, hidden: bool, repeat: int) -> tuple[float, float]:
    """CPU seconds and MB of a pass under encryption, its gradients checked."""
    one, seconds = EncryptedPass(tables, hidden=hidden), []
    for _ in range(repeat):
        began = time.process_time()
        gradients, size = one.run()
        seconds.append(time.process_time() - began)
        one.check(gradients)
    return min(seconds), size / 1e6


def by_dealers(tables: dict[str, Table], *, hidden: bool, repeat: int) -> tuple[float, float]:
    """CPU seconds and MB of a pass of a real run."""
    secure = dealt.WAYS["hidden" if hidden else "blind"]
    (few, least), (many, most) = (
        min(_run(tables, secure, passes) for _ in range(repeat)) for passes in (FIRST, PASSES)
    )
    return (many - few) / (PASSES - FIRST), (most - least) / (PASSES - FIRST) / 1e6


def _run(tables: dict[str, Table], secure: dict[str, Any], passes: int) -> tuple[float, int]:
    job = job_from(
        {
            "algorithm": "lbfgs",
            "world": "local",
            "data": {"train": "made-up", "parties": len(tables), "active": 1},
            "train": {"loss": "logistic", "l2": L2, "tolerance": 0, "epochs": passes},
            "secure": {**secure, "labels": "blind"},
        }
    )
    plan, parts = plan_for(job, Tables("made-up", tables, None, tuple(tables)[:1]))
    began = time.process_time()
    shares = launch(Launch(plan, parts))
    seconds = time.process_time() - began
    return seconds, sum(share.traffic.bytes_sent for share in shares.values())


def columns_of(data: str, parties: int) -> dict[str, Table]:
    """Return columns of a data set, or made-up ones of ROWSxCOLUMNS."""
    if data.partition("x")[0].isdigit():
        return dealt.tables_of(data, parties)
    return problem(data, parties).tables(1).train


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", nargs="+", default=["a9a", "200000x40"], help="a set, or ROWSxCOLUMNS")
    parser.add_argument("--parties", nargs="+", type=int, default=[3, 4, 8])
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--way", choices=WAYS, default=WAYS[-1], help="how polynomials are multiplied")
    options = parser.parse_args()
    heads = ("columns", "parties", "scores", "dealt", "encrypted", "times CPU", "times bytes")
    print(f"| {' | '.join(heads)} |\n{'|---' * len(heads)}|")
    for data in options.data:
        for parties in options.parties:
            tables = columns_of(data, parties)
            for hidden in (False, True):
                with threadpool_limits(1), using(options.way):
                    one, few = by_dealers(tables, hidden=hidden, repeat=options.repeat)
                    other, many = encrypted(tables, hidden=hidden, repeat=options.repeat)
                print(
                    f"| {data} | {parties} | {'hidden' if hidden else 'open'} "
                    f"| {1e3 * one:.1f} ms, {few:.2f} MB | {1e3 * other:.1f} ms, {many:.2f} MB "
                    f"| {other / one:.1f} | {many / few:.1f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
