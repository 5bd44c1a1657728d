"""One run of statistics at one party: align, split, prepare, correlate, and keep what came of it.

Nothing is trained. The party's own columns are described for itself alone; correlations with others' are made
as `conversations.correlate` says. What is stored lies beside the models, and scores nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial

import numpy as np
from msgspec import structs

from colonnade.conversations.correlate import Correlating, CorrelationTerms, hidden_names
from colonnade.deploy.models.stored_shares import Manifest
from colonnade.deploy.policy.membership import secret_for
from colonnade.deploy.programs.findings import keep, kept
from colonnade.deploy.programs.prospecting import prospect
from colonnade.deploy.programs.training import find_common, training
from colonnade.deploy.session.booking import books_of
from colonnade.deploy.session.prepared import Aligned, prepared
from colonnade.deploy.session.session import Event, RunSession
from colonnade.deploy.settings import Settings
from colonnade.deploy.terms.contract import Contract
from colonnade.deploy.terms.terms import CheckpointTerms, Terms
from colonnade.describe.columns import summaries
from colonnade.describe.description import Description
from colonnade.describe.own import UnitColumns
from colonnade.errors import DataError, JobError
from colonnade.result import Moment
from colonnade.run.party import held_to

STATISTICS = "statistics"  # the folder beside `models`, and the kind of what is in it
Program = Callable[[RunSession], Awaitable[Manifest]]


def described(terms: Terms) -> Terms:
    """Return the terms that ask for statistics of what a job would train on; it is over in one session."""
    if terms.prepare.woe:
        raise JobError("data.woe: statistics are of columns as they are; drop it")
    return structs.replace(terms, statistics_only=True, checkpoint=CheckpointTerms(every="never", wait_s=0.0))


def program_of(contract: Contract, report: Callable[[Moment], None]) -> Program:
    """Return this party's program for what the terms ask for."""
    if contract.weighs:
        return partial(prospect, contract=contract)
    return describing(contract) if contract.describes else training(contract, report)


def describing(contract: Contract) -> Program:
    """Return the program of one run of statistics; it returns the manifest of what it stored."""

    async def program(session: RunSession) -> Manifest:
        terms, settings = contract.terms, session.settings
        if session.own_rows.large is not None:
            raise DataError("statistics need all columns in memory; give this party more, or fewer rows")
        async with session.train.computing():
            found = await find_common(session, contract)
            rows = await prepared(session, contract, found.rows)
        session.tell(Event("correlating columns"))
        own = _own(session, contract, rows)
        rare = {session.me: list(own.rare)} if own.rare else {}

        books = books_of(session, terms, own.rows, max(1, own.columns))
        declare = held_to(session.train, books)
        await session.party.join(session.train, terms.digest())
        session.begin_to_tell()
        noise = CorrelationTerms(terms.describe.noise, own.rows)
        secret = secret_for(settings, "noise of statistics")
        joint = await Correlating(session.train, own, noise, secret, declare).joint()
        await session.party.leave(session.train)
        description = Description(
            job=terms.name,
            parties={session.me: summaries(session.own_rows.table.take(found.rows))},
            joint=joint.statistics(),
            repeated={session.me: list(own.repeated)} if own.repeated else {},
            rare=rare,
            told=True,
        )
        return await keep(session, contract, rows, found.digest, STATISTICS, description)

    return program


def _own(session: RunSession, contract: Contract, rows: Aligned) -> UnitColumns:
    """Return this party's columns, with the first label holder's label, under names that peers may hear."""
    table, first = rows.table("train"), contract.terms.active[0]
    y = table.y if session.me == first and contract.loss.task in ("binary", "regression") else None
    own = UnitColumns.of(replace(table, weight=None), None if y is None else np.asarray(y, dtype=float))
    kept = own.without_heavy_rows()
    return replace(kept, names=hidden_names(kept.names, rows.columns))


def stored(settings: Settings, name: str) -> Description:
    """Return the statistics of this name, or the latest of the job of this name; ShareError if there are
    none."""
    return kept(settings, STATISTICS, name, Description)
