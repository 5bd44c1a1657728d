"""Results down a tree are the results of a star: the same model, whatever the world; only the way differs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.oracles.tables import random_tables, run

from colonnade.job import job_from
from colonnade.run.federate import Finished, federate
from colonnade.run.resolve import compose

SECTIONS: dict[str, dict[str, Any]] = {
    "vfb-sgd": {},
    "fdskl": {"train": {"epochs": 2}, "kernel": {"block": 8, "sigma": 2.0}},
    "fdskl-capped": {"train": {"epochs": 3}, "kernel": {"features": 32, "block": 8}},
}


def both(name: str, world: str, **network: Any) -> list[Finished]:
    setting = random_tables(parties=5, active=3)
    return [
        run(setting, name, world=world, network={**network, "broadcast": way}, **SECTIONS[name])
        for way in ("star", "tree")
    ]


@pytest.mark.parametrize("world", ["simulated", "local"])
@pytest.mark.parametrize("name", list(SECTIONS))
def test_one_round_at_a_time_a_tree_learns_what_a_star_learns_to_the_bit(name: str, world: str) -> None:
    star, tree = both(name, world)
    for party, share in star.shares.items():
        for key, array in share.weights.items():
            np.testing.assert_array_equal(tree.shares[party].weights[key], array, err_msg=f"{party} {key}")
    assert tree.result.cost.messages == star.result.cost.messages
    assert tree.result.cost.bytes_sent > star.result.cost.bytes_sent


def test_a_dominator_sends_to_few_and_those_pass_it_on() -> None:
    setting = random_tables(parties=8, active=1)

    def thetas(way: str) -> list[int]:
        done = run(setting, "vfb-sgd", network={"broadcast": way})
        return [share.traffic.bytes_by_kind.get("backward", 0) for share in done.shares.values()]

    star, tree = thetas("star"), thetas("tree")
    assert star[1:] == [0] * 7
    # the dominator serves 3, the one in the middle 2 of the 3 behind it, and two more one each
    assert [round(7 * size / star[0]) for size in tree] == [3, 0, 1, 0, 2, 0, 1, 0]


def test_with_a_sum_along_trees_a_round_is_faster_where_cards_are_slow_and_slower_where_all_are_far() -> None:
    setting = random_tables(parties=16, active=1, rows=1000, columns=16)

    def seconds(tree: bool, **network: Any) -> float:
        done = run(
            setting,
            "vfb-sgd",
            secure={"sum": "tree" if tree else "masked"},
            network={"broadcast": "tree" if tree else "star", "us_per_call": 0.0, **network},
            train={"batch": 1000, "epochs": 4},
        )
        return done.result.cost.virtual_seconds or 0.0

    slow_card, far_away = {"bandwidth_mbps": 10.0}, {"latency_ms": 20.0}
    assert seconds(True, **slow_card) < 0.7 * seconds(False, **slow_card)
    assert seconds(True, **far_away) > 2 * seconds(False, **far_away)


def test_processes_pass_thetas_on_over_tls(tmp_path: Any) -> None:
    job = job_from(
        {
            "algorithm": "vfb-sgd",
            "world": "network",
            "data": {"train": "breast-cancer", "parties": 4, "active": 1},
            "train": {"epochs": 5, "batch": 64, "evaluate_every": 0, "step": 0.5},
            "network": {"broadcast": "tree"},
        }
    )
    done = federate(job, out=tmp_path)
    assert done.result.metrics["test_accuracy"] > 0.9
    passing = [party for party, share in done.shares.items() if "backward" in share.traffic.bytes_by_kind]
    assert len(passing) == 2  # of 4 parties, its holder and the one that serves another


def test_where_nothing_is_sent_to_all_the_key_is_named_as_unused() -> None:
    def named(algorithm: str) -> bool:
        job = job_from(
            {
                "algorithm": algorithm,
                "data": {"train": "digits", "parties": 4},
                "network": {"broadcast": "tree"},
            }
        )
        return "network.broadcast" in compose(job).unused()

    assert [named(name) for name in ("vfb2-saga", "fdskl", "asysqn-saga", "czofo")] == [
        False,
        False,
        True,
        True,
    ]
