"""One run of an estimator: columns prepared as those of files are, a job run on them, the model kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from msgspec import structs

from colonnade.arrays import Floats
from colonnade.credit.attribution import means_of
from colonnade.data.prepare.party_data import PartyData, Recipe
from colonnade.data.prepare.prepare import refuse_nothing
from colonnade.data.split.assign import as_they_are
from colonnade.data.split.copies import copies_of_the_label
from colonnade.data.split.described import with_parties
from colonnade.data.split.outliers import Choice, choose, with_tails
from colonnade.data.split.parties import Parties
from colonnade.data.table import Table
from colonnade.estimators.fitted import Fitted
from colonnade.estimators.given_models import Chosen, built, model_of
from colonnade.estimators.progress import Callback
from colonnade.job import ModelSpecs
from colonnade.losses import LOSSES
from colonnade.result import Described, Result
from colonnade.run.federate import Tables, run_tables
from colonnade.run.registry import CONVERSATIONS
from colonnade.run.resolve import Composition


@dataclass(frozen=True, eq=False)
class Labelled:
    """Parties' columns with the labels as the loss wants them, and how much every row counts if not alike.

    `classes` are the labels' own values as text, where they are classes.
    """

    parties: Parties
    y: Floats
    weight: Floats | None
    classes: tuple[str, ...] = ()


def train(
    composition: Composition, data: Labelled, recipe: Recipe, models: Chosen, progress: Callback
) -> tuple[Fitted, Result, Table]:
    """Run a job on these columns; returns all parties' shares as one model, the result, and the label
    holder's own columns as they were prepared."""
    parties = _parties(composition, data, recipe)
    copies = list(copies_of_the_label(parties, data.parties.active[0]))
    chosen = _choose(composition, parties, data.parties.active) if not (models.own or models.head) else None
    if chosen is not None:
        parties = with_tails(parties, chosen.tails)
    prepared = {party: each.prepare() for party, each in parties.items()}
    refuse_nothing(each.preparation for each in prepared.values())
    tables = {party: each.train for party, each in prepared.items()}
    scores = composition.job.train.classes or 1
    own = {p: built(each, tables[p].width, scores) for p, each in models.own.items() if tables[p].width}
    head = None
    if models.head is not None:
        head = built(models.head, _embedded(composition.job.model, scores, tables, own), scores)
    given = Tables(
        "X",
        tables,
        None,
        data.parties.active,
        models={party: model_of(made) for party, made in own.items()},
        head=None if head is None else model_of(head),
    )
    done = run_tables(composition.job, given, progress=progress)
    preparations = {party: each.preparation for party, each in prepared.items() if each.preparation}
    shares = {party: dict(share.weights) for party, share in done.shares.items()}
    linear = CONVERSATIONS[done.plan.conversation].share.name == "linear"
    means = {party: means_of(table.X) for party, table in tables.items()} if linear else {}
    fitted = Fitted(done.plan, preparations, shares, own, head, means)
    described = _described(data, fitted, chosen, copies)
    return fitted, structs.replace(done.result, data=described), tables[done.plan.evaluator]


def _parties(composition: Composition, data: Labelled, recipe: Recipe) -> dict[str, PartyData]:
    """Return every party's columns and how to prepare them, labels and weights at those that hold them."""
    parties = data.parties
    holders = composition.label_holders(tuple(parties.tables), parties.active)
    recipe = replace(recipe, tails=composition.tails(LOSSES[composition.loss("regression")].task))
    ones = next((p for p in (holders[0], *parties.tables) if parties.tables[p].columns), None)
    found = {}
    for party, table in parties.tables.items():
        holds = party in parties.active
        raw = replace(table, y=data.y if holds else None, weight=data.weight if holds else None)
        own = replace(recipe, intercept=composition.intercept and party == ones)
        if composition.has("takes-gaps") and as_they_are(recipe.scale, recipe.missing):
            own = own.with_gaps()
        found[party] = PartyData(party, raw, None, own)
    return found


def _choose(
    composition: Composition, parties: Mapping[str, PartyData], active: tuple[str, ...]
) -> Choice | None:
    """Return what becomes of outliers, by training rows that are held back, where that is cheap to try."""
    job = composition.job

    def errors(held_back: Mapping[str, PartyData]) -> Floats:
        prepared = {party: each.prepare() for party, each in held_back.items()}
        train = {party: each.train for party, each in prepared.items()}
        test = {party: each.test for party, each in prepared.items() if each.test is not None}
        return run_tables(job, Tables("X", train, test, active)).squared_errors()

    return choose(parties, errors, job.seed) if composition.tries_tails else None


def _embedded(specs: ModelSpecs, scores: int, tables: Mapping[str, Table], own: Mapping[str, object]) -> int:
    """Return how many outputs of all parties' models F0 takes."""
    width = 0
    for party, table in tables.items():
        if party in own:
            model = model_of(own[party])
            start = model.initial(np.random.default_rng(0))
            width += int(model.forward(start[None], table.X[:1]).shape[2])
        elif table.width:
            width += specs.of(party).outputs or scores
    return width


def _described(data: Labelled, fitted: Fitted, chosen: Choice | None, warnings: list[str]) -> Described:
    """Return what is known of the data, and what every party did to its columns."""
    task = LOSSES[fitted.plan.objective.loss].task
    known = Described(
        rows={"train": len(data.y)},
        task=task,
        classes=list(data.classes),
        positive=list(data.classes[1:]) if task == "binary" else [],
        base_rate=float(np.mean(data.y > 0)) if task == "binary" else None,
        done={} if chosen is None else {data.parties.active[0]: [chosen.said()]},
        warnings=warnings,
    )
    return with_parties(known, {party: each.to_dict() for party, each in fitted.preparations.items()})
