"""The daemon's page for its operators, beside /health and /metrics on the monitor's port.

Pages are made here, as HTML, and change nothing; all that changes something is a form that is posted. The
rules about who may do that are in `access`. A page may load its own sheet and script and nothing else.
"""

from __future__ import annotations

import logging
from importlib.resources import files

from aiohttp import web
from aiohttp.typedefs import Handler

from colonnade.deploy.daemon import operators
from colonnade.deploy.daemon.daemon import Daemon
from colonnade.deploy.http import monitor
from colonnade.deploy.http.connections import listen
from colonnade.deploy.http.pages import content
from colonnade.deploy.http.pages.access import Access, SignedIn, comes_from_here, names_this_machine, same
from colonnade.deploy.people_settings import Person
from colonnade.deploy.settings import address
from colonnade.deploy.tokens import read_token
from colonnade.errors import ColonnadeError

log = logging.getLogger("colonnade.page")

FORM_LIMIT = 16384
OPEN = ("/login", "/page.css", "/page.js")
SCRAPED = ("/health", "/ready", "/metrics")
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Site:
    """The pages of one daemon."""

    def __init__(self, daemon: Daemon) -> None:
        settings = daemon.settings
        self._daemon, self._where = daemon, settings.monitor or ""
        token_file = settings.path(settings.monitor_token_file or "")
        self.access = Access(read_token(token_file, "monitor_token_file"))
        host, port = address(self._where, "monitor")
        self._host, self._port = host, port
        self._cookie = f"colonnade_{port}"  # a cookie counts for all ports of a machine

    async def open(self) -> None:
        """Listen, and let commands make links to this page."""
        app = web.Application(client_max_size=FORM_LIMIT, middlewares=[self._guard])
        app.router.add_get("/", self._overview)
        app.router.add_get("/login", self._ask)
        app.router.add_post("/login", self._sign_in)
        app.router.add_post("/logout", self._sign_out)
        app.router.add_post("/proposals/{run}/{verdict:approve|refuse}", self._decide)
        app.router.add_post("/models/{verb:promote|rollback}", self._change_model)
        app.router.add_get("/{name:page.css|page.js}", _static)
        app.router.add_get("/{name:health|ready|metrics}", self._scraped)
        self._runner = web.AppRunner(app, access_log=None)
        self._server = await listen(self._runner, "monitor", self._where)
        self._daemon.invite = self.link
        log.info("the page is http://%s/; `colonnade party --login` opens it", self._where)

    async def close(self) -> None:
        """Stop listening."""
        self._server.close()
        await self._runner.cleanup()

    def link(self, who: Person) -> str:
        """Return a link that opens the page once; what stands behind # is never part of a request."""
        return f"http://{self._where}/login#{self.access.invite(who)}"

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Turn away clients that may not ask, and say in every answer what a page may do."""
        try:
            answer = await self._checked(request, handler)
        except web.HTTPException as error:
            if not 300 <= error.status < 400:
                answer = web.Response(status=error.status, text=f"{error.reason}\n")
            else:
                answer = web.Response(status=error.status, headers={"Location": error.headers["Location"]})
        for name, value in HEADERS.items():
            answer.headers[name] = value
        return answer

    async def _checked(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.path not in SCRAPED:
            if not names_this_machine(request.headers.get("Host", "")):
                raise web.HTTPForbidden(reason="this page is only known as 127.0.0.1 or localhost")
            if request.method not in ("GET", "HEAD") and not comes_from_here(request.headers):
                raise web.HTTPForbidden(reason="another site sent this form")
            if request.path not in OPEN:
                session = self._session(request)
                if request.method == "POST" and not same(await _field(request, "form"), session.form):
                    raise web.HTTPForbidden(reason="this form is of another session; load the page again")
        answer: web.StreamResponse = await handler(request)
        return answer

    def _session(self, request: web.Request) -> SignedIn:
        """Return the session of a request; a visitor that has none is sent to sign in."""
        session = self.access.session(request.cookies.get(self._cookie))
        if session is None:
            raise web.HTTPSeeOther("/login")
        return session

    async def _overview(self, request: web.Request) -> web.Response:
        return _html(content.overview(self._daemon, self._session(request)))

    async def _ask(self, request: web.Request) -> web.Response:
        return _html(content.sign_in(self._daemon.me, ""))

    async def _sign_in(self, request: web.Request) -> web.Response:
        """Begin a session for a visitor that shows the token, or a key that was not used yet."""
        if key := await _field(request, "key"):
            cookie, problem = (
                await self.access.redeem(key),
                "This link was used or is too old.",
            )
        else:
            token, name = await _field(request, "token"), await _field(request, "name")
            cookie, problem = await self.access.sign_in(token.strip(), name), "That is not the token."
        if cookie is None:
            log.warning("somebody at %s failed to sign in", request.remote)
            return _html(content.sign_in(self._daemon.me, problem), 401)
        log.info("somebody signed in from %s", request.remote)
        answer = web.Response(status=303, headers={"Location": "/"})
        answer.set_cookie(self._cookie, cookie, httponly=True, samesite="Strict", path="/")
        return answer

    async def _sign_out(self, request: web.Request) -> web.Response:
        self.access.sign_out(request.cookies.get(self._cookie))
        answer = web.Response(status=303, headers={"Location": "/login"})
        answer.del_cookie(self._cookie, path="/")
        return answer

    async def _decide(self, request: web.Request) -> web.Response:
        """Approve or refuse a proposal, if it is the one that the page showed."""
        session = self._session(request)
        run, digest = request.match_info["run"], await _field(request, "digest")
        try:
            if request.match_info["verdict"] == "refuse":
                reason = await _field(request, "reason")
                decision = await operators.refuse(self._daemon, run, session.who, reason, digest)
            elif await _field(request, "read") != "yes":
                raise web.HTTPBadRequest(reason="say that you have read what the proposal gives away")
            else:
                decision = await operators.approve(self._daemon, run, session.who, digest)
            session.tell(decision.line())
        except ColonnadeError as error:
            session.tell(str(error), failed=True)
        raise web.HTTPSeeOther("/")

    async def _change_model(self, request: web.Request) -> web.Response:
        """Promote a model, or go back to the one before."""
        session = self._session(request)
        try:
            if request.match_info["verb"] == "promote":
                model = await _field(request, "model")
                decision = await operators.promote(self._daemon, model, session.who)
            else:
                name = await _field(request, "name")
                decision = await operators.rollback(self._daemon, name, session.who)
            session.tell(decision.line())
        except ColonnadeError as error:
            session.tell(str(error), failed=True)
        raise web.HTTPSeeOther("/")

    async def _scraped(self, request: web.Request) -> web.Response:
        status, text = monitor.page(self._daemon, request.path)
        return web.Response(status=int(status.split()[0]), text=text, content_type="text/plain")


async def _static(request: web.Request) -> web.Response:
    """Return the sheet or the script of the page."""
    name = request.match_info["name"]
    kind = "text/css" if name.endswith("css") else "text/javascript"
    text = files("colonnade.deploy.http.pages").joinpath(name).read_text(encoding="utf-8")
    return web.Response(text=text, content_type=kind)


async def _field(request: web.Request, name: str) -> str:
    """Return a field of the form that was posted; empty if it is not there or is a file."""
    value = (await request.post()).get(name, "")
    return value if isinstance(value, str) else ""


def _html(text: str, status: int = 200) -> web.Response:
    return web.Response(text=text, content_type="text/html", status=status)
