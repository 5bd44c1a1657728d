"""The network world on one machine: every party a process with its own folder, key and certificate.

    OUT/parties/NAME/data           the party's own columns, and the label if it holds it
    OUT/parties/NAME/certificates   its key, its certificate, the authority's and its peers' certificates
    OUT/parties/NAME/share.json     its share (weights in weights.npz), or its error in error.json

No process holds another party's columns, and no folder another party's key: the authority that signs for
all of them is gone before the parties start. If one fails, all end, and the first real cause is raised.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import IO, TypeVar

import msgspec
import numpy as np

from colonnade import errors
from colonnade.data.prepare.party_data import PartyData
from colonnade.data.split import store
from colonnade.disk import on_disk
from colonnade.errors import ColonnadeError, DataError, JobError, PeerLost
from colonnade.net.stream.authority import issue, make_authority
from colonnade.net.stream.port import free_ports
from colonnade.result import Moment
from colonnade.run import fork_server
from colonnade.run.fork_server import Running
from colonnade.run.party import Progress, Share
from colonnade.run.party_process import START, Instructions, read_share
from colonnade.run.world import CHECKPOINTS, PARTIES, Launch, run_id

# how long the others may take to end once they have noticed that one has failed, which takes up to the job's
# own deadline; who is still connecting then, and cannot notice, is ended
NOTICE_S = 5.0
GRACE_S = 10.0
KILLED_S = 1.0  # and where one was killed: nobody tells them, and no more can come of it

Addresses = dict[str, tuple[str, int]]
T = TypeVar("T")


def run_processes(order: Launch) -> dict[str, Share]:
    """Run every party as a process on this machine; returns their shares."""
    with ExitStack() as stack:
        out = order.out or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="colonnade-")))
        with tempfile.TemporaryDirectory(prefix="colonnade-authority-") as authority:
            folders = lay_out(order, out, Path(authority))
        parties = {party: start(folder) for party, folder in folders.items()}
        relays = stack.enter_context(ExitStack())
        stack.callback(
            stop_all, list(parties.values())
        )  # before their relays are waited for, which end with them
        for party, process in parties.items():
            if process.stdout is not None:  # started with a pipe
                arguments = (process.stdout, order.progress)
                relay = threading.Thread(target=_relay, args=arguments, name=f"progress-{party}")
                relay.start()
                relays.callback(relay.join)
        wait(parties, order.plan.network.deadline_s + NOTICE_S)
        return collect(folders, parties, read_share)


def lay_out(order: Launch, out: Path, authority: Path) -> dict[str, Path]:
    """Write every party's folder, in place of those of an earlier run; `authority` issues certificates."""
    if order.models:
        raise JobError("world = 'network': models that are Python objects stay in this process; name them")
    plan = order.plan
    with _whole(out / PARTIES, keep=order.resume):
        folders, addresses = lay_out_parties(order.data, out, authority, resume=order.resume)
        encoded = msgspec.Raw(msgspec.json.encode(plan))
        for party, folder in folders.items():
            told = Instructions(
                party=party,
                conversation=plan.conversation,
                plan=encoded,
                run=run_id(plan),
                addresses=addresses,
                target_loss=order.target_loss,
                timeline=order.timeline,
                resume=order.resume,
                memory=order.memory,
                engine=order.engine,
            )
            (folder / "instructions.json").write_bytes(msgspec.json.encode(told))
            if (start := order.start_of(party)) is not None:
                np.save(folder / START, start, allow_pickle=False)
    return folders


@contextmanager
def _whole(folder: Path, *, keep: bool) -> Iterator[None]:
    """Write the folders of all parties; where the disk does not take them, nothing of them stays.

    But for checkpoints, if these are to `keep`.
    """
    try:
        with on_disk(folder):
            yield
    except DataError:
        _make_room(folder, keep=keep)
        raise


def lay_out_parties(
    parties: Mapping[str, PartyData], out: Path, authority: Path, *, resume: bool = False
) -> tuple[dict[str, Path], Addresses]:
    """Write every party's folder but for its instructions; also says where each party will listen."""
    names = tuple(parties)
    _make_room(out / PARTIES, keep=resume)
    make_authority(authority)
    for party in names:
        issue(authority, party)
    ports = zip(names, free_ports(len(names)), strict=True)
    addresses = {party: ("127.0.0.1", port) for party, port in ports}
    folders = {}
    for party, data in parties.items():
        folder = folders[party] = out / PARTIES / party
        store.save(folder / "data", data)
        certificates = folder / "certificates"
        certificates.mkdir()
        for name in ["ca.crt", f"{party}.key", *(f"{name}.crt" for name in names)]:
            shutil.copy2(authority / name, certificates / name)
    return folders, addresses


