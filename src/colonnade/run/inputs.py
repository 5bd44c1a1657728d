"""What a federation starts from: every party's prepared columns, and who holds the label."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from colonnade.data.assign import Assigned
from colonnade.data.table import Table
from colonnade.job import Job
from colonnade.job.rules import preset_of
from colonnade.models.blackbox import Model


@dataclass(frozen=True, eq=False)
class Setting:
    """Every party's prepared columns."""

    dataset: str
    train: dict[str, Table]
    test: dict[str, Table] | None
    active: tuple[str, ...]
    models: Mapping[str, Model] = field(default_factory=dict)  # of single parties, given as objects
    server_model: Model | None = None


def prepared(assigned: Assigned) -> Setting:
    """Every party prepares the columns it was given."""
    train, test = {}, {}
    for party, held in assigned.parties.items():
        _, train[party], tested = held.prepare()
        if tested is not None:
            test[party] = tested
    return Setting(assigned.dataset, train, test or None, assigned.label_holders)


def label_holders(job: Job) -> int | None:
    """How many parties hold the label, where the algorithm rather than the data decides that."""
    if preset_of(job).conversation != "pull":
        return None
    parties = len(job.data.party_names)
    return job.train.labels_at or parties


def labelled(job: Job, setting: Setting) -> Setting:
    """The label at every party that the algorithm assumes to hold it."""
    if preset_of(job).conversation != "pull":
        return setting
    holders = tuple(setting.train)[: job.train.labels_at or len(setting.train)]
    first = setting.active[0]

    def known(tables: dict[str, Table]) -> dict[str, Table]:
        y = tables[first].y
        return {party: replace(t, y=y if party in holders else None) for party, t in tables.items()}

    test = known(setting.test) if setting.test is not None else None
    return replace(setting, train=known(setting.train), test=test, active=holders)
