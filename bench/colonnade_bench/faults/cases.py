"""Small runs of every conversation, to be cut off: the least data on which each does all that it can do."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from colonnade.data.table import Table
from colonnade.job import job_from
from colonnade.run.federate import Tables, plan_for
from colonnade.run.world import Launch

PARTIES = ("bank", "shop", "telco")
CLEAR, BLIND = {"labels": "clear"}, {"labels": "blind"}


@dataclass
class Fate:
    """What became of one run in which something of a party was to be struck down."""

    case: str
    party: str
    struck: bool = False  # whether there was still something to strike
    outcome: str = "equal"  # to what an undisturbed run ends with, or what is wrong


@dataclass(frozen=True)
class Case:
    """A job in one word; `exact`: its result does not depend on which message came first.

    With several `holders` of labels, and batches in flight, each launches rounds at its own pace.
    """

    algorithm: str
    exact: bool = True
    sections: dict[str, Any] = field(default_factory=dict)
    holders: int = 1

    @property
    def blind(self) -> bool:
        return bool(self.sections.get("secure") == BLIND)

    @property
    def private(self) -> bool:
        return "privacy" in self.sections

    @property
    def name(self) -> str:
        words = [
            self.algorithm,
            self.sections.get("train", {}).get("direction"),
            "blind" if self.blind else None,
            f"with {self.holders} holders" if self.holders > 1 else None,
        ]
        return " ".join(filter(None, [*words, "private" if self.private else None]))


CASES = (
    Case("vfb-sgd", sections={"secure": CLEAR}),
    Case("vfb-svrg", sections={"secure": CLEAR}),
    Case("vfb-saga", sections={"secure": CLEAR, "train": {"direction": "lbfgs"}}),
    Case("vfb2-saga", exact=False, sections={"secure": CLEAR, "train": {"ahead": 3}}),
    Case("fd-svrg"),
    Case("afsgd-vp", exact=False),
    Case("lbfgs", sections={"secure": CLEAR}),
    Case("vfb2-sgd", sections={"secure": BLIND, "train": {"ahead": 1}}),
    Case("fdskl"),
    Case("secureboost", sections={"secure": CLEAR}),
    Case("secureboost", sections={"secure": BLIND}),
    Case("split"),
    Case("tig", exact=False),
    Case("c-vfl"),
    Case("vfb-saga", sections={"secure": CLEAR, "privacy": {"mechanism": "labels", "epsilon": 2.0}}),
    Case("split", sections={"privacy": {"mechanism": "gradient", "epsilon": 4.0}}),
    Case("synrevel-gau", exact=False, sections={"privacy": {"mechanism": "scalar", "epsilon": 4.0}}),
    Case("vfb2-saga", exact=False, sections={"secure": CLEAR, "train": {"ahead": 4}}, holders=2),
    Case("asysqn-svrg", exact=False, holders=2),
)


@cache
def tables(rows: int = 24, columns: int = 6, holders: int = 1) -> Tables:
    """Every party's columns of a few rows."""
    rng = np.random.default_rng([rows, columns])
    X = rng.standard_normal((rows, columns))
    y = np.where(X @ rng.standard_normal(columns) + 0.3 * rng.standard_normal(rows) >= 0, 1.0, -1.0)
    cuts = np.array_split(np.arange(columns), len(PARTIES))
    found = {
        party: Table(
            party,
            tuple(f"c{j}" for j in cut),
            np.ascontiguousarray(X[:, cut]),
            y if party in PARTIES[:holders] else None,
        )
        for party, cut in zip(PARTIES, cuts, strict=True)
    }
    return Tables("made up", found, None, PARTIES[:holders])


def order_of(
    case: Case, *, rows: int = 24, epochs: int = 4, world: str = "simulated", deadline_s: float = 60.0
) -> Launch:
    """The run of a case on made-up data, with a checkpoint after every epoch."""
    data = tables(rows, holders=case.holders)
    train = {"epochs": epochs, "loss": "logistic", **case.sections.get("train", {})}
    if case.algorithm not in ("lbfgs", "secureboost"):
        train = {"batch": max(8, rows // 8), "step": 0.1, **train}
    job = job_from(
        {
            "algorithm": case.algorithm,
            "world": world,
            "data": {"train": "made up", "parties": len(PARTIES), "active": case.holders},
            "network": {"latency_ms": 2.0, "deadline_s": deadline_s},
            "checkpoint": {"every": "epoch"},
            **case.sections,
            "train": train,
        }
    )
    plan, dealt = plan_for(job, data)
    return Launch(plan, dealt)
