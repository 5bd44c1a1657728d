"""The verbs of a blind run over all rows of a table, some thousand at a time."""

from __future__ import annotations

import numpy as np

from colonnade.arrays import Rows, Words
from colonnade.conversations.blind.products import BlindProducts
from colonnade.conversations.context import Measuring

CHUNK = 8192  # rows of one exchange


async def all_scores(
    products: BlindProducts, table: str, vectors: slice, measuring: Measuring | None = None
) -> Words | None:
    """Return the words of all rows' scores, [vectors, rows], at the label holder."""
    found = []
    for rows in _chunks(products.sizes[table]):
        lot = await products.open(table, [rows], scored=vectors.stop - vectors.start, added=0)
        found.append(await products.scores(lot, 0, vectors, measuring))
    whole = [each for each in found if each is not None]
    return np.concatenate(whole, axis=1) if whole else None


async def add_all(products: BlindProducts, vectors: slice, t: Words | None) -> None:
    """Add to vectors what coefficients of all training rows, [vectors, rows], give."""
    for rows in _chunks(products.sizes["train"]):
        lot = await products.open("train", [rows], scored=0, added=vectors.stop - vectors.start)
        part = None if t is None else np.ascontiguousarray(t[:, rows[0] : rows[-1] + 1])
        await products.add(lot, 0, vectors, part)


def _chunks(rows: int) -> list[Rows]:
    return [np.arange(start, min(start + CHUNK, rows)) for start in range(0, rows, CHUNK)]
