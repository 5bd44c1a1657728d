"""What encrypted products of two parties cost: transforms, and a pass over a table, by every way to compute.

    python -m colonnade_bench.micro.lattice [--rows 32561] [--columns 123] [--terms 8] [--passes 12]

A pass: the label holder asks for theta (`terms` products a row, in slots), then each party asks the other for
the gradient of its columns; what crosses is written to bytes and read again. Scores are those of encrypted
weights, which only models that stay in parts need. CPU seconds of this process, for both parties together,
the best of three; set-up (transformed columns) apart.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from colonnade.secure.lattice import slots
from colonnade.secure.lattice.arithmetic import WAYS, modulus, primes_below, using
from colonnade.secure.lattice.ciphertexts import Ciphertexts, SecretKey, centred, residues
from colonnade.secure.lattice.columns import (
    CoefficientAnswer,
    TransformedColumns,
    askers_part,
    encrypted_vector,
    encrypted_weights,
    in_chunks,
    opened,
)
from colonnade.secure.lattice.parameters import LEAN, STRICT, SlotParameters, coefficients_beside

REPEATS = 3


def best(work: Callable[[], Any]) -> tuple[float, Any]:
    """The least CPU seconds of some repeats, and what the last of them gave."""
    found, result = [], None
    for _ in range(REPEATS):
        start = time.process_time()
        result = work()
        found.append(time.process_time() - start)
    return min(found), result


def products(ring: SlotParameters, f: Any, g: Any) -> tuple[Any, Any, int]:
    """Products in slots: the asker's part of every row, the owner's, and how many bytes crossed."""
    terms, rows = f.shape
    key = SecretKey(ring)
    said = [bytes(key.public()), bytes(slots.encrypted(key, ring, f))]
    chunks = ring.chunks(rows)
    public, asked = (
        Ciphertexts.read(ring, 1, 1, said[0]),
        Ciphertexts.read(ring, chunks, terms, said[1]),
    )
    answer, own = slots.answer(ring, public, asked, g)
    said.append(bytes(answer))
    part = slots.decrypted(key, slots.SlotAnswer.read(ring, chunks, said[2]), rows)
    return part, own, sum(map(len, said))


def theta(ring: SlotParameters, f: Any, g: Any, due: Any) -> int:
    """Products in slots, checked; returns how many bytes crossed."""
    part, own, size = products(ring, f, g)
    assert (centred((part + own) % np.uint64(ring.plain), ring.plain) == due).all()
    return size


def inner(table: TransformedColumns, t: Any, own: Any = None) -> tuple[Any, Any, int]:
    """Inner products with a vector, to which the owner adds its part, if it has one: the asker's part of
    every column, the owner's, and how many bytes crossed."""
    ring = table.ring
    key = SecretKey(ring)
    said = [bytes(key.public()), bytes(encrypted_vector(key, ring, t, table.together))]
    public, asked = Ciphertexts.read(ring, 1, 1, said[0]), Ciphertexts.read(ring, 1, table.chunks, said[1])
    answer, word = table.gradient(
        public, asked if own is None else asked.plus(in_chunks(ring, own, table.together))
    )
    said.append(bytes(answer))
    part = askers_part(
        key, CoefficientAnswer.read(ring, table.answers, said[2]), table.width, table.of_a_chunk
    )
    return part, word, sum(map(len, said))


def gradient(table: TransformedColumns, t: Any, due: Any) -> int:
    """Inner products with a vector, checked; returns how many bytes crossed."""
    ring = table.ring
    part, own, size = inner(table, residues(t, ring.plain))
    assert np.abs(opened(ring, part, own) - due).max() < ring.error(table.size)
    return size


def scores(table: TransformedColumns, w: Any, due: Any, size: int) -> int:
    """Scores of encrypted weights, checked; returns how many bytes crossed."""
    ring = table.ring
    key = SecretKey(ring)
    said = [bytes(key.public()), bytes(encrypted_weights(key, ring, residues(w, ring.plain)))]
    groups = -(-table.width // 4)
    public, asked = Ciphertexts.read(ring, 1, 1, said[0]), Ciphertexts.read(ring, groups, 4, said[1])
    answer, own = table.scores(public, asked)
    said.append(bytes(answer))
    part = askers_part(key, CoefficientAnswer.read(ring, table.chunks, said[2]), table.rows, 1)
    assert np.abs(opened(ring, part, own) - due).max() < ring.error(size)
    return sum(map(len, said))


def transforms(way: str) -> None:
    """Print microseconds of a forward and an inverse transform."""
    for degree in (2048, 4096, 8192):
        m = modulus(primes_below(2**50, degree, 1)[0], degree)
        x = np.random.default_rng(0).integers(0, m.p, (16, degree), dtype=np.uint64)
        there, back = best(partial(m.forward, x))[0], best(partial(m.inverse, x))[0]
        print(f"{way:11s} N {degree}: forward {there / 16 * 1e6:8.1f} us, inverse {back / 16 * 1e6:8.1f} us")


def a_pass(way: str, ring: SlotParameters, options: argparse.Namespace) -> None:
    """Print what a pass costs."""
    rng = np.random.default_rng(0)
    f, g = rng.integers(-32, 32, (2, options.terms, options.rows))
    widths = options.columns // 2, options.columns - options.columns // 2
    blocks = [(rng.random((options.rows, width)) < 0.11).astype(np.int64) for width in widths]
    t = rng.integers(-(2**12), 2**12, options.rows)
    beside = coefficients_beside(ring)
    setup, tables = best(lambda: [TransformedColumns(beside, X, 2**12) for X in blocks])
    due = (f * g).sum(axis=0)
    seconds, size = best(lambda: theta(ring, f, g, due))
    print(f"{way:11s} theta     {seconds * 1e3:8.1f} ms {size / 1e6:7.2f} MB")
    asked = [(table, t, X.T @ t) for table, X in zip(tables, blocks, strict=True)]
    other, more = best(lambda: sum(gradient(*one) for one in asked))
    print(f"{way:11s} gradients {other * 1e3:8.1f} ms {more / 1e6:7.2f} MB (set-up {setup * 1e3:.0f} ms)")
    weights = [rng.integers(-(2**18), 2**18, width) for width in widths]
    scored = [
        (table, w, X @ w, int(X.sum(axis=1).max()))
        for table, w, X in zip(tables, weights, blocks, strict=True)
    ]
    third, rest = best(lambda: sum(scores(*one) for one in scored))
    print(f"{way:11s} scores    {third * 1e3:8.1f} ms {rest / 1e6:7.2f} MB")
    passes = options.passes  # the first needs no theta
    total, both = (passes - 1) * seconds + passes * other, (passes - 1) * size + passes * more
    print(f"{way:11s} {passes} passes, {total:.2f} CPU s, {both / 1e6:.1f} MB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (("rows", 32561), ("columns", 123), ("terms", 8), ("passes", 12)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--ways", nargs="+", default=list(WAYS))
    parser.add_argument("--strict", action="store_true", help="the strict profile instead of the lean one")
    options = parser.parse_args()
    for way in options.ways:
        with using(way):
            transforms(way)
            a_pass(way, STRICT if options.strict else LEAN, options)


if __name__ == "__main__":
    main()
