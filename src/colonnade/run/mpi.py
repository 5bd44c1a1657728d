"""The world of MPI: `mpirun -n 4 colonnade run job.toml`, one rank for each party.

Every rank runs the same command. The first reads the job and its files, hands every other rank its party's
columns and the plan, plays the party that evaluates the model, and gets shares or errors back; the others do
what they are handed and write nothing of their own. What a party does is the same program as in any world. A
rank that dies is for mpirun, which ends all others; one that is silent is a named error after the deadline.
"""

from __future__ import annotations

import atexit
import tempfile
import time
import traceback
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from colonnade.data.split import store
from colonnade.disk import on_disk
from colonnade.errors import ColonnadeError, JobError, PeerLost
from colonnade.job import Net
from colonnade.net.clock import RealClock
from colonnade.net.endpoint import Endpoint
from colonnade.net.mpi import OUTCOME, WORK, MpiWire, arrived, ranks
from colonnade.net.recorder import Recorder
from colonnade.run.party import Party, Progress, Share
from colonnade.run.party_process import (
    Instructions,
    PartyInstructions,
    attempt,
    read_share,
    speed_of,
    take_part,
)
from colonnade.run.processes import GRACE_S, first_real, stored_error
from colonnade.run.world import CHECKPOINTS, Launch, run_id
from colonnade.secure.keys import FreshIdentity

if TYPE_CHECKING:
    from mpi4py.MPI import Comm

IDLE_S = 0.005
# what a rank is given or needs for itself; all else in its folder is its outcome
_HANDED = ("data", "instructions.json", CHECKPOINTS)

_leading: list[Comm] = []  # the ranks that wait for this one, while it leads them


def follows() -> bool:
    """Return whether this process is a rank that another one leads."""
    return ranks().Get_rank() > 0


@contextmanager
def leading(parties: int) -> Iterator[None]:
    """While the block runs the other ranks wait for work; in the end they are told that there is none."""
    comm = ranks()
    _leading.append(comm)
    try:
        _check_size(comm, parties)
        yield
    finally:
        _leading.remove(comm)
        for rank in range(1, comm.Get_size()):
            _send(comm, rank, WORK, b"")


def follow() -> None:
    """Do what the first rank hands out until there is no more; that rank tells of errors."""
    comm = ranks()
    try:
        while work := _wait(comm, WORK, 0):
            with tempfile.TemporaryDirectory(prefix="colonnade-") as name:
                folder = Path(name)
                _unpack(work, folder)
                _play(comm, folder)
                _send(comm, 0, OUTCOME, _pack(folder, without=_HANDED))
    except Exception:
        traceback.print_exc()  # the others must not wait for this rank
        comm.Abort(1)


def run_mpi(order: Launch) -> dict[str, Share]:
    """Run every party on a rank of its own; returns their shares."""
    comm = _checked(order)
    with tempfile.TemporaryDirectory(prefix="colonnade-") as name:
        with on_disk(Path(name)):
            folders = _lay_out(order, Path(name))
        for rank, folder in enumerate(folders.values()):
            if rank:
                _send(comm, rank, WORK, _pack(folder))
        own, *others = folders.values()
        answered = _play(comm, own, order.progress)
        until = time.monotonic() + (GRACE_S if answered else 1.0)
        for rank, folder in enumerate(others, 1):
            outcome = _wait(comm, OUTCOME, rank, until)
            if outcome:
                _unpack(outcome, folder)
        return _collect(folders)


def _checked(order: Launch) -> Comm:
    """Return the ranks of this program; JobError unless there is one for each party and they wait for
    work."""
    comm, parties = ranks(), len(order.plan.parties)
    _check_size(comm, parties)
    if not _leading:
        raise JobError(f"world = 'mpi': no rank waits for work here; {_start(parties)}")
    if order.resume:
        raise JobError("world = 'mpi': ranks keep no checkpoints, so nothing can be resumed; drop --resume")
    if order.models:
        raise JobError("world = 'mpi': models that are Python objects stay in this process; name them")
    return comm


def _check_size(comm: Comm, parties: int) -> None:
    if comm.Get_size() != parties:
        raise JobError(
            f"world = 'mpi': {parties} parties need {parties} ranks, and this program has "
            f"{comm.Get_size()}; {_start(parties)}"
        )


def _start(parties: int) -> str:
    return f"start it with: mpirun -n {parties} colonnade run JOB.toml"


