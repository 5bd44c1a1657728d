"""Signing in at a provider (OpenID Connect): the code flow with PKCE, and an ID token that is checked.

A browser is sent to the provider and comes back with a code, which this daemon exchanges for an ID token. Its
signature, issuer, audience, nonce and end are checked; what was begun in one browser ends in no other.
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import time
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode

import aiohttp
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256, HashAlgorithm

from colonnade.deploy.people_settings import SignIn
from colonnade.errors import Refused

SCOPE = "openid email profile groups"
BEGUN_S = 600.0  # to sign in at the provider
MOST_BEGUN = 200
TIMEOUT = aiohttp.ClientTimeout(total=10)
SKEW_S = 60.0  # of the provider's clock
LEAST_BITS = 2048

Json = dict[str, Any]


@dataclass
class _Begun:
    """What was sent along with a browser: what its answer has to have, and until when."""

    nonce: str
    verifier: str
    until: float


@dataclass
class Provider:
    """One provider, as one daemon's page uses it."""

    settings: SignIn
    secret: str
    begun: dict[str, _Begun] = field(default_factory=dict)

    @property
    def callback(self) -> str:
        """Where browsers come back to; it is to be registered at the provider."""
        return f"{self.settings.url.rstrip('/')}/callback"

    async def begin(self) -> tuple[str, str]:
        """Return where to send a browser, and the state that it has to come back with."""
        now = time.monotonic()
        self.begun = {state: each for state, each in self.begun.items() if each.until > now}
        while len(self.begun) >= MOST_BEGUN:
            del self.begun[next(iter(self.begun))]
        state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
        self.begun[state] = _Begun(nonce, verifier, now + BEGUN_S)
        challenge = _encoded(hashlib.sha256(verifier.encode()).digest())
        async with aiohttp.ClientSession(timeout=TIMEOUT) as session:
            found = await self._found(session)
        asked = {
            "response_type": "code",
            "client_id": self.settings.client_id,
            "redirect_uri": self.callback,
            "scope": SCOPE,
            "state": state,
            "nonce": nonce,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        return f"{found['authorization_endpoint']}?{urlencode(asked)}", state

    async def end(self, state: str, code: str) -> tuple[str, list[str]]:
        """Return the account and the groups of somebody who came back; Refused if anything is not right."""
        begun = self.begun.pop(state, None)
        if begun is None or begun.until < time.monotonic() or not code:
            raise Refused("this sign-in is too old, or was begun elsewhere; sign in again")
        try:
            async with aiohttp.ClientSession(timeout=TIMEOUT) as session:
                found = await self._found(session)
                token = await self._exchange(session, found["token_endpoint"], code, begun.verifier)
                async with session.get(found["jwks_uri"], allow_redirects=False) as answer:
                    keys = (await answer.json(content_type=None))["keys"]
            claims = checked(token, keys)
        except (aiohttp.ClientError, TimeoutError, ValueError, KeyError, TypeError) as error:
            raise Refused(f"the provider's answer cannot be used: {error or type(error).__name__}") from error
        return self._who(claims, begun)

    def _who(self, claims: Json, begun: _Begun) -> tuple[str, list[str]]:
        """Return account and groups of the claims of a token whose signature is right."""
        given, audience = self.settings, claims.get("aud")
        named = audience if isinstance(audience, list) else [audience]
        problem = ""
        if claims.get("iss") != given.issuer:
            problem = "is of another issuer"
        elif given.client_id not in named or claims.get("azp", given.client_id) != given.client_id:
            problem = "is for another client"
        elif not secrets.compare_digest(str(claims.get("nonce")), begun.nonce):
            problem = "belongs to another sign-in"
        elif not isinstance(end := claims.get("exp"), int | float) or end < time.time() - SKEW_S:
            problem = "has ended"
        key = given.account or "email"
        account, groups = claims.get(key), claims.get(given.groups or "groups") or []
        if not problem and (not isinstance(account, str) or not account):
            problem = f"has no {key}"
        elif not problem and key == "email" and claims.get("email_verified") is False:
            problem = "has an address that was never verified"
        if problem:
            raise Refused(f"the provider's token {problem}")
        return str(account), [str(each) for each in groups] if isinstance(groups, list) else [str(groups)]

    async def _found(self, session: aiohttp.ClientSession) -> Json:
        """Return what the provider says of itself; Refused if that is of another issuer."""
        issuer = self.settings.issuer or ""
        try:
            where = f"{issuer.rstrip('/')}/.well-known/openid-configuration"
            async with session.get(where, allow_redirects=False) as answer:
                found: Json = await answer.json(content_type=None)
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            raise Refused(f"the provider {issuer} cannot be reached: {error}") from error
        if not isinstance(found, dict) or found.get("issuer") != issuer:
            raise Refused(f"the provider says that it is not {issuer}; compare sign_in.issuer")
        return found

    async def _exchange(self, session: aiohttp.ClientSession, where: str, code: str, verifier: str) -> str:
        """Return the ID token that a code stands for."""
        asked = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self.callback,
            "code_verifier": verifier,
        }
        named = f"{quote(self.settings.client_id or '', safe='')}:{quote(self.secret, safe='')}"
        login = {"Authorization": f"Basic {base64.b64encode(named.encode()).decode()}"}
        async with session.post(where, data=asked, headers=login, allow_redirects=False) as answer:
            found = await answer.json(content_type=None)
        if answer.status != 200:
            raise ValueError(found.get("error_description") or found.get("error") or answer.status)
        return str(found["id_token"])


def checked(token: str, keys: list[Json]) -> Json:
    """Return the claims of an ID token; ValueError unless one of these keys has signed it.

    Only signatures by RSA and by the curve P-256, with SHA-256, are known: not "none", and no shared secret.
    """
    head, body, signature = token.split(".")
    header = json.loads(_decoded(head))
    wanted = {"RS256": "RSA", "ES256": "EC"}.get(header.get("alg"))
    if wanted is None:
        raise ValueError(f"its token is signed by {header.get('alg')!r}, which is not RS256 or ES256")
    named = [key for key in keys if key.get("kid") == header.get("kid")] or keys
    for key in named:
        if key.get("kty") == wanted and key.get("use", "sig") == "sig":
            try:
                _verify(key, _decoded(signature), f"{head}.{body}".encode())
            except InvalidSignature:
                continue
            claims: Json = json.loads(_decoded(body))
            return claims
    raise ValueError("no key of the provider has signed its token")


def _verify(key: Json, signature: bytes, signed: bytes) -> None:
    """Raise InvalidSignature unless this key, as JSON has it, has signed these bytes."""
    algorithm: HashAlgorithm = SHA256()
    if key["kty"] == "RSA":
        public = rsa.RSAPublicNumbers(_number(key["e"]), _number(key["n"])).public_key()
        if public.key_size < LEAST_BITS:
            raise ValueError(f"the provider's key has {public.key_size} bits, fewer than {LEAST_BITS}")
        public.verify(signature, signed, padding.PKCS1v15(), algorithm)
        return
    if key.get("crv") != "P-256" or len(signature) != 64:
        raise ValueError("the provider's key is on another curve than P-256")
    numbers = ec.EllipticCurvePublicNumbers(_number(key["x"]), _number(key["y"]), ec.SECP256R1())
    halves = (int.from_bytes(signature[:32], "big"), int.from_bytes(signature[32:], "big"))
    numbers.public_key().verify(encode_dss_signature(*halves), signed, ec.ECDSA(algorithm))


def _encoded(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def _decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _number(text: str) -> int:
    return int.from_bytes(_decoded(text), "big")
