"""What an operator decides, by command or on the daemon's page: proposals that wait, and which model serves.

Every verb checks, writes down who decided what when, and takes effect at once.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import msgspec

from colonnade.deploy.books.journal import Decision
from colonnade.deploy.models import party_models, stored_shares
from colonnade.deploy.models.gate import Gate
from colonnade.deploy.models.stored_shares import Manifest
from colonnade.deploy.people_settings import Person
from colonnade.deploy.policy import policy
from colonnade.errors import JobError, NotAllowed, PeerUnreachable, Refused

if TYPE_CHECKING:
    from colonnade.deploy.daemon.daemon import Daemon

REASON_LIMIT = 500


async def approve(daemon: Daemon, number: str, who: Person, digest: str | None = None) -> Decision:
    """Approve a proposal that waits; once enough people have, take part in it.

    Refused if that is no longer possible, which the proposer is told. With `digest` only if the proposal is
    the one that was seen.
    """
    who.need("approver")
    held = daemon.approvals.find(number, digest)
    waiting = held.waiting
    rule = policy.rule_for(daemon.settings.policy, waiting.proposer)
    needs = max(waiting.needs, rule.approvals)
    if needs > 1 and not who.known:
        raise NotAllowed(
            f"{needs} people have to approve, each by an account of their own in [people]; that of {who} "
            "is not known"
        )
    if who.name in waiting.people:
        raise JobError(f"{who.name} has approved {held.about} already; {needs} people have to")
    people = (*waiting.people, who.name)
    decision = msgspec.structs.replace(
        daemon.answering.decision("approved", str(who), held),
        people=people if needs > 1 else (),
        more=needs - len(people),
        columns=waiting.columns,
    )
    daemon.journal.decide(decision)
    if decision.more:
        held.waiting = msgspec.structs.replace(waiting, people=people)
        daemon.approvals.write(held)
        return decision
    daemon.approvals.drop(waiting.run)
    try:
        daemon.peers.require(tuple(held.terms.parties))
    except PeerUnreachable as away:  # it begins when its proposer asks again
        return msgspec.structs.replace(decision, reason=f"{away}; it begins when all are there")
    accepted = daemon.answering.accept(waiting.proposer, waiting.run, waiting.proposal, str(who), noted=True)
    reason = await daemon.answering.answer(waiting.proposer, waiting.run, waiting.proposal, accepted)
    if reason is not None:
        raise Refused(f"{held.about} was approved and cannot be run any more: {reason}")
    return decision


async def refuse(
    daemon: Daemon, number: str, who: Person, reason: str = "", digest: str | None = None
) -> Decision:
    """Refuse a proposal that waits; the proposer reads the reason."""
    who.need("approver")
    held = daemon.approvals.find(number, digest)
    daemon.approvals.drop(held.waiting.run)
    said = " ".join(reason.split())[:REASON_LIMIT]
    await daemon.answering.refuse(held, str(who), f"its operator declined{f': {said}' if said else ''}")
    return daemon.journal.decisions[-1]


def revoke(daemon: Daemon, number: str, who: Person) -> Decision:
    """Let what was decided about a proposal count for no later one; what goes on is not ended."""
    who.need("approver")
    known = daemon.journal.decided.by_run.get(number.lower())
    if known is None or known.what == "revoked":
        raise JobError(f"nothing that counts was decided about proposal {number}")
    decision = Decision(
        when=stored_shares.now(),
        what="revoked",
        who=str(who),
        about=known.about,
        run=known.run,
        proposer=known.proposer,
        digest=known.digest,
    )
    daemon.journal.decide(decision)
    return decision


async def promote(
    daemon: Daemon, model: str, who: Person, *, ask_peers: bool = True, gate: Gate | None = None
) -> Decision:
    """Let the name of a model stand for it, after seeing that every party can use its share of it.

    With a `gate` only if it is better than the model in use.
    """
    who.need("operator")
    manifest = stored_shares.find(daemon.serving.models, model)
    if manifest.model != model:
        raise JobError(f"{model} is a name; say which of its models, for example {manifest.model}")
    name = manifest.terms.name
    if daemon.serving.promoted(name) == model:
        raise JobError(f"{model} is in use for {name} already")
    reason = "" if gate is None else "no model was in use"
    if gate is not None and (used := daemon.serving.promoted(name)) is not None:
        in_use = stored_shares.find(daemon.serving.models, used)
        better, reason = gate.passed(manifest, in_use)
        if not better:
            return _note(daemon, "kept", str(who), in_use, f"{manifest.model} has {reason}", manifest.run)
    await _check(daemon, manifest, ask_peers)
    daemon.serving.promote(manifest, str(who))
    return _note(daemon, "promoted", str(who), manifest, reason)


async def delete(daemon: Daemon, model: str, who: str, reason: str = "") -> Decision:
    """Remove this party's share of a model for good, and all that is kept beside it; not of one in use."""
    manifest = stored_shares.find(daemon.serving.models, model)
    if daemon.serving.promoted(manifest.terms.name) == model:
        raise JobError(f"{model} is in use for {manifest.terms.name}; promote another one first")
    if scored := [run.number for run in daemon.runs.values() if run.about.endswith(model)]:
        raise JobError(f"{model} scores rows in run {scored[0]}; stop it first")
    await asyncio.to_thread(stored_shares.delete, daemon.settings.state, model)
    return _note(daemon, "deleted", who, manifest, reason)


