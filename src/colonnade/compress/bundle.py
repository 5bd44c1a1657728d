"""Several packed arrays in one message: their bytes, one array after another.

The receiver knows every array's compressor and shape, so nothing is sent to tell them apart.

What each side learns: what it would from the arrays in messages of their own.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from colonnade.arrays import Numbers
from colonnade.compress.protocol import Compressor, Plain, bytes_due

Part = tuple[Compressor, tuple[int, ...]]
"""How an array was packed, and the shape it had."""


def joined(packed: Sequence[Numbers]) -> Numbers:
    """Return the bytes of arrays that are packed already."""
    return np.concatenate([np.ascontiguousarray(each).reshape(-1).view(np.uint8) for each in packed])


def parted(message: Numbers, parts: Sequence[Part]) -> list[Numbers]:
    """Return the arrays of a message that `joined` made; MalformedMessage if it is not of their size."""
    sizes = [compressor.size(shape) for compressor, shape in parts]
    bytes_due(message, sum(sizes), "several arrays")
    found, start = [], 0
    for (compressor, shape), size in zip(parts, sizes, strict=True):
        raw = message[start : start + size]
        packed = compressor.opened(raw, shape) if isinstance(compressor, Plain) else raw
        found.append(compressor.decode(packed, shape))
        start += size
    return found
