"""Workers as MPI ranks that a party spawns: `python -m colonnade.engines.mpi` is one of them.

A party needs no mpirun for it: MPI starts the ranks, where the cluster's own settings say. Messages between a
party and its own ranks are MPI's, of plain arrays and numbers; no other party hears them. A rank that dies
ends the party, as MPI does it: there is no replacing it.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from colonnade.engines.remote import ShardHolder, Shards, Verb
from colonnade.errors import EngineError

if TYPE_CHECKING:
    from mpi4py.MPI import Comm


class Ranks:
    """A `WorkerGroup` of spawned ranks."""

    def __init__(self, workers: int) -> None:
        self._comm = _spawned(workers)
        self.size = workers

    def ask(self, verb: Verb, arguments: Mapping[int, tuple[object, ...]]) -> Shards:
        for rank, each in arguments.items():
            self._comm.send((verb, each), dest=rank)
        found: Shards = {}
        for rank in arguments:
            found |= self._comm.recv(source=rank)
        return found

    def close(self) -> None:
        if self.size:
            for rank in range(self.size):
                self._comm.send(None, dest=rank)
            self.size = 0
            self._comm.Disconnect()


def _spawned(workers: int) -> Comm:
    """Return the line to newly spawned ranks; an error that says what is missing."""
    beside = str(Path(sys.executable).parent)
    if shutil.which("mpiexec") is None:  # MPI starts ranks with it, and a wheel's lies beside the interpreter
        os.environ["PATH"] = f"{beside}{os.pathsep}{os.environ.get('PATH', '')}"
    try:
        from mpi4py import MPI
    except ImportError:
        raise EngineError("engine.kind = 'mpi': needs mpi4py; pip install 'colonnade[mpi]'") from None
    if shutil.which("mpiexec") is None:
        raise EngineError("engine.kind = 'mpi': there is no mpiexec, which starts ranks; install an MPI")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    return MPI.COMM_SELF.Spawn(sys.executable, ["-m", "colonnade.engines.mpi"], maxprocs=workers)


def main() -> None:
    """Answer the party that spawned this rank until it ends."""
    from mpi4py import MPI

    parent, holder = MPI.Comm.Get_parent(), ShardHolder()
    while (asked := parent.recv(source=0)) is not None:
        verb, arguments = asked
        work: Any = getattr(holder, verb)
        parent.send(work(*arguments), dest=0)
    parent.Disconnect()


if __name__ == "__main__":
    main()