def _lay_out(order: Launch, out: Path) -> dict[str, Path]:
    """Write every party's folder, that of the evaluator first."""
    plan = order.plan
    names = sorted(order.data, key=lambda party: party != plan.evaluator)
    folders = {}
    for party in names:
        folder = folders[party] = out / party
        store.save(folder / "data", order.data[party])
        told = Instructions(
            party=party,
            conversation=plan.conversation,
            plan=msgspec.Raw(msgspec.json.encode(plan)),
            run=run_id(plan),
            addresses={name: ("rank", rank) for rank, name in enumerate(names)},
            target_loss=order.target_loss,
            timeline=order.timeline,
            memory=order.memory,
            engine=order.engine,
        )
        (folder / "instructions.json").write_bytes(msgspec.json.encode(told))
    return folders


def _play(comm: Comm, folder: Path, progress: Progress = lambda moment: None) -> bool:
    """Play the party of a folder to its end; its share or its error is left there.

    Returns whether all ranks came to their end in time.
    """
    told = msgspec.json.decode((folder / "instructions.json").read_bytes(), type=Instructions)
    places = {party: rank for party, (_, rank) in told.addresses.items()}
    wire, identity = MpiWire(comm, places), _identity(comm, places)
    serve = partial(take_part, connect=partial(_connected, wire, identity), progress=progress)
    error = attempt(folder, serve, speed_of(folder))
    together = wire.leave(told.read_plan().network.deadline_s + GRACE_S)
    if not together:  # MPI ends only when all ranks do, and some rank does not
        atexit.register(comm.Abort, 1 if error is None else error.exit_code)
    return together


@asynccontextmanager
async def _connected(
    wire: MpiWire,
    identity: FreshIdentity,
    folder: Path,
    told: PartyInstructions,
    network: Net,
    clock: RealClock,
    recorder: Recorder | None = None,
) -> AsyncIterator[tuple[Party, Endpoint]]:
    """The party of this rank, with lines to all others."""
    tapped = wire if recorder is None else recorder.tap(wire)
    net = Endpoint(
        told.party,
        tuple(told.addresses),
        tapped,
        clock,
        run=told.run,
        deadline=network.deadline_s,
        broadcast=network.broadcast,
    )
    async with Party(identity, (net,)) as party:
        clock.restart()  # waiting for the others to start is not work
        yield party, net


def _identity(comm: Comm, places: dict[str, int]) -> FreshIdentity:
    """Return a key for this run, and those of all other ranks: ranks of one program trust each other."""
    key = Ed25519PrivateKey.generate()
    shown = bytearray(32 * comm.Get_size())
    comm.Allgather(key.public_key().public_bytes_raw(), shown)
    known = {
        party: Ed25519PublicKey.from_public_bytes(bytes(shown[32 * rank : 32 * rank + 32]))
        for party, rank in places.items()
    }
    return FreshIdentity(key, known)


def _collect(folders: dict[str, Path]) -> dict[str, Share]:
    """Return every party's share; raises the first real cause if one failed."""
    causes: list[ColonnadeError] = []
    for rank, (party, folder) in enumerate(folders.items()):
        cause = stored_error(party, folder)
        if cause is None and not (folder / "share.json").exists():
            cause = PeerLost(f"{party} on rank {rank} has not answered; is that rank still running?")
        if cause is not None:
            causes.append(cause)
    if causes:
        raise first_real(causes)
    return {party: read_share(folder) for party, folder in folders.items()}


# -- what goes to a rank and back: the files of a folder ------------------------------------------------


def _pack(folder: Path, without: tuple[str, ...] = ()) -> bytes:
    files = (path for path in folder.rglob("*") if path.is_file())
    names = ((path.relative_to(folder), path) for path in files)
    return msgspec.msgpack.encode(
        {name.as_posix(): path.read_bytes() for name, path in names if name.parts[0] not in without}
    )


def _unpack(packed: bytes, folder: Path) -> None:
    for name, content in msgspec.msgpack.decode(packed, type=dict[str, bytes]).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def _send(comm: Comm, rank: int, tag: int, content: bytes) -> None:
    from mpi4py import MPI

    comm.Send([content, MPI.BYTE], rank, tag)


def _wait(comm: Comm, tag: int, rank: int, until: float = float("inf")) -> bytes | None:
    """Return what a rank sends, without keeping a processor busy; None if nothing has come in time."""
    while time.monotonic() < until:
        found = arrived(comm, tag, rank)
        if found is not None:
            return found[1]
        time.sleep(IDLE_S)
    return None
