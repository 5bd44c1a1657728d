"""What the daemon's page shows: proposals that wait, peers, runs, models, the privacy budget, decisions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from colonnade.deploy.books.opened import OpenedBooks
from colonnade.deploy.daemon import views
from colonnade.deploy.daemon.daemon import Daemon
from colonnade.deploy.daemon.proposal_views import proposals
from colonnade.deploy.expiry import SOON_DAYS, ends, left_s
from colonnade.deploy.http.pages.access import SignedIn
from colonnade.deploy.http.pages.parts import form, time
from colonnade.deploy.http.pages.waiting import waiting
from colonnade.report.html import Html, joined, tag
from colonnade.report.summary import NAMES
from colonnade.secure.keys import release_of

SHOWN = 30  # decisions

TONES = {"done": "good", "running": "good", "proposed": "warn", "failed": "bad", "refused": "bad"}


def document(title: str, *body: str, refresh: bool = False) -> str:
    """Return a whole page; it reloads itself where scripts are switched off."""
    reload = tag("noscript", tag("meta", http_equiv="refresh", content="10")) if refresh else Html("")
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("title", title),
        tag("link", rel="stylesheet", href="/page.css"),
        tag("script", src="/page.js", defer=True),
        reload,
    )
    return "<!doctype html>" + tag("html", head, tag("body", *body), lang="en")


def on_to_the_page(name: str) -> str:
    """Return the page that leads to the daemon's own page at once."""
    go = tag("p", tag("a", "Go on", href="/"), class_="pad")
    return document(f"{name} · Colonnade", tag("meta", http_equiv="refresh", content="0; url=/"), go)


def sign_in(name: str, problem: str, *, provider: bool = False) -> str:
    """Return the page that asks for the token, or leads to the provider."""
    account = tag("p", tag("a", "Sign in with your account", href="/sign-in")) if provider else Html("")
    form = tag(
        "form",
        tag("input", type="hidden", name="key", value=""),
        tag(
            "label", "Token", tag("input", type="password", name="token", autocomplete="off", autofocus=True)
        ),
        tag(
            "label",
            "Your name, written beside what you decide",
            tag("input", type="text", name="name", autocomplete="name"),
        ),
        tag("button", "Sign in", class_="go"),
        method="post",
        action="/login",
        data_sign_in=True,
    )
    notice = tag("p", problem, class_="notice bad", role="alert") if problem else Html("")
    help_ = tag(
        "p",
        "The token is in the file that ",
        tag("code", "monitor_token_file"),
        " names. ",
        tag("code", "colonnade party --login"),
        " prints a link that needs none.",
        class_="soft",
    )
    main = tag(
        "main",
        tag("div", tag("h3", f"{name}: sign in"), notice, account, form, help_, class_="card pad narrow"),
    )
    return document(f"{name} · Colonnade", main)


def overview(daemon: Daemon, session: SignedIn) -> str:
    """Return the page of a daemon, for somebody who signed in."""
    settings = daemon.settings
    out = form("/logout", session, tag("button", "Sign out"))
    header = tag(
        "header",
        tag("strong", daemon.me),
        tag("span", f"Colonnade {release_of(daemon.version)} · {session.who}", class_="soft"),
        out,
    )
    gone = tag("div", "The daemon does not answer; what is shown is old.", class_="gone", role="alert")
    notice, failed = session.told()
    main = tag(
        "main",
        tag("p", notice, class_="notice bad" if failed else "notice", role="status") if notice else Html(""),
        waiting(proposals(daemon), session),
        _section("Peers", ["peer", "state", "since", "version", ""], map(_peer, views.peers(daemon))),
        _section(
            "Certificates", ["of", "holds until", "days left"], map(_certificate, ends(settings).items())
        ),
        _section("Runs", ["run", "about", "state", "progress"], map(_run, views.runs(daemon))),
        _models(views.stored_models(settings), session),
        _section(
            "What peers have heard, at the most, by counting",
            list(views.OPENED),
            [views.opened_row(each) for each in OpenedBooks(settings.state).accounts()],
        ),
        _section(
            "Privacy budget of labels",
            list(views.BUDGET),
            [views.budget_row(each) for each in views.budgets(settings)],
        ),
        _section(
            "Decisions",
            ["when", "what", "about", "by", "digest", ""],
            [
                (
                    time(each.when),
                    each.what,
                    f"{each.about} of {each.proposer}" if each.proposer else each.about,
                    each.who,
                    tag("code", each.digest[:16], title=each.digest),
                    each.reason,
                )
                for each in reversed(daemon.journal.decisions[-SHOWN:])
            ],
        ),
        data_live=True,
    )
    return document(f"{daemon.me} · Colonnade", header, gone, main, refresh=True)


