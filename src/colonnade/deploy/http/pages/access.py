"""Who may open the daemon's page: a visitor that shows the token once, or follows a link that works once.

A session is a random cookie that scripts cannot read and that no other site can send along, and lasts for a
working day. Every form carries a second secret of the session. Requests that name another host than this
machine, or come from another site, are turned away before anything else: a page elsewhere that lets its own
name point to 127.0.0.1 gets nowhere. Tokens are compared in constant time; wrong ones are answered slowly,
one after the other, and while many of them wait no token is looked at. A link still works then.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import ipaddress
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import msgspec

from colonnade.deploy.people_settings import Person

SESSION_S = 8 * 3600.0
INVITATION_S = 300.0
WRONG_S = 1.0  # how long a wrong token takes
MOST_WRONG = 20  # wrong ones that wait at a time
MOST_SESSIONS = 64
NAME_LIMIT = 60


@dataclass
class SignedIn:
    """Somebody who signed in: who it is, the secret of their forms, and what to tell them next."""

    who: Person
    until: float
    form: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    notice: str = ""
    failed: bool = False

    def tell(self, text: str, *, failed: bool = False) -> None:
        """Show a line at the top of the next page."""
        self.notice, self.failed = text, failed

    def told(self) -> tuple[str, bool]:
        """Return the line for the next page and whether it is about a failure; it is shown once."""
        notice, self.notice = self.notice, ""
        return notice, self.failed


@dataclass
class Access:
    """The sessions of one daemon's page; secrets are kept as digests only."""

    token: str
    sessions: dict[str, SignedIn] = field(default_factory=dict)
    invitations: dict[str, tuple[Person, float]] = field(default_factory=dict)
    wrong: int = 0
    slow: asyncio.Lock = field(default_factory=asyncio.Lock)

    def invite(self, who: Person) -> str:
        """Return a key that signs this user in once, within a few minutes."""
        _forget({key: until for key, (_, until) in self.invitations.items()}, self.invitations)
        key = secrets.token_urlsafe(32)
        self.invitations[_digest(key)] = who, time.monotonic() + INVITATION_S
        return key

    async def sign_in(self, token: str, name: str) -> str | None:
        """Return the cookie of a new session for a visitor that shows the token; None, slowly, for a wrong
        one."""
        if self.wrong >= MOST_WRONG:
            return None  # not even looked at, so that many at a time are no faster than one
        if same(token, self.token):
            called = " ".join(name.split())[:NAME_LIMIT]
            return self.begin(Person(called or "somebody", "page"))
        await self._slow_down()
        return None

    async def redeem(self, key: str) -> str | None:
        """Return the cookie of a new session for a visitor that follows a link that was not used before."""
        who, until = self.invitations.pop(_digest(key), (None, 0.0))
        if who is not None and until > time.monotonic():
            return self.begin(msgspec.structs.replace(who, by="page"))
        return None  # at once: nobody guesses 256 random bits

    def named(self, who: Person) -> SignedIn:
        """Return the session of somebody whom a proxy names with every request; it needs no cookie."""
        key = _digest(f"proxy {who.name}")
        session = self.sessions.get(key)
        if session is None or session.who != who or session.until <= time.monotonic():
            self._make_room()
            session = self.sessions[key] = SignedIn(who, time.monotonic() + SESSION_S)
        return session

    def session(self, cookie: str | None) -> SignedIn | None:
        """Return the session of a cookie, if it is one and has not ended."""
        found = self.sessions.get(_digest(cookie)) if cookie else None
        return found if found is not None and found.until > time.monotonic() else None

    def sign_out(self, cookie: str | None) -> None:
        """End the session of a cookie."""
        if cookie:
            self.sessions.pop(_digest(cookie), None)

    def begin(self, who: Person) -> str:
        """Return the cookie of a new session; when there are too many the oldest ends."""
        self._make_room()
        cookie = secrets.token_urlsafe(32)
        self.sessions[_digest(cookie)] = SignedIn(who, time.monotonic() + SESSION_S)
        return cookie

    def _make_room(self) -> None:
        """Forget sessions that have ended, and the oldest where there are too many."""
        _forget({key: each.until for key, each in self.sessions.items()}, self.sessions)
        while len(self.sessions) >= MOST_SESSIONS:
            del self.sessions[next(iter(self.sessions))]

    async def _slow_down(self) -> None:
        """Let visitors that guess wait, one after the other."""
        self.wrong += 1
        try:
            async with self.slow:
                await asyncio.sleep(WRONG_S)
        finally:
            self.wrong -= 1


def _forget(until: dict[str, float], of: dict[str, SignedIn] | dict[str, tuple[Person, float]]) -> None:
    """Delete what has ended."""
    for key in [key for key, end in until.items() if end <= time.monotonic()]:
        del of[key]


def _digest(secret: str) -> str:
    """Return what is kept of a secret."""
    return hashlib.sha256(secret.encode(errors="replace")).hexdigest()


def same(given: str, kept: str) -> bool:
    """Return whether two secrets are equal, in a time that does not tell where they differ."""
    return hmac.compare_digest(_digest(given), _digest(kept))


def names_this_machine(host: str) -> bool:
    """Return whether a Host header is a loopback address or localhost, at any port.

    >>> [names_this_machine(host) for host in ("127.0.0.1:9401", "localhost", "[::1]:80")]
    [True, True, True]
    >>> [names_this_machine(host) for host in ("", "evil.example:9401", "127.0.0.1.evil.example", "10.0.0.7")]
    [False, False, False, False]
    """
    try:
        name = urlsplit(f"//{host}").hostname or ""
        return name == "localhost" or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def comes_from_here(headers: Mapping[str, str], known_as: str = "") -> bool:
    """Return whether a request that changes something comes from this page, as far as a browser says.

    `known_as` is the name under which browsers know it, where that is not the one that is asked.

    >>> comes_from_here({"Host": "127.0.0.1:1", "Origin": "http://127.0.0.1:1"})
    True
    >>> comes_from_here({"Host": "127.0.0.1:1", "Origin": "http://127.0.0.1:2"})
    False
    >>> comes_from_here({"Host": "127.0.0.1:1", "Sec-Fetch-Site": "cross-site"})
    False
    """
    origin = headers.get("Origin")
    names = {headers.get("Host"), *filter(None, [known_as])}
    if origin is not None and urlsplit(origin).netloc not in names:
        return False
    return headers.get("Sec-Fetch-Site", "same-origin") in ("same-origin", "none")
