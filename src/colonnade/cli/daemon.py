"""Asking this party's daemon, for the commands `train`, `predict` and `party --status`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from colonnade.errors import ColonnadeError

if TYPE_CHECKING:
    from colonnade.deploy.control import Request
    from colonnade.deploy.session import Event
    from colonnade.deploy.settings import Settings


class DaemonError(ColonnadeError):
    """The daemon answered that it could not do what was asked, with this text."""


def ask(settings: Settings, request: Request, tell: Callable[[Event], None] = lambda event: None) -> Any:
    """The daemon's result for a request; DaemonError if it answers with an error. `tell` gets its events."""
    from colonnade.deploy import control

    async def main() -> Any:
        async for message in control.ask(settings, request):
            if isinstance(message, control.EventReply):
                tell(message.event)
            elif message.error is not None:
                error = DaemonError(message.error)
                error.exit_code = message.code
                raise error
            else:
                return message.result
        return None

    return asyncio.run(main())
