"""One training run at one party: align, split, prepare, train, measure, store the share.

The program is the same at every party. Only at label holders are labels read and the metrics known; the loss
is seen there too, and elsewhere if the job allows that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any, TypedDict

import msgspec
import numpy as np

from colonnade.arrays import Arrays, Floats, Rows
from colonnade.conversations.align import Alignment, AlignTerms, align
from colonnade.conversations.context import GivenModels
from colonnade.conversations.predict import Session, SummedPart
from colonnade.data.labels import Labels, check_labels
from colonnade.data.prepare import Preparation
from colonnade.data.table import RawTable, Table
from colonnade.data.weights import training_weights
from colonnade.deploy import models, shares
from colonnade.deploy.id_history import IdHistory
from colonnade.deploy.rows import PartyRows, commitment, load_rows, rules_of, split_rows
from colonnade.deploy.scoring import scorer
from colonnade.deploy.session import Event, RunSession
from colonnade.deploy.settings import Settings
from colonnade.deploy.terms import Contract, Terms
from colonnade.errors import DataError, JobError
from colonnade.job.plan import Plan
from colonnade.job.sections import ClassWeight
from colonnade.messages import Announce, Topic, tag_of
from colonnade.metrics import metrics_of
from colonnade.result import Moment
from colonnade.run.party import Share, Work, train
from colonnade.test_scores import TestScores


class RunCost(msgspec.Struct, kw_only=True):
    """What a run cost this party: for finding common rows, and for training."""

    align_bytes: int
    align_seconds: float
    train: Share


def read_rows(settings: Settings, contract: Contract) -> PartyRows:
    """This party's rows for the job; raises if they, the labels or its models cannot be used for it."""
    terms, me = contract.terms, settings.name
    member = terms.parties[me]
    own = load_rows(
        settings,
        member.data,
        terms.align.keys,
        columns=member.columns,
        categorical=terms.prepare.categorical,
        label=member.label,
        weight=member.weight,
        bare=contract.is_bare_server(me),
    )
    # types and gaps are found now, before anybody waits for anybody
    preparation_for(own.table, terms, intercept=False)
    if contract.asks_for_models:
        models.check_code(settings, terms)
    if member.label:
        labels_for(own.table, contract)
    return own


def preparation_for(raw: RawTable, terms: Terms, *, intercept: bool) -> Preparation:
    """The preparation of this party's columns as the job asks for it, learnt from these rows."""
    prepare = terms.prepare
    return Preparation.fit(
        raw,
        scale=prepare.scale,
        categorical=[c for c in prepare.categorical if c in raw.columns],
        missing=prepare.missing,
        rare=prepare.rare,
        intercept=intercept,
    )


def labels_for(raw: RawTable, contract: Contract) -> Labels:
    """How labels become numbers, learnt from these rows; DataError if they do not fit the job."""
    terms = contract.terms
    if raw.y is None:
        raise DataError(f"{raw.name}: holds no label")
    labels = Labels.fit(raw.y, contract.loss.task, positive=terms.prepare.positive, name=raw.name)
    if terms.train.classes is not None and len(labels.classes) != terms.train.classes:
        raise DataError(f"{raw.name}: {len(labels.classes)} classes, the job says {terms.train.classes}")
    check_labels(
        contract.loss, labels.transform(raw.y, name=raw.name, origin=raw.origin), raw.name, raw.origin
    )
    training_weights(raw, labels, terms.train.class_weight)
    return labels


