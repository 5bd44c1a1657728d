"""Frames between the ranks of one MPI program, as the papers ran it: for ranks that trust each other.

MPI delivers every message whole and in order, and encrypts nothing. It has no event that a loop could wait
for, so the wire asks again and again: without a pause while frames come, with one when none has come for a
while. In the end all ranks leave together, and each takes what is still under way until then.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from colonnade.errors import JobError
from colonnade.net.network import Deliver, Lost, Restored

if TYPE_CHECKING:
    from mpi4py.MPI import Comm, Request

FRAME, WORK, OUTCOME = 1, 2, 3  # tags: of frames, and of what the first rank hands out and gets back
EAGER = 200  # how often to ask before a pause: about two milliseconds
PAUSE_S = 0.001


def ranks() -> Comm:
    """Return all ranks of this program; JobError if there is no MPI here."""
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        raise JobError(
            f"world = 'mpi': needs mpi4py and an MPI library ({error}); pip install 'colonnade[mpi]'"
        ) from None
    return MPI.COMM_WORLD


def arrived(comm: Comm, tag: int, source: int | None = None) -> tuple[int, bytes] | None:
    """Return the next message with this tag and the rank that sent it, if one has come."""
    from mpi4py import MPI

    status = MPI.Status()
    message = comm.Improbe(MPI.ANY_SOURCE if source is None else source, tag, status)
    if message is None:
        return None
    room = bytearray(status.Get_count(MPI.BYTE))
    message.Recv([room, MPI.BYTE])
    return status.Get_source(), bytes(room)


class MpiWire:
    """A `Wire` from this rank to the others; `places` says which rank plays which party."""

    lossless = True
    intact = True
    retry_after: float | None = None

    def __init__(self, comm: Comm, places: Mapping[str, int]) -> None:
        self._comm = comm
        self._places = dict(places)
        self._names = {rank: party for party, rank in places.items()}
        self._sent: list[tuple[Request, bytes]] = []  # MPI reads the bytes until it says that it is done
        self._closing = False
        self._polling: asyncio.Task[None] | None = None
        self._deliver: Deliver = _nobody

    def framing(self, size: int) -> tuple[int, int]:
        return 0, 0  # an envelope of MPI's own is not known here

    def attach(self, deliver: Deliver, lost: Lost, restored: Restored) -> None:
        self._deliver = deliver
        self._polling = asyncio.get_running_loop().create_task(self._poll())

    def catch_up(self) -> int:
        return 2

    def send(self, to: str, frame: bytes) -> None:
        from mpi4py import MPI

        request = self._comm.Isend([frame, MPI.BYTE], self._places[to], FRAME)
        self._sent.append((request, frame))

    async def _poll(self) -> None:
        idle = 0
        while not self._closing:
            idle = 0 if self._progress() else idle + 1
            if idle < EAGER:
                os.sched_yield()
                await asyncio.sleep(0)
            else:
                await asyncio.sleep(PAUSE_S)

    def _progress(self) -> bool:
        """Deliver what has come, forget what is sent; whether anything had come."""
        came = False
        while (found := arrived(self._comm, FRAME)) is not None:
            source, frame = found
            self._deliver(self._names[source], frame)
            came = True
        self._sent = [(request, frame) for request, frame in self._sent if not request.Test()]
        return came

    async def close(self) -> None:
        """Deliver nothing any more; what still comes is taken in `leave`."""
        if self._polling is not None:
            self._closing = True
            await self._polling
        self._deliver = _nobody

    def leave(self, seconds: float) -> bool:
        """Wait until all ranks leave, and take what is still under way; whether they did in time."""
        everybody = self._comm.Ibarrier()
        until = time.monotonic() + seconds
        while not everybody.Test() or self._sent:
            self._progress()
            if time.monotonic() > until:
                return False
            time.sleep(PAUSE_S)
        return True


def _nobody(sender: str, frame: bytes) -> None:
    """Take a frame that nobody waits for."""
