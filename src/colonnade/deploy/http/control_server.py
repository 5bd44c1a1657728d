"""The daemon's verbs over HTTP and JSON, for programs of this party elsewhere: schedulers, pipelines, pages.

A request shows a token or a certificate that [people] knows, and may do what its roles allow. Answers and
errors are those of the commands; `routes` has the addresses.
"""

from __future__ import annotations

import hmac
import logging
import ssl
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from aiohttp import web
from aiohttp.typedefs import Handler

from colonnade.deploy.daemon.daemon import Daemon
from colonnade.deploy.daemon.verbs import act
from colonnade.deploy.http.connections import listen
from colonnade.deploy.http.routes import ROUTES, HttpAnswer, HttpProblem, Route, document
from colonnade.deploy.people_settings import Control, Person, found
from colonnade.deploy.server_tls import ServerTls
from colonnade.deploy.tokens import read_token
from colonnade.errors import EXITS, ColonnadeError, GoesOn, JobError, NotAllowed

log = logging.getLogger("colonnade.control")

DESCRIPTION = "/openapi.json"
STATUS = {2: 400, 3: 409, 4: 503, 1: 500}
"""HTTP's codes for the exit codes of commands."""


class ControlServer:
    """The HTTP server of one daemon's verbs."""

    def __init__(self, daemon: Daemon, control: Control) -> None:
        self._daemon, self._control = daemon, control
        self._tokens()  # raises what is wrong with them now, and not at the first request

    def _tokens(self) -> dict[str, str]:
        """Return the tokens of people, by their names; they are read each time, so that a new one counts."""
        settings = self._daemon.settings
        return {
            name: read_token(settings.path(each.token_file), f"people.{name}.token_file")
            for name, each in settings.people.items()
            if each.token_file is not None
        }

    async def open(self) -> None:
        """Listen for requests."""
        app = web.Application(client_max_size=self._control.max_bytes, middlewares=[self._guard])
        for route in ROUTES:
            app.router.add_route(route.method, route.path, self._handler(route))
        app.router.add_get(DESCRIPTION, self._describe)
        self._runner = web.AppRunner(app, access_log=None)
        tls = self._tls()
        self._server = await listen(self._runner, "control.listen", self._control.listen, tls)
        log.info("control at %s", self._control.listen)

    async def close(self) -> None:
        """Stop listening."""
        self._server.close()
        await self._runner.cleanup()

    def _tls(self) -> ssl.SSLContext | None:
        """Return the server's own TLS, None if the settings name no certificate for it."""
        control, path = self._control, self._daemon.settings.path
        if control.certificate is None or control.key is None:
            return None
        client_ca = None if control.client_ca is None else path(control.client_ca)
        # a token will do as well as a certificate
        tls = ServerTls("control", path(control.certificate), path(control.key), client_ca, ssl.CERT_OPTIONAL)
        self._daemon.server_tls.append(tls)
        return tls.context

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Answer every error as JSON, with the kind and the code that commands have for it."""
        try:
            answer: web.StreamResponse = await handler(request)
        except web.HTTPException as error:
            return _problem(error.status, error.reason, 2)
        except NotAllowed as error:
            return _problem(403, str(error), error.exit_code)
        except GoesOn as error:
            return _problem(202, str(error), error.exit_code)
        except ColonnadeError as error:
            return _problem(STATUS[error.exit_code], str(error), error.exit_code)
        except Exception:  # no request ends the server
            log.exception("could not answer %s %s", request.method, request.path)
            return _problem(500, "the daemon failed; its log says why", 1)
        return answer

    def _handler(self, route: Route) -> Callable[[web.Request], Awaitable[web.Response]]:
        """Return what answers requests at an address."""

        async def answer(request: web.Request) -> web.Response:
            person = self._person(request)
            body = await _body(request, route.body) if route.body is not None else None
            behind = {name: request.query[name] for name in route.query if name in request.query}
            asked = route.request({**request.match_info, **behind}, body)
            result: Any = await act(self._daemon, asked, lambda event: None, person)
            return _json(200, HttpAnswer(result) if isinstance(result, str) else result)

        return answer

    def _person(self, request: web.Request) -> Person:
        """Return who asks; 401 for somebody whom [people] does not know."""
        people, known = self._daemon.settings.people, None
        scheme, _, given = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            shown = given.strip().encode(errors="surrogateescape")
            for name, token in self._tokens().items():  # all of them, so that the time tells nothing
                if hmac.compare_digest(shown, token.encode()):
                    known = Person(name, "token", frozenset(people[name].roles), known=True)
        elif request.transport is not None:
            for name in _names(request.transport.get_extra_info("peercert")):
                known = known or found(people, "certificate", name, "certificate")
        if known is None:
            raise web.HTTPUnauthorized(reason="show a token (Authorization: Bearer TOKEN) or a certificate")
        return known

    async def _describe(self, request: web.Request) -> web.Response:
        """Answer GET /openapi.json, which says nothing of this party and needs no token."""
        people = self._daemon.settings.people.values()
        return _json(
            200,
            document(
                tokens=any(each.token_file for each in people),
                certificates=self._control.client_ca is not None,
            ),
        )


async def _body(request: web.Request, kind: type[msgspec.Struct]) -> msgspec.Struct:
    """Return the body of a request; JobError if it is not what the address takes.

    It is said to be JSON: a form of another site, which a browser sends with its certificate, cannot be.
    """
    content = await request.read()
    if request.content_type != "application/json":
        raise web.HTTPUnsupportedMediaType(reason="send JSON, with Content-Type: application/json")
    try:
        return msgspec.json.decode(content or b"{}", type=kind)
    except msgspec.MsgspecError as error:
        raise JobError(f"the body is not what {request.path} takes: {error}") from error


def _names(certificate: Any) -> list[str]:
    """Return the names in a client's certificate, as Python's ssl has it."""
    if not certificate:
        return []
    names = [value for kind, value in certificate.get("subjectAltName", ()) if kind in ("DNS", "email")]
    names += [
        value for part in certificate.get("subject", ()) for kind, value in part if kind == "commonName"
    ]
    return names


def _json(status: int, value: object) -> web.Response:
    return web.Response(status=status, body=msgspec.json.encode(value), content_type="application/json")


def _problem(status: int, text: str, code: int) -> web.Response:
    """Return an error as JSON."""
    return _json(status, HttpProblem(text, EXITS[code], code))
