"""This party's rows in a training run: read, split once the common ones are known, and prepared by itself.

Where the job asks for weight of evidence, the parties find it together between splitting and preparing.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from colonnade.arrays import Rows
from colonnade.data.prepare.labels import Labels, check_labels
from colonnade.data.prepare.party_data import Recipe
from colonnade.data.prepare.prepare import Preparation
from colonnade.data.prepare.suspects import odd_labels
from colonnade.data.prepare.weights import training_weights
from colonnade.data.prepare.woe import Weighed, make_bins
from colonnade.data.split.assign import as_they_are
from colonnade.data.table import RawTable, Table
from colonnade.deploy.models import party_models
from colonnade.deploy.policy.membership import secret_for
from colonnade.deploy.rows.large_rows import Part, StoredTables, fresh_folder
from colonnade.deploy.rows.rows import COLUMNS, PartyRows, load_rows, split_rows
from colonnade.deploy.session.booking import books_of
from colonnade.deploy.session.session import Event, RunSession
from colonnade.deploy.settings import Settings
from colonnade.deploy.terms.contract import Contract
from colonnade.deploy.terms.terms import Terms
from colonnade.errors import DataError
from colonnade.job.sections import ClassWeight
from colonnade.privacy.counts import CountNoise
from colonnade.run.woe_party import Weighing, WeighingTerms, weigh

log = logging.getLogger("colonnade.party")


def read_rows(settings: Settings, contract: Contract) -> PartyRows:
    """Return this party's rows for the job; raises if they, the labels or its models cannot be used for
    it."""
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
        memory=settings.memory_bytes,
    )
    if own.large is not None:
        _refuse_large(terms, member.data)
    # types and gaps are found now, before anybody waits for anybody
    if terms.prepare.woe:
        make_bins(own.table, _categorical(own.table, terms), terms.woe)
    else:
        preparation_for(own.table, contract, intercept=False)
    if contract.asks_for_models:
        party_models.check_code(settings, terms)
    if member.label:
        labels_for(own.table, contract)
    return own


def preparation_for(
    raw: RawTable, contract: Contract, *, intercept: bool, woe: tuple[Weighed, ...] = ()
) -> Preparation:
    """Return the preparation of this party's columns as the job asks for it, learnt from these rows."""
    prepare = contract.terms.prepare
    recipe = Recipe(prepare.scale, missing=prepare.missing)
    takes_gaps = contract.composition.has("takes-gaps") and as_they_are(prepare.scale, prepare.missing)
    if takes_gaps and not prepare.woe and not contract.describes:
        recipe = recipe.with_gaps()
    return Preparation.fit(
        raw,
        scale=recipe.scale,
        tails=contract.composition.tails(contract.loss.task),
        categorical=_categorical(raw, contract.terms),
        missing=recipe.missing,
        rare=prepare.rare,
        intercept=intercept,
        woe=woe,
    )


def width_of(own: PartyRows, contract: Contract) -> int:
    """Return how many columns this party's rows become; those of weight of evidence keep their number."""
    if contract.terms.prepare.woe or not own.table.rows:
        return len(own.table.columns)
    some = own.table.take(np.arange(1))
    made = preparation_for(own.table, contract, intercept=False)
    return made.transform(replace(some, y=None, ids=None), None).width


def _categorical(raw: RawTable, terms: Terms) -> list[str]:
    return [c for c in terms.prepare.categorical if c in raw.columns]


def labels_for(raw: RawTable, contract: Contract) -> Labels:
    """Return how labels become numbers, learnt from these rows; DataError if they do not fit the job."""
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


def _refuse_large(terms: Terms, name: str) -> None:
    """Refuse what is only done with columns that fit the memory."""
    asked = {"data.woe": terms.prepare.woe, "train.class_weight": terms.train.class_weight}
    for key, value in asked.items():
        if value:
            raise DataError(
                f"data.{name}: is read in stretches, which {key} cannot be; leave it out of the job, or give "
                "more memory in this party's settings"
            )


