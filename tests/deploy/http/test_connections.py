"""Connections over HTTP: silent visitors make way, odd requests get a clear answer, logs have short lines."""

from __future__ import annotations

import asyncio
import io
import logging
from pathlib import Path
from typing import Any

import pytest
from tests.deploy.companies import lay_out, settle

from colonnade.deploy.daemon.daemon import Daemon
from colonnade.deploy.http import monitor
from colonnade.deploy.http.connections import MOST, ConnectionLimits
from colonnade.deploy.policy.quotas import Quota
from colonnade.deploy.process.logs import FEW, LONGEST, FewOfStrangers, OneLine
from colonnade.deploy.settings import read_settings
from colonnade.errors import Refused
from colonnade.net.stream.port import free_ports

web = pytest.importorskip("aiohttp.web")


async def serving(limits: Any, port: int) -> asyncio.Server:
    return await asyncio.get_running_loop().create_server(limits, "127.0.0.1", port)


def test_whoever_asks_is_answered_among_many_who_are_silent() -> None:
    async def hello(request: Any) -> Any:
        return web.Response(text="hello")

    async def main() -> tuple[bytes, int]:
        app = web.Application()
        app.router.add_get("/", hello)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        (port,) = free_ports(1)
        limits = ConnectionLimits(runner.server, most=20)
        server = await serving(limits, port)
        silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(60)]
        for _, writer in silent:
            writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n")  # and never the end of it
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        answer = await asyncio.wait_for(reader.read(), 60)
        inside = len(limits.inside)
        for _, each in [*silent, (reader, writer)]:
            each.close()
        server.close()
        await runner.cleanup()
        return answer, inside

    answer, inside = asyncio.run(main())
    assert answer.startswith(b"HTTP/1.1 200")
    assert answer.endswith(b"hello")
    assert inside <= 20


def test_the_monitor_has_limits_as_well(tmp_path: Path) -> None:
    """Whoever has an account on the machine may open connections to it, as many as the daemon has files."""
    consortium = lay_out(tmp_path, ("bank", "shop"))
    (port,) = free_ports(1)
    settle(consortium, "bank", "", f'monitor = "127.0.0.1:{port}"\n')

    async def main() -> tuple[bytes, int]:
        server = await monitor.serve(Daemon(read_settings(consortium.config("bank"))))
        silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(MOST + 50)]
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /health HTTP/1.1\r\n\r\n")
        answer = await asyncio.wait_for(reader.read(), 60)
        shown_out = sum(each.at_eof() or each.exception() is not None for each, _ in silent)
        for _, each in [*silent, (reader, writer)]:
            each.close()
        server.close()
        return answer, shown_out

    answer, shown_out = asyncio.run(main())
    assert b"ok, away: shop" in answer
    assert shown_out >= 50


def test_a_silent_visitor_is_shown_out_in_time() -> None:
    async def main() -> bytes:
        (port,) = free_ports(1)
        server = await serving(ConnectionLimits(asyncio.Protocol, first_s=0.1), port)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            return await asyncio.wait_for(reader.read(), 60)
        except ConnectionResetError:
            return b""
        finally:
            writer.close()
            server.close()

    assert asyncio.run(main()) == b""


def test_a_quota_counts_within_its_window_and_for_each_key() -> None:
    now = [0.0]
    quota = Quota("refreshes_an_hour", 2, window=10.0, clock=lambda: now[0])
    quota.take("bank")
    quota.take("bank")
    with pytest.raises(Refused, match="refreshes_an_hour = 2 is reached here"):
        quota.take("bank")
    quota.take("shop")
    now[0] = 10.0
    quota.take("bank")


def test_what_a_peer_says_cannot_look_like_another_line_of_the_log() -> None:
    record = logging.LogRecord(
        "x", logging.INFO, "", 0, "refused: %s", ("a\n2026 INFO all is well\x1b[2J",), None
    )
    text = OneLine("%(levelname)s %(message)s").format(record)
    assert text == "INFO refused: a\\n2026 INFO all is well\\x1b[2J"


def test_strangers_write_few_and_short_lines() -> None:
    """A bad request had 708 bytes and more of a traceback in the log, as often as somebody sent one."""
    clock = [0.0]
    few, out = FewOfStrangers(lambda: clock[0]), io.StringIO()
    handler = logging.StreamHandler(out)
    handler.addFilter(few)
    handler.setFormatter(OneLine("%(message)s"))

    def bad_requests(name: str, count: int) -> str:
        out.seek(0)
        out.truncate()
        for _ in range(count):
            error = ValueError("x" * 5000)
            told = (type(error), error, None)
            handler.handle(
                logging.LogRecord(name, logging.ERROR, __file__, 1, "Error handling request", (), told)
            )
        return out.getvalue()

    written = bad_requests("aiohttp.server", 1000)
    assert written.count("\n") == FEW
    assert len(written) <= FEW * (LONGEST + 1)
    assert written.startswith("Error handling request: ValueError('xxx")
    assert bad_requests("aiohttp.server", 5) == ""
    clock[0] = 61.0
    assert "(995 such lines before it were left out)" in bad_requests("aiohttp.server", 1)
    assert "x" * 5000 in bad_requests("colonnade.service", 1)  # the daemon's own are whole
