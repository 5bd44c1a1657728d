"""A proposal as the party that is asked sees it: read it, check it, and read the data that it asks for.

Everything here happens before anything about the data is exchanged. Everything may raise, and the error's
text is what the proposer is told.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import msgspec

from colonnade.deploy.models import stored_shares
from colonnade.deploy.models.stored_shares import StoredShare
from colonnade.deploy.negotiate.peers import Peers
from colonnade.deploy.policy import policy
from colonnade.deploy.programs import scoring
from colonnade.deploy.rows.rows import PartyRows
from colonnade.deploy.session.prepared import read_rows
from colonnade.deploy.settings import Settings
from colonnade.deploy.terms.contract import Contract, check_terms
from colonnade.deploy.terms.terms import Proposal, Scoring
from colonnade.errors import Refused


def read_proposal(content: bytes) -> Proposal:
    """Return the proposal in a message; Refused if it has unknown fields, wrong types or no terms."""
    try:
        proposal = msgspec.json.decode(content, type=Proposal)
    except msgspec.MsgspecError as error:
        raise Refused(f"the proposal cannot be read: {error}") from error
    if proposal.train is None and proposal.score is None:
        raise Refused("the proposal is empty")
    return proposal


def signed_digest(proposal: Proposal) -> str:
    """Return the digest of what parties sign about a proposal; empty if there is nothing in it."""
    terms = proposal.train or proposal.score
    return "" if terms is None else terms.digest()


@dataclass(frozen=True, eq=False)
class Accepted:
    """A proposal that this party accepts: what is to be done, its own rows, and how many must be common."""

    work: Contract | ScoringWork
    own_rows: PartyRows
    minimum: int


@dataclass(frozen=True, eq=False)
class ScoringWork:
    """The terms of a scoring session, and this party's share of the model."""

    terms: Scoring
    share: StoredShare


def work_of(settings: Settings, proposal: Proposal) -> Contract | ScoringWork:
    """Return what a proposal asks this party to do, without a look at its policy and data."""
    if proposal.train is not None:
        return check_terms(proposal.train, "job")
    if proposal.score is None:
        raise Refused("the proposal is empty")
    return ScoringWork(proposal.score, stored_shares.load(settings.state / "models", proposal.score.model))


async def consider(settings: Settings, peers: Peers, peer: str, proposal: Proposal) -> Accepted:
    """Return what this party will do and its own rows, if it accepts; raises the reason if it does not."""
    if proposal.train is not None:
        contract = check_terms(proposal.train, "job")
        own = await _training(settings, peers, peer, contract)
        return Accepted(contract, own, policy.rule_for(settings.policy, peer).min_rows)
    if proposal.score is None:
        raise Refused("the proposal is empty")
    share = await _share(settings, peers, peer, proposal.score)
    own = await asyncio.to_thread(scoring.read_rows, settings, share, proposal.score, None)
    return Accepted(ScoringWork(proposal.score, share), own, 1)


async def _training(settings: Settings, peers: Peers, peer: str, contract: Contract) -> PartyRows:
    """Return this party's rows for a training run, if the peer may propose it."""
    parties = contract.terms.parties
    if settings.name not in parties or peer not in parties:
        raise Refused(f"{peer} and {settings.name} are not both parties of this job")
    policy.check_training(settings, peer, contract)
    await peers.gathered(tuple(parties))
    return await asyncio.to_thread(read_rows, settings, contract)


async def _share(settings: Settings, peers: Peers, peer: str, asked: Scoring) -> StoredShare:
    """Return this party's share of the model that is asked for, if the peer may ask for it."""
    policy.check_scoring(settings, peer, asked)
    share = await asyncio.to_thread(stored_shares.load, settings.state / "models", asked.model)
    trained, distinct = share.manifest.terms, set(asked.parties)
    policy.check_in_force(policy.rule_for(settings.policy, peer), trained)
    if peer not in trained.active or not distinct <= set(trained.parties):
        raise Refused(f"{peer} holds no label of {asked.model}, or asks with others than its parties")
    if len(distinct) < len(asked.parties) or not {peer, settings.name} <= distinct:
        raise Refused(f"{peer} names a party twice, or leaves out itself or {settings.name}")
    if set(asked.parties) != set(trained.parties) and not trained.use.degraded:
        raise Refused(f"{asked.model} was not trained to be used while a party is away")
    if set(asked.parties) != set(trained.parties) and not policy.rule_for(settings.policy, peer).degraded:
        raise Refused(
            "scores while a party is away are not allowed here, since beside those with it they tell its "
            "exact part; its operator would have to set policy.degraded"
        )
    await peers.gathered(asked.parties)
    return share
