"""One scoring session at one party: bring new rows, align them, apply the stored share.

The asker brings the ids it wants scored and holds, the others bring all ids of the entry they are asked
for; after the private alignment rows are named by their place in the common order, so no id is ever sent.
What the others learn is which of their ids were asked for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from colonnade.arrays import Arrays, Floats, Matrix, Rows
from colonnade.conversations.align import AlignTerms, align
from colonnade.conversations.context import GivenModels
from colonnade.conversations.predict import Holding, Scorer, Session
from colonnade.deploy.models import check_unchanged, restored_models
from colonnade.deploy.rows import Brought, load_rows, rules_of
from colonnade.deploy.session import Event, RunSession
from colonnade.deploy.settings import Settings
from colonnade.deploy.shares import Manifest, StoredShare
from colonnade.deploy.terms import Contract, Scoring
from colonnade.errors import DataError
from colonnade.job.plan import Plan

T = TypeVar("T")


def scorer(settings: Settings, contract: Contract, plan: Plan[Any], arrays: Arrays, X: Matrix) -> Scorer:
    """A share applied to this party's columns of some rows."""
    models = GivenModels()
    if contract.asks_for_models:
        models = restored_models(settings, contract.terms, plan, arrays, int(X.shape[1]))
    return contract.conversation.share.scorer(Holding(plan, settings.name, arrays, X, models))


def bring(
    settings: Settings, share: StoredShare, terms: Scoring, wanted: NDArray[np.uint8] | None
) -> Brought:
    """The rows of the entry that is asked for; at the asker only those it wants scored."""
    trained = share.manifest.terms
    check_unchanged(settings, trained, share.manifest.code)
    name = terms.data or trained.parties[settings.name].data
    brought = load_rows(
        settings,
        name,
        trained.align.keys,
        columns=share.manifest.columns,
        categorical=trained.prepare.categorical,
        bare=not share.manifest.columns,
    )
    if wanted is None:
        return brought
    held = np.ascontiguousarray(brought.ids).view("S32").ravel()
    keep = np.flatnonzero(np.isin(held, np.ascontiguousarray(wanted).view("S32").ravel()))
    if not len(keep):
        raise DataError(f"data.{name}: none of the ids to score is in it")
    return Brought(brought.table.take(keep), brought.ids[keep])


@dataclass(frozen=True, eq=False)
class Ready:
    """A session that may be asked: which ids (as digests) are common, in the common order."""

    session: Session
    ids: NDArray[np.uint8]


def asking(
    share: StoredShare, terms: Scoring, use: Callable[[Ready], Awaitable[T]]
) -> Callable[[RunSession], Awaitable[T]]:
    """The asker's program of a session; `use` is what it does with it."""

    async def program(session: RunSession) -> T:
        scoring, rows = await _ready(session, share, terms)
        result = await use(Ready(scoring, session.brought.ids[rows]))
        await scoring.end()
        await session.party.leave(session.train)
        return result

    return program


def answering(share: StoredShare, terms: Scoring) -> Callable[[RunSession], Awaitable[int]]:
    """Everybody else's program of a session; it returns how many rows were asked for."""

    async def program(session: RunSession) -> int:
        scoring, _ = await _ready(session, share, terms)
        asked = await scoring.answer()
        await session.party.leave(session.train)
        return asked

    return program


async def _ready(session: RunSession, share: StoredShare, terms: Scoring) -> tuple[Session, Rows]:
    """Find the common rows and apply the share to them; the session, and the rows' places here."""
    contract, trained, digest = Contract.of(share.manifest.terms), share.manifest.terms, terms.digest()
    secrets = await session.party.join(session.align, digest)
    found = await align(
        session.align,
        session.brought.ids,
        secrets,
        AlignTerms(order=bytes.fromhex(digest), rules=rules_of(trained.align.keys)),
        progress=lambda done, total: session.tell(Event("aligning", done, total)),
    )
    await session.align.finish()
    session.tell(Event("aligned", len(found.rows), len(session.brought.ids)))
    rows = session.brought.table.take(found.rows)
    table = await asyncio.to_thread(share.preparation.transform, rows)
    plan = contract.plan(session.me, table.width, share.manifest.rows["train"])
    part = await asyncio.to_thread(scorer, session.settings, contract, plan, share.arrays, table.X)
    secrets = await session.party.join(session.train, digest)
    secure = session.party.secure_sum(session.train, secrets, trained.secure.sum)
    return Session(session.train, secure, terms.asker, part), found.rows


def outputs(manifest: Manifest, z: Floats) -> list[dict[str, Any]]:
    """Scores in the words of the label: a probability where the loss has one, and the predicted label."""
    loss = Contract.of(manifest.terms).loss
    labels = manifest.labels or {}
    classes = list(labels.get("classes", ()))
    if loss.task == "regression":
        return [{"score": float(each)} for each in z]
    if loss.task == "multiclass":
        return [{"score": [float(v) for v in each], "label": classes[int(np.argmax(each))]} for each in z]
    positive = set(labels.get("positive", ()))
    words = {sign: [c for c in classes if (c in positive) == sign] for sign in (True, False)}
    rows = []
    for each in z:
        row: dict[str, Any] = {"score": float(each)}
        if loss.name == "logistic":
            row["probability"] = float(1 / (1 + np.exp(-each)))
        side = words[bool(each > 0)]
        row["label"] = side[0] if len(side) == 1 else ("positive" if each > 0 else "negative")
        rows.append(row)
    return rows


def completed(manifest: Manifest, z: Floats, away: list[str]) -> Floats:
    """Scores without the parties that are away, which are taken to be average."""
    for party in away:
        mean = np.array(manifest.means[party])
        z = z + (mean if z.ndim > 1 else mean[0])
    return z
