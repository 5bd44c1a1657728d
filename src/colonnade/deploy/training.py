"""One training run at one party: align, split, prepare, train, measure, store the share.

The program is the same at every party. What differs is who holds the label: only there are labels read,
the loss seen and the metrics known.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np

from colonnade.arrays import Rows
from colonnade.conversations import align as alignment
from colonnade.conversations.predict import Session
from colonnade.data.labels import Labels
from colonnade.data.prepare import Preparation
from colonnade.data.table import Table
from colonnade.deploy import models as modelling
from colonnade.deploy import shares
from colonnade.deploy.id_history import Memory
from colonnade.deploy.rows import Brought, commitment, load_rows, rules_of, split_rows
from colonnade.deploy.scoring import model_part
from colonnade.deploy.session import Event, Seat, for_peers
from colonnade.deploy.settings import Settings
from colonnade.deploy.terms import Terms
from colonnade.errors import DataError
from colonnade.losses import LOSSES
from colonnade.messages import Announce, Topic, tag_of
from colonnade.metrics import metrics_of
from colonnade.result import Moment
from colonnade.run.party import Assignment, Party, Share


class Books(msgspec.Struct, kw_only=True):
    """What a run cost this party, kept beside its models."""

    align_bytes: int
    align_seconds: float
    train: Share


def bring(settings: Settings, terms: Terms) -> Brought:
    """Read this party's data for the job and see that it can be prepared at all."""
    member = terms.parties[settings.name]
    brought = load_rows(
        settings,
        member.data,
        terms.align.keys,
        columns=member.columns,
        categorical=terms.prepare.categorical,
        label=member.label,
        bare=shares.kind_of(terms) == "cascade" and settings.name == terms.server,
    )
    # types and gaps are found now, before anybody waits for anybody
    prepared(brought.table, terms, intercept=False)
    if shares.kind_of(terms) == "cascade":
        modelling.check_code(settings, terms)
    if member.label:
        labels_for(brought.table.y, terms, brought.table.name)
    return brought


def prepared(raw: Any, terms: Terms, *, intercept: bool) -> Preparation:
    prepare = terms.prepare
    return Preparation.fit(
        raw,
        scale=prepare.scale,
        categorical=[c for c in prepare.categorical if c in raw.columns],
        missing=prepare.missing,
        intercept=intercept,
    )


def labels_for(y: Any, terms: Terms, name: str) -> Labels:
    task = LOSSES[terms.job().train.loss or ""].task
    labels = Labels.fit(y, task, positive=terms.prepare.positive, name=name)
    if terms.train.classes is not None and len(labels.classes) != terms.train.classes:
        raise DataError(f"{name}: {len(labels.classes)} classes, the job says {terms.train.classes}")
    return labels


def training(terms: Terms, report: Callable[[Moment], None]) -> Callable[[Seat], Any]:
    """The program of one run."""

    async def program(seat: Seat) -> shares.Manifest:
        found = await _align(seat, terms)
        aligned = seat.align.clock.now()
        ids, raw = seat.brought.ids[found.rows], seat.brought.table.take(found.rows)
        train, validation, test = split_rows(ids, terms.split, terms.seed)
        if not len(train) or not len(test):
            raise DataError(f"{len(ids)} common rows leave none to train or none to test on; see split")
        active, me = terms.active, seat.me
        labels = labels_for(raw.y[train], terms, raw.name) if me in active and raw.y is not None else None
        preparation = prepared(raw.take(train), terms, intercept=terms.prepare.intercept and me == active[0])

        def table(rows: Rows) -> Table:
            part = raw.take(rows)
            y = (
                labels.transform(part.y, name=raw.name, origin=part.origin)
                if labels and part.y is not None
                else None
            )
            return preparation.transform(replace(part, y=None, ids=None), y)

        seat.tell(Event("training", 0, terms.train.epochs))
        tables = table(train), table(test)
        models, code = {}, {}
        if shares.kind_of(terms) == "cascade":
            code = modelling.fingerprints(seat.settings, terms)
            models = await asyncio.to_thread(modelling.models_for, seat.settings, terms, tables[0].X)
        assignment = Assignment(
            terms.job(),
            *tables,
            active,
            model=models.get(modelling.OWN),
            server_model=models.get(modelling.HEAD),
        )
        party = Party(seat.train, seat.credentials, assignment, progress=report, for_peers=for_peers)
        try:
            share = await party.run()
        finally:
            for secure in party._sums:
                await secure.close()
        metrics, means = await _close(seat, terms, share.weights, table, train, validation)
        tensors, beside = modelling.described(models)
        manifest = shares.Manifest(
            model=f"{terms.name}-{seat.run:08x}",
            run=f"{seat.run:08x}",
            party=me,
            kind=shares.kind_of(terms),
            terms=terms,
            digest=terms.digest(),
            columns=list(raw.columns),
            preparation=preparation.to_dict(),
            labels=labels.to_dict() if labels else None,
            rows={"common": len(ids), "train": len(train), "validation": len(validation), "test": len(test)},
            alignment=found.digest,
            metrics={**share.metrics, **metrics},
            means=means,
            created=shares.now(),
            versions=shares.versions(),
            code=code,
            tensors=tensors,
            epsilon=share.epsilon,
            weights="",
        )
        stored = {**share.weights, **beside}
        await asyncio.to_thread(shares.save, seat.settings.state / "models", manifest, stored)
        books = Books(align_bytes=seat.align.meter.bytes(), align_seconds=aligned, train=share)
        share.weights = {}
        shares.keep_books(seat.settings.state, manifest.model, msgspec.json.encode(books))
        return manifest

    return program


