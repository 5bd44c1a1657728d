"""Settings that are read again: peers, certificates and policy change, and runs go on."""

from __future__ import annotations

import asyncio
import shutil
import signal
import ssl
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.deploy.companies import connected, job, lay_out, settle
from tests.deploy.consortium import Consortium
from tests.patience import until

from colonnade.deploy import expiry
from colonnade.deploy.daemon import verbs
from colonnade.deploy.daemon.check import survey
from colonnade.deploy.daemon.daemon import Daemon
from colonnade.deploy.settings import read_settings
from colonnade.errors import CertificateError, ColonnadeError, JobError, Refused
from colonnade.net.stream.authority import issue, make_authority
from colonnade.net.stream.pem_files import der
from colonnade.net.stream.port import free_ports

PAIR = ("bank", "shop")
LONG = {"train": {"epochs": 400, "batch": 32, "tolerance": 0.0}, "secure": {"labels": "clear"}}


def together(consortium: Consortium, program: Callable[[dict[str, Daemon]], Awaitable[Any]]) -> Any:
    async def main() -> Any:
        daemons = {
            name: Daemon(read_settings(file), reread=partial(read_settings, file))
            for name in consortium.names
            for file in [consortium.config(name)]
        }
        try:
            for daemon in daemons.values():
                await daemon.open()
            await connected(daemons)
            return await program(daemons)
        finally:
            for daemon in daemons.values():
                await daemon.close()

    return asyncio.run(main())


def new_certificate(consortium: Consortium, name: str) -> bytes:
    """Issue another certificate for a party, into a folder of its own; returns it."""
    fresh = consortium.root / "fresh"
    fresh.mkdir()
    for file in ("ca.crt", "ca.key"):
        shutil.copy2(consortium.root / "authority" / file, fresh / file)
    issue(fresh, name)
    return (fresh / f"{name}.crt").read_bytes()


def test_a_certificate_changes_while_a_run_goes_on(tmp_path: Path) -> None:
    consortium = lay_out(tmp_path, PAIR)
    new = new_certificate(consortium, "shop")
    at_bank = consortium.folder("bank") / "certificates" / "shop.crt"
    old = at_bank.read_bytes()

    async def program(daemons: dict[str, Daemon]) -> Any:
        bank, shop = daemons["bank"], daemons["shop"]
        training = asyncio.ensure_future(bank.train(job(PAIR, **LONG)))
        await until(lambda: any(run.followed.losses for run in bank.runs.values()))
        at_bank.write_bytes(old + new)
        assert "the certificate of shop" in await bank.reload()
        shown = bank.mux.lines["shop"].wire
        for file in ("shop.crt", "shop.key"):
            shutil.copy2(consortium.root / "fresh" / file, consortium.folder("shop") / "certificates" / file)
        assert "the certificate of shop" in await shop.reload()
        assert shown is not None

        def presents_new() -> bool:
            (link,) = shown._links.values()
            return link.connection is not None and link.connection.channel.certificate == der(new)

        await until(presents_new)
        assert not training.done()
        at_bank.write_bytes(new)
        await bank.reload()
        manifest = await training
        assert bank.mux.lines["shop"].wire is shown  # the line was never away
        await until(lambda: not shop.runs)
        return manifest.metrics["test_auc"], (await bank.train(job(PAIR, secure={"labels": "clear"}))).metrics

    auc, _ = together(consortium, program)
    assert auc > 0.85


def test_servers_of_the_party_show_renewed_certificates(tmp_path: Path) -> None:
    pytest.importorskip("aiohttp")
    from colonnade.deploy.http.control_server import ControlServer

    consortium, (port,) = lay_out(tmp_path, PAIR), free_ports(1)
    folder = consortium.folder("bank")
    shown = {}
    for name in ("old", "new"):
        make_authority(tmp_path / name)
        issue(tmp_path / name, "control")
        shown[name] = (tmp_path / name / "control.crt").read_bytes()

    def put(name: str) -> None:
        for file in ("control.crt", "control.key"):
            shutil.copy2(tmp_path / name / file, folder / file)

    put("old")
    control = f'[control]\nlisten = "127.0.0.1:{port}"\ncertificate = "control.crt"\nkey = "control.key"\n'
    (folder / "token").write_text("a-token-that-is-long-enough")
    (folder / "token").chmod(0o600)
    settle(consortium, "bank", more=f'{control}[people.ada]\ntoken_file = "token"\nroles = ["viewer"]\n')

    async def program(daemons: dict[str, Daemon]) -> None:
        bank = daemons["bank"]
        assert bank.settings.control is not None
        server = ControlServer(bank, bank.settings.control)
        await server.open()

        async def presented() -> bytes:
            pem = await asyncio.to_thread(ssl.get_server_certificate, ("127.0.0.1", port))
            return der(pem.encode())

        assert await presented() == der(shown["old"])
        (folder / "control.key").write_text("no key")
        with pytest.raises(CertificateError, match="control: its certificates cannot be used"):
            await bank.reload()
        assert await presented() == der(shown["old"])
        put("new")
        await bank.reload()
        assert await presented() == der(shown["new"])
        assert set(verbs.status(bank)["certificates"]) == {"ca", *PAIR, "control.crt"}
        await server.close()

    together(consortium, program)


