"""One run of weight of evidence at one party, for what its columns may be worth: nothing is trained.

Columns are weighed as before a training (`session.prepared`), with its openings. Then every party tells what
its own come to (`conversations.prospect`).
"""

from __future__ import annotations

from msgspec import structs

from colonnade.conversations.prospect import told_prospects
from colonnade.conversations.woe import told_ivs
from colonnade.deploy.models.stored_shares import Manifest
from colonnade.deploy.programs.findings import keep, kept
from colonnade.deploy.programs.training import find_common
from colonnade.deploy.session.booking import books_of, prospects_of
from colonnade.deploy.session.prepared import noise_of_counts, prepared
from colonnade.deploy.session.session import Event, RunSession
from colonnade.deploy.settings import Settings
from colonnade.deploy.terms.contract import Contract
from colonnade.deploy.terms.terms import CheckpointTerms, Terms
from colonnade.describe.prospects import Prospect, Prospects
from colonnade.errors import DataError
from colonnade.run.party import held_to

PROSPECTS = "prospects"  # the folder beside `models`, and the kind of what is in it


def before_training(terms: Terms) -> Terms:
    """Return the terms that ask what parties' columns may be worth to a job; it is over in one session."""
    return structs.replace(
        terms,
        statistics_only=True,
        value=False,
        prepare=structs.replace(terms.prepare, woe=True),
        checkpoint=CheckpointTerms(every="never", wait_s=0.0),
    )


async def prospect(session: RunSession, contract: Contract) -> Manifest:
    """Weigh the own columns, hear what all parties' may be worth, and keep it; returns its manifest."""
    terms = contract.terms
    async with session.train.computing():
        found = await find_common(session, contract)
        rows = await prepared(session, contract, found.rows)
    if rows.weighed is None:
        raise DataError(f"{terms.name}: its terms do not ask for weight of evidence")
    noise, count = noise_of_counts(session.settings, terms), rows.counts["train"]
    columns = rows.weighed.columns
    ivs = [each.iv for each in columns]
    if session.me == terms.server:  # which knows its own counts without noise
        ivs = told_ivs(rows.weighed.counts[session.me], noise, terms.woe)
    own = Prospect.of_columns(session.me, {x.bins.column: iv for x, iv in zip(columns, ivs, strict=True)})

    declare = held_to(session.train, books_of(session, terms, count, max(1, len(columns))))
    session.tell(Event("telling what columns may be worth"))
    await session.party.join(session.train, terms.digest())
    session.begin_to_tell()
    told = await told_prospects(session.train, own, prospects_of(contract, count), noise, declare)
    await session.party.leave(session.train)
    return await keep(session, contract, rows, found.digest, PROSPECTS, told)


def stored_prospects(settings: Settings, name: str) -> Prospects:
    """Return what parties' columns may be worth, by the name of the run or of its job."""
    return kept(settings, PROSPECTS, name, Prospects)
