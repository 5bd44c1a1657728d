"""Workers without shared memory: each holds some shards of the rows, and computes on what it holds.

Shards are dealt out in turn. A range of rows is asked of those who hold its shards: weights, or their part of
theta, go out, scores or a gradient for each shard come back, and the party adds gradients in the order of the
shards. How messages travel is a `WorkerGroup`'s business: MPI's, or Ray's.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Literal, Protocol, TypeAlias

import numpy as np

from colonnade.arrays import Floats, Matrix, Numbers, Rows, Words
from colonnade.engines.tasks import bounds, shards_of
from colonnade.models.linear import SHARD, DenseRows, RowKernels, rows_of
from colonnade.trees.bins import Codes
from colonnade.trees.histogram import Places, add_columns

Shards: TypeAlias = dict[int, Numbers]
Verb = Literal["hold", "forget", "scores", "gradient"]
AT_ONCE = 64  # shards that are sent to a worker together


class ShardHolder:
    """What a worker does: it holds shards of rows, by the number of the table that they are of."""

    def __init__(self) -> None:
        self._held: dict[int, Shards] = {}

    def hold(self, table: int, shards: Shards) -> Shards:
        """Take some more shards."""
        self._held.setdefault(table, {}).update(shards)
        return {}

    def forget(self, table: int) -> Shards:
        """Drop a table, which nobody needs any more."""
        self._held.pop(table, None)
        return {}

    def scores(self, table: int, start: int, end: int, w: Floats) -> Shards:
        """Return X w of the rows from start to end that are held here."""
        return {shard: rows @ w for shard, rows in self._between(table, start, end)}

    def gradient(self, table: int, start: int, end: int, theta: Shards) -> Shards:
        """Return X' theta of every shard that is held here."""
        return {shard: rows.T @ theta[shard] for shard, rows in self._between(table, start, end)}

    def _between(self, table: int, start: int, end: int) -> list[tuple[int, Numbers]]:
        held, found = self._held[table], []
        for shard in shards_of(start, end):
            if shard in held:
                first, last = bounds(shard, start, end)
                found.append((shard, held[shard][first - shard * SHARD : last - shard * SHARD]))
        return found


class WorkerGroup(Protocol):
    """Workers, each a `ShardHolder`, and how to speak to them."""

    @property
    def size(self) -> int:
        """How many there are."""
        ...

    def ask(self, verb: Verb, arguments: Mapping[int, tuple[object, ...]]) -> Shards:
        """Ask some workers, each with its own arguments, and put together what they answer."""
        ...

    def close(self) -> None:
        """End all workers."""
        ...


class Remote:
    """The engine of a group of workers."""

    def __init__(self, workers: WorkerGroup) -> None:
        self.workers = workers
        self._numbers = itertools.count()

    def rows(self, X: Matrix, order: Rows | None = None) -> RowKernels:
        if not isinstance(X, np.ndarray) or len(shards_of(0, len(X) if order is None else len(order))) < 2:
            return rows_of(X, order)
        return RemoteRows(self.workers, next(self._numbers), X, order)

    def sums(self, codes: Codes, starts: Places, rows: Rows, slot: Places, words: Words, bins: int) -> Words:
        # here: sending words and places takes as long as adding them
        return add_columns(codes, starts, rows, slot, words, bins)

    def close(self) -> None:
        self.workers.close()


class RemoteRows:
    """`RowKernels` of rows that workers hold; what is one shard is computed here."""

    def __init__(self, workers: WorkerGroup, table: int, X: Floats, order: Rows | None) -> None:
        self._workers, self._table, self._X, self._order = workers, table, X, order
        shards = shards_of(0, len(X) if order is None else len(order))
        for first in range(0, len(shards), AT_ONCE * workers.size):
            parts = self._dealt(shards[first : first + AT_ONCE * workers.size])
            held = {
                worker: {s: self._rows(s * SHARD, (s + 1) * SHARD) for s in mine} for worker, mine in parts
            }
            workers.ask("hold", {worker: (table, part) for worker, part in held.items()})

    def scores(self, start: int, end: int, w: Floats) -> Floats:
        shards = shards_of(start, end)
        if len(shards) < 2:
            return DenseRows(self._rows(start, end)).scores(0, end - start, w)
        asked = {worker: (self._table, start, end, w) for worker, _ in self._dealt(shards)}
        found = self._workers.ask("scores", asked)
        return np.concatenate([found[shard] for shard in shards])

    def gradient(self, start: int, end: int, theta: Floats) -> Floats:
        shards = shards_of(start, end)
        if len(shards) < 2:
            return DenseRows(self._rows(start, end)).gradient(0, end - start, theta)
        asked = {}
        for worker, mine in self._dealt(shards):
            ends = {shard: bounds(shard, start, end) for shard in mine}
            part = {shard: theta[first - start : last - start] for shard, (first, last) in ends.items()}
            asked[worker] = (self._table, start, end, part)
        found = self._workers.ask("gradient", asked)
        total: Floats = found[shards[0]].copy()
        for shard in shards[1:]:  # in their order, as one process adds them
            total += found[shard]
        return total

    def values(self, start: int, end: int) -> int:
        return (end - start) * int(self._X.shape[1])

    def _rows(self, start: int, end: int) -> Floats:
        """Return rows in their order, from here."""
        return self._X[start:end] if self._order is None else self._X[self._order[start:end]]

    def _dealt(self, shards: Sequence[int]) -> list[tuple[int, list[int]]]:
        """Return the workers that hold some of these shards, and which."""
        parts = [
            (worker, [s for s in shards if s % self._workers.size == worker])
            for worker in range(self._workers.size)
        ]
        return [(worker, mine) for worker, mine in parts if mine]

    def __del__(self) -> None:
        self._workers.ask("forget", dict.fromkeys(range(self._workers.size), (self._table,)))
