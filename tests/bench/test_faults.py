"""Simulated faults, a seed each, and a real kill: a run ends as if nothing had happened, or says why not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from colonnade.errors import ShareError
from colonnade_bench.faults.cases import CASES, order_of
from colonnade_bench.faults.daemons import CASES as BETWEEN
from colonnade_bench.faults.daemons import strike_runs
from colonnade_bench.faults.kills import CASES as KILLED
from colonnade_bench.faults.kills import kill_runs
from colonnade_bench.faults.seeds import Weights, judged, run_seeds, uninterrupted
from colonnade_bench.faults.simulated import Died, SimulatedDisk, Trouble, session

FEW, MANY = 8, 200


def test_seeds_of_faults_end_well_or_by_name() -> None:
    failing = [verdict for verdict in run_seeds(range(FEW), lambda line: None) if verdict.fault]
    assert not failing


@pytest.mark.slow
def test_many_seeds_of_faults_end_well_or_by_name() -> None:
    failing = [verdict for verdict in run_seeds(range(FEW, MANY), lambda line: None) if verdict.fault]
    assert not failing


@pytest.mark.parametrize("seed", [2244, 2505])
def test_checkpoints_of_two_sessions_at_one_gate_are_not_taken_for_one(seed: int) -> None:
    blind = [case.name for case in CASES].index("vfb2-sgd blind")
    assert not judged(seed, blind).fault


@pytest.mark.parametrize("case", [k for k, case in enumerate(CASES) if case.private])
def test_private_runs_go_on_to_the_same_weights_or_say_why_not(case: int) -> None:
    assert not [verdict for seed in (0, 1, 3) if (verdict := judged(seed, case)).fault]


def test_one_seed_reproduces_everything() -> None:
    assert judged(3) == judged(3)


def test_a_wrong_result_would_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = {case.name for case in CASES if case.exact}
    seed = next(seed for seed in range(FEW) if judged(seed).case in exact)

    def other(case: int) -> tuple[Weights, float]:
        weights, seconds = uninterrupted(case)
        return {
            party: {n: array + 1e-12 for n, array in own.items()} for party, own in weights.items()
        }, seconds

    monkeypatch.setattr("colonnade_bench.faults.seeds.uninterrupted", other)
    assert "another" in judged(seed).fault


def test_a_disk_that_forgets_loses_or_tears_what_was_written_when_its_machine_dies() -> None:
    order = order_of(CASES[0])
    states = set()
    for seed in range(12):
        disks = {name: SimulatedDisk(np.random.default_rng(seed), forgets=1.0) for name in order.data}
        _, seconds = uninterrupted(0)
        session(order, disks, Trouble(kills={"shop": 0.9 * seconds}), seed)
        states |= set(disks["shop"].events)
    assert states == {"lost", "torn"}


def test_a_dead_machine_writes_nothing_more() -> None:
    disk = SimulatedDisk(np.random.default_rng(0), full=1.0)
    with pytest.raises(ShareError, match="No space left"):
        disk.replace(Path("a"), b"")
    disk.crash()
    with pytest.raises(Died):
        disk.names(Path())


@pytest.mark.slow
def test_a_killed_process_goes_on_to_the_same_weights() -> None:
    killed = kill_runs(3, lambda line: None, KILLED[:1], deadline_s=4.0)
    assert {each.outcome for each in killed} == {"equal"}
    cut = [each for each in killed if each.error]  # a party can be killed after it has said goodbye
    assert cut
    # a busy machine may be late; a minute later than the deadline it hangs
    assert all(each.struck and each.party in each.error and each.ended_s < 4.0 + 60.0 for each in cut)


@pytest.mark.slow
@pytest.mark.timeout(400)  # a dozen processes, each of which begins with its imports
def test_daemons_that_are_killed_go_on_with_blind_trees_to_the_same_weights() -> None:
    (case,) = (each for each in BETWEEN if each.name == "secureboost blind")
    said: list[str] = []
    found = strike_runs(said.append, [case], ["storing", "aligning"])
    assert [each.outcome for each in found] == ["equal", "equal"], said
    assert all(each.struck for each in found)
