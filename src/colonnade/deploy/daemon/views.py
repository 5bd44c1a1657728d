"""What an operator is shown of a daemon, as plain data: for its page, and for commands with --json.

Nothing here is for peers. `gives_away` says what a proposal would tell whom, in sentences.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

import msgspec

from colonnade.deploy.books.ledger import Balance, Ledger, Spendable
from colonnade.deploy.books.opened import Account
from colonnade.deploy.books.spent import ByPeer
from colonnade.deploy.daemon.daemon import Daemon
from colonnade.deploy.models import party_models
from colonnade.deploy.models.serving import Promotion, Serving
from colonnade.deploy.models.stored_shares import Manifest, listing
from colonnade.deploy.negotiate.approvals import Held
from colonnade.deploy.policy import policy
from colonnade.deploy.process.estimating import Estimate
from colonnade.deploy.runs.run import Run, event_line
from colonnade.deploy.session.booking import bits_of, expected, sentences
from colonnade.deploy.settings import Settings
from colonnade.errors import JobError


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


class ProposalView(msgspec.Struct, frozen=True, kw_only=True):
    """A proposal that waits for the operator, and what it would give away."""

    run: str
    job: str
    algorithm: str
    proposer: str
    digest: str
    since: str
    until: str
    estimate: Estimate | None
    cost: str  # the estimate in words, or why there is none
    parties: dict[str, str]
    data: str
    rows: int
    columns: tuple[str, ...]
    leaks: dict[str, str]
    gives_away: list[str]
    epsilon: float | None
    delta: float
    terms: str


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


def _live(run: Run) -> RunView:
    latest = run.followed.latest
    progress = event_line(latest) if latest is not None else ""
    return RunView(run.number, run.about, run.proposer, run.state, progress, list(run.followed.losses))


def proposals(daemon: Daemon) -> list[ProposalView]:
    """Return the proposals that wait, the oldest first."""
    waiting = daemon.approvals
    return [proposal(daemon.settings, held, waiting.estimates) for held in waiting.held.values()]


def _cost(found: Estimate | str | None) -> str:
    """Return in words what a proposal will cost, or that it is not known."""
    match found:
        case Estimate():
            return found.line()
        case str():
            return found
        case None:
            return "its cost is being estimated"


def proposal(
    settings: Settings, held: Held, estimates: Mapping[int, Estimate | str] = MappingProxyType({})
) -> ProposalView:
    """Return one proposal that waits."""
    terms = held.terms
    asked = Spendable.of(held.contract)
    found = estimates.get(held.run)
    return ProposalView(
        run=held.number,
        job=terms.name,
        algorithm=terms.algorithm,
        proposer=held.proposer,
        digest=terms.digest(),
        since=held.since,
        until=held.until,
        estimate=found if isinstance(found, Estimate) else None,
        cost=_cost(found),
        parties={name: "label" if member.label else "columns" for name, member in terms.parties.items()},
        data=terms.parties[settings.name].data,
        rows=held.rows,
        columns=held.columns,
        leaks={leak: policy.MEANING[leak] for leak in policy.leaks(held.contract)},
        gives_away=list(gives_away(settings, held)),
        epsilon=asked.epsilon,
        delta=asked.delta,
        terms=msgspec.json.format(msgspec.json.encode(terms), indent=2).decode(),
    )


def gives_away(settings: Settings, held: Held) -> Iterator[str]:
    """Yield what taking part would tell whom, a sentence each; the leaks by name are apart."""
    terms, me = held.terms, settings.name
    member, others = terms.parties[me], sorted(set(terms.parties) - {me})
    columns = ", ".join(held.columns) or "no columns"
    yield f"{columns} of {member.data} ({held.rows:,} rows) are trained on; their raw values stay here."
    learn = "learns" if len(others) == 1 else "learn"
    yield f"{_and(others)} {learn} that {me} brings {held.rows:,} ids, and which of them are common to all."
    if member.label:
        yield from _labels(settings, held)
    yield from _opened(settings, held)
    if terms.use.loss_seen_by == "all" or me not in terms.active:
        seen = "every party" if terms.use.loss_seen_by == "all" else _and(terms.active)
        yield f"The training loss is shown to {seen}."
    if terms.use.degraded:
        yield f"The mean of {me}'s part of a score is told to {_and(terms.active)}."
    if held.contract.asks_for_models:
        for model in party_models.asked_of(me, terms).values():
            if model.name is not None:
                yield f"The model {model.name} ({model.kind}) of {me}'s settings is run on its columns."


def _opened(settings: Settings, held: Held) -> Iterator[str]:
    """Yield how much each peer has heard of labels and columns, and would hear in this run."""
    try:
        asked = expected(settings, held.contract, held.rows, len(held.columns))
    except JobError:  # too few rows for the job; it is refused where it begins
        return
    yield from sentences(settings, asked)


def _labels(settings: Settings, held: Held) -> Iterator[str]:
    """Yield what the run may tell about this party's labels, and what is left of their budget."""
    label = settings.data[held.terms.parties[settings.name].data].label or "label"
    asked = Spendable.of(held.contract)
    left = Ledger(settings.state).balance(settings.policy, label).left
    if asked.epsilon is None:
        yield f"{label} is the label; no mechanism bounds what the run tells about it."
        return
    budget = f"; {left:g} of {settings.policy.epsilon:g} is left" if left is not None else ""
    yield f"{label} is the label; the run may spend epsilon {asked.epsilon:g}, delta {asked.delta:g}{budget}."


def _and(names: list[str] | tuple[str, ...]) -> str:
    """Return names as a list in words.

    >>> _and(["bank"]), _and(["bank", "shop", "telecom"])
    ('bank', 'bank, shop and telecom')
    """
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last


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
