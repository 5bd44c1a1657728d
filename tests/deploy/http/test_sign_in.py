"""People sign in at a real provider, or through the company's proxy, and decide by their roles."""

from __future__ import annotations

import base64
import json
import re
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit
from urllib.request import urlopen

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256
from tests.deploy.companies import connected, job, lay_out, read_decisions, settle, settled, together
from tests.deploy.negotiate.test_approvals import ASK, heard, waiting
from tests.deploy.test_pages import page, post, secret

from colonnade.deploy.daemon.daemon import Daemon
from colonnade.net.stream.port import free_ports

aiohttp = pytest.importorskip("aiohttp")

TOKEN = "a-token-of-some-length"  # noqa: S105
SECRET = "a-secret-of-the-client"  # noqa: S105
PEOPLE = """[people.ada]
account = "ada@shop.example"
roles = ["approver"]
[people.ben]
account = "ben@shop.example"
roles = ["approver", "viewer"]
[people.eve]
account = "eve@shop.example"
roles = ["viewer"]
[people.risk]
group = "risk"
roles = ["approver"]
"""

Visit = Callable[[dict[str, Daemon], str], Awaitable[None]]


@pytest.fixture
def provider() -> Iterator[str]:
    """A provider on this machine, in a process of its own."""
    pytest.importorskip("oidc_provider_mock", reason="pip install oidc-provider-mock")
    (port,) = free_ports(1)
    server = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-m", "oidc_provider_mock", "--port", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    url = f"http://127.0.0.1:{port}"
    try:
        for _ in range(200):
            try:
                urlopen(f"{url}/.well-known/openid-configuration", timeout=1).close()  # noqa: S310  on loopback
                break
            except OSError:
                time.sleep(0.1)
        yield url
    finally:
        server.terminate()
        server.wait()


def at_shop(tmp_path: Path, sign_in: Callable[[int], str], visit: Visit) -> None:
    """Run a visit to the shop's page, which people enter as `sign_in` says."""
    from colonnade.deploy.http.pages.site import Site

    consortium = lay_out(tmp_path)
    (port,) = free_ports(1)
    for name, content in (("page-token", TOKEN), ("secret", SECRET)):
        (tmp_path / "shop" / name).write_text(content)
        (tmp_path / "shop" / name).chmod(0o600)
    more = f'monitor = "127.0.0.1:{port}"\nmonitor_token_file = "page-token"\n{sign_in(port)}'
    settle(consortium, "shop", f"{ASK}approvals = 2\n", more + PEOPLE)

    async def program(daemons: dict[str, Daemon]) -> None:
        await connected(daemons)
        site = Site(daemons["shop"])
        await site.open()
        try:
            await visit(daemons, f"http://127.0.0.1:{port}")
        finally:
            await site.close()

    together(consortium, program)


async def come_in(client: Any, url: str, account: str) -> tuple[int, str]:
    """Sign in at the provider as a browser does; the page that comes back."""
    async with client.get(f"{url}/sign-in", allow_redirects=False) as answer:
        assert answer.status == 303, await answer.text()
        there = answer.headers["Location"]
        assert "samesite=lax" in answer.headers["Set-Cookie"].lower()
    asked = parse_qs(urlsplit(there).query)
    assert asked["code_challenge_method"] == ["S256"]
    async with client.post(there, data={"sub": account}, allow_redirects=False) as answer:
        back = answer.headers["Location"]
    return await page(client, back)


def browser() -> Any:
    return aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True))


def test_two_people_sign_in_at_a_provider_and_approve(tmp_path: Path, provider: str) -> None:
    def sign_in(port: int) -> str:
        return (
            f'[sign_in]\nurl = "http://127.0.0.1:{port}"\nissuer = "{provider}"\n'
            'client_id = "colonnade"\nclient_secret_file = "secret"\n'
        )

    async def visit(daemons: dict[str, Daemon], url: str) -> None:
        train = heard(daemons["bank"], job(), [])
        seen = await waiting(daemons["shop"])
        where = f"{url}/proposals/{seen.run}/approve"
        async with browser() as ada, browser() as ben, browser() as eve, browser() as stranger:
            assert "Sign in with your account" in (await page(ada, f"{url}/login"))[1]
            assert (await come_in(ada, url, "ada@shop.example"))[0] == 200
            status, text = await page(ada, f"{url}/")
            assert (status, "ada (account)" in text) == (200, True)
            assert "Stop" not in text
            decide = {"form": secret(text), "digest": seen.digest, "read": "yes"}
            assert "1 more to approve" in (await post(ada, where, decide))[1]
            assert "ada has approved repaid already" in (await post(ada, where, decide))[1]
            # who only looks sees no button, and a form of its own making changes nothing
            await come_in(eve, url, "eve@shop.example")
            text = (await page(eve, f"{url}/"))[1]
            assert "Somebody with the role approver decides" in text
            forged = {"form": secret(text), "digest": seen.digest, "read": "yes"}
            assert "it takes the role approver" in (await post(eve, where, forged))[1]
            # the token of the page names nobody who counts
            await post(stranger, f"{url}/login", {"token": TOKEN, "name": "ben"})
            text = (await page(stranger, f"{url}/"))[1]
            typed = {"form": secret(text), "digest": seen.digest, "read": "yes"}
            assert "each by an account of their own" in (await post(stranger, where, typed))[1]
            status, text = await come_in(stranger, url, "mallory@elsewhere.example")
            assert (status, "mallory@elsewhere.example is not in [people] here" in text) == (403, True)
            await come_in(ben, url, "ben@shop.example")
            text = (await page(ben, f"{url}/"))[1]
            decide = {"form": secret(text), "digest": seen.digest, "read": "yes"}
            await post(ben, where, decide)
        await train
        await settled(daemons["shop"])

    at_shop(tmp_path, sign_in, visit)
    decisions = read_decisions(tmp_path / "shop" / "runs" / "journal.jsonl")
    assert [(each.who, each.people) for each in decisions] == [
        ("ada (account)", ("ada",)),
        ("ben (account)", ("ada", "ben")),
    ]


