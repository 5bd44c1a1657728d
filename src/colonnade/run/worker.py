"""One party as a process of its own: `python -m colonnade.run.worker FOLDER`.

The folder holds the party's plan, its own columns, its key and the certificates of its peers. The process
joins the others over mutual TLS, trains, and leaves its share (or its error) in the folder. It ends when its
standard input closes, so that no party outlives whoever started it.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from colonnade.data import store
from colonnade.errors import Aborted, ColonnadeError
from colonnade.job.plan import Plan
from colonnade.net.clock import RealClock
from colonnade.net.endpoint import Endpoint
from colonnade.net.recorder import Recorder, recorded
from colonnade.net.stream.certificates import Credentials
from colonnade.net.stream.wire import network_wire
from colonnade.result import Moment
from colonnade.run.party import Party, Share, Work, train
from colonnade.run.registry import CONVERSATIONS

TEST_SCORES = "test_scores.npy"


class Instructions(msgspec.Struct, frozen=True, kw_only=True):
    """What a party's process is told; the plan is read once its conversation is known."""

    party: str
    conversation: str
    plan: msgspec.Raw
    run: int
    addresses: dict[str, tuple[str, int]]
    target_loss: float | None
    timeline: bool = False

    def read_plan(self) -> Plan[Any]:
        """The plan, with the settings of its conversation."""
        settings = CONVERSATIONS[self.conversation].settings
        plan: Plan[Any] = msgspec.json.decode(self.plan, type=Plan[settings])  # type: ignore[valid-type]
        return plan


def main(folder: Path) -> int:
    """Take part in the run that the folder describes; returns the process's exit code."""
    try:
        share = asyncio.run(_serve(folder))
    except ColonnadeError as error:
        plain = {"error": type(error).__name__, "text": str(error)}
        _leave(folder / "error.json", json.dumps(plain).encode())
        print(f"colonnade: {error}", file=sys.stderr)
        return error.exit_code
    np.savez(folder / "weights.npz", **share.weights)
    if share.test_scores is not None:
        np.save(folder / TEST_SCORES, share.test_scores, allow_pickle=False)
    _leave(folder / "share.json", msgspec.json.encode(share.counts()))
    return 0


def read_share(folder: Path) -> Share:
    """The share that a party's process left in its folder."""
    share = msgspec.json.decode((folder / "share.json").read_bytes(), type=Share)
    with np.load(folder / "weights.npz", allow_pickle=False) as stored:
        share.weights = {name: stored[name] for name in stored.files}
    if (folder / TEST_SCORES).exists():
        share.test_scores = np.load(folder / TEST_SCORES, allow_pickle=False)
    return share


async def _serve(folder: Path) -> Share:
    """Join the others, train, and return this party's share."""
    told = msgspec.json.decode((folder / "instructions.json").read_bytes(), type=Instructions)
    me, parties, plan = told.party, tuple(told.addresses), told.read_plan()
    network = plan.network
    pause = network.work_ms / 1e3 / plan.speeds[me]
    credentials = Credentials.load(folder / "certificates", me, [party for party in parties if party != me])
    prepared = store.load(folder / "data").prepare()
    wire = network_wire(network.transport, me, told.addresses, credentials, network.deadline_s)
    clock = RealClock(pause)
    recorder = Recorder(clock) if told.timeline else None
    tapped = wire if recorder is None else recorder.tap(wire)
    net = Endpoint(me, parties, tapped, clock, run=told.run, deadline=network.deadline_s)
    work = Work(plan, prepared.train, prepared.test, told.target_loss, progress=_report)
    orphaned = asyncio.ensure_future(_parent_gone(net))
    try:
        async with Party(credentials, (net,)) as party:
            await wire.start()
            clock.restart()  # waiting for the others to start is not training
            began = time.process_time()
            share = await recorded(recorder, train(party, work, net))
            if recorder is not None:
                share.timeline = recorder.finish(share.seconds)
            share.cpu_seconds = time.process_time() - began
            share.peak_memory_mb = _peak_memory_mb()
            share.preparation = prepared.plain()
            return share
    finally:
        orphaned.cancel()


async def _parent_gone(endpoint: Endpoint) -> None:
    """Wait until the process that started this one is gone, then end the run."""
    reader = asyncio.StreamReader()
    protocol = asyncio.StreamReaderProtocol(reader)
    await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, sys.stdin)
    while await reader.read(4096):
        pass
    endpoint.fail(Aborted("whoever started this party is gone"))


def _peak_memory_mb() -> float | None:
    """The most memory this process has used; not from rusage, whose count begins with the parent's."""
    status = Path("/proc/self/status")
    if not status.exists():
        return None
    lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
    return int(lines["VmHWM"].split()[0]) / 1024


def _report(moment: Moment) -> None:
    print(msgspec.json.encode(moment).decode(), flush=True)


def _leave(path: Path, content: bytes) -> None:
    """Write a file whole or not at all."""
    draft = path.with_suffix(".part")
    draft.write_bytes(content)
    draft.replace(path)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
