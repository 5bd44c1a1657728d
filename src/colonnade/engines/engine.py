"""An engine computes on a party's rows, here or with workers; only the party itself speaks to other parties.

A block asks three things of its rows: scores, a gradient, a histogram. An engine does them with as many
workers as it has. Rows are cut into shards of `SHARD` rows, wherever they are computed, and the gradients of
shards are added in the order of the shards: so the outcome does not depend on how many workers there are,
and equals that of one process to the last bit. What lies in one shard is not worth a worker, and is computed
here.

    inline      in this process
    processes   workers on this machine, over shared memory (`processes`)
    mpi         ranks that MPI spawns, each with its shards (`mpi`, extra `mpi`)
    ray         actors of a Ray cluster, each with its shards (`ray`, extra `ray`)

Sparse columns are computed inline with any engine: their work is small beside handing it out.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from colonnade.arrays import Matrix, Rows, Words
from colonnade.engines.remote import Remote
from colonnade.job import EngineTerms
from colonnade.models.linear import RowKernels, rows_of
from colonnade.trees.bins import Codes
from colonnade.trees.histogram import Places, add_columns


class Engine(Protocol):
    """Where a party's rows are computed on."""

    def rows(self, X: Matrix, order: Rows | None = None) -> RowKernels:
        """Return the rows of a block, in the given order, ready to be computed on."""
        ...

    def sums(self, codes: Codes, starts: Places, rows: Rows, slot: Places, words: Words, bins: int) -> Words:
        """Return the words of some rows added up by bin, a histogram of all columns (`trees.histogram`)."""
        ...

    def close(self) -> None:
        """End all workers, and give back what they held."""
        ...


class Inline:
    """The engine that is this process."""

    def rows(self, X: Matrix, order: Rows | None = None) -> RowKernels:
        return rows_of(X, order)

    def sums(self, codes: Codes, starts: Places, rows: Rows, slot: Places, words: Words, bins: int) -> Words:
        return add_columns(codes, starts, rows, slot, words, bins)

    def close(self) -> None:
        """Do nothing: there is nobody else."""


INLINE = Inline()


@contextmanager
def engine_of(terms: EngineTerms) -> Iterator[Engine]:
    """The engine that a job or a party asks for; its workers end with the context."""
    engine = _started(terms)
    try:
        yield engine
    finally:
        engine.close()


def _started(terms: EngineTerms) -> Engine:
    workers = terms.workers or os.cpu_count() or 1
    match terms.kind:
        case "inline":
            return INLINE
        case "processes":
            from colonnade.engines.processes import Processes

            return Processes(workers)
        case "mpi":
            from colonnade.engines.mpi import Ranks

            return Remote(Ranks(workers))
        case "ray":
            from colonnade.engines.ray import Actors

            return Remote(Actors(workers))