async def delete_old(daemon: Daemon) -> list[str]:
    """Delete the models that are older than `retention_days` and not in use; returns which.

    One that a peer has had scores of since then is in use there.
    """
    days = daemon.settings.retention_days
    if days is None:
        return []
    gone = []
    for manifest in await asyncio.to_thread(stored_shares.listing, daemon.serving.models):
        used = daemon.journal.used.get(manifest.model, manifest.created)
        if max(used, manifest.created) >= stored_shares.now(-days * 86400.0):
            continue
        try:
            await delete(daemon, manifest.model, "retention", f"older than {days} days")
        except JobError:  # it is in use
            continue
        gone.append(manifest.model)
    return gone


async def rollback(daemon: Daemon, name: str | None, who: Person, *, ask_peers: bool = True) -> Decision:
    """Let a name stand for the model before the last promotion, after the same checks."""
    who.need("operator")
    name = name or _only_name(daemon)
    manifest = stored_shares.find(daemon.serving.models, daemon.serving.before(name))
    await _check(daemon, manifest, ask_peers)
    daemon.serving.rollback(name)
    return _note(daemon, "rolled back", str(who), manifest)


def stop(daemon: Daemon, number: str, who: Person) -> Decision:
    """End a run that goes on, at all its parties, or give up one that waits for a party to come back."""
    who.need("operator")
    if (waits := daemon.proposing.withdraw(number)) is not None:
        about, proposer = waits.terms.name, daemon.me
    else:
        run = daemon.books.stop(number, f"{daemon.me} was told to stop by its operator")
        about, proposer = run.about, run.proposer
    decision = Decision(
        when=stored_shares.now(),
        what="stopped",
        who=str(who),
        about=about,
        run=number,
        proposer=proposer,
    )
    daemon.journal.decide(decision)
    return decision


def pin(daemon: Daemon, model: str) -> Manifest:
    """Return the manifest of the model that the service answers with; a name is pinned when it is first
    used."""
    manifest = daemon.serving.find(model)
    if model != manifest.model and daemon.serving.promoted(model) is None:
        daemon.serving.promote(manifest, "service")
        _note(daemon, "pinned", "service", manifest)
    return manifest


async def _check(daemon: Daemon, manifest: Manifest, ask_peers: bool) -> None:
    """Raise unless this party may put the model to use and every party can use its share of it."""
    terms = manifest.terms
    if daemon.me not in terms.active:
        raise JobError(f"{daemon.me} holds no label of {manifest.model}; do this at {terms.active[0]}")
    serve = daemon.settings.serve
    fixed = serve.model if serve is not None else ""
    if fixed != terms.name and fixed.startswith(f"{terms.name}-") and fixed != manifest.model:
        raise JobError(f"serve.model = {fixed!r} in the settings fixes the model; write {terms.name!r} there")
    await asyncio.to_thread(stored_shares.load, daemon.serving.models, manifest.model)
    party_models.check_unchanged(daemon.settings, terms, manifest.code)
    if ask_peers:
        daemon.peers.require(tuple(terms.parties))
        await daemon.shares_held.check(manifest)


def _only_name(daemon: Daemon) -> str:
    """Return the name that is meant where none is given: the only one that something was promoted for."""
    names = sorted(daemon.serving.history())
    if len(names) != 1:
        raise JobError(f"say which name; models were promoted for {', '.join(names) or 'none'}")
    return names[0]


def _note(
    daemon: Daemon, what: str, who: str, manifest: Manifest, reason: str = "", run: str = ""
) -> Decision:
    """Write down which model is in use from now on; `run` is that of one which was not better."""
    plain = {
        "reason": reason,
        "when": stored_shares.now(),
        "what": what,
        "who": who,
        "about": manifest.model,
        "run": run or manifest.run,
        "digest": manifest.digest,
    }
    decision = msgspec.convert(plain, Decision)
    daemon.journal.decide(decision)
    return decision