@dataclass(frozen=True, eq=False)
class Aligned:
    """This party's common rows, what each is for (training, validation, test), and how to prepare them."""

    raw: RawTable
    train: Rows
    validation: Rows
    test: Rows
    preparation: Preparation
    labels: Labels | None

    @staticmethod
    def of(session: RunSession, contract: Contract, rows: Rows) -> Aligned:
        """Split the common rows, and learn the preparation from those to train on."""
        terms, me = contract.terms, session.me
        ids, raw = session.own_rows.ids[rows], session.own_rows.table.take(rows)
        train, validation, test = split_rows(ids, terms.split, terms.seed)
        if not len(train) or not len(test):
            raise DataError(f"{len(ids)} common rows leave none to train or none to test on; see split")
        known = raw.take(train)
        labels = labels_for(known, contract) if me in terms.active else None
        if labels is not None and known.y is not None:
            known = replace(known, y=labels.transform(known.y, name=raw.name, origin=known.origin))
        intercept = me == contract.intercept_at
        return Aligned(
            raw, train, validation, test, preparation_for(known, terms, intercept=intercept), labels
        )

    def table(self, rows: Rows) -> Table:
        """Some of the common rows as numbers, with their labels and weights where this party holds them."""
        part = self.raw.take(rows)
        y = None
        if self.labels is not None and part.y is not None:
            y = self.labels.transform(part.y, name=self.raw.name, origin=part.origin)
        table = self.preparation.transform(replace(part, y=None, ids=None), y)
        return replace(table, weight=part.weight)

    def to_train(self, class_weight: ClassWeight) -> Table:
        """The rows to train on, weighted by their classes as well."""
        table = self.table(self.train)
        if self.labels is None:
            return table
        return replace(table, weight=training_weights(self.raw.take(self.train), self.labels, class_weight))

    def counts(self) -> dict[str, int]:
        """How many rows are common, and how many of them are for what."""
        return {
            "common": self.raw.rows,
            "train": len(self.train),
            "validation": len(self.validation),
            "test": len(self.test),
        }


def training(
    contract: Contract, report: Callable[[Moment], None]
) -> Callable[[RunSession], Awaitable[shares.Manifest]]:
    """The program of one training run; it returns the manifest of the share that it stored.

    `report` is called with every measurement, at label holders.
    """

    async def program(session: RunSession) -> shares.Manifest:
        terms, settings = contract.terms, session.settings
        found = await _align(session, terms)
        aligned_after = session.align.clock.now()
        rows = Aligned.of(session, contract, found.rows)
        session.tell(Event("training", 0, terms.train.epochs))
        train_table, test_table = rows.to_train(terms.train.class_weight), rows.table(rows.test)
        plan = contract.plan(session.me, train_table.width, train_table.rows)
        given, code = GivenModels(), {}
        if contract.asks_for_models:
            code = models.fingerprints(settings, terms)
            given = await asyncio.to_thread(models.models_for, settings, terms, plan, train_table.X)
        work = Work(plan, train_table, test_table, None, given, report, digest=terms.digest())
        share = await train(session.party, work, session.train)
        metrics, means = await _close(session, contract, plan, share.weights, rows)
        manifest = _manifest(session, contract, share, rows)
        manifest = msgspec.structs.replace(
            manifest,
            alignment=found.digest,
            metrics={**share.metrics, **metrics},
            means=means,
            code=code,
            tensors=share.tensors,
        )
        await asyncio.to_thread(shares.save, settings.state / "models", manifest, share.weights)
        _save_cost(session, manifest, share, aligned_after)
        if share.test_scores is not None and test_table.y is not None:
            kept = TestScores(
                test_table.y, share.test_scores, with_probabilities=plan.objective.loss == "logistic"
            )
            shares.save_scores(settings.state, manifest.model, kept)
        return manifest

    return program


def _manifest(session: RunSession, contract: Contract, share: Share, rows: Aligned) -> shares.Manifest:
    """The manifest of a share, as far as it is known when training ends."""
    terms, run = contract.terms, f"{session.run:08x}"
    return shares.Manifest(
        model=f"{terms.name}-{run}",
        run=run,
        party=session.me,
        kind=contract.conversation.share.name,
        terms=terms,
        digest=terms.digest(),
        columns=list(rows.raw.columns),
        preparation=rows.preparation.to_dict(),
        labels=rows.labels.to_dict() if rows.labels else None,
        rows=rows.counts(),
        alignment="",
        created=shares.now(),
        versions=shares.versions(),
        epsilon=share.epsilon,
        converged=share.converged,
        weights="",
    )


