"""The daemon's page: who may open it, what it shows and changes, and how it looks in a real browser."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.browser import browser
from tests.deploy.companies import ADA, job, lay_out, read_decisions, running, settle
from tests.deploy.negotiate.test_approvals import ASK, heard, waiting
from tests.patience import until

from colonnade.deploy.daemon import operators
from colonnade.deploy.daemon.daemon import Daemon
from colonnade.errors import Refused
from colonnade.net.stream.port import free_ports

aiohttp = pytest.importorskip("aiohttp")

TOKEN = "a-token-of-some-length"  # noqa: S105

Visit = Callable[[dict[str, Daemon], Any, Any, str], Awaitable[None]]


def at_shop(tmp_path: Path, visit: Visit, policy: str = ASK, *, apart: bool = False) -> None:
    """Run a visit to the shop's page: it gets the daemons, the site, an HTTP client and the address."""
    from colonnade.deploy.http.pages.site import Site

    consortium = lay_out(tmp_path)
    (port,) = free_ports(1)
    token = tmp_path / "shop" / "page-token"
    token.write_text(TOKEN + "\n")
    token.chmod(0o600)
    more = f'monitor = "127.0.0.1:{port}"\nmonitor_token_file = "page-token"\n'
    settle(consortium, "shop", policy, more)

    async def main() -> None:
        async with running(consortium, apart=apart) as daemons:
            site = Site(daemons["shop"])
            await site.open()
            try:
                async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as client:
                    await visit(daemons, site, client, f"http://127.0.0.1:{port}")
            finally:
                await site.close()

    asyncio.run(main())


async def page(client: Any, url: str, **more: Any) -> tuple[int, str]:
    async with client.get(url, **more) as answer:
        return answer.status, await answer.text()


async def post(client: Any, url: str, data: dict[str, str], **more: Any) -> tuple[int, str]:
    async with client.post(url, data=data, **more) as answer:
        return answer.status, await answer.text()


def secret(text: str) -> str:
    found = re.search(r'name="form" value="([^"]+)"', text)
    assert found is not None
    return found[1]


def test_only_who_shows_the_token_gets_in(tmp_path: Path) -> None:
    async def visit(daemons: dict[str, Daemon], site: Any, client: Any, url: str) -> None:
        async with client.get(f"{url}/", allow_redirects=False) as answer:
            assert (answer.status, answer.headers["Location"]) == (303, "/login")
            assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
            assert answer.headers["Cache-Control"] == "no-store"
        assert (await page(client, f"{url}/health"))[1].startswith("ok")
        assert "colonnade_proposals_waiting 0" in (await page(client, f"{url}/metrics"))[1]
        status, text = await post(client, f"{url}/login", {"token": "wrong"})
        assert (status, "That is not the token" in text) == (401, True)
        status, text = await post(client, f"{url}/login", {"key": TOKEN})
        assert status == 401
        # a link works once, and the token in an address never
        assert "sign in" in (await page(client, f"{url}/?token={TOKEN}"))[1]
        key = site.link(ADA).partition("#")[2]
        async with client.post(f"{url}/login", data={"key": key}, allow_redirects=False) as answer:
            cookie = answer.headers["Set-Cookie"]
            assert "HttpOnly" in cookie
            assert "SameSite=Strict" in cookie
        status, text = await page(client, f"{url}/")
        assert (status, "ada (page)" in text) == (200, True)
        assert (await post(client, f"{url}/login", {"key": key}))[0] == 401
        assert (await post(client, f"{url}/logout", {"form": secret(text)}))[0] == 200
        assert "sign in" in (await page(client, f"{url}/"))[1]

    at_shop(tmp_path, visit)


def test_many_guesses_at_a_time_are_no_faster_than_one(monkeypatch: pytest.MonkeyPatch) -> None:
    from colonnade.deploy.http.pages.access import MOST_WRONG, Access

    monkeypatch.setattr("colonnade.deploy.http.pages.access.WRONG_S", 60.0)

    async def program() -> None:
        access = Access(TOKEN)
        guesses = [asyncio.ensure_future(access.sign_in(f"guess {k}", "")) for k in range(MOST_WRONG)]
        await until(lambda: access.wrong == MOST_WRONG)
        assert not any(each.done() for each in guesses)
        assert await access.sign_in(TOKEN, "ada") is None  # not looked at
        assert await access.redeem(access.invite(ADA)) is not None
        for each in guesses:
            each.cancel()
        await asyncio.gather(*guesses, return_exceptions=True)
        assert await access.sign_in(TOKEN, "ada") is not None

    asyncio.run(program())


