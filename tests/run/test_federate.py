"""Whole federations: faults change nothing, a crash or a divergence has a name, a9a comes out right."""

from __future__ import annotations

import asyncio
import functools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracles.tables import random_job, random_tables, run, weights

from colonnade.errors import (
    Aborted,
    DeadlineExceeded,
    Diverged,
    FixedPointOverflow,
    JobError,
    PeerLost,
)
from colonnade.job import job_from
from colonnade.net.frame import CHECKSUM
from colonnade.result import Moment, Result, read_result
from colonnade.run.federate import Finished, federate, run_tables

SETTING = random_tables(rows=64)


@functools.cache
def fault_free(secure: str) -> Finished:
    return run(SETTING, "vfb-sgd", secure={"sum": secure})


def with_faults(**faults: Any) -> dict[str, Any]:
    return {"latency_ms": 2.0, "faults": faults}


# -- faults ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "faults",
    [
        {"drop": 0.2},
        {"duplicate": 0.5},
        {"corrupt": 0.2},
        {"delay": 0.3, "delay_s": 0.5},
        {"partitions": [{"start": 0.01, "end": 3.0, "side": ["party0", "party1"]}]},
        {"drop": 0.1, "duplicate": 0.1, "corrupt": 0.1, "delay": 0.1, "delay_s": 0.3},
    ],
    ids=["drop", "duplicate", "corrupt", "delay", "partition", "all"],
)
@pytest.mark.parametrize("secure", ["masked", "tree"])
def test_faults_that_heal_leave_the_synchronous_weights_untouched(
    faults: dict[str, Any], secure: str
) -> None:
    done = run(SETTING, "vfb-sgd", network=with_faults(**faults), secure={"sum": secure})
    reference = fault_free(secure)
    np.testing.assert_array_equal(weights(done), weights(reference))
    assert done.result.metrics == reference.result.metrics


@given(
    seed=st.integers(0, 2**31),
    drop=st.floats(0, 0.3),
    duplicate=st.floats(0, 0.3),
    corrupt=st.floats(0, 0.3),
    delay=st.floats(0, 0.3),
    delay_s=st.floats(0.001, 2.0),
)
@settings(max_examples=15)
def test_no_mixture_of_faults_changes_how_often_a_round_is_applied(
    seed: int, drop: float, duplicate: float, corrupt: float, delay: float, delay_s: float
) -> None:
    faults = {"drop": drop, "duplicate": duplicate, "corrupt": corrupt, "delay": delay, "delay_s": delay_s}
    done = run(SETTING, seed=seed, network=with_faults(**faults), train={"ahead": 3, "max_delay": 11})
    assert done.result.cost.updates_by_party == dict.fromkeys(SETTING.train, 8)
    late = done.result.staleness
    assert max(late.max, late.tau_1 or 0, late.tau_2 or 0) <= 11 == late.bound


def test_what_faults_cost_is_counted_as_resends_and_refusals() -> None:
    faulty = run(SETTING, "vfb-sgd", network=with_faults(drop=0.2, corrupt=0.2)).result.cost
    clean = fault_free("masked").result.cost
    assert faulty.bytes_by_kind["resends"] > 0
    assert "resends" not in clean.bytes_by_kind
    # nothing is sent twice but resends; a wire that may corrupt frames has a checksum in each of them
    checksums = (len(SETTING.train) - 1) * clean.updates_by_party["party0"] * CHECKSUM
    assert faulty.bytes_by_kind["piece"] == clean.bytes_by_kind["piece"] + checksums
    assert faulty.refused["MalformedMessage"] > 0
    assert clean.refused == {}


@pytest.mark.parametrize("party", ["party0", "party1", "party3"])
@pytest.mark.parametrize("when", [0.0, 0.011, 0.05])
def test_a_crash_ends_the_run_with_a_name_and_not_in_silence(party: str, when: float) -> None:
    network = {**with_faults(crash={party: when}), "deadline_s": 5.0}
    with pytest.raises((PeerLost, Aborted, DeadlineExceeded), match="party"):
        run(SETTING, network=network, train={"epochs": 20, "ahead": 3})


def test_a_partition_that_outlasts_the_deadline_is_named() -> None:
    cut = {"start": 0.01, "end": 1e6, "side": ["party3"]}
    with pytest.raises((DeadlineExceeded, Aborted, PeerLost), match="party"):
        run(SETTING, network={**with_faults(partitions=[cut]), "deadline_s": 4.0})


# -- divergence -----------------------------------------------------------------------------------


@pytest.mark.parametrize("world", ["simulated", "local"])
@pytest.mark.parametrize("secure", ["masked", "tree"])
@pytest.mark.parametrize("algorithm", ["vfb-sgd", "vfb2-sgd"])
def test_a_step_that_is_far_too_large_is_named_and_says_what_to_do(
    world: str, secure: str, algorithm: str
) -> None:
    setting = random_tables(regression=True)
    with pytest.raises((FixedPointOverflow, Diverged), match="smaller step"):
        run(
            setting,
            algorithm,
            world=world,
            secure={"sum": secure},
            train={"loss": "squared", "step": 50.0, "epochs": 30},
        )


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_step_that_is_far_too_large_diverges_by_name_in_clear_sums_too() -> None:
    setting = random_tables(regression=True)
    with pytest.raises(Diverged, match="smaller step") as caught:
        run(
            setting,
            "vfb-sgd",
            secure={"sum": "plain"},
            train={"loss": "squared", "step": 1e6, "epochs": 30, "batch": 4},
        )
    assert caught.value.exit_code == 2


# -- what is refused, what is said ------------------------------------------------------------------


