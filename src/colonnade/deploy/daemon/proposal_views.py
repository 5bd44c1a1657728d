"""A proposal that waits, as an operator is shown it: what it is for, and what it would tell whom.

The sentences about what is told are those of the report after the run (`policy.told`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import msgspec

from colonnade.deploy.books.ledger import Ledger, Spendable
from colonnade.deploy.daemon.daemon import Daemon
from colonnade.deploy.models import party_models
from colonnade.deploy.negotiate.approvals import Held
from colonnade.deploy.policy import policy, told
from colonnade.deploy.process.estimating import Estimate
from colonnade.deploy.session.booking import Foreseen, sentences
from colonnade.deploy.settings import Settings
from colonnade.deploy.terms.contract import Contract
from colonnade.errors import JobError
from colonnade.job.writing import as_toml
from colonnade.openings.leaks import meaning


class ProposalView(msgspec.Struct, frozen=True, kw_only=True):
    """A proposal that waits for operators: what it is for, what it would tell whom, who has approved it."""

    run: str
    kind: Literal["train", "score"]
    job: str
    algorithm: str
    proposer: str
    digest: str
    since: str
    until: str
    estimate: Estimate | None
    cost: str  # the estimate in words, or why there is none
    purpose: str
    contract: str
    contact: str
    expires: str
    runs_of_a_job: int | None
    runs_before: int
    needs: int
    people: tuple[str, ...]
    parties: dict[str, str]
    data: str
    rows: int
    columns: tuple[str, ...]
    leaks: dict[str, str]
    reads: list[str]
    notes: list[str]
    gives_away: list[str]
    heard: list[str]
    epsilon: float | None
    delta: float
    job_file: str
    terms: str


def proposals(daemon: Daemon) -> list[ProposalView]:
    """Return the proposals that wait, the oldest first."""
    return [proposal(daemon, held) for held in daemon.approvals.held.values()]


def proposal(daemon: Daemon, held: Held) -> ProposalView:
    """Return one proposal that waits."""
    settings, terms, waiting = daemon.settings, held.terms, held.waiting
    asked, trains = Spendable.of(held.contract, settings.limits), isinstance(held.work, Contract)
    foreseen = _foreseen(settings, held) if trains else None
    found = daemon.approvals.estimates.get(waiting.run)
    return ProposalView(
        run=held.number,
        kind="train" if trains else "score",
        job=held.about,
        algorithm=terms.algorithm,
        proposer=waiting.proposer,
        digest=held.digest,
        since=waiting.since,
        until=waiting.until,
        estimate=found if isinstance(found, Estimate) else None,
        cost=_cost(found) if trains else "",
        purpose=terms.purpose,
        contract=terms.contract,
        contact=terms.contact,
        expires=terms.expires,
        runs_of_a_job=terms.runs_of_a_job if trains else None,
        runs_before=daemon.journal.decided.times(waiting.proposer, terms.name, held.digest) if trains else 0,
        needs=waiting.needs,
        people=waiting.people,
        parties={name: "label" if member.label else "columns" for name, member in terms.parties.items()},
        data=_entry_of(settings, held),
        rows=waiting.rows,
        columns=waiting.columns,
        leaks={leak: meaning(leak) for leak in policy.leaks(held.contract)} if trains else {},
        reads=told.reads(held.contract) if trains else [],
        notes=told.notes_of(foreseen.plan, held.contract) if foreseen is not None else [],
        gives_away=list(gives_away(settings, held, foreseen) if trains else _scores(settings, held)),
        heard=list(told.hearings(foreseen.everything, foreseen.rows)) if foreseen is not None else [],
        epsilon=asked.epsilon,
        delta=asked.delta,
        job_file=as_toml(terms),
        terms=msgspec.json.format(msgspec.json.encode(terms), indent=2).decode(),
    )


def _cost(found: Estimate | str | None) -> str:
    """Return in words what a proposal will cost, or that it is not known."""
    match found:
        case Estimate():
            return found.line()
        case str():
            return found
        case None:
            return "its cost is being estimated"


def _entry_of(settings: Settings, held: Held) -> str:
    """Return the entry of the catalogue whose rows a proposal asks for."""
    asked = held.waiting.proposal.score
    return (asked.data if asked is not None else None) or held.terms.parties[settings.name].data


def _foreseen(settings: Settings, held: Held) -> Foreseen | None:
    """Return what a training will be; None where rows are too few, and it is refused where it begins."""
    try:
        return Foreseen.of(settings, held.contract, held.waiting.rows, len(held.waiting.columns))
    except JobError:
        return None


def _scores(settings: Settings, held: Held) -> Iterator[str]:
    """Yield what scoring with a model would tell whom, a sentence each."""
    waiting, me, entry = held.waiting, settings.name, _entry_of(settings, held)
    others = in_words(sorted(set(held.terms.parties) - {me}))
    asked = waiting.proposal.score
    whole = f"every row of {entry} ({waiting.rows:,}) that is common to all"
    yield f"{waiting.proposer} learns the total score of {whole}, as often as it asks."
    yield f"{me} learns which of its rows are asked for; {others} learn which ids are common to all."
    yield "Over many rows total scores tell of this party's part of the model and of its columns."
    if asked is not None and (away := sorted(set(held.terms.parties) - set(asked.parties))):
        yield f"{in_words(away)} would be away: beside scores with it these tell its exact part."
    yield (
        "An approval counts for this model, these parties and this entry "
        f"{f'until {held.terms.expires}' if held.terms.expires else 'until it is revoked'}; "
        f"limits.missed_ids_a_day and scored_ids_a_day bound how many rows a day."
    )


def gives_away(settings: Settings, held: Held, foreseen: Foreseen | None) -> Iterator[str]:
    """Yield what taking part would tell whom, a sentence each; who can read what by construction is apart."""
    terms, me, waiting = held.terms, settings.name, held.waiting
    member, others = terms.parties[me], sorted(set(terms.parties) - {me})
    columns = ", ".join(waiting.columns) or "no columns"
    yield f"{columns} of {member.data} ({waiting.rows:,} rows) are trained on; their raw values stay here."
    learn = f"{in_words(others)} {'learns' if len(others) == 1 else 'learn'}"
    yield f"{learn} that {me} brings {waiting.rows:,} ids, and which of them are common to all."
    if member.label:
        yield from _labels(settings, held)
    if foreseen is not None:
        yield from sentences(settings, foreseen.told(settings, held.contract, len(waiting.columns)))
    if held.contract.describes:
        return
    if terms.use.loss_seen_by == "all" or me not in terms.active:
        seen = "every party" if terms.use.loss_seen_by == "all" else in_words(terms.active)
        yield f"The training loss is shown to {seen}."
    if terms.use.degraded:
        yield f"The mean of {me}'s part of a score is told to {in_words(terms.active)}."
    if held.contract.asks_for_models:
        for model in party_models.asked_of(me, terms).values():
            if model.name is not None:
                yield f"The model {model.name} ({model.kind}) of {me}'s settings is run on its columns."


def _labels(settings: Settings, held: Held) -> Iterator[str]:
    """Yield what the run may tell about this party's labels, and what is left of their budget."""
    label = settings.data[held.terms.parties[settings.name].data].label or "label"
    asked = Spendable.of(held.contract, settings.limits)
    left = Ledger(settings.state).balance(settings.policy, label).left
    if asked.epsilon is None:
        yield f"{label} is the label; no mechanism bounds what the run tells about it."
        return
    budget = f"; {left:g} of {settings.policy.epsilon:g} is left" if left is not None else ""
    yield f"{label} is the label; the run may spend epsilon {asked.epsilon:g}, delta {asked.delta:g}{budget}."


def in_words(names: list[str] | tuple[str, ...]) -> str:
    """Return names as a list in words.

    >>> in_words(["bank"]), in_words(["bank", "shop", "telecom"])
    ('bank', 'bank, shop and telecom')
    """
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last
