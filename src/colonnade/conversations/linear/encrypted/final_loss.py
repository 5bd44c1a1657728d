"""What is known of the finished model: its loss, as one inner product, and the scores of test rows.

Neither party learns the score of a training row. The loss of all of them is a sum of products of two
functions again: the owner of columns asks with its functions of all rows in one long vector, the label
holder multiplies by its own, and gets the sum back with noise of S rows. Of test rows the label holder
learns total scores, as when it asks for predictions: the owner tells its part, rounded by chance to 1/16.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from colonnade.arrays import Floats
from colonnade.conversations.linear.encrypted.encrypted_products import Asked, GradientAsker
from colonnade.conversations.linear.encrypted.home_columns import ROWS
from colonnade.conversations.linear.noisy.product_forms import (
    LOUD,
    MOST_TERMS,
    ProductFactors,
    code_of,
    size_of,
)
from colonnade.conversations.own_noise import OwnNoise
from colonnade.conversations.peer_line import PeerLine, parts_of
from colonnade.secure.lattice.ciphertexts import Ciphertexts, residues
from colonnade.secure.lattice.columns import TransformedColumns, opened
from colonnade.secure.lattice.parameters import CoefficientParameters

MOST_BITS = 12  # of a function
GRID = 16.0  # steps to a unit, of a part of a test row's score
_CODES = (-100, 120)


def most_stretches(rows: int) -> int:
    """Return in how many stretches of rows the loss is told, at the most; each has noise of its own."""
    return -(-rows // max(1, ROWS // MOST_TERMS))


def _long(factors: ProductFactors) -> Iterator[Floats]:
    """Yield the functions of some rows after each other, for every stretch of rows."""
    terms, rows = factors.products.shape
    step = max(1, ROWS // terms)
    for at in range(0, rows, step):
        yield factors.products[:, at : at + step].ravel()


def _rounded(values: Floats, bits: int, rng: np.random.Generator) -> Any:
    return np.floor(np.ldexp(values, bits) + rng.random(len(values))).astype(np.int64)


async def tell_loss(
    line: PeerLine, ring: CoefficientParameters, factors: ProductFactors, noise: OwnNoise, rows: float
) -> None:
    """Ask the label holder for its products with the own functions, and give it the sum back; at an owner."""
    rng = noise.rounding("loss")
    await line.tell(code_of(float(np.linalg.norm(factors.products))))
    right, bits = (await line.told(2, *_CODES)).tolist()
    for number, long in enumerate(_long(factors)):
        code = np.zeros(1, dtype=np.int64)
        asker = GradientAsker(line, ring, Asked(len(long), 1, 1, code, len(long)))
        await asker.ask(residues(_rounded(long, right, rng), ring.plain))
        await asker.give_back(noise.gaussian(ring, code, rows, bits, "loss", number))


async def learn_loss(
    line: PeerLine,
    ring: CoefficientParameters,
    factors: ProductFactors,
    noise: OwnNoise,
    largest: float | None = None,
) -> float:
    """Return the sum of all rows' losses but for what each party adds by itself; at the label holder.

    `largest` is what a row's is at the most in the mean, where that is known: lengths bound it, but loosely.
    """
    rng = noise.rounding("loss")
    other = size_of(int((await line.told(1, *_CODES))[0]))
    own = float(np.linalg.norm(factors.products)) or 1.0
    terms, rows = factors.products.shape
    bound = own * other if largest is None else largest * min(rows, max(1, ROWS // terms))
    bits = min(2 * MOST_BITS, int(np.floor(np.log2(ring.plain / 2 / (LOUD * bound)))))
    right = int(np.clip(round((bits + np.log2(own / other)) / 2), -20, 40))
    await line.tell(right, bits)
    total = 0.0
    for long in _long(factors):
        # 0: the lengths of both bound the sum
        table = TransformedColumns(ring, _rounded(long, bits - right, rng)[:, None], 0)
        public = await line.opened(lambda data: Ciphertexts.read(ring, 1, 1, data))
        asked = await line.opened(
            lambda data, n=table.chunks: Ciphertexts.read(ring, 1, n, data)  # type: ignore[misc]
        )
        answer, part = table.gradient(public, asked)
        await line.seal(answer)
        back = await line.opened(lambda data: parts_of(data, 1))
        total += float(opened(ring, part, back)[0]) * 2.0**-bits
    return total


def rounded_by_chance(scores: Floats, rng: np.random.Generator) -> Floats:
    """Return parts of test rows' scores as they are told."""
    grid: Floats = np.floor(scores * GRID + rng.random(len(scores))) / GRID
    return grid