def test_tree_sums_of_two_parties_are_refused_unless_the_leak_is_accepted() -> None:
    setting = random_tables(parties=2, active=1)
    with pytest.raises(JobError, match="accept_leak"):
        run(setting, secure={"sum": "tree"})
    done = run(setting, secure={"sum": "tree", "accept_leak": True})
    assert any(note.startswith("tree sum:") for note in done.result.privacy.notes)


def test_masks_with_neighbours_leave_the_weights_untouched_and_are_told_of() -> None:
    done = run(SETTING, "vfb-sgd", secure={"neighbours": 2})
    assert (weights(done) == weights(fault_free("masked"))).all()
    assert any(note.startswith("masks with 2 neighbours: fewer than 2") for note in done.result.privacy.notes)
    with pytest.raises(JobError, match="has no masks between pairs"):
        run(SETTING, "vfb-sgd", secure={"neighbours": 2, "sum": "plain"})
    with pytest.raises(JobError, match="not an even number"):
        run(SETTING, "vfb-sgd", secure={"neighbours": 3})


def test_the_result_says_what_leaks() -> None:
    plain = run(random_tables(), secure={"sum": "plain"}).result.privacy
    assert plain.secure_sum == "plain"
    assert any("in clear" in note for note in plain.notes)
    pair = run(random_tables(parties=2, active=1)).result.privacy
    assert any(note.startswith("two parties") for note in pair.notes)
    assert any("theta" in note for note in pair.notes)


def test_the_result_names_its_parties_its_world_and_what_pooled_data_would_have_given() -> None:
    setting = random_tables(test_rows=40)
    result = run(setting, train={"epochs": 30, "l2": 0.01, "step": "auto"}).result
    assert result.parties == ["party0", "party1", "party2", "party3"]
    assert result.active == ["party0", "party1"]
    assert (result.world, result.seed, result.algorithm) == ("simulated", 0, "vfb2-sgd")
    assert set(result.metrics) == set(result.pooled) | {"suboptimality"}
    gap = result.metrics["objective"] - result.pooled["objective"]
    assert result.metrics["suboptimality"] == pytest.approx(gap)
    assert gap >= 0
    assert result.metrics["test_accuracy"] == pytest.approx(result.pooled["test_accuracy"], abs=0.1)


def test_a_result_survives_the_disk(tmp_path: Path) -> None:
    result = run(random_tables(test_rows=10)).result
    result.write(tmp_path / "result.json")
    assert read_result(tmp_path / "result.json") == result
    assert [path.name for path in tmp_path.iterdir()] == ["result.json"]


def test_progress_is_told_every_moment_of_the_history() -> None:
    setting, told = random_tables(), list[Moment]()
    done = run_tables(random_job(setting, train={"epochs": 3}), setting, progress=told.append)
    assert told == done.result.history


@pytest.mark.parametrize(
    ("algorithm", "every"), [("vfb2-sgd", 0.5), ("asyrevel-gau", 1), ("split", 1), ("c-vfl", 2)]
)
def test_a_target_that_is_met_at_a_mark_is_one_moment_of_the_history(algorithm: str, every: float) -> None:
    setting = random_tables(parties=3, active=1, test_rows=40)
    train = {"epochs": 40, "target": 0.3, "evaluate_every": every}
    result = run(setting, algorithm, train=train).result
    rounds = [moment.rounds for moment in result.history]
    assert rounds == sorted(set(rounds))
    last = result.history[-1]
    assert last.epoch < 40
    assert (last.train_loss, last.loss) == (result.metrics["train_loss"], result.metrics["objective"])
    assert (last.loss, last.test["test_loss"]) == (result.metrics["objective"], result.metrics["test_loss"])


@pytest.mark.parametrize("world", ["simulated", "local"])
def test_a_federation_runs_where_an_event_loop_already_runs(world: str) -> None:
    async def notebook() -> None:
        assert run(random_tables(), world=world).result.cost.rounds == 16

    asyncio.run(notebook())


# -- real data --------------------------------------------------------------------------------------


def a9a(**sections: Any) -> Result:
    train = {"epochs": 10, "batch": 256, **sections.pop("train", {})}
    data = {"train": "a9a", "parties": 8, "active": 3, "intercept": False}
    return federate(job_from({"algorithm": "vfb2-sgd", "data": data, "train": train, **sections})).result


@pytest.mark.usefixtures("real_data")
def test_a9a_with_eight_parties_is_as_accurate_as_pooled_training() -> None:
    result = a9a(world="local")
    assert result.pooled["objective"] == pytest.approx(0.3245069247, abs=1e-9)
    assert result.metrics["test_accuracy"] == pytest.approx(0.8495, abs=0.003)
    assert 0 < result.metrics["suboptimality"] < 0.01
    assert result.metrics["test_auc"] == pytest.approx(result.pooled["test_auc"], abs=0.005)
    assert result.staleness.mean <= 2


def test_a_job_may_do_without_the_pooled_comparison(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then nobody fits anything on pooled columns, and nothing that was counted from it is in the result."""

    def never(*arguments: object) -> None:
        raise AssertionError("somebody pooled the columns")

    setting = random_tables(test_rows=40)
    compared = run(setting, "vfb-saga")
    monkeypatch.setattr("colonnade.run.federate.compare", never)
    alone = run(setting, "vfb-saga", compare=False)
    assert alone.result.pooled == {}
    assert "suboptimality" not in alone.result.metrics
    assert {"suboptimality": compared.result.metrics["suboptimality"], **alone.result.metrics} == (
        compared.result.metrics
    )
    np.testing.assert_array_equal(weights(alone), weights(compared))


def test_a_target_needs_the_comparison_that_it_is_counted_from() -> None:
    with pytest.raises(JobError, match=r"compare = false: train.target is counted from the pooled optimum"):
        run(random_tables(), "vfb-saga", compare=False, train={"target": 0.1})
