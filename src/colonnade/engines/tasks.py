"""What a worker over shared memory is asked to do, and how it does it.

A task names shared arrays by their place and says which shards are this worker's: nothing else is sent. Its
outcome is written where the task says. So a task can be done again by another worker, if the first one died.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import numpy as np

from colonnade.arrays import Numbers
from colonnade.engines.shared import Place
from colonnade.models.linear import SHARD


class Gather(msgspec.Struct, frozen=True, tag="gather"):
    """Copy rows of the source, in an order, into their shards."""

    source: Place
    order: Place
    out: Place
    shards: list[int]


class Scores(msgspec.Struct, frozen=True, tag="scores"):
    """X w of the rows from start to end; `out` has a place for each of them."""

    rows: Place
    weights: Place
    out: Place
    start: int
    end: int
    shards: list[int]


class Gradient(msgspec.Struct, frozen=True, tag="gradient"):
    """X' theta of every shard of the rows from start to end; `out` has a place for each shard."""

    rows: Place
    theta: Place
    out: Place
    start: int
    end: int
    shards: list[int]


class Sums(msgspec.Struct, frozen=True, tag="sums"):
    """Words added up by their places, column by column: a histogram of every part of the rows."""

    codes: Place  # [columns, rows]
    starts: Place  # of every column's bins
    rows: Place
    slots: Place  # of every row: where the bins of its group begin
    words: Place
    out: Place  # [parts, bins]
    shards: list[int]


Task = Gather | Scores | Gradient | Sums
Find = Callable[[Place], Numbers]


def perform(task: Task, find: Find) -> None:
    """Do a task; `find` opens a shared array."""
    match task:
        case Gather():
            source, order, out = find(task.source), find(task.order), find(task.out)
            for shard in task.shards:
                part = slice(shard * SHARD, (shard + 1) * SHARD)
                out[part] = source[order[part]]
        case Scores():
            rows, weights, out = find(task.rows), find(task.weights), find(task.out)
            for shard in task.shards:
                first, last = bounds(shard, task.start, task.end)
                np.matmul(rows[first:last], weights, out=out[first - task.start : last - task.start])
        case Gradient():
            rows, theta, out = find(task.rows), find(task.theta), find(task.out)
            for shard in task.shards:
                first, last = bounds(shard, task.start, task.end)
                along = theta[first - task.start : last - task.start]
                out[shard - task.start // SHARD] = rows[first:last].T @ along
        case Sums():
            _add_up(task, find)


def bounds(shard: int, start: int, end: int) -> tuple[int, int]:
    """Return the rows of a shard that lie between start and end."""
    return max(start, shard * SHARD), min(end, (shard + 1) * SHARD)


def shards_of(start: int, end: int) -> range:
    """Return the shards that the rows from start to end lie in."""
    return range(start // SHARD, -(-end // SHARD))


def _add_up(task: Sums, find: Find) -> None:
    from colonnade.trees.histogram import add_columns

    rows, slots, words, out = (find(place) for place in (task.rows, task.slots, task.words, task.out))
    for shard in task.shards:
        part = slice(len(rows) * shard // len(out), len(rows) * (shard + 1) // len(out))
        out[shard] = add_columns(
            find(task.codes), find(task.starts), rows[part], slots[part], words[part], out.shape[1]
        )
