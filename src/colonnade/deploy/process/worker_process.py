"""A training run in a process of its own, as its daemon sees it.

The daemon listens for the run's frames from the moment that it accepts, keeps them until the process is
there, and passes them on in both directions. It answers what the process asks of its books, and hears how the
run ends. A process that ends without a word, over a limit or by a fault, ends the run with an error that says
so.
"""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar, cast

import msgspec

from colonnade.deploy.models.stored_shares import Manifest
from colonnade.deploy.policy.membership import Membership
from colonnade.deploy.process.pipe import (
    Book,
    Compare,
    Done,
    Fault,
    Frame,
    LabelsTold,
    Lost,
    MayCompare,
    ModelMeasured,
    Order,
    Pipe,
    Restored,
    Seen,
    StopRun,
    ToDaemon,
)
from colonnade.deploy.session.session import STRETCHES, RunSession, Tell
from colonnade.errors import Aborted, ColonnadeError, Interrupted, WorkerError, WorkerLost
from colonnade.net.mailbox import OVERHEAD
from colonnade.net.stream.mux import Mux
from colonnade.net.stream.run_wires import RunWire
from colonnade.result import Moment

T = TypeVar("T")
STOPPING_S, CUTTING_S = 10.0, 3.0  # how long a process has to end by itself; it can be killed at any moment


