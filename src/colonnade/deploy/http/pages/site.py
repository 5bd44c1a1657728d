"""The daemon's page for its operators, beside /health and /metrics on the monitor's port.

Pages are made here, as HTML, and change nothing; all that changes something is a form that is posted. The
rules about who may do that are in `access`. A page may load its own sheet and script and nothing else.
"""

from __future__ import annotations

import logging
from importlib.resources import files
from urllib.parse import urlsplit

from aiohttp import web
from aiohttp.typedefs import Handler

from colonnade.deploy.daemon import operators
from colonnade.deploy.daemon.daemon import Daemon
from colonnade.deploy.http import monitor
from colonnade.deploy.http.connections import listen
from colonnade.deploy.http.pages import content
from colonnade.deploy.http.pages.access import Access, SignedIn, comes_from_here, names_this_machine, same
from colonnade.deploy.http.pages.provider import Provider
from colonnade.deploy.people_settings import Person, found
from colonnade.deploy.settings import address
from colonnade.deploy.tokens import read_token
from colonnade.errors import ColonnadeError, Refused

log = logging.getLogger("colonnade.page")

FORM_LIMIT = 16384
OPEN = ("/login", "/page.css", "/page.js", "/sign-in", "/callback")
PROXY_TOKEN = "X-Proxy-Token"  # noqa: S105  a name, and no token
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
        given = settings.sign_in
        self._known_as = urlsplit(given.url).netloc if given is not None else ""
        self._provider, self._proxy = None, None
        if given is not None and given.client_secret_file is not None:
            secret = read_token(settings.path(given.client_secret_file), "sign_in.client_secret_file")
            self._provider = Provider(given, secret)
        elif given is not None and given.proxy_token_file is not None:
            self._proxy = read_token(settings.path(given.proxy_token_file), "sign_in.proxy_token_file")

    async def open(self) -> None:
        """Listen, and let commands make links to this page."""
        app = web.Application(client_max_size=FORM_LIMIT, middlewares=[self._guard])
        app.router.add_get("/", self._overview)
        app.router.add_get("/login", self._ask)
        app.router.add_post("/login", self._sign_in)
        app.router.add_post("/logout", self._sign_out)
        app.router.add_get("/sign-in", self._go_to_provider)
        app.router.add_get("/callback", self._came_back)
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
            host = request.headers.get("Host", "")
            if not names_this_machine(host) and not (host and host == self._known_as):
                raise web.HTTPForbidden(reason="this page is only known as 127.0.0.1 or localhost")
            here = comes_from_here(request.headers, self._known_as)
            if request.method not in ("GET", "HEAD") and not here:
                raise web.HTTPForbidden(reason="another site sent this form")
            if request.path not in OPEN:
                session = self._session(request)
                if request.method == "POST" and not same(await _field(request, "form"), session.form):
                    raise web.HTTPForbidden(reason="this form is of another session; load the page again")
        answer: web.StreamResponse = await handler(request)
        return answer

    def _session(self, request: web.Request) -> SignedIn:
        """Return the session of a request; a visitor that has none is sent to sign in."""
        session = self._through_proxy(request) or self.access.session(request.cookies.get(self._cookie))
        if session is None:
            raise web.HTTPSeeOther("/login")
        return session

    def _through_proxy(self, request: web.Request) -> SignedIn | None:
        """Return the session of somebody whom the company's proxy names; None if it is not the proxy that
        asks."""
        given, people = self._daemon.settings.sign_in, self._daemon.settings.people
        if given is None or self._proxy is None or PROXY_TOKEN not in request.headers:
            return None
        if not same(request.headers[PROXY_TOKEN], self._proxy):
            raise web.HTTPForbidden(reason="that is not the proxy's token")
        account = request.headers.get(given.account or "X-Forwarded-Email", "")
        groups = request.headers.get(given.groups or "X-Forwarded-Groups", "")
        person = found(people, "account", account, "account", [each.strip() for each in groups.split(",")])
        if not account or person is None:
            raise web.HTTPForbidden(reason=f"{account or 'nobody'} is not in [people] here")
        return self.access.named(person)

    async def _go_to_provider(self, request: web.Request) -> web.Response:
        """Send a browser to the provider; the state it comes back with is this browser's."""
        if self._provider is None:
            raise web.HTTPNotFound(reason="there is no provider; set [sign_in]")
        try:
            where, state = await self._provider.begin()
        except ColonnadeError as error:
            return _html(self._asks(str(error)), 503)
        answer = web.Response(status=303, headers={"Location": where})
        secure = self._provider.callback.startswith("https:")
        # not "Strict": the browser comes back from another site
        answer.set_cookie(self._state, state, httponly=True, samesite="Lax", secure=secure, max_age=600)
        return answer

    async def _came_back(self, request: web.Request) -> web.Response:
        """Begin a session for somebody whom the provider has sent back, if [people] knows the account."""
        if self._provider is None:
            raise web.HTTPNotFound(reason="there is no provider; set [sign_in]")
        state = request.query.get("state", "")
        try:
            if not state or not same(state, request.cookies.get(self._state, "")):
                raise Refused("this sign-in was begun in another browser; sign in again")
            account, groups = await self._provider.end(state, request.query.get("code", ""))
            person = found(self._daemon.settings.people, "account", account, "account", groups)
            if person is None:
                raise Refused(f"{account} is not in [people] here")
        except ColonnadeError as error:
            log.warning("somebody at %s failed to sign in: %s", request.remote, error)
            return _html(self._asks(str(error)), 403)
        log.info("%s signed in from %s", person, request.remote)
        # a page, and no redirect: a cookie that is "Strict" does not go along with a step from another site
        answer = _html(content.on_to_the_page(self._daemon.me))
        secure = self._provider.callback.startswith("https:")
        cookie = self.access.begin(person)
        answer.set_cookie(self._cookie, cookie, httponly=True, samesite="Strict", secure=secure, path="/")
        answer.del_cookie(self._state)
        return answer

    @property
    def _state(self) -> str:
        """The cookie of a browser that is at the provider."""
        return f"{self._cookie}_state"

    def _asks(self, problem: str) -> str:
        """Return the page that asks visitors to sign in."""
        return content.sign_in(self._daemon.me, problem, provider=self._provider is not None)

    async def _overview(self, request: web.Request) -> web.Response:
        return _html(content.overview(self._daemon, self._session(request)))

    async def _ask(self, request: web.Request) -> web.Response:
        return _html(self._asks(""))

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
            return _html(self._asks(problem), 401)
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
