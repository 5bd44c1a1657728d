"""Outputs of many rows: computed a stretch at a time, and sent in several messages if they are many."""

from __future__ import annotations

import numpy as np

from colonnade.arrays import Matrix, Numbers
from colonnade.compress.protocol import Compressor
from colonnade.compress.rows import Each
from colonnade.messages import TOPIC_SHIFT, Embeddings, tag_of, topic_of
from colonnade.models.blackbox import Model
from colonnade.net.expect import PACKED, finite, said_by
from colonnade.net.network import Network

STRETCH = 2**18  # numbers of a message, where outputs of many rows travel
TAKEN = 2**20  # numbers of the rows whose outputs are computed at once: enough to keep a GPU busy


def outputs_of(model: Model, w: Numbers, X: Matrix, precision: str) -> Numbers:
    """Return the outputs [rows, outputs] of a model, computed a stretch of rows at a time."""
    size = max(1, TAKEN // int(X.shape[1]))
    stretches = range(0, int(X.shape[0]), size)
    parts = [model.forward(w[None], X[start : start + size])[0] for start in stretches]
    return np.concatenate(parts).astype(precision, copy=False)


async def send_rows(
    net: Network, to: str, compressor: Compressor, tag: int, table: int, outputs: Numbers
) -> Numbers:
    """Send all rows of an array, in several messages if it is large; returns them as they arrive."""
    each, arrived = Each(compressor), np.empty_like(outputs)
    for part, rows in enumerate(stretches(outputs.shape)):
        stretch = each.pack(np.arange(0), outputs[rows])
        await net.send(to, Embeddings(_stretch_tag(tag, table, part), stretch))
        arrived[rows] = compressor.decode(stretch, outputs[rows].shape)
    return arrived


async def receive_rows(
    net: Network, sender: str, compressor: Compressor, tag: int, table: int, shape: tuple[int, int]
) -> Numbers:
    """Receive an array of this shape that the sender sends with `send_rows`."""
    found = np.empty(shape, dtype=np.float64)
    for part, rows in enumerate(stretches(shape)):
        message = await net.recv(Embeddings, sender, _stretch_tag(tag, table, part), outputs=PACKED)
        with said_by(sender):
            found[rows] = finite(compressor.decode(message.outputs, found[rows].shape))
    return found


def stretches(shape: tuple[int, ...]) -> list[slice]:
    """Cut an array's rows into stretches that fit a message."""
    rows = max(1, STRETCH // shape[1])
    return [slice(start, min(start + rows, shape[0])) for start in range(0, shape[0], rows)]


def _stretch_tag(tag: int, table: int, part: int) -> int:
    """Return the tag of one stretch of an array; it has the topic of `tag`."""
    number = tag & (1 << TOPIC_SHIFT) - 1
    return tag_of(topic_of(tag), (number << 1 | table) << 16 | part)
