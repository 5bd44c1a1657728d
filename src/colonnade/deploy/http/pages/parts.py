"""Parts of the daemon's page that more than one of its files needs."""

from __future__ import annotations

from colonnade.deploy.http.pages.access import SignedIn
from colonnade.report.html import Html, tag


def time(when: str) -> Html:
    """Return a time in UTC as people write it: `2026-11-16 01:02 UTC`."""
    if not when:
        return Html("")
    return tag("time", f"{when[:10]} {when[11:16]} UTC", datetime=when)


def form(action: str, session: SignedIn, *parts: str) -> Html:
    """Return a form that changes something, with the secret of the session."""
    secret = tag("input", type="hidden", name="form", value=session.form)
    return tag("form", secret, *parts, method="post", action=action)
