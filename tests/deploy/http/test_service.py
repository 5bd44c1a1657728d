"""The prediction service answers who may ask, within limits, and says when it cannot; health and metrics."""

from __future__ import annotations

import asyncio
import ssl
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.deploy.companies import connected, job, lay_out, settled, together
from tests.deploy.joined import ids_of
from tests.patience import until

from colonnade.data.read.ids import LONGEST
from colonnade.deploy.daemon import commands, verbs
from colonnade.deploy.daemon.daemon import Daemon
from colonnade.deploy.http import monitor
from colonnade.deploy.settings import Serve
from colonnade.net.stream.port import free_ports

aiohttp = pytest.importorskip("aiohttp")

TOKEN = "a-token-of-some-length"  # noqa: S105
HEADERS = {"Authorization": f"Bearer {TOKEN}"}


async def ask(session: Any, url: str, body: Any, **more: Any) -> tuple[int, Any]:
    async with session.post(f"{url}/v1/score", json=body, **more) as answer:
        return answer.status, await answer.json()


ODD_BODIES = (
    b"", b"\xff\xfe", b"[]", b"{", b"null", b'{"ids": null}', b'{"ids": "C00001"}', b'{"ids": [true]}',
    b'{"ids": [1.5]}', b'{"ids": [' + b"9" * 5000 + b"]}", b'{"ids": [' + b"[" * 3000 + b"]" * 3000 + b"]}",
    b'{"ids": ["\\ud800"]}', b'{"ids": [""]}', b'{"ids": [[]]}', b'{"ids": ["C00001", ["C00001", "x"]]}',
    b'{"ids": ["C00001"], "more": 1}',
)  # fmt: skip


def test_service(tmp_path: Path) -> None:
    accept = 'accept = ["labels", "scores"]\nmin_rows = 20\ndegraded = true'
    consortium = lay_out(tmp_path, shop=accept)
    (tmp_path / "bank" / "token").write_text(TOKEN + "\n")
    (tmp_path / "bank" / "token").chmod(0o600)
    port, pages = free_ports(2)
    url = f"http://127.0.0.1:{port}"
    where, file = f"127.0.0.1:{port}", "token"
    serve = Serve(listen=where, model="repaid", data="applicants", token_file=file, max_ids=50)
    text = consortium.config("bank").read_text() + "[limits]\nrefreshes_an_hour = 2\n"
    first = f'monitor = "127.0.0.1:{pages}"\ntest_scores = "keep"\n'
    consortium.config("bank").write_text(first + text)
    applicants = ids_of(tmp_path / "bank" / "applicants.csv", "id")

    from colonnade.deploy.http.service import Service

    async def program(daemons: dict[str, Daemon]) -> None:
        await daemons["bank"].train(job(use={"degraded": True}, split={"test": 0.4}))
        for name in ("shop", "telecom"):
            await settled(daemons[name])
        request = commands.PredictRequest("repaid", [applicants], "applicants")
        batch = await verbs._predict(daemons["bank"], request, lambda event: None)
        service = Service(daemons["bank"], serve)
        await service.open()
        health = await monitor.serve(daemons["bank"])
        try:
            await until(lambda: service.session.ready)
            async with aiohttp.ClientSession(headers=HEADERS) as session:
                await answers(session, url, batch)
                await refusals(session, url)
                for _ in range(2):  # enough scores to compare them with those of the test rows
                    await concurrent(session, url, batch)
                await goes_on_without(session, url, daemons, service)
                await pages_for_operators(session, pages)
                await refreshes(session, url)
                await hides_its_files(session, url, service)
        finally:
            health.close()
            await service.close()

    async def answers(session: Any, url: str, batch: Any) -> None:
        status, found = await ask(session, url, {"ids": [*applicants[:3], "C99999"]})
        assert status == 200
        assert [row["found"] for row in found["scores"]] == [True, True, True, False]
        expected = [row["score"] for row in batch["rows"][:3]]
        assert np.allclose([row["score"] for row in found["scores"][:3]], expected, atol=1e-9)
        async with session.get(f"{url}/v1/model") as answer:
            assert (await answer.json())["ready"]
        async with session.get(f"{url}/openapi.json", headers={"Authorization": ""}) as answer:
            described = await answer.json()
        assert "repaid" not in str(described)
        assert described["paths"]["/v1/score"]["post"]["requestBody"]["required"]

    async def refusals(session: Any, url: str) -> None:
        for headers in (
            {"Authorization": "Bearer wrong"},
            {"Authorization": ""},
            {"Authorization": "Bearer ä"},
        ):
            status, found = await ask(session, url, {"ids": ["C00001"]}, headers=headers)
            assert (status, "token" in found["error"]) == (401, True)
        bodies: list[Any] = [{"ids": []}, {"ids": ["x"] * 51}, {"id": "C00001"}, [1], {"ids": [["a", "b"]]}]
        for body in bodies:
            status, found = await ask(session, url, body)
            assert status == 400, found
        for raw in ODD_BODIES:
            async with session.post(f"{url}/v1/score", data=raw) as answer:
                assert answer.status == 400, raw[:40]
                assert "error" in await answer.json()
        status, found = await ask(session, url, {"ids": ["x" * 70_000]})
        assert (status, "at most 65536 bytes" in found["error"]) == (413, True)
        async with session.get(f"{url}/nothing") as answer:
            assert answer.status == 404
        await one_long_id(session, url)

    async def one_long_id(session: Any, url: str) -> None:
        """One long id among many makes room for nobody: neither is it taken nor do others grow with it."""
        tracemalloc.start()
        for longest, answered in ((58_000, 400), (LONGEST + 1, 400), (LONGEST, 200)):
            status, found = await ask(session, url, {"ids": ["x" * longest, *("y" * 49)]})
            assert status == answered, found
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert most < 2e6  # an array of texts as long as the longest took 58,000 * 50 * 4 bytes

    async def concurrent(session: Any, url: str, batch: Any) -> None:
        found = await asyncio.gather(*(ask(session, url, {"ids": [name]}) for name in applicants))
        scores = [answer["scores"][0]["score"] for _, answer in found]
        assert np.allclose(scores, [row["score"] for row in batch["rows"]], atol=1e-9)

    async def goes_on_without(session: Any, url: str, daemons: dict[str, Daemon], service: Any) -> None:
        await daemons["telecom"].close()
        await until(lambda: service.session.scorable.away == ["telecom"] and service.session.ready)
        status, found = await ask(session, url, {"ids": applicants[:1]})
        assert (status, found["degraded"]) == (200, ["telecom"])
        daemons["telecom"] = Daemon(daemons["telecom"].settings)
        await daemons["telecom"].open()
        await connected(daemons)
        await until(lambda: service.session.scorable.away == [] and service.session.ready)
        status, found = await ask(session, url, {"ids": applicants[:1]})
        assert (status, found["degraded"]) == (200, [])

    async def refreshes(session: Any, url: str) -> None:
        told = []
        for _ in range(3):
            async with session.post(f"{url}/v1/refresh") as answer:
                told.append((answer.status, await answer.json()))
        assert [status for status, _ in told] == [202, 202, 429]
        assert "limits.refreshes_an_hour = 2" in told[-1][1]["error"]

    async def hides_its_files(session: Any, url: str, service: Any) -> None:
        (weights,) = (tmp_path / "bank" / "runs" / "models").glob("*/weights.npz")
        weights.unlink()
        service.session.refresh()  # the share is read again
        await until(lambda: "operator sees why" in service.session.reason)
        async with session.get(f"{url}/v1/model") as answer:
            assert str(tmp_path) not in await answer.text()
        status, found = await ask(session, url, {"ids": applicants[:1]})
        assert (status, str(tmp_path) in str(found)) == (503, False)

    async def pages_for_operators(session: Any, port: int) -> None:
        async with session.get(f"http://127.0.0.1:{port}/health") as answer:
            assert (await answer.text()) == "ok\n"
        async with session.get(f"http://127.0.0.1:{port}/metrics") as answer:
            text = await answer.text()
        assert 'colonnade_peer_up{peer="shop"} 1' in text
        assert 'colonnade_runs_total{state="done"}' in text
        assert 'colonnade_score_psi{model="repaid-' in text
        async with session.get(f"http://127.0.0.1:{port}/other") as answer:
            assert answer.status == 404

    together(consortium, program)


