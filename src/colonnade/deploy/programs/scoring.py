"""One scoring session at one party: read new rows, find the common ones, apply the stored share to them.

The asker comes with the ids that it wants scored, the others with all ids of the entry they are asked for.
After the private alignment rows are named by their place in the common order, so no id is ever sent. The
others learn which of their ids were asked for.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, TypedDict, TypeVar

import numpy as np

from colonnade.arrays import Arrays, Digests, Floats, Matrix, Rows
from colonnade.conversations.context import GivenModels
from colonnade.conversations.predict import Holding, PartyExplainer, PartyValues, Scorer, Session
from colonnade.deploy.models.party_models import check_unchanged, is_own_code, restored_models
from colonnade.deploy.models.stored_shares import Manifest, StoredShare
from colonnade.deploy.policy.membership import ComparisonRequest
from colonnade.deploy.process.model_process import ModelProcess
from colonnade.deploy.rows.rows import PartyRows, load_rows
from colonnade.deploy.session.aligning import common_rows
from colonnade.deploy.session.booking import book_scores
from colonnade.deploy.session.session import Event, RunSession
from colonnade.deploy.settings import Settings
from colonnade.deploy.terms.contract import Contract
from colonnade.deploy.terms.terms import Scoring
from colonnade.errors import DataError, ShareError
from colonnade.job.plan import Plan
from colonnade.run.party import held_to
from colonnade.secure.streams import PairStreams

T = TypeVar("T")


class ScoredRow(TypedDict, total=False):
    """The score of one row (one number, or one for every class), its probability and its predicted label.

    Only the logistic loss and softmax have probabilities; a regression has no labels. `expected` is the
    number that a Poisson or gamma loss expects, exp of the score.
    """

    score: float | list[float]
    probability: float | list[float]
    expected: float
    label: str
    base: float | list[float]  # the score where no columns are known, and what those of every party add
    parties: dict[str, float | list[float]]


class Thread:
    """Work is done in a thread: a daemon answers others meanwhile."""

    async def do(self, work: Callable[[], T]) -> T:
        return await asyncio.to_thread(work)


def scorer(
    settings: Settings,
    contract: Contract,
    plan: Plan[Any],
    arrays: Arrays,
    X: Matrix,
    process: ModelProcess | None = None,
) -> Scorer:
    """Return this party's share of a model, applied to its columns of some rows.

    Models that are code of this party's own compute in the `process`, if there is one, else here.
    """
    models = GivenModels()
    if process is not None:
        models = process.models()
    elif contract.asks_for_models:
        models = restored_models(settings, contract.terms, plan, arrays, int(X.shape[1]))
    return contract.conversation.share.scorer(Holding(plan, settings.name, arrays, X, models))


def read_rows(settings: Settings, share: StoredShare, terms: Scoring, wanted: Digests | None) -> PartyRows:
    """Return this party's rows of the entry that the terms name; with `wanted` only those with these ids."""
    trained = share.manifest.terms
    check_unchanged(settings, trained, share.manifest.code)
    name = terms.data or trained.parties[settings.name].data
    own = load_rows(
        settings,
        name,
        trained.align.keys,
        columns=share.manifest.columns,
        # text of categories is read letter by letter, as it was for training
        categorical=(*trained.prepare.categorical, *share.preparation.categories),
        bare=not share.manifest.columns,
        usual=(share.preparation.decimal, share.preparation.dates),
    )
    if wanted is None:
        return own
    held = np.ascontiguousarray(own.ids).view("S32").ravel()
    keep = np.flatnonzero(np.isin(held, np.ascontiguousarray(wanted).view("S32").ravel()))
    if not len(keep):
        raise DataError(f"data.{name}: none of the ids to score is in it")
    return PartyRows(own.table.take(keep), own.ids[keep])


@dataclass(frozen=True, eq=False)
class Ready:
    """A session that may be asked, and the common ids (as digests) in the common order."""

    session: Session
    ids: Digests


def asking(
    share: StoredShare, terms: Scoring, use: Callable[[Ready], Awaitable[T]]
) -> Callable[[RunSession], Awaitable[T]]:
    """Return the asker's program of a session: open it, return what `use` makes of it, and end it."""

    async def program(session: RunSession) -> T:
        async with _ready(session, share, terms) as (scoring, rows):
            result = await use(Ready(scoring, session.own_rows.ids[rows]))
            await scoring.end()
            await session.party.leave(session.train)
        return result

    return program


def answering(share: StoredShare, terms: Scoring) -> Callable[[RunSession], Awaitable[int]]:
    """Return everybody else's program of a session: answer the asker, and return how many rows were asked
    for."""

    async def program(session: RunSession) -> int:
        async with _ready(session, share, terms) as (scoring, _):
            asked = await scoring.answer()
            await session.party.leave(session.train)
        return asked

    return program