def test_a_revoked_peer_is_away_and_a_new_one_comes(tmp_path: Path) -> None:
    consortium = lay_out(tmp_path)
    text = consortium.config("bank").read_text()
    without = "\n".join(line for line in text.splitlines() if not line.startswith("telecom"))
    consortium.config("bank").write_text(without)

    async def program(daemons: dict[str, Daemon]) -> None:
        bank = daemons["bank"]
        assert set(bank.mux.lines) == {"shop"}
        consortium.config("bank").write_text(text)
        assert "peers" in await bank.reload()
        await connected(daemons)
        shops = bank.mux.lines["shop"].wire
        consortium.config("bank").write_text(without)
        await bank.reload()
        assert set(bank.mux.lines) == set(bank.peers.controls) == {"shop"}
        assert bank.mux.lines["shop"].wire is shops
        await until(lambda: "bank" not in daemons["telecom"].peers.controls)
        with pytest.raises(JobError, match="telecom is not a peer of bank"):
            await bank.train(job())

    async def opened() -> None:
        daemons = {
            name: Daemon(read_settings(file), reread=partial(read_settings, file))
            for name in consortium.names
            for file in [consortium.config(name)]
        }
        try:
            for daemon in daemons.values():
                await daemon.open()
            await until(lambda: "shop" in daemons["bank"].peers.controls)
            await program(daemons)
        finally:
            for daemon in daemons.values():
                await daemon.close()

    asyncio.run(opened())


def test_policy_and_limits_count_from_the_next_proposal(tmp_path: Path) -> None:
    consortium = lay_out(tmp_path, PAIR)

    async def program(daemons: dict[str, Daemon]) -> None:
        clear = job(PAIR, secure={"labels": "clear"})
        await daemons["bank"].train(clear)
        settle(consortium, "shop", "accept = []\nmin_rows = 20")
        assert "policy" in await daemons["shop"].reload()
        with pytest.raises(Refused, match=r"shop refused: .*not accepted"):
            await daemons["bank"].train(clear)
        settle(consortium, "shop", more="[limits]\nepochs = 5\n")
        assert "limits" in await daemons["shop"].reload()
        with pytest.raises(Refused, match=r"limits\.epochs"):
            await daemons["bank"].train(clear)

    together(consortium, program)


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        (lambda text: text + "\n[limts]\n", JobError, "limts"),
        (
            lambda text: text.replace("reconnect_s = 3.0", "reconnect_s = 4.0"),
            JobError,
            "reconnect_s: cannot",
        ),
        (lambda text: text + "[limits]\nwaiting_mb = 3.0\n", JobError, r"limits\.waiting_mb: cannot"),
        (
            lambda text: text.replace("[peers]", '[peers]\ncard = "127.0.0.1:9"'),
            CertificateError,
            r"card\.crt",
        ),
    ],
)
def test_a_bad_file_changes_nothing(
    tmp_path: Path, change: Callable[[str], str], error: type[ColonnadeError], said: str
) -> None:
    consortium = lay_out(tmp_path, PAIR)

    async def program(daemons: dict[str, Daemon]) -> None:
        shop = daemons["shop"]
        before, credentials, file = shop.settings, shop.mux.credentials, consortium.config("shop")
        file.write_text(change(file.read_text()).replace("min_rows = 20", "min_rows = 30"))
        with pytest.raises(error, match=said):
            await shop.reload()
        assert shop.settings is before is shop.books.settings
        assert shop.mux.credentials is credentials
        assert set(shop.mux.lines) == {"bank"}

    together(consortium, program)


@pytest.mark.timeout(200)
def test_a_daemon_reads_again_at_a_command_and_at_sighup(tmp_path: Path) -> None:
    consortium = lay_out(tmp_path, PAIR)
    try:
        consortium.start("bank")
        _wait(lambda: "bank listens" in consortium.log("bank"))
        settle(consortium, "bank", more="[limits]\nepochs = 5\n")
        said = consortium.run("bank", "party", "--reload")
        assert (said.returncode, said.stdout) == (0, "settings were read again: limits\n"), said.stderr
        consortium.config("bank").write_text(consortium.config("bank").read_text() + "[limts]\n")
        consortium.processes["bank"].send_signal(signal.SIGHUP)
        _wait(lambda: "settings stay as they are" in consortium.log("bank"))
        assert "limts" in consortium.log("bank")
        settle(consortium, "bank")
        consortium.processes["bank"].send_signal(signal.SIGHUP)
        _wait(lambda: consortium.log("bank").count("settings were read again: limits") == 2)
    finally:
        consortium.stop()


def _wait(true: Callable[[], bool]) -> None:
    asyncio.run(until(true))


def test_check_says_what_ends_soon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    consortium = lay_out(tmp_path, PAIR)
    settings = read_settings(consortium.config("bank"))
    assert not [line for line in survey(settings).offers if "renew" in line]

    class Later(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return datetime.now(UTC) + timedelta(days=350)

    monkeypatch.setattr(expiry, "datetime", Later)
    soon = [line for line in survey(settings).offers if "holds for 14 days more" in line]
    assert {line.split()[3] for line in soon} == {"ca", *PAIR}
