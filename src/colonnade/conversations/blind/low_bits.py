"""Weights as their owners are told them: with random low bits.

Exact weights are sums of whole numbers, one for every row, and lattice reduction could solve them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from colonnade.arrays import Words
from colonnade.conversations.blind.columns import own_key
from colonnade.conversations.context import Context
from colonnade.secure.streams import Stream

REVEALED = 20  # bits of a weight that its owner is told


def blurred(context: Context[Any], parts: Iterable[Words], reach: int) -> list[Words]:
    """Return these parts of weights, each word moved by chance, by `reach` at most either way."""
    noise, told = Stream(own_key(context, "blur")), []
    for number, part in enumerate(parts):
        random = noise.words(number, part.size).reshape(part.shape) % np.uint64(2 * reach + 1)
        told.append(part + random - np.uint64(reach))
    return told
