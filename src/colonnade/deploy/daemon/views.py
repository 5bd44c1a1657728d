"""What an operator is shown of a daemon, as plain data: for its page, and for commands with --json.

Nothing here is for peers. Proposals that wait are in `proposal_views`.
"""

from __future__ import annotations

import msgspec

from colonnade.deploy.books.ledger import Balance, Ledger
from colonnade.deploy.books.opened import Account
from colonnade.deploy.books.spent import ByPeer
from colonnade.deploy.daemon.daemon import Daemon
from colonnade.deploy.daemon.proposal_views import in_words
from colonnade.deploy.models.serving import Promotion, Serving
from colonnade.deploy.models.stored_shares import Manifest, listing
from colonnade.deploy.runs.proposed import Proposed
from colonnade.deploy.runs.run import Run, event_line
from colonnade.deploy.session.booking import bits_of
from colonnade.deploy.settings import Settings


class PeerView(msgspec.Struct, frozen=True):
    """Whether a peer is connected, since when, its version once it was, and why it is not."""

    name: str
    up: bool
    since: str | None
    version: str | None
    reason: str


class RunView(msgspec.Struct, frozen=True):
    """A run that goes on or is over: what it is about, how far it is, and the losses seen here."""

    run: str
    about: str
    proposer: str
    state: str
    progress: str
    losses: list[tuple[int, float]]
    when: str = ""
    model: str = ""
    seconds: float = 0.0
    sessions: int = 0
    epochs: int = 0
    sent: ByPeer = {}
    received: ByPeer = {}


class ModelView(msgspec.Struct, frozen=True, kw_only=True):
    """A stored share: what it is, and whether its name stands for it or the service answers with it."""

    model: str
    name: str
    algorithm: str
    parties: list[str]
    rows: int
    metrics: dict[str, float]
    created: str
    in_use: bool
    serves: bool
    can_promote: bool
    can_roll_back: bool


def peers(daemon: Daemon) -> list[PeerView]:
    """Return all peers, in the order of the settings."""
    return [
        PeerView(
            peer,
            line.up,
            daemon.peers.since.get(peer),
            daemon.peers.release(peer),
            line.reason or daemon.peers.skew_with(peer),
        )
        for peer, line in daemon.mux.lines.items()
    ]


def runs(daemon: Daemon) -> list[RunView]:
    """Return the runs that go on, then those that ended, the latest first."""
    return [
        *(_put_off(daemon, each.proposed) for each in daemon.proposing.put_off.values()),
        *(_live(run) for run in daemon.runs.values()),
        *(
            RunView(
                run=each.run,
                about=each.about,
                proposer=each.proposer,
                state=each.state,
                progress=each.reason,
                losses=each.losses,
                when=each.when,
                model=each.model,
                seconds=each.seconds,
                sessions=each.sessions,
                epochs=each.epochs,
                sent=each.sent,
                received=each.received,
            )
            for each in reversed(daemon.journal.runs)
        ),
    ]


def _put_off(daemon: Daemon, proposed: Proposed) -> RunView:
    away = [peer for peer, line in daemon.mux.lines.items() if not line.up and peer in proposed.terms.parties]
    progress = f"is proposed again when {in_words(away or ['everybody'])} is back, until {proposed.until}"
    return RunView(f"{proposed.run:08x}", proposed.terms.name, daemon.me, "proposed", progress, [])


def _live(run: Run) -> RunView:
    latest = run.followed.latest
    progress = event_line(latest) if latest is not None else ""
    return RunView(run.number, run.about, run.proposer, run.state, progress, list(run.followed.losses))


def stored_models(settings: Settings) -> list[ModelView]:
    """Return the stored shares, the newest first, and which of them is in use."""
    serving = Serving(settings.state)
    history = serving.history()
    used = {name: past[-1].model for name, past in history.items()}
    served = ""
    if settings.serve is not None:
        served = used.get(settings.serve.model, settings.serve.model)
    return [
        _model(settings, manifest, history.get(manifest.terms.name, []), served)
        for manifest in reversed(listing(serving.models))
    ]


def _model(settings: Settings, manifest: Manifest, past: list[Promotion], served: str) -> ModelView:
    terms = manifest.terms
    in_use = bool(past) and past[-1].model == manifest.model
    return ModelView(
        model=manifest.model,
        name=terms.name,
        algorithm=terms.algorithm,
        parties=sorted(terms.parties),
        rows=manifest.rows["train"],
        metrics=manifest.metrics,
        created=manifest.created,
        in_use=in_use,
        serves=served == manifest.model,
        can_promote=settings.name in terms.active and not in_use,
        can_roll_back=in_use and len(past) > 1,
    )


OPENED = ("peer", "of", "about", "runs", "numbers", "bits a label, row or cell", "epsilon")


def opened_row(each: Account) -> tuple[str, ...]:
    """Return what a peer has heard of an entry, under the heads of `OPENED`."""
    bits = bits_of(each, cell=each.about == "columns")
    return (
        each.peer,
        each.entry,
        each.about,
        str(each.runs),
        f"{each.numbers:,}",
        f"{bits:.3g}",
        "none" if each.epsilon is None else f"{each.epsilon:.3g}",
    )


BUDGET = ("labels", "epsilon spent", "reserved", "left", "delta", "runs without a bound")


def budget_row(each: Balance) -> tuple[str, ...]:
    """Return an account in words, under the heads of `BUDGET`."""
    return (
        each.label,
        f"{each.epsilon - each.reserved:.4g}",
        f"{each.reserved:.4g}",
        "no limit" if each.left is None else f"{each.left:.4g}",
        f"{each.delta:.2g}",
        str(each.unbounded),
    )


def budgets(settings: Settings) -> list[Balance]:
    """Return the accounts of all label columns that are offered or were ever spent on."""
    ledger = Ledger(settings.state)
    offered = {entry.label for entry in settings.data.values() if entry.label is not None}
    return [ledger.balance(settings.policy, label) for label in sorted(offered | set(ledger.labels()))]