@asynccontextmanager
async def _ready(
    session: RunSession, share: StoredShare, terms: Scoring
) -> AsyncIterator[tuple[Session, Rows]]:
    """Find the common rows and apply the share to them; gives the session and this party's common rows."""
    contract, trained, digest = share.contract, share.manifest.terms, terms.digest()
    asked = ComparisonRequest(
        run=f"{session.run:08x}",
        purpose="score",
        entry=terms.data or trained.parties[session.me].data,
        proposer=terms.asker,
        read=session.own_rows.table.reading.digest,
    )
    found = await common_rows(session, digest, trained.align.keys, asked)
    session.tell(Event("aligned", len(found.rows), len(session.own_rows.ids)))
    rows = session.own_rows.table.take(found.rows)
    table = await asyncio.to_thread(share.preparation.transform, rows)
    plan = contract.plan(session.me, table.width, share.manifest.rows["train"])
    settings, process = session.settings, None
    if contract.asks_for_models and is_own_code(settings, trained):
        process = ModelProcess(settings, share.manifest.model, table.width)
    try:
        part = await asyncio.to_thread(scorer, settings, contract, plan, share.arrays, table.X, process)
        await book_scores(
            session,
            asked.entry,
            share.manifest.model,
            found.digest,
            part,
            asker=terms.asker,
            columns=max(1, table.width),
            label_holders=trained.active,
        )
        held_to(session.train)
        secrets = await session.party.join(session.train, digest)
        secure = session.party.secure_sum(session.train, secrets, trained.secure.sum)
        streams = PairStreams(session.me, secrets)
        limits = session.train.meter.limits
        count = partial(session.scored, terms.asker, share.manifest.model)
        yield Session(session.train, secure, terms.asker, part, streams, Thread(), limits, count), found.rows
    finally:
        if process is not None:
            process.close()


def outputs(share: StoredShare, z: Floats) -> list[ScoredRow]:
    """Return every row's score, its probability where the loss has one, and its predicted label."""
    from scipy.special import softmax

    loss = share.contract.loss
    labels = share.manifest.labels or {}
    classes = list(labels.get("classes", ()))
    if loss.task == "regression":
        if loss.link == "identity":
            return [{"score": float(each)} for each in z]
        return [
            {"score": float(each), "expected": float(expected)}
            for each, expected in zip(z, loss.predict(z), strict=True)
        ]
    if loss.task == "multiclass":
        likely = softmax(z, axis=1)
        return [
            {"score": each.tolist(), "probability": p.tolist(), "label": classes[int(np.argmax(each))]}
            for each, p in zip(z, likely, strict=True)
        ]
    positive = set(labels.get("positive", ()))
    names = {sign: [c for c in classes if (c in positive) == sign] for sign in (True, False)}
    rows: list[ScoredRow] = []
    for each in z:
        row: ScoredRow = {"score": float(each)}
        if loss.link == "logit":
            row["probability"] = float(1 / (1 + np.exp(-each)))
        side = names[bool(each > 0)]
        row["label"] = side[0] if len(side) == 1 else ("positive" if each > 0 else "negative")
        rows.append(row)
    return rows


def check_explainable(share: StoredShare, me: str) -> None:
    """Refuse scores by party where this one cannot know them."""
    terms, name = share.manifest.terms, share.manifest.model
    if share.manifest.kind != "trees" or share.contract.conversation.share.is_sum(terms.job()):
        raise ShareError(f"{name}: only the label holder of secureboost's trees can explain scores by party")
    if me != terms.server:
        raise ShareError(
            f"{name}: only {terms.server}, which holds the label and the trees, can explain scores by party"
        )


def explain(session: Session, kept: list[PartyValues]) -> None:
    """Let a session of this party keep what every party's columns do to the scores it asks for."""
    if not isinstance(session.scorer, PartyExplainer):
        raise ShareError(f"{session.net.me} cannot know what parties' columns do to scores of this model")
    session.scorer = session.scorer.explaining(kept)


def add_parts(rows: list[ScoredRow], share: StoredShare, kept: list[PartyValues]) -> None:
    """Put the base and every party's value beside the score of every row."""
    parties, several = sorted(share.manifest.terms.parties), bool(share.manifest.terms.train.classes)
    base, values = kept[0].base, np.concatenate([each.values for each in kept])
    for row, found in zip(rows, values, strict=True):
        row["base"] = base.tolist() if several else float(base[0])
        row["parties"] = {
            party: each.tolist() if several else float(each[0])
            for party, each in zip(parties, found, strict=True)
        }


def with_mean_parts(manifest: Manifest, z: Floats, away: list[str]) -> Floats:
    """Return scores of the present parties plus the mean part of every party that is away."""
    for party in away:
        mean = np.array(manifest.means[party])
        z = z + (mean if z.ndim > 1 else mean[0])
    return z
