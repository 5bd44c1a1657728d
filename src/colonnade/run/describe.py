"""Statistics of a job's columns on one machine: exact or, if asked for, as companies would be told them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from colonnade.arrays import Floats
from colonnade.conversations.correlate import Correlating, CorrelationTerms
from colonnade.data.prepare.party_data import PartyData
from colonnade.describe.columns import summaries
from colonnade.describe.description import Description
from colonnade.describe.joint import JointCorrelations, Statistics, logistic
from colonnade.describe.own import UnitColumns
from colonnade.errors import DataError, JobError
from colonnade.job import Job
from colonnade.net.clock import RealClock
from colonnade.net.endpoint import Endpoint
from colonnade.net.local import LocalHub
from colonnade.run.federate import read
from colonnade.run.inprocess import apart, gather_parties
from colonnade.run.party import held_to
from colonnade.run.resolve import compose

DEADLINE_S = 600.0
TASKS_OF_ONE_NUMBER = ("binary", "regression")


def describe_job(job: Job, noise: float | None = None) -> Description:
    """Return the statistics of a job's training rows; with `noise` as companies would be told them.

    A label of two classes is fitted by a logistic model, where all is exact.
    """
    if job.data.woe:
        raise JobError("data.woe: statistics are of columns as they are; drop it")
    assigned = read(compose(job))
    if assigned.large:
        raise DataError("statistics need all columns in memory; raise data.memory, or describe a sample")
    holder, task = assigned.label_holders[0], assigned.labels.task
    known = assigned.parties[holder].train.y if task in TASKS_OF_ONE_NUMBER else None
    y = None if known is None else np.asarray(known, dtype=np.float64)
    own = {
        party: UnitColumns.of(_as_numbers(data).prepare().train, y if party == holder else None)
        for party, data in sorted(assigned.parties.items())
    }
    if noise is not None:
        own = {party: each.without_heavy_rows() for party, each in own.items()}
    joint = together(own) if noise is None else as_told(own, noise)
    return Description(
        job=assigned.dataset,
        parties={party: summaries(data.train) for party, data in sorted(assigned.parties.items())},
        joint=fitted(joint, own, y if task == "binary" and noise is None else None),
        repeated={party: list(each.repeated) for party, each in own.items() if each.repeated},
        rare={party: list(each.rare) for party, each in own.items() if each.rare},
        told=noise is not None,
    )


def fitted(joint: JointCorrelations, own: Mapping[str, UnitColumns], y: Floats | None) -> Statistics:
    """Return what follows from correlations; with labels of two classes a logistic model."""
    if y is None:
        return joint.statistics()
    X = np.column_stack([each.Z[:, : each.columns] for each in own.values()])
    return logistic(joint, X, (y > 0).astype(np.float64))


def together(own: Mapping[str, UnitColumns]) -> JointCorrelations:
    """Return the exact correlations of all columns, which lie together here."""
    names = [(party, name) for party, each in own.items() for name in each.names[: each.columns]]
    parts = [each.Z[:, : each.columns] for each in own.values()]
    for party, each in own.items():
        if each.label:
            names.append((party, each.names[-1]))
            parts.append(each.Z[:, -1:])
    Z = np.column_stack(parts)
    return JointCorrelations(tuple(names), Z.T @ Z / len(Z), len(Z), any(each.label for each in own.values()))


def as_told(own: Mapping[str, UnitColumns], noise: float) -> JointCorrelations:
    """Return the correlations as companies would be told them, by the same conversation."""
    if len(own) == 1:
        raise JobError("one party: nobody is told anything; leave out --as-told")
    return next(iter(conversed(own, noise)[0].values()))


def conversed(
    own: Mapping[str, UnitColumns], noise: float
) -> tuple[dict[str, JointCorrelations], dict[str, int]]:
    """Return what every party is told by the conversation, and how many bytes it sent."""
    sent: dict[str, int] = {}

    async def program(me: str, net: Endpoint) -> JointCorrelations:
        terms = CorrelationTerms(noise, own[me].rows)
        return await Correlating(net, own[me], terms, os.urandom(32), held_to(net)).joint()

    async def converse() -> dict[str, JointCorrelations]:
        hub, names, clock = LocalHub(), tuple(own), RealClock()
        nets = {me: Endpoint(me, names, hub.wire(me), clock, run=1, deadline=DEADLINE_S) for me in names}
        try:
            return await gather_parties({me: program(me, net) for me, net in nets.items()})
        finally:
            for me, net in nets.items():
                sent[me] = net.meter.bytes()
                await net.close()

    return apart(asyncio.run, lambda _: converse()), sent


def _as_numbers(data: PartyData) -> PartyData:
    """Return a party's data to be prepared for linear statistics, also where the job trains trees."""
    recipe = data.recipe
    if recipe.ready or recipe.missing != "keep":
        return data
    return replace(data, recipe=replace(recipe, scale="auto", missing="auto"))
