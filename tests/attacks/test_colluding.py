"""An audit also says who must collude, for the run's own parties, sum and dealers."""

from __future__ import annotations

from typing import Any

import pytest
from tests.oracles.tables import random_job, random_tables

from colonnade.attacks.coalitions import GRAPHS
from colonnade.attacks.colluding import derived
from colonnade.findings import Finding
from colonnade.run.federate import plan_for
from colonnade.secure.sums import SUMS


def found(algorithm: str, parties: int, **secure: Any) -> dict[str, Finding]:
    """What is derived of a run, by the attack."""
    setting = random_tables(parties=parties, active=1)
    plan, _ = plan_for(random_job(setting, algorithm, secure=secure), setting)
    return {each.attack.split(",")[0]: each for each in derived(plan)}


@pytest.mark.parametrize(
    ("kind", "parties", "by", "something"),
    [
        ("plain", 4, "party0", True),
        ("masked", 4, "any 3 of 4 parties", False),
        ("tree", 4, "any 3 of 4 parties", False),
        ("tree", 5, " and ", True),
    ],
)
def test_who_learns_more_than_a_total(kind: str, parties: int, by: str, something: bool) -> None:
    finding = found("lbfgs", parties, sum=kind)["more than the total of a sum"]
    assert by in finding.by
    assert (finding.success != "nothing") == something
    assert finding.found is None


def test_the_messages_of_every_sum_are_written_down() -> None:
    assert set(GRAPHS) == set(SUMS)


def test_what_pairs_of_a_blind_run_learn() -> None:
    rows = found("vfb2-sgd", 4, labels="blind")
    assert rows["labels from products"].by == "party1 and party2; party1 and party3; party2 and party3"
    assert rows["columns from products"].by == "party0 and party1; party0 and party2; party0 and party3"
    neutral = found("vfb2-sgd", 4, labels="blind", helper="party3")
    assert neutral["columns from products"].by == "party0 and party1; party0 and party3"  # party1: for party3


def test_a_conversation_without_sums_has_none() -> None:
    assert {row.aim for row in found("split", 3).values()} == {"ids"}  # a matter of daemons alone
