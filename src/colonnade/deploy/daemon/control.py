"""The daemon's side of its party's own commands: it listens on a socket that only its user may open.

A command that goes away while its run goes on (Ctrl-C) stops the run at all parties. What commands ask, and
how they do it, is in `commands`; what is done about it in `verbs`.
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

from colonnade.deploy.daemon.commands import EventReply, FinalReply, Request, read_frame, write_frame
from colonnade.deploy.daemon.daemon import Daemon
from colonnade.deploy.daemon.verbs import Answered, act
from colonnade.deploy.people_settings import Person, found
from colonnade.deploy.session.session import Event
from colonnade.errors import ColonnadeError, JobError


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

        work = asyncio.ensure_future(act(daemon, request, tell, _user(daemon, writer)))
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


def _user(daemon: Daemon, writer: asyncio.StreamWriter) -> Person:
    """Return the user of this machine who runs the command at the other end of the local socket.

    One whom [people] does not name does everything: the socket is that of the owner of the daemon's files.
    """
    uid = os.getuid()  # the socket is this user's alone; where the system can say, root is told apart
    if hasattr(socket, "SO_PEERCRED"):
        peer = writer.get_extra_info("socket")
        pid_uid_gid = peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        uid = struct.unpack("3i", pid_uid_gid)[1]
    try:
        name = pwd.getpwuid(uid).pw_name
    except KeyError:
        name = f"user {uid}"
    return found(daemon.settings.people, "user", name, "command") or Person(name, "command")


def _outcome(work: asyncio.Future[Answered]) -> FinalReply:
    """Return the final reply to a command whose work is done, failed or was stopped."""
    if not work.done() or work.cancelled():
        return FinalReply(error="stopped", code=1)
    error = work.exception()
    if error is None:
        return FinalReply(work.result())
    code = error.exit_code if isinstance(error, ColonnadeError) else 1
    return FinalReply(error=str(error) or type(error).__name__, code=code)