@dataclass
class WorkerSession:
    """One party in one training run, whose program runs in a process of its own."""

    order: Order
    mux: Mux
    parties: tuple[str, ...]
    guard: Membership
    report: Callable[[Moment], None] = lambda moment: None
    tell: Tell = lambda event: None
    told: bool = False
    _process: asyncio.subprocess.Process | None = None
    _pipe: Pipe[ToDaemon] | None = None
    _early: list[msgspec.Struct] = field(default_factory=list)  # what the process is told once it is there
    _stopped: str = ""
    _cut: bool = False  # stopped, and may go on in another session

    def __post_init__(self) -> None:
        self._sent, self._early_bytes, self._full = 0, 0, False
        self._wires = [self._listen(stretch) for stretch in range(STRETCHES)]

    @property
    def run(self) -> int:
        """The number of the run."""
        return self.order.run

    @property
    def number(self) -> int:
        """The number of the session."""
        return self.order.number

    @property
    def peers(self) -> tuple[str, ...]:
        """The other parties of the run."""
        return tuple(party for party in self.parties if party != self.mux.me)

    def _listen(self, stretch: int) -> RunWire:
        wire = self.mux.wire(self.number + stretch, self.parties)

        def lost(peer: str, error: Exception) -> None:
            if stretch == 0:  # the lines are the same for all stretches
                self._pass(Lost(peer, str(error)))

        def restored(peer: str) -> None:
            if stretch == 0:
                self._pass(Restored(peer))

        wire.attach(lambda peer, data: self._pass(Frame(stretch, peer, data)), lost, restored)
        if stretch == 0:  # what is kept is that of all stretches
            wire.weigh(self._kept, self._overrun)
        return wire

    def _kept(self) -> int:
        """Return how many bytes of its peers' messages the process has not taken yet."""
        return self._early_bytes if self._pipe is None else self._pipe.waiting()

    def _overrun(self, error: ColonnadeError) -> None:
        """End the run, since so much is kept that the process will not take it in time."""
        self._full, self._early_bytes = True, 0
        self._early.clear()
        self.stop(str(error))

    def _pass(self, message: msgspec.Struct) -> None:
        """Pass something on to the process."""
        if self._full and isinstance(message, Frame):
            return  # the run is about to end
        if self._pipe is not None:
            self._pipe.write(message)
        else:
            self._early.append(message)
            self._early_bytes += OVERHEAD + (len(message.data) if isinstance(message, Frame) else 0)

    async def play(self, program: Callable[[RunSession], Awaitable[T]]) -> T:
        """Play this party's part in a process, which makes the program by itself, and return its result."""
        if self._stopped:
            await self.shut()
            raise (Interrupted if self._cut else Aborted)(self._stopped)
        try:
            pipe = await self._start()
            return cast(T, await self._serve(pipe))  # a training returns the manifest of its share
        finally:
            await self._end()

    async def _start(self) -> Pipe[ToDaemon]:
        ours, theirs = socket.socketpair()
        with theirs:
            command = [sys.executable, "-m", "colonnade.deploy.programs.worker", str(theirs.fileno())]
            self._process = await asyncio.create_subprocess_exec(
                *command, pass_fds=(theirs.fileno(),), stdin=asyncio.subprocess.DEVNULL
            )
        reader, writer = await asyncio.open_connection(sock=ours)
        pipe: Pipe[ToDaemon] = Pipe(reader, writer, msgspec.msgpack.Decoder(ToDaemon))
        pipe.write(self.order)
        for message in self._early:
            pipe.write(message)
        self._early.clear()
        self._pipe = pipe
        return pipe

    async def _serve(self, pipe: Pipe[ToDaemon]) -> Manifest:
        """Do what the process asks for until it says how the run ended."""
        while (message := await pipe.read()) is not None:
            match message:
                case Frame(stretch, peer, data):
                    self._sent += len(data) + sum(self._wires[stretch].framing(len(data)))
                    room = self._wires[stretch].send(peer, data)
                    if room is not None:
                        await room
                case Compare(asked, own_ids, rosters):
                    try:
                        await self.guard.admit(asked, own_ids, rosters)
                        pipe.write(MayCompare())
                    except ColonnadeError as refusal:
                        pipe.write(Fault.of(refusal))
                case Book(lines):
                    try:
                        await self.guard.book(lines)
                        pipe.write(MayCompare())
                    except ColonnadeError as refusal:
                        pipe.write(Fault.of(refusal))
                case Seen(event):
                    self.tell(event)
                case ModelMeasured(moment):
                    self.report(moment)
                case LabelsTold():
                    self.told = True
                case Done(manifest):
                    return msgspec.json.decode(manifest, type=Manifest)
                case Fault("MemoryError"):
                    raise WorkerError(
                        f"the process of run {self.run:08x} has no memory left; {self._limits()}"
                    )
                case Fault() if message.foreign:
                    # where memory is short anything may fail, under any name: also the parser of an import
                    raise WorkerError(f"{message.raised()}; {self._limits()}")
                case Fault():
                    raise message.raised()
        raise await self._last_words()

    async def _last_words(self) -> ColonnadeError:
        """Return why a process that said nothing has ended."""
        if self._cut:
            return Interrupted(self._stopped)
        if self._stopped:
            return WorkerError(f"{self._stopped}; the process of the run had to be ended")
        status = await self._process.wait() if self._process is not None else 0
        why = f"signal {-status}" if status < 0 else f"status {status}"
        killed = status < 0 and -status != signal.SIGXCPU
        return (WorkerLost if killed else WorkerError)(
            f"the process of run {self.run:08x} ended with {why}; {self._limits()}"
        )

    def _limits(self) -> str:
        """Return what the process may use, in words."""
        limits = self.order.settings.limits
        return (
            f"its limits are limits.run_memory_mb = {limits.run_memory_mb:g} and limits.run_cpu_s = "
            f"{limits.run_cpu_s:g}"
        )

    async def _end(self) -> None:
        """See that the process is gone, and listen no more."""
        if self._pipe is not None:
            await self._pipe.close()
        if self._process is not None:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._process.wait(), STOPPING_S)
            if self._process.returncode is None:
                self._process.kill()
                await self._process.wait()
        await self.shut()

    async def shut(self) -> None:
        """Listen no more."""
        for wire in self._wires:
            await wire.close()

    def stop(self, reason: str) -> None:
        """End the run at this party, which ends it at all others too."""
        self._stop(reason, STOPPING_S)

    def cut(self, reason: str) -> None:
        """End the session, which ends it at all others too; the run may go on in another."""
        self._cut = self._cut or not self._stopped
        self._stop(reason, CUTTING_S)

    def _stop(self, reason: str, seconds: float) -> None:
        """Ask the process to end, and end it if it has not in this many seconds."""
        self._stopped = self._stopped or reason
        if self._pipe is not None:
            self._pipe.write(StopRun(reason, self._cut))
        if self._process is not None:
            asyncio.get_running_loop().call_later(seconds, partial(_kill, self._process))

    def go_on(self, *, aligned: bool) -> None:
        """Begin with the common rows of an earlier session, where all parties have them."""
        self.order = msgspec.structs.replace(self.order, aligned=aligned)

    def sent_bytes(self) -> int:
        """Return how many bytes this party has sent in the run, framing included."""
        return self._sent


def _kill(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        process.kill()