def test_a_sign_in_that_was_begun_elsewhere_gets_nowhere(tmp_path: Path, provider: str) -> None:
    def sign_in(port: int) -> str:
        return (
            f'[sign_in]\nurl = "http://127.0.0.1:{port}"\nissuer = "{provider}"\n'
            'client_id = "colonnade"\nclient_secret_file = "secret"\n'
        )

    async def visit(daemons: dict[str, Daemon], url: str) -> None:
        async with browser() as ada, browser() as victim:
            async with ada.get(f"{url}/sign-in", allow_redirects=False) as answer:
                there = answer.headers["Location"]
            data = {"sub": "ada@shop.example"}
            async with ada.post(there, data=data, allow_redirects=False) as answer:
                back = answer.headers["Location"]
            status, text = await page(victim, back)  # in another browser
            assert (status, "begun in another browser" in text) == (403, True)
            assert (await page(ada, back))[0] == 200
            status, text = await page(ada, back)  # a second time
            assert status == 403
            other = re.sub("code=[^&]+", "code=wrong", back)
            assert (await page(ada, other))[0] == 403

    at_shop(tmp_path, sign_in, visit)


def test_the_proxy_of_the_company_says_who_it_is(tmp_path: Path) -> None:
    def sign_in(port: int) -> str:
        return '[sign_in]\nurl = "https://colonnade.shop.example"\nproxy_token_file = "secret"\n'

    async def visit(daemons: dict[str, Daemon], url: str) -> None:
        train = heard(daemons["bank"], job(), [])
        seen = await waiting(daemons["shop"])
        where = f"{url}/proposals/{seen.run}/approve"
        host = {"Host": "colonnade.shop.example", "X-Proxy-Token": SECRET}
        async with browser() as client:
            for account, groups, may in (
                ("ada@shop.example", "", True),
                ("carla@shop.example", "staff, risk", True),
                ("mallory@shop.example", "staff", False),
                ("", "risk", False),
            ):
                headers = {**host, "X-Forwarded-Email": account, "X-Forwarded-Groups": groups}
                status, text = await page(client, f"{url}/", headers=headers)
                assert (status == 200) == may, account
                if may:
                    decide = {"form": secret(text), "digest": seen.digest, "read": "yes"}
                    away = {**headers, "Origin": "https://elsewhere.example"}
                    assert (await post(client, where, decide, headers=away))[0] == 403
                    there = {**headers, "Origin": "https://colonnade.shop.example"}
                    assert (await post(client, where, decide, headers=there))[0] == 200
            lies = {"X-Forwarded-Email": "ada@shop.example"}  # by somebody who is not the proxy
            assert "Sign in" in (await page(client, f"{url}/", headers=lies))[1]
            lies["X-Proxy-Token"] = "another-token-of-some-length"
            assert (await page(client, f"{url}/", headers=lies))[0] == 403
            assert (await page(client, f"{url}/", headers={"Host": "evil.example"}))[0] == 403
        await train
        await settled(daemons["shop"])

    at_shop(tmp_path, sign_in, visit)
    decisions = read_decisions(tmp_path / "shop" / "runs" / "journal.jsonl")
    assert [each.who for each in decisions] == ["ada (account)", "carla@shop.example (account)"]


def test_only_signed_tokens_are_believed() -> None:
    from colonnade.deploy.http.pages.provider import checked

    def encoded(content: bytes) -> str:
        return base64.urlsafe_b64encode(content).rstrip(b"=").decode()

    key = ec.generate_private_key(ec.SECP256R1())
    numbers = key.public_key().public_numbers()
    public = {
        "kty": "EC",
        "crv": "P-256",
        "kid": "one",
        "x": encoded(numbers.x.to_bytes(32, "big")),
        "y": encoded(numbers.y.to_bytes(32, "big")),
    }

    def token(alg: str, claims: dict[str, Any]) -> str:
        head = encoded(json.dumps({"alg": alg, "kid": "one"}).encode())
        body = encoded(json.dumps(claims).encode())
        r, s = decode_dss_signature(key.sign(f"{head}.{body}".encode(), ec.ECDSA(SHA256())))
        return f"{head}.{body}.{encoded(r.to_bytes(32, 'big') + s.to_bytes(32, 'big'))}"

    good = token("ES256", {"email": "ada@shop.example"})
    assert checked(good, [public]) == {"email": "ada@shop.example"}
    head, _, signature = good.split(".")
    forged = f"{head}.{encoded(b'{}')}.{signature}"
    with pytest.raises(ValueError, match="no key of the provider has signed"):
        checked(forged, [public])
    for alg in ("none", "HS256", "RS512"):
        with pytest.raises(ValueError, match="is not RS256 or ES256"):
            checked(token(alg, {}), [public])
    with pytest.raises(ValueError, match="no key of the provider has signed"):
        checked(token("RS256", {}), [public])  # another kind of key than the token says
