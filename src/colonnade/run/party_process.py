"""One party as a process of its own: `python -m colonnade.run.party_process FOLDER`.

The folder holds the party's plan, its own columns, its key and the certificates of its peers. The process
joins the others over mutual TLS, trains, and leaves its share (or its error) in the folder. It ends when its
standard input closes, so that no party outlives the process that started it.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import msgspec
import numpy as np

from colonnade.data.split import store
from colonnade.disk import drafted, on_disk
from colonnade.errors import Aborted, ColonnadeError, DataError
from colonnade.job import MEMORY, EngineTerms, Net
from colonnade.job.plan import Plan
from colonnade.net.clock import RealClock, loop_at
from colonnade.net.endpoint import Endpoint
from colonnade.net.recorder import Recorder, recorded
from colonnade.net.stream.certificates import Credentials
from colonnade.net.stream.wire import network_wire
from colonnade.result import Moment
from colonnade.run.coalitions import train
from colonnade.run.party import Kept, Party, Progress, Share, Work
from colonnade.run.registry import CONVERSATIONS
from colonnade.run.world import CHECKPOINTS

TEST_SCORES = "test_scores.npy"
START = "start.npy"  # weights to begin with


class PartyInstructions(msgspec.Struct, frozen=True, kw_only=True):
    """What every party's process is told: who it is, which run this is, where the parties listen."""

    party: str
    run: int
    addresses: dict[str, tuple[str, int]]


class Instructions(PartyInstructions, frozen=True, kw_only=True):
    """What a process that trains is told; the plan is read once its conversation is known."""

    conversation: str
    plan: msgspec.Raw
    target_loss: float | None
    timeline: bool = False
    resume: bool = False
    memory: int = MEMORY
    engine: EngineTerms = EngineTerms()

    def read_plan(self) -> Plan[Any]:
        """Return the plan, with the settings of its conversation."""
        settings = CONVERSATIONS[self.conversation].settings
        plan: Plan[Any] = msgspec.json.decode(self.plan, type=Plan[settings])  # type: ignore[valid-type]
        return plan


def live(folder: Path, serve: Callable[[Path], Coroutine[Any, Any, None]], speed: float = 1.0) -> int:
    """Run the party whose folder this is; returns an exit code. An error is left there and printed."""
    error = attempt(folder, serve, speed)
    if error is None:
        return 0
    print(f"colonnade: {error}", file=sys.stderr)
    return error.exit_code


def attempt(
    folder: Path, serve: Callable[[Path], Coroutine[Any, Any, None]], speed: float = 1.0
) -> ColonnadeError | None:
    """Run the party whose folder this is; returns its error, if any, which is left in the folder as well.

    A party whose speed is below 1 computes everything so much longer.
    """
    try:
        with asyncio.Runner(loop_factory=partial(loop_at, speed)) as runner:
            runner.run(serve(folder))
    except ColonnadeError as error:
        plain = {"error": type(error).__name__, "text": str(error)}
        with suppress(DataError):  # a disk that is full has no room for that either; it is printed as well
            leave(folder / "error.json", json.dumps(plain).encode())
        return error
    return None


def read_share(folder: Path) -> Share:
    """Return the share that a party's process left in its folder."""
    share = msgspec.json.decode((folder / "share.json").read_bytes(), type=Share)
    with np.load(folder / "weights.npz", allow_pickle=False) as stored:
        share.weights = {name: stored[name] for name in stored.files}
    if (folder / TEST_SCORES).exists():
        share.test_scores = np.load(folder / TEST_SCORES, allow_pickle=False)
    return share


class Connect(Protocol):
    """Connects a party with all others for as long as a block lasts."""

    def __call__(
        self,
        folder: Path,
        told: PartyInstructions,
        network: Net,
        clock: RealClock,
        recorder: Recorder | None = None,
    ) -> AbstractAsyncContextManager[tuple[Party, Endpoint]]: ...


@asynccontextmanager
async def connected(
    folder: Path, told: PartyInstructions, network: Net, clock: RealClock, recorder: Recorder | None = None
) -> AsyncIterator[tuple[Party, Endpoint]]:
    """This party with its lines to all others standing; it ends when the process that started it is gone."""
    me, parties = told.party, tuple(told.addresses)
    credentials = Credentials.load(folder / "certificates", me, [party for party in parties if party != me])
    wire = network_wire(me, told.addresses, credentials, network.deadline_s)
    tapped = wire if recorder is None else recorder.tap(wire)
    net = Endpoint(
        me,
        parties,
        tapped,
        clock,
        run=told.run,
        deadline=network.deadline_s,
        broadcast=network.broadcast,
    )
    orphaned = asyncio.ensure_future(_parent_gone(net))
    try:
        async with Party(credentials, (net,)) as party:
            await wire.start()
            clock.restart()  # waiting for the others to start is not work
            yield party, net
    finally:
        orphaned.cancel()


async def take_part(folder: Path, connect: Connect = connected, progress: Progress | None = None) -> None:
    """Join the others, train, and leave this party's share in the folder."""
    told = msgspec.json.decode((folder / "instructions.json").read_bytes(), type=Instructions)
    plan = told.read_plan()
    clock = RealClock(plan.network.work_ms / 1e3)
    recorder = Recorder(clock) if told.timeline else None
    prepared = store.load(folder / "data").prepare()
    work = Work(
        plan,
        prepared.train,
        prepared.test,
        told.target_loss,
        progress=progress or _report,
        kept=Kept(folder / CHECKPOINTS, told.resume),
        memory=told.memory,
        engine=told.engine,
        start=np.load(folder / START, allow_pickle=False) if (folder / START).exists() else None,
    )
    async with connect(folder, told, plan.network, clock, recorder) as (party, net):
        began = time.process_time()
        share = await recorded(recorder, train(party, work, net))
        if recorder is not None:
            share.timeline = recorder.finish(share.seconds)
        share.cpu_seconds = time.process_time() - began
        share.peak_memory_mb = _peak_memory_mb()
        share.preparation = prepared.plain()
    with on_disk(folder):
        np.savez(folder / "weights.npz", **share.weights)
        if share.test_scores is not None:
            np.save(folder / TEST_SCORES, share.test_scores, allow_pickle=False)
    leave(folder / "share.json", msgspec.json.encode(share.counts()))


async def _parent_gone(endpoint: Endpoint) -> None:
    """Wait until the process that started this one is gone, then end the run."""
    reader = asyncio.StreamReader()
    protocol = asyncio.StreamReaderProtocol(reader)
    await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, sys.stdin)
    while await reader.read(4096):
        pass
    endpoint.fail(Aborted("the process that started this party is gone"))


def _peak_memory_mb() -> float | None:
    """Return the most memory this process has used; not from rusage, whose count begins with the parent's."""
    status = Path("/proc/self/status")
    if not status.exists():
        return None
    lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
    return int(lines["VmHWM"].split()[0]) / 1024


def _report(moment: Moment) -> None:
    print(msgspec.json.encode(moment).decode(), flush=True)


def leave(path: Path, content: bytes) -> None:
    """Write a file whole or not at all."""
    with drafted(path) as draft:
        draft.write_bytes(content)


def speed_of(folder: Path) -> float:
    """Return the speed that the plan gives this party."""
    told = msgspec.json.decode((folder / "instructions.json").read_bytes(), type=Instructions)
    return told.read_plan().speeds[told.party]


def main(folder: Path) -> int:
    """Run the party whose folder this is as this process; returns the exit code."""
    return live(folder, take_part, speed_of(folder))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
