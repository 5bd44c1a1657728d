"""The daemon's side of its party's own commands: it listens on a socket that only its user may open.

A command that goes away while its run goes on (Ctrl-C) stops the run at all parties. What commands ask, and
how they do it, is in `commands`.
"""

from __future__ import annotations

import asyncio
import os
import pwd
import socket
import stat
import struct
from contextlib import suppress
from pathlib import Path

import msgspec
import numpy as np

from colonnade.arrays import Digests, Floats
from colonnade.deploy.books.journal import Decision
from colonnade.deploy.daemon import operators, views
from colonnade.deploy.daemon.commands import (
    DaemonStatus,
    DecideRequest,
    EstimateCommand,
    EventReply,
    FinalReply,
    FollowRequest,
    LoginRequest,
    Prediction,
    PredictRequest,
    PromoteRequest,
    ProposalsRequest,
    ReloadRequest,
    Request,
    RollbackRequest,
    RunsRequest,
    StatusRequest,
    StopRequest,
    TrainRequest,
    WaitRequest,
    read_frame,
    write_frame,
)
from colonnade.deploy.daemon.daemon import Daemon
from colonnade.deploy.daemon.views import ProposalView, RunView
from colonnade.deploy.models import stored_shares
from colonnade.deploy.models.stored_shares import Manifest, StoredShare
from colonnade.deploy.process.estimating import Estimate
from colonnade.deploy.programs import scoring, training
from colonnade.deploy.rows.rows import digests
from colonnade.deploy.session.session import Event, Tell
from colonnade.errors import Aborted, ColonnadeError, JobError, Refused
from colonnade.secure.keys import release_of

CHUNK = 2**15  # rows that are asked for at once

Answered = (
    training.Trained
    | Prediction
    | DaemonStatus
    | list[ProposalView]
    | list[RunView]
    | RunView
    | Decision
    | Estimate
    | str
)
"""What requests are answered with."""


async def serve(daemon: Daemon) -> asyncio.Server:
    """Listen for this party's own commands."""
    path = daemon.settings.socket
    _check_private(path.parent)
    with suppress(OSError):
        path.unlink()
    try:
        server = await asyncio.start_unix_server(lambda r, w: _command(daemon, r, w), path)
    except OSError as error:
        raise JobError(f"{path}: cannot be made: {error}; choose a shorter path for runs") from error
    path.chmod(stat.S_IRUSR | stat.S_IWUSR)
    return server


def _check_private(folder: Path) -> None:
    """Make the folder of the socket; JobError if somebody else could put another socket into it."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    found = folder.stat()
    if found.st_uid != os.getuid() or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise JobError(f"{folder}: others may write there; choose a shorter path for runs, or remove it")


async def _command(daemon: Daemon, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer one command; when it goes away before its work is done, stop the work."""
    try:
        try:
            request: Request = msgspec.json.decode(await read_frame(reader), type=Request)
        except msgspec.MsgspecError as error:
            text = f"the daemon of {daemon.me} does not know what is asked ({error}); was it upgraded since"
            write_frame(writer, FinalReply(error=f"{text} it was started? Start it again", code=2))
            await writer.drain()
            return

        def tell(event: Event) -> None:
            with suppress(OSError):
                write_frame(writer, EventReply(event))

        work = asyncio.ensure_future(_act(daemon, request, tell, _user(writer)))
        gone = asyncio.ensure_future(reader.read(1))  # a command says nothing more; this ends when it does
        await asyncio.wait([work, gone], return_when=asyncio.FIRST_COMPLETED)
        if not work.done():
            daemon.books.stop_for(tell, f"{daemon.me} was told to stop by its operator")
            # before the run has begun there is nothing to tell the peers but that it is withdrawn
            await asyncio.wait([work], timeout=5)
            work.cancel()
        gone.cancel()
        write_frame(writer, _outcome(work))
        await writer.drain()
    except (OSError, EOFError, asyncio.CancelledError):
        pass  # the command went away, or this daemon stops
    finally:
        writer.close()


def _user(writer: asyncio.StreamWriter) -> str:
    """Return the user of this machine who runs the command at the other end of the local socket."""
    uid = os.getuid()  # the socket is this user's alone; where the system can say, root is told apart
    if hasattr(socket, "SO_PEERCRED"):
        peer = writer.get_extra_info("socket")
        pid_uid_gid = peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        uid = struct.unpack("3i", pid_uid_gid)[1]
    try:
        return f"{pwd.getpwuid(uid).pw_name} (command)"
    except KeyError:
        return f"user {uid} (command)"


def _outcome(work: asyncio.Future[Answered]) -> FinalReply:
    """Return the final reply to a command whose work is done, failed or was stopped."""
    if not work.done() or work.cancelled():
        return FinalReply(error="stopped", code=1)
    error = work.exception()
    if error is None:
        return FinalReply(work.result())
    code = error.exit_code if isinstance(error, ColonnadeError) else 1
    return FinalReply(error=str(error) or type(error).__name__, code=code)


