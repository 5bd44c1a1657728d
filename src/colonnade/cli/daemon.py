"""Asking this party's daemon, for the commands `train`, `predict` and `party --status`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from colonnade.errors import ColonnadeError, PeerUnreachable

if TYPE_CHECKING:
    from colonnade.deploy.daemon.commands import Request, TrainRequest
    from colonnade.deploy.session.session import Event
    from colonnade.deploy.settings import Settings

RETRY_S = 0.5


class DaemonError(ColonnadeError):
    """The daemon answered that it could not do what was asked, with this text."""


def ask(
    settings: Settings,
    request: Request,
    tell: Callable[[Event], None] = lambda event: None,
) -> Any:
    """Return the daemon's result for a request; DaemonError if it answers with an error. `tell` gets its
    events."""
    from colonnade.deploy.daemon import commands

    async def main() -> Any:
        async for message in commands.ask(settings, request):
            if isinstance(message, commands.EventReply):
                tell(message.event)
            elif message.error is not None:
                error = DaemonError(message.error)
                error.exit_code = message.code
                raise error
            else:
                return message.result
        return None

    return asyncio.run(main())


def ask_to_train(settings: Settings, asked: TrainRequest, tell: Callable[[Event], None]) -> Any:
    """Return the daemon's result of a training; if the daemon dies meanwhile its return is waited for."""
    from colonnade.deploy.daemon.commands import FollowRequest
    from colonnade.deploy.session.session import Event

    begun: list[str] = []

    def heard(event: Event) -> None:
        begun.extend([event.run] if event.run else [])
        tell(event)

    request: Request = asked
    until = None
    while True:
        try:
            return ask(settings, request, heard)
        except PeerUnreachable:
            now = time.monotonic()
            until = now + asked.terms.checkpoint.wait_s if until is None else until
            if not begun or now > until:
                raise
            if not isinstance(request, FollowRequest):
                tell(Event(f"the daemon of {settings.name} is away; waiting for it"))
            request = FollowRequest(begun[-1])
            time.sleep(RETRY_S)
