"""The table of sums: each answers for itself, one that does not cannot be, and no other name is taken."""

from __future__ import annotations

from typing import Any

import pytest
from tests.oracles.tables import random_tables, run

from colonnade.errors import JobError
from colonnade.job.files import job_from
from colonnade.run import rules
from colonnade.run.resolve import compose, looked_up
from colonnade.secure.masked import MaskedSum
from colonnade.secure.plain import PlainSum
from colonnade.secure.protocol import SumKind
from colonnade.secure.sums import HIDING, SUMS

ANSWERS: dict[str, Any] = {"name": "mine", "hides_pieces": True, "gives_away": staticmethod(lambda q: None)}


@pytest.mark.parametrize("base", [SumKind, MaskedSum, PlainSum])
@pytest.mark.parametrize("unsaid", ANSWERS)
def test_a_sum_without_an_answer_cannot_be(unsaid: str, base: type[SumKind]) -> None:
    """An answer of the sum that it is built upon does not count: it may hide less."""
    said = {name: answer for name, answer in ANSWERS.items() if name != unsaid}
    with pytest.raises(TypeError, match=f"Mine: a sum says for itself what it gives away; add {unsaid}"):
        type("Mine", (base,), said)
    assert type("Mine", (base,), ANSWERS)


def test_what_the_sums_answer() -> None:
    assert [name for name, kind in SUMS.items() if kind.hides_pieces] == ["masked"]
    assert HIDING == "'masked'"
    assert [kind.name for kind in SUMS.values()] == list(SUMS)
    silent = [(name, q) for name, kind in SUMS.items() for q in (2, 3, 8) if kind.gives_away(q) is None]
    assert silent == [("masked", 2), ("masked", 3), ("masked", 8), ("tree", 3), ("tree", 8)]


@pytest.mark.parametrize("name", SUMS)
@pytest.mark.parametrize("parties", [2, 3])
def test_a_run_says_what_its_sum_gives_away(name: str, parties: int) -> None:
    setting = random_tables(parties=parties, active=1, rows=40)
    done = run(setting, "lbfgs", train={"epochs": 1}, secure={"sum": name, "accept_leak": True})
    told = [note for note in done.result.privacy.notes if note.startswith(f"{name} sum: ")]
    assert told == (
        [f"{name} sum: {SUMS[name].gives_away(parties)}"] if SUMS[name].gives_away(parties) else []
    )


def test_a_sum_that_there_is_not_is_refused() -> None:
    plain = {
        "algorithm": "vfb2-saga",
        "data": {"train": "x.csv", "parties": 3},
        "secure": {"sum": "open", "labels": "blind", "neighbours": 2},
    }
    words = "secure.sum: 'open' is not one of 'masked', 'tree', 'plain'"
    job = job_from(plain)
    with pytest.raises(JobError, match=words):
        compose(job)
    found = looked_up(job)
    assert [str(fault) for fault in rules.faults(job, found.preset, found.conversation)] == [words]
