"""One party as a process of its own: `python -m colonnade.run.worker FOLDER`.

The folder holds the party's assignment, its own columns, its key and the certificates of its peers. The
process joins the others over mutual TLS, trains, and leaves its share (or its error) in the folder. It
ends when its standard input closes, so that no party outlives whoever started it.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path

import msgspec
import numpy as np

from colonnade.data.store import load_hand
from colonnade.errors import Aborted, ColonnadeError
from colonnade.job import Job
from colonnade.net.clock import RealClock
from colonnade.net.endpoint import Endpoint
from colonnade.net.stream.certificates import Credentials
from colonnade.net.stream.wire import network_wire
from colonnade.result import Moment
from colonnade.run.party import Assignment, Party, Share


class Post(msgspec.Struct, frozen=True, kw_only=True):
    """What a party's process is told."""

    party: str
    job: Job
    run: int
    active: list[str]
    addresses: dict[str, tuple[str, int]]
    target_loss: float | None


def main(folder: Path) -> int:
    try:
        share = asyncio.run(_serve(folder))
    except ColonnadeError as error:
        plain = {"error": type(error).__name__, "text": str(error)}
        _leave(folder / "error.json", json.dumps(plain).encode())
        print(f"colonnade: {error}", file=sys.stderr)
        return error.exit_code
    np.savez(folder / "weights.npz", **share.weights)
    share.weights = {}
    _leave(folder / "share.json", msgspec.json.encode(share))
    return 0


async def _serve(folder: Path) -> Share:
    post = msgspec.json.decode((folder / "post.json").read_bytes(), type=Post)
    job, me, parties = post.job, post.party, tuple(post.addresses)
    deadline = job.network.deadline_s
    speeds = dict(zip(parties, job.network.speeds or [1.0] * len(parties), strict=True))
    pause = job.network.work_ms / 1e3 / speeds[me]
    credentials = Credentials.load(folder / "certificates", me, [party for party in parties if party != me])
    _, train, test = load_hand(folder / "data").prepare()
    wire = network_wire(job.network.transport, me, post.addresses, credentials, deadline)
    endpoint = Endpoint(me, parties, wire, RealClock(), run=post.run, deadline=deadline)
    assignment = Assignment(job, train, test, tuple(post.active), post.target_loss)
    party = Party(endpoint, credentials, assignment, progress=_report)
    orphaned = asyncio.ensure_future(_parent_gone(endpoint))
    try:
        await wire.start()
        endpoint.clock = RealClock(pause)  # waiting for the others to start is not training
        began = time.process_time()
        share = await party.run()
        share.cpu_seconds = time.process_time() - began
        share.peak_memory_mb = _peak_memory_mb()
        return share
    finally:
        orphaned.cancel()
        await party.close()


async def _parent_gone(endpoint: Endpoint) -> None:
    """Ends the run when the process that started this one is gone."""
    reader = asyncio.StreamReader()
    protocol = asyncio.StreamReaderProtocol(reader)
    await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, sys.stdin)
    while await reader.read(4096):
        pass
    endpoint.fail(Aborted("whoever started this party is gone"))


def _peak_memory_mb() -> float | None:
    """What this program has needed at most; what rusage says begins with the parent's."""
    status = Path("/proc/self/status")
    if not status.exists():
        return None
    lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
    return int(lines["VmHWM"].split()[0]) / 1024


def _report(moment: Moment) -> None:
    print(msgspec.json.encode(moment).decode(), flush=True)


def _leave(path: Path, content: bytes) -> None:
    draft = path.with_suffix(".part")
    draft.write_bytes(content)
    draft.replace(path)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
