"""Lines that stand for weeks: certificates are looked at again, and nothing waits in vain for a cut one."""

from __future__ import annotations

import asyncio
import errno
import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.deploy.companies import ADA, connected, job, lay_out, settle, settled, together
from tests.deploy.consortium import Consortium
from tests.net.proxy import Proxy
from tests.patience import until

from colonnade.deploy.daemon import commands, control, verbs
from colonnade.deploy.daemon.daemon import Daemon
from colonnade.deploy.settings import Settings, read_settings
from colonnade.errors import JobError, PeerLost
from colonnade.net.stream import certificates
from colonnade.net.stream.authority import issue
from colonnade.net.stream.mux import Mux
from colonnade.net.stream.port import free_ports

PAIR = ("bank", "shop")


def taken_away(consortium: Consortium, monkeypatch: pytest.MonkeyPatch) -> None:
    (consortium.folder("bank") / "certificates" / "shop.crt").unlink()


def expired(consortium: Consortium, monkeypatch: pytest.MonkeyPatch) -> None:
    class Later(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return datetime.now(UTC) + timedelta(days=3)

    monkeypatch.setattr(certificates, "datetime", Later)


@pytest.mark.parametrize(
    ("happens", "reason"),
    [(taken_away, "no certificate of shop is pinned at bank"), (expired, "presented to bank expired on")],
)
def test_a_standing_line_ends_with_the_certificate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, happens: Callable[..., None], reason: str
) -> None:
    consortium = lay_out(tmp_path, PAIR)
    authority = tmp_path / "authority"
    for file in ("shop.crt", "shop.key"):
        (authority / file).unlink()
    issue(authority, "shop", days=2)
    for name in PAIR:
        for file in ("shop.crt", "shop.key")[: 2 if name == "shop" else 1]:
            shutil.copy2(authority / file, consortium.folder(name) / "certificates" / file)

    async def main() -> str:
        daemons = {name: Daemon(read_settings(consortium.config(name))) for name in PAIR}
        daemons["bank"].mux.recheck_s = 0.1
        try:
            for daemon in daemons.values():
                await daemon.open()
            await connected(daemons)
            happens(consortium, monkeypatch)
            line = daemons["bank"].mux.lines["shop"]
            await until(lambda: reason in line.reason)
            return line.reason
        finally:
            for daemon in daemons.values():
                await daemon.close()

    assert reason in asyncio.run(main())


@pytest.mark.slow
def test_a_proposal_outlives_a_line_that_is_down_for_longer_than_ten_seconds(tmp_path: Path) -> None:
    """The line is cut while the shop's operator thinks about it; everything is as it is by default."""
    consortium = lay_out(tmp_path, PAIR)
    settle(
        consortium, "shop", 'accept = ["labels", "scores", "two-parties"]\nmin_rows = 20\napproval = "ask"\n'
    )
    (port,) = free_ports(1)
    for name in PAIR:
        text = consortium.config(name).read_text().replace("reconnect_s = 3.0\n", "")
        if name == "bank":
            text = text.replace(f"127.0.0.1:{consortium.ports['shop']}", f"127.0.0.1:{port}")
        consortium.config(name).write_text(text)

    async def main() -> Any:
        proxy = Proxy(consortium.ports["shop"])
        await proxy.open(port)
        daemons = {name: Daemon(read_settings(consortium.config(name))) for name in PAIR}
        try:
            for daemon in daemons.values():
                await daemon.open()
            await connected(daemons)
            proposed = asyncio.ensure_future(daemons["bank"].train(job(PAIR)))
            await until(lambda: bool(daemons["shop"].approvals.held))
            await proxy.close()
            await asyncio.sleep(12)
            proxy = Proxy(consortium.ports["shop"])
            await proxy.open(port)
            (held,) = daemons["shop"].approvals.held.values()
            request = commands.DecideRequest(held.number, approve=True)
            await verbs.act(daemons["shop"], request, lambda event: None, ADA)
            manifest = await asyncio.wait_for(proposed, 60)
            await settled(daemons["shop"])
            return manifest
        finally:
            for daemon in daemons.values():
                await daemon.close()
            await proxy.close()

    assert asyncio.run(main()).metrics["test_auc"] > 0.8


def test_a_line_is_begun_again_whatever_ended_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    consortium = lay_out(tmp_path, PAIR)
    honest, broken = Mux._wire, [OSError(errno.EMFILE, "Too many open files")]

    def wire(self: Mux, peer: str, ended: Any) -> Any:
        if self.me == "shop" and broken:
            raise broken.pop()
        return honest(self, peer, ended)

    async def program(daemons: dict[str, Daemon]) -> None:
        monkeypatch.setattr(Mux, "_wire", wire)
        line = daemons["bank"].mux.lines["shop"].wire
        assert line is not None
        line._lose(line._links["shop"], PeerLost("it went away"))
        await until(lambda: not broken)
        await connected(daemons)

    together(consortium, program)


def test_commands_reach_the_daemon_by_a_socket_where_nobody_else_can_write(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the path is too long for a socket it lies in a folder of temporary files, which all can list."""
    public = tmp_path_factory.mktemp("s")  # a short name: a socket's path has a limit
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(public))
    consortium = lay_out(tmp_path, PAIR)
    config = consortium.config("bank")
    config.write_text(f'runs = "{"x" * 120}"\n' + config.read_text())

    async def program(daemons: dict[str, Daemon]) -> None:
        settings: Settings = daemons["bank"].settings
        server = await control.serve(daemons["bank"])
        folder = settings.socket.parent
        assert folder != public
        assert (folder.stat().st_mode & 0o777, settings.socket.stat().st_mode & 0o777) == (0o700, 0o600)
        server.close()  # which removes the socket, from Python 3.13 on
        folder.chmod(0o777)
        with pytest.raises(JobError, match="others may write there"):
            await control.serve(daemons["bank"])

    together(consortium, program)
