"""What an operator decides, by command or on the daemon's page: proposals that wait, and which model serves.

Every verb checks, writes down who decided what when, and takes effect at once.
"""

from __future__ import annotations

import asyncio

import msgspec

from colonnade.deploy.books.journal import Decision
from colonnade.deploy.daemon.daemon import Daemon
from colonnade.deploy.models import party_models, stored_shares
from colonnade.deploy.models.stored_shares import Manifest
from colonnade.errors import JobError, Refused

REASON_LIMIT = 500


async def approve(daemon: Daemon, number: str, who: str, digest: str | None = None) -> Decision:
    """Take part in a proposal that waits; Refused if it is no longer possible, which the proposer is told.

    With `digest` only if the proposal is the one that was seen.
    """
    held = daemon.approvals.take(number, digest)
    decision = daemon.answering.decision("approved", who, held.terms, held.number, held.proposer)
    daemon.journal.decide(decision)
    accepted = daemon.answering.accept(held.proposer, held.run, held.proposal, who)
    if (reason := await daemon.answering.answer(held.proposer, held.run, accepted)) is not None:
        raise Refused(f"{held.terms.name} was approved and cannot be run any more: {reason}")
    return decision


async def refuse(
    daemon: Daemon, number: str, who: str, reason: str = "", digest: str | None = None
) -> Decision:
    """Refuse a proposal that waits; the proposer reads the reason."""
    held = daemon.approvals.take(number, digest)
    said = " ".join(reason.split())[:REASON_LIMIT]
    await daemon.answering.refuse(held, who, f"its operator declined{f': {said}' if said else ''}")
    return daemon.journal.decisions[-1]


async def promote(daemon: Daemon, model: str, who: str, *, ask_peers: bool = True) -> Decision:
    """Let the name of a model stand for it, after seeing that every party can use its share of it."""
    manifest = stored_shares.find(daemon.serving.models, model)
    if manifest.model != model:
        raise JobError(f"{model} is a name; say which of its models, for example {manifest.model}")
    name = manifest.terms.name
    if daemon.serving.promoted(name) == model:
        raise JobError(f"{model} is in use for {name} already")
    await _check(daemon, manifest, ask_peers)
    daemon.serving.promote(manifest, who)
    return _note(daemon, "promoted", who, manifest)


async def rollback(daemon: Daemon, name: str | None, who: str, *, ask_peers: bool = True) -> Decision:
    """Let a name stand for the model before the last promotion, after the same checks."""
    name = name or _only_name(daemon)
    manifest = stored_shares.find(daemon.serving.models, daemon.serving.before(name))
    await _check(daemon, manifest, ask_peers)
    daemon.serving.rollback(name)
    return _note(daemon, "rolled back", who, manifest)


def stop(daemon: Daemon, number: str, who: str) -> Decision:
    """End a run that goes on, at all its parties."""
    run = daemon.books.stop(number, f"{daemon.me} was told to stop by its operator")
    decision = Decision(
        when=stored_shares.now(),
        what="stopped",
        who=who,
        about=run.about,
        run=run.number,
        proposer=run.proposer,
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


def _note(daemon: Daemon, what: str, who: str, manifest: Manifest) -> Decision:
    """Write down which model is in use from now on."""
    plain = {
        "when": stored_shares.now(),
        "what": what,
        "who": who,
        "about": manifest.model,
        "run": manifest.run,
        "digest": manifest.digest,
    }
    decision = msgspec.convert(plain, Decision)
    daemon.journal.decide(decision)
    return decision
