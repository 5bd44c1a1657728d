"""Standing lines: a run goes on over a line that was cut, and frames of no run are counted and dropped."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.deploy.companies import connected, job, lay_out, settled, together
from tests.net.proxy import Proxy
from tests.patience import until

from colonnade.deploy.daemon.daemon import Daemon
from colonnade.deploy.settings import read_settings
from colonnade.errors import PeerUnreachable
from colonnade.messages import Seal
from colonnade.net.stream.port import free_ports

PAIR = ("bank", "shop")


def test_training_goes_on_after_the_line_was_cut(tmp_path: Path) -> None:
    consortium = lay_out(tmp_path, PAIR)
    (port,) = free_ports(1)
    for name in PAIR:  # as patient as real daemons: how long a new line takes is the machine's affair
        file = consortium.config(name)
        file.write_text(file.read_text().replace("reconnect_s = 3.0\n", ""))
    text = consortium.config("bank").read_text()
    direct = f'shop = "127.0.0.1:{consortium.ports["shop"]}"'
    assert direct in text  # the bank dials, so its way to the shop leads through the proxy
    consortium.config("bank").write_text(text.replace(direct, f'shop = "127.0.0.1:{port}"'))

    async def main() -> tuple[Any, int]:
        proxy = Proxy(consortium.ports["shop"])
        await proxy.open(port)
        daemons = {name: Daemon(read_settings(consortium.config(name))) for name in PAIR}
        try:
            for daemon in daemons.values():
                await daemon.open()
            await connected(daemons)
            training = asyncio.ensure_future(
                daemons["bank"].train(job(PAIR, train={"epochs": 60, "batch": 32}))
            )
            for _ in range(2):
                await asyncio.wait_for(proxy.carry(60_000), 60)
                proxy.cut()
            manifest = await asyncio.wait_for(training, 60)
            await settled(daemons["shop"])
            return manifest, proxy.connections
        finally:
            for daemon in daemons.values():
                await daemon.close()
            await proxy.close()

    manifest, connections = asyncio.run(main())
    assert manifest.metrics["test_auc"] > 0.8
    assert connections >= 2


def test_runs_do_not_hear_each_other(tmp_path: Path) -> None:
    consortium = lay_out(tmp_path, PAIR)

    async def program(daemons: dict[str, Daemon]) -> None:
        bank, shop = (daemons[name].mux for name in PAIR)
        one = [mux.endpoint(0x100, PAIR, deadline=60) for mux in (bank, shop)]
        other = [mux.endpoint(0x200, PAIR, deadline=60) for mux in (bank, shop)]
        await one[0].send("shop", Seal(b"one"))
        await other[0].send("shop", Seal(b"other"))
        assert (await other[1].recv(Seal, "bank")).digest == b"other"
        assert (await one[1].recv(Seal, "bank")).digest == b"one"
        await one[1].close()
        await one[0].send("shop", Seal(b"too late"))
        await until(lambda: shop.refused["WrongRun"] >= 1)
        await daemons["shop"].close()
        with pytest.raises(PeerUnreachable, match="shop is away"):
            await other[0].recv(Seal, "shop")
        with pytest.raises(PeerUnreachable, match="shop is away"):
            bank.endpoint(0x300, PAIR, deadline=60)

    together(consortium, program)
