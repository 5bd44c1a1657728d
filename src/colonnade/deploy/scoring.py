"""One scoring session at one party: bring new rows, align them, apply the stored share.

The asker brings the ids it wants scored and holds, the others bring all ids of the entry they are asked
for; after the private alignment rows are named by their place in the common order, so no id is ever sent.
What the others learn is which of their ids were asked for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from colonnade.arrays import Floats, Matrix
from colonnade.conversations import align as alignment
from colonnade.conversations.kernel.predict import KernelShare
from colonnade.conversations.predict import KernelPart, LinearPart, Model, Session
from colonnade.deploy.models import cascade_part, check_unchanged
from colonnade.deploy.rows import Brought, load_rows, rules_of
from colonnade.deploy.session import Event, Seat
from colonnade.deploy.settings import Settings
from colonnade.deploy.shares import Manifest, Share, kind_of
from colonnade.deploy.terms import Scoring, Terms
from colonnade.errors import DataError
from colonnade.losses import LOSSES
from colonnade.models.linear import rows_of


def model_part(settings: Settings, terms: Terms, arrays: dict[str, Any], X: Matrix) -> Model:
    """A share applied to this party's columns of some rows."""
    match kind_of(terms):
        case "kernel":
            return KernelPart(KernelShare.from_arrays(arrays), X)
        case "cascade":
            return cascade_part(settings, terms, arrays, X)
        case _:
            return LinearPart(rows_of(X).scores(0, int(X.shape[0]), np.asarray(arrays["w"])))


def bring(settings: Settings, share: Share, terms: Scoring, wanted: NDArray[np.uint8] | None) -> Brought:
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


def scoring(share: Share, terms: Scoring, use: Callable[[Ready], Awaitable[Any]]) -> Callable[[Seat], Any]:
    """The program of one session; `use` is what the asker does with it."""

    async def program(seat: Seat) -> Any:
        secrets = await seat.secrets(seat.align, terms.digest())
        rules = rules_of(share.manifest.terms.align.keys)
        found = await alignment.align(
            seat.align,
            seat.brought.ids,
            secrets,
            alignment.Terms(order=bytes.fromhex(terms.digest()), rules=rules),
            progress=lambda done, total: seat.tell(Event("aligning", done, total)),
        )
        await seat.align.finish()
        seat.tell(Event("aligned", len(found.rows), len(seat.brought.ids)))
        table = await asyncio.to_thread(share.preparation.transform, seat.brought.table.take(found.rows))
        trained = share.manifest.terms
        part = await asyncio.to_thread(model_part, seat.settings, trained, share.arrays, table.X)
        secure = seat.secure_sum(
            seat.train, await seat.secrets(seat.train, terms.digest()), share.manifest.terms.secure.sum
        )
        session = Session(seat.train, secure, terms.asker, part)
        if seat.me == terms.asker:
            result = await use(Ready(session, seat.brought.ids[found.rows]))
            await session.end()
        else:
            result = await session.answer()
        await secure.settle()
        await seat.train.finish()
        return result

    return program


def outputs(manifest: Manifest, z: Floats) -> list[dict[str, Any]]:
    """Scores in the words of the label: a probability where the loss has one, and the predicted label."""
    loss = LOSSES[manifest.terms.job().train.loss or ""]
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
