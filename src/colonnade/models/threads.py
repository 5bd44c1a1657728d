"""Numerical libraries on one thread: small products are faster on one core than handed to a pool of them."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController


def single_threaded() -> AbstractContextManager[Any]:
    """Keep numerical libraries on one thread while this is entered."""
    limited: AbstractContextManager[Any] = _pools("torch" in sys.modules).limit(limits=1)
    return limited


@cache
def _pools(torch: bool) -> ThreadpoolController:
    """Return the pools of the libraries that are loaded; to look for them takes longer than a small fit
    should.

    torch is loaded only where a model needs it, and brings a pool of its own.
    """
    return ThreadpoolController()
