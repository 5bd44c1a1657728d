"""What `train`, `predict` and `party --status` share: ask this party's daemon and show what it says."""

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
    """What the daemon answered when it could not do what was asked."""


def ask(settings: Settings, request: Request, tell: Callable[[Event], None] = lambda event: None) -> Any:
    """The daemon's result; its error as an error of this command."""
    from colonnade.deploy import control

    async def main() -> Any:
        async for message in control.ask(settings, request):
            if isinstance(message, control.Heard):
                tell(message.event)
            elif message.error is not None:
                error = DaemonError(message.error)
                error.exit_code = message.code
                raise error
            else:
                return message.result
        return None

    return asyncio.run(main())
