"""Who may do what at a daemon: the settings [people.NAME], [sign_in] and [control], and what they mean.

A person is known by an account of the company's own sign-in, a token, a certificate, or as a user of this
machine. Roles are apart: who approves need not be who operates. Without any [people] the owner of the
daemon does everything, as the owner of its files can in any case.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, get_args
from urllib.parse import urlsplit

import msgspec

from colonnade.errors import JobError, NotAllowed
from colonnade.job import Section

Role = Literal["viewer", "approver", "operator"]
ROLES: frozenset[Role] = frozenset(get_args(Role))

How = Literal["user", "account", "token", "certificate"]
"""The keys by which a person is known, one of each at most."""


class Known(Section, frozen=True):
    """How a person, or a program, is known, and its roles; a `group` is all whom the sign-in puts there."""

    roles: tuple[Role, ...]
    user: str | None = None  # of this machine, at the commands of the daemon's own user
    account: str | None = None  # as the sign-in says it
    group: str | None = None
    token_file: str | None = None  # for programs, at [control]
    certificate: str | None = None  # the name in a client's certificate, at [control]


class SignIn(Section, frozen=True):
    """How people sign in at the page: at a provider (OpenID Connect), or at a proxy that says who it is."""

    url: str  # where browsers find the page, https://colonnade.shop.example
    issuer: str | None = None
    client_id: str | None = None
    client_secret_file: str | None = None
    account: str = ""  # what names a person: the claim "email", or the proxy's header "X-Forwarded-Email"
    groups: str = ""  # and its groups: the claim "groups", or the header "X-Forwarded-Groups"
    proxy_token_file: str | None = None


class Control(Section, frozen=True):
    """Where programs control the daemon over HTTP, and how they are known."""

    listen: str
    certificate: str | None = None
    key: str | None = None
    client_ca: str | None = None
    max_bytes: int = 2**24


class Person(msgspec.Struct, frozen=True):
    """Somebody who asks a daemon for something: by which name, how that is known, and what they may do.

    `known` is false where a name was only typed in.
    """

    name: str
    by: str
    roles: frozenset[Role] = ROLES
    known: bool = False

    def __str__(self) -> str:
        return f"{self.name} ({self.by})"

    def need(self, role: Role) -> None:
        """Raise NotAllowed unless the person has a role; who has any may look."""
        if role not in self.roles and not (role == "viewer" and self.roles):
            raise NotAllowed(f"{self.name} may not do this: it takes the role {role}, in [people] here")


def found(
    people: Mapping[str, Known], how: How, value: str, by: str, groups: Iterable[str] = ()
) -> Person | None:
    """Return the person whom this names, with the roles of its groups as well; None if it names nobody."""
    groups = frozenset(groups)
    named = [name for name, each in people.items() if getattr(each, how, None) == value]
    rows = [people[name] for name in named]
    rows += [each for each in people.values() if each.group is not None and each.group in groups]
    if not rows:
        return None
    roles = frozenset(role for each in rows for role in each.roles)
    return Person(named[0] if named else value, by, roles, known=True)


def check_people(
    people: Mapping[str, Known], sign_in: SignIn | None, control: Control | None, where: str
) -> None:
    """Raise JobError for people that nobody could be, or settings that let in anybody."""
    for name, each in people.items():
        if not each.roles:
            raise JobError(f"{where}: people.{name}: roles is empty; give {', '.join(get_args(Role))}")
        if all(getattr(each, key) is None for key in Known.__struct_fields__ if key != "roles"):
            raise JobError(
                f"{where}: people.{name}: say how it is known: user, account, group, token_file, certificate"
            )
    for key in ("user", "account", "certificate"):
        values = [getattr(each, key) for each in people.values() if getattr(each, key) is not None]
        if len(set(values)) < len(values):
            raise JobError(f"{where}: people: two have the same {key}")
    if sign_in is not None:
        _check_sign_in(sign_in, f"{where}: sign_in")
    if control is not None:
        if (control.certificate is None) != (control.key is None):
            raise JobError(f"{where}: control: certificate and key go together")
        if control.client_ca is not None and control.certificate is None:
            raise JobError(f"{where}: control.client_ca: needs certificate and key as well")
        if not any(each.token_file or each.certificate for each in people.values()):
            raise JobError(f"{where}: control: nobody in [people] has a token_file or a certificate")


def _check_sign_in(given: SignIn, where: str) -> None:
    """Raise JobError unless people sign in in exactly one way."""
    oidc = [given.issuer, given.client_id, given.client_secret_file]
    if (given.proxy_token_file is None) == (given.issuer is None) or (any(oidc) and not all(oidc)):
        raise JobError(
            f"{where}: give issuer, client_id and client_secret_file of a provider, or proxy_token_file"
        )
    for key in ("url", "issuer"):
        address = getattr(given, key) or "https://"
        parts = urlsplit(address)
        local = parts.scheme == "http" and parts.hostname in ("127.0.0.1", "localhost", "::1")
        if parts.scheme != "https" and not local:
            raise JobError(f"{where}.{key}: {address!r}; write https://..., plain http only on this machine")