def _make_room(folder: Path, *, keep: bool) -> None:
    """Remove what an earlier run left of its parties, but for their checkpoints if these are to `keep`."""
    if not keep:
        shutil.rmtree(folder, ignore_errors=True)
    for path in folder.glob("*/*"):
        if path.name != CHECKPOINTS:
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def start(folder: Path, module: str = "colonnade.run.party_process") -> Running:
    """Start one party's process; its standard error goes to a log in its folder."""
    if fork_server.SUPPORTED:
        return fork_server.warm().start(module, folder, folder / "log.txt")
    with (folder / "log.txt").open("wb") as log:
        return subprocess.Popen(  # noqa: S603  our own interpreter, our own module
            [sys.executable, "-m", module, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            env={**os.environ, **fork_server.SINGLE_THREADED},
        )


def stop_all(processes: Sequence[Running]) -> None:
    """End all processes: ask first, kill after ten seconds."""
    for process in processes:
        if process.stdin is not None:
            process.stdin.close()
        if process.poll() is None:
            process.terminate()
    for process in processes:
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def wait(parties: Mapping[str, Running], grace: float) -> None:
    """Wait until all have ended, or `grace` seconds after one has failed; less long if it was killed."""
    codes: SimpleQueue[int] = SimpleQueue()
    for party, process in parties.items():  # a thread each: not every system can wait for several processes
        ending = threading.Thread(target=_tell, args=(process, codes), name=f"end-{party}", daemon=True)
        ending.start()
    until = None
    for _ in parties:
        try:
            code = codes.get(timeout=None if until is None else max(0.0, until - time.monotonic()))
        except Empty:
            return
        if code:
            ends = time.monotonic() + (KILLED_S if code < 0 else grace)
            until = ends if until is None else min(until, ends)


def _tell(process: Running, codes: SimpleQueue[int]) -> None:
    """Pass on the code of a process once it has ended."""
    codes.put(process.wait())


def collect(
    folders: dict[str, Path], parties: Mapping[str, Running], read: Callable[[Path], T]
) -> dict[str, T]:
    """Read what every party left in its folder; raises the first real cause if a party failed.

    A process that ended without a word comes before those that lost it; one that still runs is no cause.
    """
    died: list[ColonnadeError] = []
    causes: list[ColonnadeError] = []
    found = {}
    for party, folder in folders.items():
        code = parties[party].poll()
        if (cause := stored_error(party, folder)) is not None:
            causes.append(cause)
        elif code == 0:
            found[party] = read(folder)
        elif code is not None:
            log = (folder / "log.txt").read_text(errors="replace").strip().splitlines()
            if not log and not shutil.disk_usage(folder).free:  # no room for a word either
                causes.append(DataError(f"{folder}: the disk is full; make room, or choose another --out"))
                continue
            said = f": {log[-1]}" if log else ""
            how = f"was killed by {_signal(-code)}" if code < 0 else f"ended with status {code}"
            died.append(PeerLost(f"{party}'s process {how}{said} ({folder / 'log.txt'})"))
    if died or causes:
        raise first_real([*died, *causes])
    return found


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def stored_error(party: str, folder: Path) -> ColonnadeError | None:
    """Return the error that a party left in its folder, if it did."""
    if not (folder / "error.json").exists():
        return None
    plain = msgspec.json.decode((folder / "error.json").read_bytes())
    kind: type[ColonnadeError] = getattr(errors, plain["error"], ColonnadeError)
    return kind(f"{party}: {plain['text']}")


def first_real(causes: list[ColonnadeError]) -> ColonnadeError:
    """Return the cause that says most: parties that only heard of a failure say less than the one where it
    was."""
    return min(causes, key=lambda cause: isinstance(cause, errors.NetworkError))


def _relay(lines: IO[bytes], progress: Progress) -> None:
    """Pass on the moments that a party's process prints, until it ends."""
    with lines:
        for line in lines:
            progress(msgspec.json.decode(line, type=Moment))