async def _act(daemon: Daemon, request: Request, tell: Tell, who: str) -> Answered:
    """Do what a command of this user asks for and return its result."""
    match request:
        case EstimateCommand(terms=terms):
            return await daemon.proposing.estimate(terms)
        case TrainRequest(detach=True):
            return await _begin(daemon, request)
        case TrainRequest(terms=terms, timeline=timeline):
            return _trained(daemon, await daemon.train(terms, tell, timeline=timeline))
        case FollowRequest(run=run):
            return _trained(daemon, await _follow(daemon, run, tell))
        case RunsRequest():
            return views.runs(daemon)
        case WaitRequest(run=run):
            return _trained(daemon, await _wait(daemon, run))
        case PredictRequest():
            return await _predict(daemon, request, tell)
        case StatusRequest():
            return status(daemon)
        case ProposalsRequest():
            return views.proposals(daemon)
        case DecideRequest(number=number, approve=True):
            return await operators.approve(daemon, number, who)
        case DecideRequest(number=number, reason=reason):
            return await operators.refuse(daemon, number, who, reason)
        case PromoteRequest(model=model, ask_peers=ask_peers):
            return await operators.promote(daemon, model, who, ask_peers=ask_peers)
        case RollbackRequest(name=name, ask_peers=ask_peers):
            return await operators.rollback(daemon, name, who, ask_peers=ask_peers)
        case StopRequest(run=run):
            return operators.stop(daemon, run, who)
        case LoginRequest():
            return daemon.invite(who)
        case ReloadRequest():
            return await daemon.reload()


def _trained(daemon: Daemon, manifest: Manifest) -> training.Trained:
    """Return what a command is shown of a training that is over."""
    return training.describe(daemon.settings.state, manifest)


async def _begin(daemon: Daemon, request: TrainRequest) -> RunView:
    """Propose a training that goes on without the command, and return it once all parties are asked."""
    asked = asyncio.Event()

    def tell(event: Event) -> None:
        if event.what == "asking":
            asked.set()

    work = asyncio.ensure_future(daemon.train(request.terms, tell, timeline=request.timeline))
    waiting = asyncio.ensure_future(asked.wait())
    await asyncio.wait([work, waiting], return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    if work.done():
        work.result()  # raises why nobody was asked
    number = next(run.number for run in daemon.runs.values() if run.asked_by is tell)
    daemon.detached[number] = work
    work.add_done_callback(lambda ended: ended.exception())  # the log and the journal have it
    return next(run for run in views.runs(daemon) if run.run == number)


async def _wait(daemon: Daemon, number: str) -> Manifest:
    """Return the manifest of a training once it is over, or raise the error that it ended with."""
    run = next((run for run in daemon.runs.values() if run.number == number), None)
    known = run.task if run is not None else None
    if (work := daemon.detached.get(number, known)) is not None:
        await asyncio.wait([work])
    for manifest in stored_shares.listing(daemon.serving.models):
        if manifest.run == number:
            return manifest
    for ended in reversed(daemon.journal.runs):
        if ended.run == number:
            raise (Refused if ended.state == "refused" else Aborted)(f"run {number}: {ended.reason}")
    raise JobError(f"no run {number} is known here; `colonnade runs list` has those that are")


async def _follow(daemon: Daemon, number: str, tell: Tell) -> Manifest:
    """Show a training that goes on to its end; the manifest of its share, or the error that it ended with."""
    run = next((run for run in daemon.runs.values() if run.number == number), None)
    if run is not None and run.task is not None and run.proposer == daemon.me:
        run.asked_by = tell
        run.followed.listeners.append(tell)
        await asyncio.wait([run.task])
    for manifest in stored_shares.listing(daemon.serving.models):
        if manifest.run == number:
            return manifest
    reasons = [ended.reason for ended in daemon.journal.runs if ended.run == number]
    raise Aborted(reasons[-1] if reasons else f"run {number} did not go on; the daemon's log says why")


async def _predict(daemon: Daemon, request: PredictRequest, tell: Tell) -> Prediction:
    """Score the rows with these ids together with the other parties."""
    share = await asyncio.to_thread(daemon.serving.load, request.model)
    trained = share.manifest.terms
    keys = daemon.settings.data[request.data or trained.parties[daemon.me].data].keys
    if len(request.ids) != len(keys):
        raise JobError(f"{len(request.ids)} id columns were given, {', '.join(keys)} are needed")
    # many ids, and many scores, are work for a thread: others are answered meanwhile
    wanted = await asyncio.to_thread(digests, request.ids, trained.align.keys, keys)

    async def use(ready: scoring.Ready) -> tuple[Digests, Floats, tuple[str, ...]]:
        asked = [
            await ready.session.ask(np.arange(start, min(start + CHUNK, len(ready.ids))))
            for start in range(0, len(ready.ids), CHUNK)
        ]
        return ready.ids, np.concatenate(asked), ready.session.net.parties

    ids, z, present = await daemon.score(share, wanted, use, data=request.data, tell=tell)
    away = sorted(set(trained.parties) - set(present))
    daemon.journal.scored_rows += len(ids)
    z = scoring.with_mean_parts(share.manifest, z, away)
    rows = await asyncio.to_thread(_found, share, wanted, ids, z)
    return {"model": share.manifest.model, "degraded": away, "rows": rows}


def _found(share: StoredShare, wanted: Digests, ids: Digests, z: Floats) -> list[scoring.ScoredRow | None]:
    """Return the scored row of every id that was asked for, None where not all parties know it."""
    found = dict(zip([row.tobytes() for row in ids], scoring.outputs(share, z), strict=True))
    return [found.get(row.tobytes()) for row in wanted]


def status(daemon: Daemon) -> DaemonStatus:
    """Return which peers are connected, which runs go on, and the latest events."""
    return {
        "party": daemon.me,
        "version": release_of(daemon.version),
        "peers": {
            peer.name: {
                "up": peer.up,
                "since": peer.since,
                "version": peer.version,
                "round_trip_ms": None if (trip := daemon.peers.round_trip(peer.name)) is None else trip * 1e3,
                "reason": peer.reason,
            }
            for peer in views.peers(daemon)
        },
        "runs": {run.number: run.shown for run in daemon.runs.values()},
        "waiting": [held.number for held in daemon.approvals.held.values()],
        "latest": daemon.journal.latest,
        "journal": daemon.journal.last,
    }
