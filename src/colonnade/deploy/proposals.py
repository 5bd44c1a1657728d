"""A proposal as the party that is asked sees it: read it, check it, and bring the data it asks for.

Everything here happens before anything about the data was exchanged, and everything may raise: the reason is
the answer.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import msgspec

from colonnade.deploy import policy, scoring, shares, training
from colonnade.deploy.peers import Lines
from colonnade.deploy.rows import Brought
from colonnade.deploy.settings import Settings
from colonnade.deploy.shares import StoredShare
from colonnade.deploy.terms import Contract, Proposal, Scoring, check_terms
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


@dataclass(frozen=True, eq=False)
class Considered:
    """A proposal that this party accepts: what it brings, and how many common rows it demands."""

    work: Contract | ScoringWork
    brought: Brought
    minimum: int


@dataclass(frozen=True, eq=False)
class ScoringWork:
    """A scoring session that was agreed on, and this party's share of the model."""

    terms: Scoring
    share: StoredShare


async def consider(settings: Settings, lines: Lines, peer: str, proposal: Proposal) -> Considered:
    """What this party does and brings if it accepts; raises why it does not."""
    if proposal.train is not None:
        contract = check_terms(proposal.train, "job")
        brought = await _training(settings, lines, peer, contract)
        return Considered(contract, brought, policy.rule_for(settings.policy, peer).min_rows)
    if proposal.score is None:
        raise Refused("the proposal is empty")
    share = await _share(settings, lines, peer, proposal.score)
    brought = await asyncio.to_thread(scoring.bring, settings, share, proposal.score, None)
    return Considered(ScoringWork(proposal.score, share), brought, 1)


async def _training(settings: Settings, lines: Lines, peer: str, contract: Contract) -> Brought:
    parties = contract.terms.parties
    if settings.name not in parties or peer not in parties:
        raise Refused(f"{peer} and {settings.name} are not both parties of this job")
    policy.check_training(settings, peer, contract)
    lines.require(tuple(parties))
    return await asyncio.to_thread(training.bring, settings, contract)


async def _share(settings: Settings, lines: Lines, peer: str, asked: Scoring) -> StoredShare:
    """This party's share of the model that is asked for, if the peer may ask for it."""
    policy.check_scoring(settings, peer, asked)
    share = shares.load(settings.state / "models", asked.model)
    trained = share.manifest.terms
    if peer not in trained.active or not set(asked.parties) <= set(trained.parties):
        raise Refused(f"{peer} holds no label of {asked.model}, or asks with others than its parties")
    if set(asked.parties) != set(trained.parties) and not trained.use.degraded:
        raise Refused(f"{asked.model} was not trained to be used while a party is away")
    lines.require(asked.parties)
    return share