def test_a_client_certificate_instead_of_a_token(tmp_path: Path) -> None:
    consortium = lay_out(tmp_path)
    (port,) = free_ports(1)
    folder = tmp_path / "bank" / "certificates"
    serve = Serve(
        listen=f"127.0.0.1:{port}",
        model="repaid",
        data="applicants",
        client_ca="certificates/ca.crt",
        certificate="certificates/bank.crt",
        key="certificates/bank.key",
    )

    from colonnade.deploy.http.service import Service

    async def program(daemons: dict[str, Daemon]) -> None:
        # a model on top of the parties' outputs this time, so that every request goes through the server
        await daemons["bank"].train(job(algorithm="tig", model={"server": {"kind": "linear"}}))
        for name in ("shop", "telecom"):
            await settled(daemons[name])
        service = Service(daemons["bank"], serve)
        await service.open()
        known = ssl.create_default_context(cafile=str(folder / "ca.crt"))
        known.check_hostname = False
        try:
            await until(lambda: service.session.ready)
            async with aiohttp.ClientSession() as session:
                try:
                    await ask(session, f"https://127.0.0.1:{port}", {"ids": ["C00401"]}, ssl=known)
                    raise AssertionError("answered somebody without a certificate")
                except aiohttp.ClientError:
                    pass
                shop = tmp_path / "shop" / "certificates"
                known.load_cert_chain(shop / "shop.crt", shop / "shop.key")
                status, found = await ask(
                    session, f"https://127.0.0.1:{port}", {"ids": ["C00401"]}, ssl=known
                )
                assert (status, found["scores"][0]["found"]) == (200, True)
        finally:
            await service.close()

    together(consortium, program)