async def _align(seat: Seat, terms: Terms) -> alignment.Alignment:
    memory = Memory(seat.settings.state / "memory")
    scope = memory.scope(terms.parties)
    secrets = await seat.secrets(seat.align, terms.digest())
    found = await alignment.align(
        seat.align,
        seat.brought.ids,
        secrets,
        alignment.Terms(
            order=bytes.fromhex(terms.digest()),
            rules=rules_of(terms.align.keys),
            minimum=max(terms.align.minimum, seat.minimum),
            commitment=commitment(seat.brought.ids, memory.salt()),
            expected={} if terms.align.changed == "accept" else memory.recall(scope),
        ),
        progress=lambda done, total: seat.tell(Event("aligning", done, total)),
    )
    await seat.align.finish()
    memory.remember(scope, {p: c for p, c in found.commitments.items() if p != seat.me})
    seat.tell(Event("aligned", len(found.rows), len(seat.brought.ids)))
    return found


async def _close(
    seat: Seat,
    terms: Terms,
    weights: dict[str, Any],
    table: Callable[[Rows], Table],
    train: Rows,
    validation: Rows,
) -> tuple[dict[str, float], dict[str, list[float]]]:
    """Validation metrics at the first label holder; every party's mean part where the job allows its use."""
    net, root = seat.close, terms.active[0]
    secrets = await seat.secrets(net, terms.digest())
    metrics: dict[str, float] = {}
    if len(validation):
        rows = table(validation)
        part = model_part(seat.settings, terms, weights, rows.X)
        session = Session(net, seat.secure_sum(net, secrets, terms.secure.sum), root, part)
        z = await session.score_all()
        if z is not None and rows.y is not None:
            loss = LOSSES[terms.job().train.loss or ""]
            found = metrics_of(loss, z, rows.y, 0.0)
            metrics = {key.replace("test_", "validation_"): value for key, value in found.items()}
    means: dict[str, list[float]] = {}
    if terms.use.degraded:
        part = model_part(seat.settings, terms, weights, table(train).X)
        mean = np.atleast_1d(part.part.mean(axis=0))  # type: ignore[attr-defined]
        tag = tag_of(Topic.PREDICT, 0)
        if seat.me in terms.active:
            for peer in terms.active:
                if peer != seat.me:
                    await net.send(peer, Announce(tag, mean))
            told = await net.gather(Announce, tag)
            means = {peer: announced.values.tolist() for peer, announced in told.items()}
        else:
            for peer in terms.active:
                await net.send(peer, Announce(tag, mean))
    for secure in seat.sums:
        await secure.settle()
    await net.finish()
    return metrics, means


def as_event(moment: Moment, epochs: int) -> Event:
    return Event("training", moment.epoch, epochs, moment.loss)


def describe(manifest: shares.Manifest) -> dict[str, Any]:
    """What an operator is told of a finished run."""
    plain: dict[str, Any] = msgspec.to_builtins(manifest)
    return {
        key: plain[key] for key in ("model", "party", "digest", "rows", "metrics", "alignment", "created")
    }
