"""What only Linux and macOS have: forks, signals, sockets that are files. Elsewhere it is refused by name.

On Windows all that happens in one process works: estimators, `new`, `run` in the worlds simulated and local,
`predict`, reports. Parties as processes and daemons do not, and say so before they write anything.
"""

from __future__ import annotations

import os

from colonnade.errors import JobError

AVAILABLE = hasattr(os, "fork")


def need_posix(what: str) -> None:
    """Refuse `what` where the system is neither Linux nor macOS."""
    if not AVAILABLE:
        raise JobError(f"{what}: needs Linux or macOS; on Windows use WSL or a container, or world = 'local'")