def _section(title: str, names: Sequence[str], rows: Iterable[Sequence[str]]) -> Html:
    """Return a heading and a table; a narrow page shows the names of the columns in the cells."""
    body = [
        tag(
            "tr",
            *(tag("td", cell, data_name=name or False) for name, cell in zip(names, row, strict=True)),
        )
        for row in rows
    ]
    head = tag("tr", *(tag("th", name, scope="col") for name in names))
    none = tag("p", "none", class_="pad soft")
    return joined(tag("h2", title), tag("div", tag("table", head, *body) if body else none, class_="card"))


def _peer(peer: views.PeerView) -> tuple[str, ...]:
    state = _state("connected", "good") if peer.up else _state("away", "bad")
    return peer.name, state, time(peer.since or ""), peer.version or "", peer.reason


def _certificate(found: tuple[str, datetime]) -> tuple[str, ...]:
    of, end = found
    days = int(left_s(end) // 86400)
    return of, time(f"{end:%FT%TZ}"), _state(str(days), "good" if days >= SOON_DAYS else "bad")


def _run(run: views.RunView) -> tuple[str, ...]:
    about = f"{run.about}, proposed by {run.proposer}"
    number, state = tag("code", run.run, class_="whole"), _state(run.state, TONES.get(run.state, "warn"))
    said = f" · {run.progress}" if run.when and run.progress else run.progress
    return number, about, state, joined(time(run.when), said, _curve(run.losses))


def _state(text: str, tone: str) -> Html:
    return tag("span", text, class_=f"state {tone}")


def _curve(losses: list[tuple[int, float]]) -> Html:
    """Return the loss over epochs as a small drawing with its first and last value in words."""
    if len(losses) < 2:
        return Html("")
    low, high = min(loss for _, loss in losses), max(loss for _, loss in losses)
    first, last = losses[0][0], losses[-1][0]
    points = [
        f"{200 * (epoch - first) / max(1, last - first):.1f},{46 - 44 * (loss - low) / (high - low or 1):.1f}"
        for epoch, loss in losses
    ]
    words = f"loss {losses[0][1]:.4f} at epoch {first}, {losses[-1][1]:.4f} at epoch {last}"
    drawing = tag(
        "svg",
        tag("path", d="M" + " L".join(points)),
        viewBox="0 0 200 48",
        preserveAspectRatio="none",
        class_="curve",
        role="img",
        aria_label=words,
    )
    return joined(drawing, tag("span", words, class_="soft"))


def _models(stored: list[views.ModelView], session: SignedIn) -> Html:
    names = ["model", "algorithm", "rows", "metrics", "made", "state", ""]
    return _section("Models", names, [_model(each, session) for each in stored])


def _model(each: views.ModelView, session: SignedIn) -> tuple[str, ...]:
    state, button = Html(""), Html("")
    if each.serves:
        state = _state("serves", "good")
    elif each.in_use:
        state = _state("in use", "good")
    if "operator" not in session.who.roles:
        pass
    elif each.can_promote:
        which = tag("input", type="hidden", name="model", value=each.model)
        button = form("/models/promote", session, which, tag("button", "Promote"))
    elif each.can_roll_back:
        which = tag("input", type="hidden", name="name", value=each.name)
        button = form("/models/rollback", session, which, tag("button", "Roll back"))
    shown = [key for key in each.metrics if key.startswith("test_")] or list(each.metrics)
    words = [f"{NAMES.get(key, key.replace('_', ' '))} {each.metrics[key]:.4f}" for key in shown[:3]]
    name, made = (tag("span", text, class_="whole") for text in (each.model, time(each.created)))
    return (
        name,
        tag("span", each.algorithm, class_="whole"),
        f"{each.rows:,}",
        ", ".join(words),
        made,
        state,
        button,
    )
