"""What a daemon and the process of a run say to each other: the last words arrive, whatever else is said."""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from pathlib import Path

import msgspec
import numpy as np
import pytest
from tests.deploy.companies import NAMES, job, lay_out, settle

from colonnade import __version__
from colonnade.deploy.process.pipe import Fault, Frame, Order, Pipe, ToDaemon, ToWorker
from colonnade.deploy.programs.worker import TrainingWorker
from colonnade.deploy.session.session import STRETCHES
from colonnade.deploy.settings import read_settings
from colonnade.deploy.terms.terms import Proposal
from colonnade.errors import DataError, OversizedMessage
from colonnade.messages import Points, encode
from colonnade.net.frame import DATA, Header, Routes, pack

MB = 2**20


async def pair() -> tuple[Pipe[ToDaemon], Pipe[ToWorker]]:
    """The daemon's end of a pipe, and the process's."""
    ours, theirs = socket.socketpair()
    return (
        Pipe(*await asyncio.open_connection(sock=ours), msgspec.msgpack.Decoder(ToDaemon)),
        Pipe(*await asyncio.open_connection(sock=theirs), msgspec.msgpack.Decoder(ToWorker)),
    )


def test_how_a_run_ended_is_heard_though_its_peers_go_on_talking() -> None:
    """A peer's frames arrive at the daemon until it hears of the end, and go to a process that ends."""

    async def program() -> list[str]:
        daemon, process = await pair()

        async def end() -> None:
            await process.bid_farewell(Fault.of(DataError("a column is missing")))

        ending = asyncio.ensure_future(end())
        for _ in range(50):
            daemon.write(Frame(0, "shop", bytes(10_000)))
            await asyncio.sleep(0)
        heard = []
        while isinstance(message := await daemon.read(), Fault):
            heard.append(str(message.raised()))
            break
        await daemon.close()
        await asyncio.wait_for(ending, 60)
        return heard

    assert asyncio.run(program()) == ["a column is missing"]


def test_what_lies_unread_is_counted_over_all_stretches_of_a_run(tmp_path: Path) -> None:
    """Each stretch has less than the limit, all together have more."""
    consortium = lay_out(tmp_path)
    settle(consortium, "shop", "", "[limits]\nwaiting_mb = 4\n")
    terms = Proposal(train=job()).written()
    order = Order(read_settings(consortium.config("shop")), terms, 16, 16, 20, __version__, timeline=False)

    async def program() -> int:
        daemon, process = await pair()
        worker = TrainingWorker(process, order)
        nets = tuple(worker._endpoint(stretch) for stretch in range(STRETCHES))
        listening = asyncio.ensure_future(worker._listen(nets))
        for stretch in range(STRETCHES):
            route = Routes("bank", NAMES, 16 + stretch).to["shop"]
            for number in range(3):
                points = encode(Points(number, np.zeros((MB // 2 // 65, 65), dtype=np.uint8)))
                frame = pack(Header(DATA, route, number + 1, 0), points, checked=False)
                daemon.write(Frame(stretch, "bank", frame))
                await daemon.drain()
        for net in nets:
            with pytest.raises(OversizedMessage, match=r"bank sends .* over limits\.waiting_mb = 4"):
                await asyncio.wait_for(net.recv(Points, "telecom", 1), 60)
        listening.cancel()
        with suppress(asyncio.CancelledError):
            await listening
        kept = sum(net.waiting for net in nets)
        for net in nets:
            await net.close()
        await daemon.close()
        await process.close()
        return kept

    assert asyncio.run(program()) < 4 * MB


def test_errors_that_are_none_of_this_package_are_foreign() -> None:
    ours, foreign = Fault.of(DataError("no such column")), Fault.of(SyntaxError("expected ':'"))
    assert not ours.foreign
    assert isinstance(ours.raised(), DataError)
    assert foreign.foreign
    assert str(foreign.raised()) == "SyntaxError: expected ':'"
