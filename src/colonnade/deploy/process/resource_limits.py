"""Limits for the processes that a daemon starts: what they may take of the machine; they give way to it."""

from __future__ import annotations

import os
import resource
from contextlib import suppress

from colonnade.deploy.settings import Limits

YIELDS = 5
"""How much this process gives way to others: as `nice` counts."""


def confine(limits: Limits) -> None:
    """Let this process have no more memory and processor time than the settings allow, and give way."""
    os.nice(YIELDS)
    memory, seconds = int(limits.run_memory_mb * 2**20), int(limits.run_cpu_s)
    for kind, most in ((resource.RLIMIT_DATA, memory), (resource.RLIMIT_CPU, seconds)):
        with suppress(ValueError, OSError):  # a system that is stricter already stays so
            _, hard = resource.getrlimit(kind)
            resource.setrlimit(kind, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))
