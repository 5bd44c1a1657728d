"""What to choose over a wide area: the bench's rehearsals, and the choice from its rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from colonnade.conversations.boost import column_owner, label_holder
from colonnade.conversations.boost.veiled import pays
from colonnade.deploy.process.estimating import EstimateRequest
from colonnade.deploy.programs import rehearsal
from colonnade.deploy.terms.terms import Proposal
from colonnade_bench.deploy.distant import Distant, made_up
from colonnade_bench.deploy.wide_area import JOBS, NAMES, chosen, rehearsed


def test_a_longer_line_costs_its_rounds_and_the_quickest_is_chosen() -> None:
    name = "lbfgs, clear"
    near, far = rehearsed({name: JOBS[name]}, made_up(600, 9), [0.0, 50.0], 100.0)
    assert (near["rounds"], near["MB"]) == (far["rounds"], far["MB"])
    assert far["seconds"] - near["seconds"] > 0.5 * far["rounds"] * 0.1
    slow = {**far, "job": "another", "seconds": far["seconds"] + 1}
    (choice,) = chosen([slow, far, {**far, "job": "10 trees", "seconds": 0.0}])
    assert choice["choose"] == name


def test_a_rehearsal_of_few_trees_chooses_what_pays_for_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bins are veiled once where there are many trees: two of a hundred seemed to cost four times as much."""
    asked = []

    def noted(rules: object, rows: int, trees: int, grid: object) -> bool:
        asked.append(trees)
        return pays(rules, rows, trees, grid)  # type: ignore[arg-type]

    for module in (column_owner, label_holder):
        monkeypatch.setattr(module, "pays", noted)
    companies = Distant(tmp_path, NAMES, made_up(300, 9))
    companies.lay_out()
    algorithm, sections = JOBS["100 trees, hidden"]
    request = EstimateRequest(
        settings=companies.settings["bank"],
        terms=Proposal(train=companies.terms(algorithm, **sections)).written(),
        rows=300,
        columns=dict.fromkeys(NAMES, 3),
        round_trip_s=0.0,
        mbps=100.0,
    )
    assert rehearsal._estimate(request, 0.0).passes == 100
    assert set(asked) == {100}
