"""Runs of one process leave nothing behind: what the interpreter's end could cut off is over by then."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from colonnade.errors import JobError
from colonnade.run import inprocess
from colonnade.run.inprocess import apart


@pytest.mark.parametrize("fails", [False, True])
def test_the_thread_of_a_run_is_over_when_the_run_is(fails: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread that still gave libraries their threads back as the interpreter ended aborted the process."""

    @contextmanager
    def slowly() -> Iterator[None]:
        try:
            yield
        finally:
            time.sleep(0.2)

    async def program(progress: object) -> int:
        if fails:
            raise JobError("no")
        return 7

    monkeypatch.setattr(inprocess, "single_threaded", slowly)
    if fails:
        with pytest.raises(JobError, match="no"):
            apart(asyncio.run, program)
    else:
        assert apart(asyncio.run, program) == 7
    assert "federation" not in [thread.name for thread in threading.enumerate()]
