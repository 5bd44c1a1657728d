"""What to choose over a wide area: the bench's rehearsals, and the choice from its rows."""

from __future__ import annotations

from colonnade_bench.deploy.distant import made_up
from colonnade_bench.deploy.wide_area import JOBS, chosen, rehearsed


def test_a_longer_line_costs_its_rounds_and_the_quickest_is_chosen() -> None:
    name = "lbfgs, clear"
    near, far = rehearsed({name: JOBS[name]}, made_up(600, 9), [0.0, 50.0], 100.0)
    assert (near["rounds"], near["MB"]) == (far["rounds"], far["MB"])
    assert far["seconds"] - near["seconds"] > 0.5 * far["rounds"] * 0.1
    slow = {**far, "job": "another", "seconds": far["seconds"] + 1}
    (choice,) = chosen([slow, far, {**far, "job": "10 trees", "seconds": 0.0}])
    assert choice["choose"] == name
