"""Workers on this machine, over shared memory.

Every worker is a process of its own, with one thread for its products. Rows, weights, thetas and outcomes lie
in shared memory; what goes through a pipe is a task, a few hundred bytes, and a byte when it is done. A
worker that dies is replaced, and its task done again; where all die on it, that is an error which says how.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress

import msgspec
import numpy as np

from colonnade.arrays import Floats, Matrix, Numbers, Rows, Words
from colonnade.engines.shared import Place, SharedArrays
from colonnade.engines.tasks import Gather, Gradient, Scores, Sums, Task, shards_of
from colonnade.engines.worker import DONE, LENGTH
from colonnade.errors import EngineError
from colonnade.models.linear import DenseRows, RowKernels, rows_of
from colonnade.trees.bins import Codes
from colonnade.trees.histogram import Places, add_columns

log = logging.getLogger("colonnade.engine")

SOURCES = 4  # tables of columns that stay shared
WORTHWHILE = 2**18  # cells of a histogram that are worth a worker
TRIES = 3  # workers that may die on one task before it is given up


class Processes:
    """The engine of some worker processes; they start with the first work there is for them."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._arrays = SharedArrays()
        self._crew: list[subprocess.Popen[bytes]] = []
        self._encoder = msgspec.msgpack.Encoder()
        self._sources: dict[int, tuple[Numbers, Place]] = {}
        self._buffers: dict[str, tuple[Place, Numbers]] = {}

    def rows(self, X: Matrix, order: Rows | None = None) -> RowKernels:
        if not isinstance(X, np.ndarray):
            return rows_of(X, order)
        source = self._source(X)
        if order is None:
            return SharedRows(self, source, X)
        out, rows = self._arrays.make((len(order), X.shape[1]), X.dtype)
        where = self.buffer("order", order)
        self.share(list(shards_of(0, len(order))), lambda shards: Gather(source, where, out, shards))
        return SharedRows(self, out, rows, self._arrays.drop)

    def sums(self, codes: Codes, starts: Places, rows: Rows, slot: Places, words: Words, bins: int) -> Words:
        parts = min(self.workers, len(rows) * len(codes) // WORTHWHILE)
        if parts < 2:
            return add_columns(codes, starts, rows, slot, words, bins)
        given: dict[str, Numbers] = {"starts": starts, "rows": rows, "slots": slot, "words": words}
        places = {name: self.buffer(name, values) for name, values in given.items()}
        out, found = self.allocate("sums", (parts, bins), np.uint64)
        source = self._source(codes)
        self.share(range(parts), lambda mine: Sums(source, **places, out=out, shards=mine))
        total: Words = found.sum(axis=0, dtype=np.uint64)  # exact, in any order
        return total

    def buffer(self, name: str, values: Numbers) -> Place:
        """Return where workers read these values until the next of this name."""
        place, array = self.allocate(name, values.shape, values.dtype)
        array[...] = values
        return place

    def allocate(
        self, name: str, shape: tuple[int, ...], dtype: object = np.float64
    ) -> tuple[Place, Numbers]:
        """Return shared memory of this shape for a purpose: the same as before, where that fits."""
        known = self._buffers.get(name)
        if known is None or known[0].shape != shape or known[0].dtype != np.dtype(dtype).str:  # type: ignore[call-overload]
            if known is not None:
                self._arrays.drop(known[0])
            known = self._buffers[name] = self._arrays.make(shape, dtype)
        return known

    def share(self, shards: Sequence[int], task: Callable[[list[int]], Task]) -> None:
        """Let all workers do their part of some shards; returns when all are done."""
        parts = [part.tolist() for part in np.array_split(np.asarray(shards), self.workers)]
        tasks = [self._encoder.encode(task(part)) for part in parts if part]
        self._start()
        for number, each in enumerate(tasks):
            self._hand(number, each)
        for number, each in enumerate(tasks):
            self._await(number, each)

    def close(self) -> None:
        for worker in self._crew:
            _hang_up(worker)
        for worker in self._crew:
            worker.wait()
        self._crew.clear()
        self._arrays.close()

    def _source(self, X: Numbers) -> Place:
        """Return where columns lie that are computed on; those used last stay shared."""
        known = self._sources.get(id(X))
        if known is None:
            known = self._sources[id(X)] = (X, self._arrays.put(X))
            if len(self._sources) > SOURCES:
                self._arrays.drop(self._sources.pop(next(iter(self._sources)))[1])
        return known[1]

    def _start(self) -> None:
        while len(self._crew) < self.workers:
            self._crew.append(_worker())

    def _hand(self, number: int, task: bytes) -> None:
        pipe = self._crew[number].stdin
        with suppress(BrokenPipeError):  # it is found dead when its answer is awaited
            if pipe is not None:
                pipe.write(len(task).to_bytes(LENGTH, "little") + task)
                pipe.flush()

    def _await(self, number: int, task: bytes) -> None:
        """Wait until a worker has done its task; a dead one is replaced, a few times."""
        for _ in range(TRIES):
            pipe = self._crew[number].stdout
            if pipe is not None and pipe.read(1) == DONE:
                return
            _hang_up(self._crew[number])
            status = self._crew[number].wait()
            log.warning("worker %d ended with status %d; another one does its task again", number, status)
            self._crew[number] = _worker()
            self._hand(number, task)
        raise EngineError(
            f"engine.kind = 'processes': worker {number} ended {TRIES} times with the same task, last with "
            f"status {status}; look for what ends it (memory?), or use engine.kind = 'inline'"
        )


class SharedRows:
    """`RowKernels` of rows that lie in shared memory; what is one shard is computed here."""

    def __init__(
        self,
        engine: Processes,
        place: Place,
        rows: Floats,
        drop: Callable[[Place], None] = lambda place: None,
    ) -> None:
        self._engine, self._place, self._drop = engine, place, drop
        self._here = DenseRows(rows)
        self._shape = rows.shape

    def scores(self, start: int, end: int, w: Floats) -> Floats:
        shards = shards_of(start, end)
        if len(shards) < 2:
            return self._here.scores(start, end, w)
        weights = self._engine.buffer("weights", w)
        out, scores = self._engine.allocate("scores", (end - start, *w.shape[1:]))
        self._engine.share(shards, lambda mine: Scores(self._place, weights, out, start, end, mine))
        return np.array(scores)

    def gradient(self, start: int, end: int, theta: Floats) -> Floats:
        shards = shards_of(start, end)
        if len(shards) < 2:
            return self._here.gradient(start, end, theta)
        given, base = self._engine.buffer("theta", theta), shards[0]
        shape = (len(shards), self._shape[1], *theta.shape[1:])
        out, parts = self._engine.allocate("gradients", shape)
        self._engine.share(shards, lambda mine: Gradient(self._place, given, out, start, end, mine))
        total = np.array(parts[0])
        for shard in shards[1:]:  # in their order, as one process adds them
            total += parts[shard - base]
        return total

    def values(self, start: int, end: int) -> int:
        return self._here.values(start, end)

    def __del__(self) -> None:
        self._drop(self._place)


def _hang_up(worker: subprocess.Popen[bytes]) -> None:
    """Close the lines to a worker, which ends it; a dead one has broken them already."""
    for pipe in (worker.stdin, worker.stdout):
        if pipe is not None:
            with suppress(BrokenPipeError):
                pipe.close()


def _worker() -> subprocess.Popen[bytes]:
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        [sys.executable, "-m", "colonnade.engines.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
    )