def test_other_sites_get_nowhere(tmp_path: Path) -> None:
    async def visit(daemons: dict[str, Daemon], site: Any, client: Any, url: str) -> None:
        train = heard(daemons["bank"], job(), [])
        seen = await waiting(daemons["shop"])
        _, text = await post(client, f"{url}/login", {"token": TOKEN, "name": "Ada"})
        good = {"form": secret(text), "digest": seen.digest, "read": "yes"}
        approve = f"{url}/proposals/{seen.run}/approve"
        for data, headers in (
            ({**good, "form": "x"}, {}),
            ({"digest": seen.digest, "read": "yes"}, {}),
            (good, {"Origin": "http://evil.example"}),
            (good, {"Origin": "null"}),
            (good, {"Sec-Fetch-Site": "cross-site"}),
            (good, {"Host": "evil.example"}),
        ):
            assert (await post(client, approve, data, headers=headers))[0] == 403
        assert (await page(client, approve))[0] == 405
        assert (await page(client, f"{url}/", headers={"Host": "evil.example"}))[0] == 403
        assert (await post(client, approve, {**good, "read": ""}))[0] == 400
        _, text = await post(client, approve, {**good, "digest": "0" * 64})
        assert "is not the one that was shown" in text
        assert daemons["shop"].approvals.held
        train.cancel()
        await asyncio.gather(train, return_exceptions=True)

    at_shop(tmp_path, visit)


def test_a_proposal_is_decided_on_the_page(tmp_path: Path) -> None:
    async def visit(daemons: dict[str, Daemon], site: Any, client: Any, url: str) -> None:
        _, text = await post(client, f"{url}/login", {"token": TOKEN, "name": "Ada <b>"})
        assert "Ada &lt;b&gt; (page)" in text
        for verdict in ("refuse", "approve"):
            train = heard(daemons["bank"], job(), [])
            seen = await waiting(daemons["shop"])
            _, text = await page(client, f"{url}/")
            assert "telecom can work out the label of every training row" in text
            assert "visits" in text
            form = {"form": secret(text), "digest": seen.digest, "read": "yes", "reason": "<i>not now</i>"}
            _, text = await post(client, f"{url}/proposals/{seen.run}/{verdict}", form)
            if verdict == "refuse":
                assert "&lt;i&gt;not now&lt;/i&gt;" in text
                with pytest.raises(Refused, match="shop refused: its operator declined"):
                    await train
            else:
                await train
                await until(lambda: not daemons["shop"].runs)
        _, text = await page(client, f"{url}/")
        assert "state good" in text
        assert "<i>" not in text
        whats = [(each.what, each.who) for each in read_decisions(tmp_path / "shop/runs/journal.jsonl")]
        assert whats == [("refused", "Ada <b> (page)"), ("approved", "Ada <b> (page)")]
        # the shop holds no label: it saw how far training was, and no loss
        assert "loss" not in text.partition("<h2>Runs</h2>")[2].partition("<h2>Models</h2>")[0]

    at_shop(tmp_path, visit)


def test_the_page_in_a_browser(tmp_path: Path) -> None:
    """The link of a command signs in by script; light, dark and narrow; a proposal stands there in words."""

    async def visit(daemons: dict[str, Daemon], site: Any, client: Any, url: str) -> None:
        first = heard(daemons["bank"], job(), [])
        seen = await waiting(daemons["shop"])
        await operators.approve(daemons["shop"], seen.run, ADA)
        await first
        train = heard(daemons["bank"], job(), [])
        await until(lambda: bool(daemons["shop"].approvals.estimates))
        with browser() as chromium:

            async def shown(name: str, **how: Any) -> str:
                await asyncio.to_thread(chromium.screenshot, site.link(ADA), tmp_path / f"{name}.png", **how)
                return await asyncio.to_thread(chromium.dom, site.link(ADA), **how)

            looks: dict[str, dict[str, Any]] = {
                "light": {},
                "dark": {"dark": True},
                "narrow": {"size": (420, 2400)},
            }
            for name, how in looks.items():
                text = await shown(name, **how)
                assert "Waiting for your approval" in text
                assert "I have read what it gives away" in text
                assert re.search(r"about .* rounds", text)
                assert (tmp_path / f"{name}.png").stat().st_size > 10_000
            plain = await asyncio.to_thread(chromium.dom, f"{url}/")
            assert "sign in" in plain
        train.cancel()
        await asyncio.gather(train, return_exceptions=True)

    at_shop(tmp_path, visit, apart=True)