@dataclass(frozen=True, eq=False)
class Aligned:
    """This party's common rows: how many are for what, how they are prepared, and the table of each part."""

    columns: tuple[str, ...]
    counts: dict[str, int]
    preparation: Preparation
    labels: Labels | None
    table: Callable[[Part], Table]
    weighed: Weighing | None = None  # where the job asks for weight of evidence

    def base_rate(self) -> float | None:
        """Return the part of the training rows whose label is positive, where there are two classes known
        here."""
        y = self.table("train").y if self.labels and self.labels.positive else None
        return None if y is None else float(np.mean(y > 0))


async def prepared(session: RunSession, contract: Contract, rows: Rows) -> Aligned:
    """Split the common rows, and learn the preparation from those to train on; what it does is logged."""
    terms, own = contract.terms, session.own_rows
    train, validation, test = await asyncio.to_thread(split_rows, own.ids[rows], terms.split, terms.seed)
    if not len(train) or not len(test):
        raise DataError(f"{len(rows)} common rows leave none to train or none to test on; see split")
    parts: dict[Part, Rows] = {"train": rows[train], "validation": rows[validation], "test": rows[test]}
    counts = {"common": len(rows)} | {str(part): len(chosen) for part, chosen in parts.items()}
    pick = own.table.take if own.large is None else own.large.picked
    known = await asyncio.to_thread(pick, rows[train])
    labels = labels_for(known, contract) if session.me in terms.active else None
    if labels is not None and known.y is not None:
        y = labels.transform(known.y, name=known.name, origin=known.origin)
        known = replace(known.warned(odd_labels(labels, known.y)), y=y)
    weighed = await _weighed(session, contract, known) if terms.prepare.woe else None
    woe = () if weighed is None else tuple(weighed.columns)
    made = preparation_for(known, contract, intercept=session.me == contract.intercept_at, woe=woe)
    for said in made.done():
        log.info("run %08x: %s", session.run, said)
    for said in made.warnings:
        log.warning("run %08x: %s", session.run, said)
    if own.large is not None:
        stored = StoredTables(fresh_folder(session.settings.state / COLUMNS, session.run))
        await asyncio.to_thread(stored.write, own.large, parts, made, labels)
        return Aligned(
            known.columns, counts, made, labels, partial(stored.table, party=session.me, made=made)
        )
    table = partial(_table, own.table, parts, made, labels, terms.train.class_weight)
    return Aligned(known.columns, counts, made, labels, table, weighed)


def _table(
    raw: RawTable,
    parts: Mapping[Part, Rows],
    made: Preparation,
    labels: Labels | None,
    class_weight: ClassWeight,
    part: Part,
) -> Table:
    """Return the rows of a part as numbers, with labels and weights where this party holds them.

    Rows to train on are weighted by their classes as well.
    """
    chosen = raw.take(parts[part])
    if labels is None or chosen.y is None:
        return replace(made.transform(replace(chosen, y=None, ids=None), None), weight=chosen.weight)
    y = labels.transform(chosen.y, name=raw.name, origin=chosen.origin)
    weight = training_weights(chosen, labels, class_weight) if part == "train" else chosen.weight
    return replace(made.transform(replace(chosen, y=None, ids=None), y), weight=weight)


async def _weighed(session: RunSession, contract: Contract, train: RawTable) -> Weighing:
    """Return the weight of evidence of this party's columns, by the label of the first label holder."""
    session.tell(Event("weighing columns"))
    terms, settings = contract.terms, session.settings
    agreed = WeighingTerms(
        label_holder=terms.active[0],
        woe=terms.woe,
        network=terms.network,
        world="network",
        seed=terms.seed,
        blind=contract.hides_counts,
    )
    noise = noise_of_counts(settings, terms)
    own, categorical = secret_for(settings, "hash of bins"), _categorical(train, terms)
    books = books_of(session, terms, train.rows, max(1, len(train.columns)))
    return await weigh(session.party, session.weigh, train, categorical, agreed, noise, books, own)


def noise_of_counts(settings: Settings, terms: Terms) -> CountNoise:
    """Return the noise that this party puts on counts of its labels: the job's, and no less than its own."""
    multiplier = max(terms.woe.noise or 0.0, settings.limits.woe_noise)
    return CountNoise(multiplier, secret_for(settings, "noise of counts"))
