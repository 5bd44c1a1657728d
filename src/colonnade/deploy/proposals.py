"""A proposal as the party that is asked sees it: read it, check it, and bring the data it asks for.

Everything here happens before anything about the data was exchanged, and everything may raise: the reason is
the answer.
"""

from __future__ import annotations

import asyncio

import msgspec

from colonnade.deploy import policy, scoring, shares, training
from colonnade.deploy.peers import Lines
from colonnade.deploy.rows import Brought
from colonnade.deploy.settings import Settings
from colonnade.deploy.terms import Proposal, Scoring, Terms, check_terms
from colonnade.errors import Refused


def read_proposal(content: bytes) -> Proposal:
    """Exactly one of two kinds of terms; a field that is not part of them, or a wrong type, is refused."""
    try:
        proposal = msgspec.json.decode(content, type=Proposal)
    except msgspec.MsgspecError as error:
        raise Refused(f"the proposal cannot be read: {error}") from error
    if proposal.train is None and proposal.score is None:
        raise Refused("the proposal is empty")
    return proposal


async def consider(settings: Settings, lines: Lines, peer: str, proposal: Proposal) -> tuple[Brought, int]:
    """What this party brings if it accepts, and how many common rows it demands."""
    if (terms := proposal.train) is not None:
        return await _training(settings, lines, peer, terms), policy.rule_for(settings.policy, peer).min_rows
    assert proposal.score is not None  # noqa: S101  it was read as one of the two
    return await _scoring(settings, lines, peer, proposal.score), 1


async def _training(settings: Settings, lines: Lines, peer: str, terms: Terms) -> Brought:
    check_terms(terms, "job")
    if settings.name not in terms.parties or peer not in terms.parties:
        raise Refused(f"{peer} and {settings.name} are not both parties of this job")
    policy.check_training(settings, peer, terms)
    lines.require(tuple(terms.parties))
    return await asyncio.to_thread(training.bring, settings, terms)


async def _scoring(settings: Settings, lines: Lines, peer: str, asked: Scoring) -> Brought:
    policy.check_scoring(settings, peer, asked)
    share = shares.load(settings.state / "models", asked.model)
    trained = share.manifest.terms
    if peer not in trained.active or not set(asked.parties) <= set(trained.parties):
        raise Refused(f"{peer} holds no label of {asked.model}, or asks with others than its parties")
    if set(asked.parties) != set(trained.parties) and not trained.use.degraded:
        raise Refused(f"{asked.model} was not trained to be used while a party is away")
    lines.require(asked.parties)
    return await asyncio.to_thread(scoring.bring, settings, share, asked, None)