def _save_cost(session: RunSession, manifest: shares.Manifest, share: Share, align_seconds: float) -> None:
    """Write what the run cost this party; the weights are stored already, and no part of the cost."""
    train = share.counts()
    cost = RunCost(align_bytes=session.align.meter.bytes(), align_seconds=align_seconds, train=train)
    shares.save_cost(session.settings.state, manifest.model, msgspec.json.encode(cost))


async def _align(session: RunSession, terms: Terms) -> Alignment:
    """Find the common rows, and remember what the peers committed to for the next run with them."""
    history = IdHistory(session.settings.state / "memory")
    scope = history.scope(terms.parties)
    secrets = await session.party.join(session.align, terms.digest())
    found = await align(
        session.align,
        session.own_rows.ids,
        secrets,
        AlignTerms(
            order=bytes.fromhex(terms.digest()),
            rules=rules_of(terms.align.keys),
            minimum=max(terms.align.minimum, session.minimum),
            commitment=commitment(session.own_rows.ids, history.salt()),
            expected={} if terms.align.changed == "accept" else history.recall(scope),
        ),
        progress=lambda done, total: session.tell(Event("aligning", done, total)),
    )
    await session.align.finish()
    history.remember(scope, {p: c for p, c in found.commitments.items() if p != session.me})
    session.tell(Event("aligned", len(found.rows), len(session.own_rows.ids)))
    return found


async def _close(
    session: RunSession, contract: Contract, plan: Plan[Any], weights: Arrays, rows: Aligned
) -> tuple[dict[str, float], dict[str, list[float]]]:
    """The validation metrics, at the first label holder, and the others' mean parts, at all label holders.

    Mean parts are exchanged only if the job allows scores without a party.
    """
    net, terms = session.close, contract.terms
    secrets = await session.party.join(net, terms.digest())
    metrics: dict[str, float] = {}
    if len(rows.validation):
        table = rows.table(rows.validation)
        part = scorer(session.settings, contract, plan, weights, table.X)
        secure = session.party.secure_sum(net, secrets, terms.secure.sum)
        z = await Session(net, secure, terms.active[0], part).score_all()
        if z is not None and table.labels is not None:
            found = metrics_of(contract.loss, z, table.labels, 0.0)
            metrics = {key.replace("test_", "validation_"): value for key, value in found.items()}
    means: dict[str, list[float]] = {}
    if terms.use.degraded:
        part = scorer(session.settings, contract, plan, weights, rows.table(rows.train).X)
        if not isinstance(part, SummedPart):
            raise JobError("use.degraded: these scores are no sum over parties")
        means = await _mean_parts(session, terms, np.atleast_1d(part.part.mean(axis=0)))
    await session.party.leave(net)
    return metrics, means


async def _mean_parts(session: RunSession, terms: Terms, mean: Floats) -> dict[str, list[float]]:
    """Every other party's mean part of a score, at label holders; elsewhere only the own one is sent."""
    net, tag = session.close, tag_of(Topic.PREDICT, 0)
    for peer in terms.active:
        if peer != session.me:
            await net.send(peer, Announce(tag, mean))
    if session.me not in terms.active:
        return {}
    told = await net.gather(Announce, tag)
    return {peer: announced.values.tolist() for peer, announced in told.items()}


def as_event(moment: Moment, epochs: int) -> Event:
    """The event that shows a measurement to operators."""
    return Event("training", moment.epoch, epochs, moment.loss)


class Trained(TypedDict):
    """What an operator is shown of a finished training run: some fields of its manifest."""

    model: str
    party: str
    digest: str
    rows: dict[str, int]
    metrics: dict[str, float]
    alignment: str
    created: str
    converged: bool | None


def describe(manifest: shares.Manifest) -> Trained:
    """What an operator is shown of the training run that this manifest is from."""
    return {
        "model": manifest.model,
        "party": manifest.party,
        "digest": manifest.digest,
        "rows": manifest.rows,
        "metrics": manifest.metrics,
        "alignment": manifest.alignment,
        "created": manifest.created,
        "converged": manifest.converged,
    }
