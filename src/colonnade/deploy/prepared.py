"""This party's rows in a training run: read, split once the common ones are known, and prepared by itself.

Where the job asks for weight of evidence, the parties find it together between splitting and preparing.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace

import numpy as np

from colonnade.arrays import Rows
from colonnade.data.assign import as_they_are
from colonnade.data.labels import Labels, check_labels
from colonnade.data.party_data import Recipe
from colonnade.data.prepare import Preparation
from colonnade.data.table import RawTable, Table
from colonnade.data.weights import training_weights
from colonnade.data.woe import Weighed, make_bins
from colonnade.deploy import models
from colonnade.deploy.rows import PartyRows, load_rows, split_rows
from colonnade.deploy.session import Event, RunSession
from colonnade.deploy.settings import Settings
from colonnade.deploy.terms import Contract, Terms
from colonnade.errors import DataError
from colonnade.job.sections import ClassWeight
from colonnade.run.weigh import WeighingTerms, weigh

log = logging.getLogger("colonnade.party")


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
        exposure=member.exposure,
        bare=contract.is_bare(me),
    )
    # types and gaps are found now, before anybody waits for anybody
    if terms.prepare.woe:
        make_bins(own.table, _categorical(own.table, terms), terms.woe)
    else:
        preparation_for(own.table, contract, intercept=False)
    if contract.asks_for_models:
        models.check_code(settings, terms)
    if member.label:
        labels_for(own.table, contract)
    return own


def preparation_for(
    raw: RawTable, contract: Contract, *, intercept: bool, woe: tuple[Weighed, ...] = ()
) -> Preparation:
    """The preparation of this party's columns as the job asks for it, learnt from these rows."""
    prepare = contract.terms.prepare
    recipe = Recipe(prepare.scale, missing=prepare.missing)
    takes_gaps = contract.composition.has("takes-gaps") and as_they_are(prepare.scale, prepare.missing)
    if takes_gaps and not prepare.woe:
        recipe = recipe.with_gaps()
    return Preparation.fit(
        raw,
        scale=recipe.scale,
        categorical=_categorical(raw, contract.terms),
        missing=recipe.missing,
        rare=prepare.rare,
        intercept=intercept,
        woe=woe,
    )


def _categorical(raw: RawTable, terms: Terms) -> list[str]:
    return [c for c in terms.prepare.categorical if c in raw.columns]


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

    def base_rate(self) -> float | None:
        """The part of the training rows whose label is positive, where there are two classes known here."""
        y = self.table(self.train).y
        return float(np.mean(y > 0)) if y is not None and self.labels and self.labels.positive else None

    def counts(self) -> dict[str, int]:
        """How many rows are common, and how many of them are for what."""
        return {
            "common": self.raw.rows,
            "train": len(self.train),
            "validation": len(self.validation),
            "test": len(self.test),
        }


async def prepared(session: RunSession, contract: Contract, rows: Rows) -> Aligned:
    """Split the common rows, and learn the preparation from those to train on; what it does is logged."""
    terms, me = contract.terms, session.me
    ids, raw = session.own_rows.ids[rows], session.own_rows.table.take(rows)
    train, validation, test = split_rows(ids, terms.split, terms.seed)
    if not len(train) or not len(test):
        raise DataError(f"{len(ids)} common rows leave none to train or none to test on; see split")
    known = raw.take(train)
    labels = labels_for(known, contract) if me in terms.active else None
    if labels is not None and known.y is not None:
        known = replace(known, y=labels.transform(known.y, name=raw.name, origin=known.origin))
    woe = await _weighed(session, terms, known) if terms.prepare.woe else ()
    made = preparation_for(known, contract, intercept=me == contract.intercept_at, woe=woe)
    for said in made.done():
        log.info("run %08x: %s", session.run, said)
    for said in made.warnings:
        log.warning("run %08x: %s", session.run, said)
    return Aligned(raw, train, validation, test, made, labels)


async def _weighed(session: RunSession, terms: Terms, train: RawTable) -> tuple[Weighed, ...]:
    """The weight of evidence of this party's columns, by the label of the first label holder."""
    session.tell(Event("weighing columns"))
    agreed = WeighingTerms(
        label_holder=terms.active[0], woe=terms.woe, network=terms.network, world="network", seed=terms.seed
    )
    done = await weigh(session.party, session.weigh, train, _categorical(train, terms), agreed)
    return tuple(done.columns)
