"""One training run of a daemon, in a process of its own: `python -m colonnade.deploy.programs.worker SOCKET`.

However long a job makes this party compute, and with any program of its own, the daemon
goes on answering: it only passes the frames of the run on. The process reads this party's rows itself, runs
the very program that a daemon would, and stores the share. Its memory and its time on the processor are
limited by the party's settings, and it yields to the daemon. It ends with the socket to the daemon, and so
never outlives it.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections.abc import Awaitable, Mapping

import msgspec
from threadpoolctl import threadpool_limits

from colonnade.arrays import Digests
from colonnade.deploy.books.opened import Opened
from colonnade.deploy.models.stored_shares import Manifest
from colonnade.deploy.policy.membership import ComparisonRequest, announced
from colonnade.deploy.process.logs import RUN, log_to_stderr
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
    ToWorker,
)
from colonnade.deploy.process.resource_limits import confine
from colonnade.deploy.programs.describing import program_of
from colonnade.deploy.session.prepared import read_rows
from colonnade.deploy.session.session import STRETCHES, TRAIN, RunSession, for_peers
from colonnade.deploy.settings import Settings
from colonnade.deploy.terms.contract import Contract, check_terms
from colonnade.deploy.terms.terms import Proposal
from colonnade.errors import Aborted, Interrupted, JobError, OversizedMessage, PeerUnreachable
from colonnade.messages import Roster
from colonnade.net.clock import RealClock
from colonnade.net.endpoint import Endpoint
from colonnade.net.framing import stream_framing
from colonnade.net.mailbox import OVERHEAD
from colonnade.net.network import Deliver
from colonnade.net.network import Lost as LostCall
from colonnade.net.network import Restored as RestoredCall
from colonnade.net.recorder import Recorder
from colonnade.net.stream.channel import LATER
from colonnade.net.stream.run_wires import WEIGHED_EVERY
from colonnade.run.party import Party, first_cause


class PipeWire:
    """The wire of one stretch of the run: its frames pass through the daemon."""

    lossless = False
    intact = True
    retry_after: float | None = None

    def __init__(self, pipe: Pipe[ToWorker], stretch: int) -> None:
        self._pipe, self._stretch = pipe, stretch
        self.closed = False

    def framing(self, size: int) -> tuple[int, int]:
        return stream_framing(size)

    def attach(self, deliver: Deliver, lost: LostCall, restored: RestoredCall) -> None:
        self.deliver, self.lost, self.restored = deliver, lost, restored

    def send(self, to: str, frame: bytes) -> Awaitable[None] | None:
        if self.closed:
            return None
        waiting = self._pipe.write(Frame(self._stretch, to, frame))
        return self._pipe.drain() if waiting > 2**20 else None

    def catch_up(self) -> int:
        return LATER

    async def close(self) -> None:
        self.closed = True


class TrainingWorker:
    """The process: what it was told to do, and its end of the socket."""

    def __init__(self, pipe: Pipe[ToWorker], order: Order) -> None:
        self.pipe, self.order = pipe, order
        proposal = msgspec.json.decode(order.terms, type=Proposal)
        if proposal.train is None:
            raise JobError("a process of its own is for training alone")
        self.contract: Contract = check_terms(proposal.train, "job")
        self.wires = [PipeWire(pipe, stretch) for stretch in range(STRETCHES)]
        self.recorder = Recorder(RealClock(), receives=True) if order.timeline else None
        self._verdict: asyncio.Future[None] | None = None
        self._heard = 0  # bytes of the peers since they were weighed

    @property
    def settings(self) -> Settings:
        return self.order.settings

    async def run(self) -> Manifest:
        """Play this party's part in the run; returns the manifest of the share that it stored."""
        nets = tuple(self._endpoint(stretch) for stretch in range(STRETCHES))
        party = Party(self.settings.credentials(), nets, self.order.version, for_peers)
        listening = asyncio.ensure_future(self._listen(nets))
        try:
            async with party:
                own = await asyncio.to_thread(read_rows, self.settings, self.contract)
                order = self.order
                session = RunSession(order.run, self.settings, party, own, order.minimum, self)
                session.recorder, session.aligned = self.recorder, order.aligned
                session.tell = lambda event: self._say(Seen(event))
                session.began = lambda: self._say(LabelsTold())
                program = program_of(self.contract, lambda moment: self._say(ModelMeasured(moment)))
                return await program(session)
        finally:
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)

    def _endpoint(self, stretch: int) -> Endpoint:
        wire, recorder = self.wires[stretch], self.recorder if stretch == TRAIN else None
        terms, limits = self.contract.terms, self.settings.limits
        return Endpoint(
            self.settings.name,
            tuple(sorted(terms.parties)),
            wire if recorder is None else recorder.tap(wire),
            RealClock() if recorder is None else recorder.clock,
            run=self.order.number + stretch,
            deadline=terms.network.deadline_s,
            waiting_limit=int(limits.waiting_mb * 2**20),
        )

    def _say(self, message: msgspec.Struct) -> None:
        self.pipe.write(message)

    async def _listen(self, nets: tuple[Endpoint, ...]) -> None:
        """Take what the daemon passes on, until the run is over; without the daemon there is no run."""
        while (message := await self.pipe.read()) is not None:
            match message:
                case Frame(stretch, peer, data):
                    self.wires[stretch].deliver(peer, data)
                    self._weigh(nets, peer, len(data))
                case Lost(peer, reason):
                    for wire in self.wires:
                        wire.lost(peer, PeerUnreachable(reason))
                case Restored(peer):
                    for wire in self.wires:
                        wire.restored(peer)
                case StopRun(reason, cut):
                    for net in nets:
                        net.fail((Interrupted if cut else Aborted)(reason))
                case MayCompare() | Fault() if self._verdict is not None and not self._verdict.done():
                    if isinstance(message, Fault):
                        self._verdict.set_exception(message.raised())
                    else:
                        self._verdict.set_result(None)
        os._exit(1)  # the daemon is gone, and nobody is left to tell

    def _weigh(self, nets: tuple[Endpoint, ...], peer: str, size: int) -> None:
        """End the run once too much lies unread in all its stretches together."""
        most = int(self.settings.limits.waiting_mb * 2**20)
        self._heard += size + OVERHEAD
        if self._heard <= min(WEIGHED_EVERY, most // 8):
            return
        self._heard, waiting = 0, sum(net.waiting for net in nets)
        if waiting > most:
            error = OversizedMessage(
                f"{peer} sends more than {self.settings.name} asked for: {waiting} bytes lie unread in this "
                f"run, over limits.waiting_mb = {self.settings.limits.waiting_mb:g}"
            )
            for net in nets:
                net.clear(error)

    # -- the daemon's books -------------------------------------------------------------------------

    def commitment(self, ids: Digests) -> bytes:
        """Return what this party announces of its set of ids."""
        return announced(self.settings, ids)

    def found(self, ids: Digests, common: Digests) -> None:
        """Do nothing: what a training finds is counted by sets of ids, before they are compared."""

    async def admit(self, asked: ComparisonRequest, own_ids: int, rosters: Mapping[str, Roster]) -> None:
        """Ask the daemon whether these ids may be compared."""
        self._verdict = asyncio.get_running_loop().create_future()
        self._say(Compare(asked, own_ids, dict(rosters)))
        await self._verdict

    async def book(self, lines: list[Opened]) -> None:
        """Ask the daemon whether the run may tell peers this."""
        self._verdict = asyncio.get_running_loop().create_future()
        self._say(Book(lines))
        await self._verdict


async def _main(fd: int) -> None:
    reader, writer = await asyncio.open_connection(sock=socket.socket(fileno=fd))
    pipe: Pipe[ToWorker] = Pipe(reader, writer, msgspec.msgpack.Decoder(ToWorker))
    order = await pipe.read()
    if not isinstance(order, Order):
        return
    confine(order.settings.limits)
    RUN.set(f"{order.run:08x}")
    end: Done | Fault
    try:
        end = Done(msgspec.json.encode(await TrainingWorker(pipe, order).run()))
    except BaseException as error:
        end = Fault.of(first_cause(error))
    await pipe.bid_farewell(end)


if __name__ == "__main__":
    log_to_stderr()
    with threadpool_limits(1):
        asyncio.run(_main(int(sys.argv[1])))
