"""Settings that are read again while a daemon runs: peers, certificates, policy, limits, data, models.

The file and all certificates are read and checked as a whole before anything changes. Runs that go on keep
the settings that they began with, and lines with peers that stay do not end: what is new counts for the next
proposal, the next session and the next handshake.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from colonnade.deploy.settings import Settings, address
from colonnade.errors import JobError
from colonnade.net.stream.certificates import Credentials

if TYPE_CHECKING:
    from colonnade.deploy.daemon.daemon import Daemon

log = logging.getLogger("colonnade.party")

AT_ONCE = frozenset({"peers", "data", "models", "policy", "limits", "certificates", "device", "engine"})
AT_ONCE |= {"memory", "timeline", "line_mbps", "retention_days", "test_scores", "people"}
"""Settings that change while the daemon runs; another one needs a restart."""

HELD_LIMITS = ("waiting_mb", "refreshes_an_hour")
"""Limits that belong to what was opened when the daemon started."""


async def reload(daemon: Daemon, settings: Settings) -> str:
    """Let a daemon go on with other settings; returns what changed, in words.

    JobError or CertificateError, and nothing has changed, where that cannot be done.
    """
    async with daemon.reloading:
        return await _reload(daemon, settings)


async def _reload(daemon: Daemon, settings: Settings) -> str:
    """Do what `reload` says, one at a time."""
    before = daemon.settings
    changed = [
        name for name in Settings.__struct_fields__ if getattr(settings, name) != getattr(before, name)
    ]
    held = [name for name in changed if name not in AT_ONCE]
    held += [
        f"limits.{name}"
        for name in HELD_LIMITS
        if getattr(settings.limits, name) != getattr(before.limits, name)
    ]
    if held:
        raise JobError(
            f"{', '.join(held)}: cannot change while the daemon runs; start it again, or set it back"
        )
    credentials = settings.credentials()
    peers = {peer: address(text, f"peers.{peer}") for peer, text in settings.peers.items()}
    for server in daemon.server_tls:
        server.read()  # raises what is wrong with its files
    known = _certificates(daemon.mux.credentials)
    renewed = [name for name, pem in _certificates(credentials).items() if pem != known.get(name)]
    daemon.settings = daemon.books.settings = daemon.shares_held.settings = settings
    daemon.books.credentials = credentials
    daemon.answering.limit_proposals(settings.limits.proposals_an_hour)
    daemon.mux.renewed = settings.credentials_now
    for run in list(daemon.runs.values()):
        if gone := [peer for peer in run.session.peers if peer not in peers]:
            daemon.books.end(run, f"{gone[0]} is no longer a peer of {daemon.me}")
    for server in daemon.server_tls:
        server.renew()
    await daemon.mux.renew(credentials, peers)
    said = changed + [f"the certificate of {name}" for name in renewed]
    text = f"settings were read again: {', '.join(said) or 'nothing has changed'}"
    daemon.journal.changed(settings.digest(), said)
    log.info("%s", text)
    daemon.journal.note(text)
    return text


def _certificates(credentials: Credentials) -> dict[str, bytes]:
    """Return the party's certificate and those of its peers, by name."""
    return {credentials.party: credentials.certificate, **credentials.pinned}
