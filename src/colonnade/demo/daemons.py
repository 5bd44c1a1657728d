"""The daemons of all departments on this machine: start them, wait for their lines, ask one for something."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from colonnade.deploy.daemon import commands
from colonnade.deploy.session.session import Event
from colonnade.deploy.settings import Settings
from colonnade.errors import ColonnadeError, PeerUnreachable
from colonnade.run.processes import stop_all

START_S = 60.0

Tell = Callable[[Event], None]


@contextmanager
def daemons(settings: dict[str, Settings]) -> Iterator[None]:
    """Run one daemon per department, each a process, and stop all of them in the end."""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    processes = []
    try:
        for each in settings.values():
            with each.path("log.txt").open("wb") as log:
                command = [
                    sys.executable,
                    "-m",
                    "colonnade",
                    "party",
                    "--config",
                    str(each.path("party.toml")),
                ]
                processes.append(subprocess.Popen(command, stdout=log, stderr=log, env=environment))  # noqa: S603
        yield
    finally:
        stop_all(processes)


def wait_connected(settings: dict[str, Settings], seconds: float = START_S) -> None:
    """Wait until every department is connected to every other."""
    until = time.monotonic() + seconds
    for each in settings.values():
        while True:
            try:
                status = asyncio.run(ask(each, commands.StatusRequest(), lambda event: None))
                if all(line["up"] and line["version"] for line in status["peers"].values()):
                    break
                reason = str({peer: line["reason"] for peer, line in status["peers"].items()})
            except PeerUnreachable as error:
                reason = str(error)
            if time.monotonic() > until:
                raise PeerUnreachable(f"{each.name} is not connected after {seconds:g} s: {reason}")
            time.sleep(0.1)


async def ask(settings: Settings, request: commands.Request, tell: Tell) -> Any:
    """Return the daemon's result for a request; ColonnadeError if it answers with an error."""
    async for message in commands.ask(settings, request):
        if isinstance(message, commands.EventReply):
            tell(message.event)
        elif message.error is not None:
            raise ColonnadeError(f"{settings.name}: {message.error}")
        else:
            return message.result
    return None
