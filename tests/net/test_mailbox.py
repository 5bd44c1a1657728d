"""Unread messages take only so much memory, whoever sends them and however they are cut."""

from __future__ import annotations

import asyncio

import pytest

from colonnade.errors import OversizedMessage
from colonnade.messages import Cancel, Seal
from colonnade.net.mailbox import OVERHEAD, Mailbox
from colonnade.net.waiting import Waits


def box(limit: int) -> tuple[Mailbox, Waits]:
    waits = Waits("me", 1.0)
    return Mailbox("me", ("ant", "bee"), waits, {}, limit), waits


def test_bytes_that_wait_are_bounded_and_too_many_end_the_run_by_name() -> None:
    async def main() -> None:
        mailbox, waits = box(3 * (1000 + OVERHEAD))
        for number in range(3):
            mailbox.put("ant", Cancel(number, ""), 1000)
        with pytest.raises(OversizedMessage, match="ant sends more than me asked for"):
            mailbox.put("ant", Cancel(3, ""), 1000)
        assert isinstance(waits.failure, OversizedMessage)

    asyncio.run(main())


def test_many_small_messages_count_as_well() -> None:
    async def main() -> None:
        mailbox, _ = box(10 * OVERHEAD)
        for number in range(10):
            mailbox.put("ant", Cancel(number, ""), 0)
        with pytest.raises(OversizedMessage):
            mailbox.put("ant", Cancel(10, ""), 0)

    asyncio.run(main())


def test_what_is_read_makes_room() -> None:
    async def main() -> None:
        mailbox, waits = box(4 * (100 + OVERHEAD))
        for _ in range(5):
            mailbox.put("ant", Cancel(1, ""), 100)
            mailbox.put("bee", Cancel(2, ""), 100)
            mailbox.put("ant", Seal(b""), 100)
            mailbox.put("bee", Seal(b""), 100)
            assert len(await mailbox.drain(Cancel, patient=False)) == 2
            assert set(await mailbox.gather(Seal, -1)) == {"ant", "bee"}
            mailbox.put("ant", Seal(b""), 100)
            await mailbox.recv(Seal, "ant", -1)
        assert waits.failure is None

    asyncio.run(main())
