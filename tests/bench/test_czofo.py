"""VFL-CZOFO's bench: who gets which data, what a record says, and a part from runs to tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest
from click.testing import CliRunner

from colonnade.cli import main
from colonnade.cli.bench import bench as command
from colonnade.data.table import RawTable
from colonnade.errors import JobError
from colonnade.run.resolve import compose
from colonnade_bench.common import Bench
from colonnade_bench.czofo import case as czofo_case
from colonnade_bench.czofo import czofo
from colonnade_bench.czofo import records as czofo_records
from colonnade_bench.czofo.case import Case, Measurement, Record, job_of
from colonnade_bench.czofo.cases import CASES, cases_of
from colonnade_bench.czofo.data import assigned, balanced, blocks, experiment
from colonnade_bench.czofo.paper import FRAMEWORKS
from colonnade_bench.czofo.slow import EXTENTS, pairs_of
from colonnade_bench.czofo.slow import Asked as Slowed
from colonnade_bench.czofo.slow_updates import Asked, Ended, row_of
from colonnade_bench.czofo.steps import KINDS, MLP, NOISY, best, noisy_trials, trials
from colonnade_bench.party_tables import prepared

CASE = Case(
    part="digits", name="czofo", algorithm="czofo", dataset="digits", clients=2,
    train={"epochs": 3, "batch": 64, "step": 0.2, "evaluate_every": 0.5},
    cascade={"directions": 10}, model={"outputs": 4, "server": {"kind": "linear"}},
)  # fmt: skip


def test_the_larger_class_is_thinned_and_rows_with_gaps_go() -> None:
    values = np.arange(40.0).reshape(20, 2)
    values[3, 1] = values[19, 0] = np.nan
    raw = RawTable("made", ("a", "b"), values, y=np.repeat([0.0, 1.0], [14, 6]))
    found = balanced(raw)
    assert found.y is not None
    assert found.rows == 10
    assert found.y.sum() == 5
    assert np.isfinite(found.values).all()


def test_halves_of_an_image_are_its_left_and_its_right() -> None:
    left, right = blocks("cifar10", 3072, 2)
    image = np.arange(3072).reshape(3, 32, 32)
    np.testing.assert_array_equal(np.array(left).reshape(3, 32, 16), image[:, :, :16])
    np.testing.assert_array_equal(np.array(right).reshape(3, 32, 16), image[:, :, 16:])


def test_the_server_has_the_labels_and_nothing_else() -> None:
    given = assigned("digits", 2, rows=500)
    tables = prepared(given)
    assert given.label_holders == ("server",)
    assert {party: table.width for party, table in tables.train.items()} == {
        "server": 0, "party-0": 32, "party-1": 32,
    }  # fmt: skip
    assert [party for party, table in tables.train.items() if table.y is not None] == ["server"]
    assert tables.train["server"].rows == 500
    kept, held_out = (prepared(assigned("digits", 2, validation=v)) for v in (False, True))
    assert held_out.test is not None
    assert kept.train["server"].rows > held_out.test["server"].rows


def test_a_record_counts_bytes_until_a_threshold_and_in_all(tmp_path: Path) -> None:
    record = czofo_case.measure(CASE)
    assert [point.epochs for point in record.points] == pytest.approx([0.5, 1, 1.5, 2, 2.5, 3], abs=0.05)
    assert record.accuracy > 50
    # 1347 rows, 22 batches: outputs and their range up, deltas and theirs down; once all rows before
    pairs, rows = 3 * 2 * 22, 3 * 2 * 1347
    by_formula = rows * 4 + pairs * (8 + 10 + 8) + 2 * 1347 * 4
    assert record.payload_megabytes is not None
    assert record.payload_megabytes == pytest.approx(by_formula / 1e6, rel=0.02)
    assert 0.5 * record.megabytes < record.payload_megabytes < record.megabytes
    half = record.megabytes_to(record.points[2].accuracy)
    assert half is not None
    assert half <= record.points[2].bytes / 1e6
    assert record.megabytes_to(101.0) is None
    czofo_records.store(record, tmp_path)
    assert czofo_records.record_of(CASE, tmp_path) == record
    assert czofo_records.record_of(CASE.shortened(7), tmp_path) == record  # as many epochs as were made
    assert czofo_records.record_of(msgspec.structs.replace(CASE, seed=1), tmp_path) is None


def test_the_accuracy_on_training_rows_is_that_of_measuring_them(monkeypatch: pytest.MonkeyPatch) -> None:
    given, tables = experiment("digits", 2, None, False)
    seen = replace(tables, test=tables.train)  # so that the run itself measures training rows
    monkeypatch.setattr("colonnade_bench.czofo.case.experiment", lambda *_: (given, seen))
    record = czofo_case.measure(CASE)
    assert record.train_accuracy is not None
    assert record.train_accuracy == pytest.approx(record.accuracy, abs=0.1)
    assert record.train_accuracy is not None
    assert record.train_accuracy > 50


def test_a_limit_shortens_a_run_and_what_is_there_is_not_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = CASE.shortened(100_000)
    found = czofo_records.records([long], tmp_path, lambda line: None, seconds=4.0)["czofo"]
    assert 1 <= found.case.epochs < 100_000
    monkeypatch.setattr(czofo_records, "measure", None)
    assert czofo_records.records([long], tmp_path, lambda line: None)["czofo"] == found


@pytest.mark.parametrize("seconds", [None, 20.0])
def test_a_run_that_diverges_is_a_row_without_figures(seconds: float | None, tmp_path: Path) -> None:
    wild = msgspec.structs.replace(CASE, train={**CASE.train, "step": 1e30})
    (record,) = czofo_records.records([wild], tmp_path, lambda line: None, seconds=seconds).values()
    assert not record.complete
    assert "use a smaller step" in record.ended
    assert np.isnan(record.accuracy) or record.accuracy < 50
    bench = Bench("czofo", "test", quick=True)
    czofo.frameworks(bench, "a9a", {"czofo": [record]}, "")
    assert "use a smaller step" in bench.grids[0].rows[0][-1]


@pytest.mark.slow
def test_cases_run_side_by_side_in_processes(tmp_path: Path) -> None:
    cases = [msgspec.structs.replace(CASE, name=f"seed {seed}", seed=seed) for seed in (0, 1)]
    found = czofo_records.records(cases, tmp_path, lambda line: None, processes=2)
    assert [record.case for record in found.values()] == cases
    assert not list(tmp_path.glob("*.case"))


def test_a_table_has_the_papers_figures_beside_ours() -> None:
    record = Record(
        case=msgspec.structs.replace(CASE, part="a9a"), machine="2 cores, here", device="cpu",
        points=[Measurement(0.5, 100_000, 81.0, 0.4), Measurement(1.0, 200_000, 84.0, 0.3)],
        payload={"upload": 100_000, "reply": 50_000}, messages=10, seconds=1.0,
    )  # fmt: skip
    bench = Bench("czofo", "test", quick=True)
    czofo.frameworks(bench, "a9a", {"czofo": [record]}, "")
    (grid,) = bench.grids
    row = dict(zip(grid.columns, grid.rows[0], strict=True))
    assert (row["paper %"], row["ours %"]) == (84.86, 84.0)
    assert (row["paper MB to 82%"], row["MB to 82%"], row["MB"], row["payload MB"]) == (0.3, 0.2, 0.2, 0.15)
    assert [panel.lines["czofo"][-1] for panel in bench.panels] == [(1.0, 84.0), (0.2, 84.0)]


@pytest.mark.parametrize("quick", [True, False])
@pytest.mark.parametrize("part", sorted(CASES))
def test_every_case_is_a_job_and_one_of_each_part_runs_between_processes(part: str, quick: bool) -> None:
    cases = cases_of(part, quick=quick)
    for case in cases:
        compose(job_of(case, 2 if part in ("a9a", "gmsc") else 10))
    assert len({case.slug for case in cases}) == len(cases)
    assert [case.name for case in cases if case.world == "network"] == ["czofo, network"]
    assert set(FRAMEWORKS[part]) <= {case.name for case in cases}


@pytest.mark.parametrize("quick", [True, False])
@pytest.mark.parametrize("part", sorted(EXTENTS))
def test_every_run_with_a_slow_client_has_a_twin_without(part: str, quick: bool) -> None:
    cases = pairs_of(part, Slowed(quick=quick))
    for case in cases:
        compose(job_of(case, 2 if part in ("a9a", "gmsc") else 10))
    assert len({case.slug for case in cases}) == len(cases)
    for fast, slow in zip(cases[::2], cases[1::2], strict=True):
        assert slow == msgspec.structs.replace(fast, name=slow.name, speed=0.4)
        speeds = job_of(slow, 2).network.speeds
        assert speeds is not None
        assert (speeds[0], len(speeds), sorted(speeds)[0]) == (1.0, 1 + slow.clients, 0.4), "never the server"


@pytest.mark.usefixtures("real_data")
def test_accuracies_with_a_slow_client_are_compared_pair_by_pair(tmp_path: Path) -> None:
    cases = pairs_of("a9a", Slowed())
    accuracies = {"seed 0, all at 1": 85.0, "seed 0, one at 0.4": 84.5, "seed 1, all at 1": 85.0}
    cut = [case.shortened(1) for case in cases if case.name == "vafl, seed 0, one at 0.4"]
    for case in [*cases, *cut]:  # of the first framework one pair and a half; of vafl one run that was cut
        name, _, which = case.name.partition(", ")
        if which in accuracies and name in ("czofo", "vafl"):
            point = Measurement(1.0, 1, accuracies[which], 0.3)
            record = Record(
                case=case, machine="", device="cpu", points=[point], payload={}, messages=None, seconds=1.0
            )
            czofo_records.store(record, tmp_path / "records")
    czofo.run(False, tmp_path, lambda line: None, only=("slow:a9a:kept",))
    assert "| a9a | czofo | 2 | 20 | 1 | 85 | 84.5 | - | -0.5 | - | -0.5 | -0.5 | NO |" in (
        tmp_path / "czofo.md"
    ).read_text(encoding="utf-8")
    assert "vafl" not in (tmp_path / "czofo.md").read_text(encoding="utf-8")


def test_runs_with_a_slow_client_have_as_many_epochs_and_seeds_as_are_asked_for() -> None:
    usual, asked = pairs_of("gmsc", Slowed()), pairs_of("gmsc", Slowed(["vafl"], epochs=100, seeds=2))
    assert [case.epochs for case in asked] == [100] * 4, "two seeds, without a slow client and with one"
    assert {case.name for case in asked} < {case.name for case in usual}
    assert not {case.slug for case in asked} & {case.slug for case in usual}, "records of their own"
    assert {case.algorithm for case in pairs_of("mnist2", Slowed(["zoo-vfl"]))} == {"zoo-vfl"}


def test_what_a_slow_client_cannot_be_asked_for_is_named(tmp_path: Path) -> None:
    for words in (["--only", "slow:a9a:splitt"], ["--epochs", "3"], ["--only", "time", "--seeds", "3"]):
        given = CliRunner().invoke(command, ["czofo", *words, "--out", str(tmp_path)])
        assert isinstance(given.exception, JobError)
        assert words[-2] in str(given.exception)


def test_a_slow_clients_runs_are_beside_their_twins() -> None:
    twins = [Ended(72.0, 0.57, [100, 100]), Ended(71.0, 0.58, [100, 100])]
    slowed = [Ended(71.0, 0.58, [133, 67]), Ended(71.0, 0.58, [135, 65])]
    row = row_of("client 1 slow", twins, slowed)
    assert row[:4] == ["client 1 slow", 2, 71.5, 71.0]
    assert row[-3:] == ["+0.00500", "0.00500", "134, 66"]
    names = {Asked("gmsc", "czofo-ef", 20, 3, slow).name for slow in (None, 0, 1)}
    assert len(names) == 3, "every run has a file of its own"


def test_rows_are_means_of_seeds_and_zeroth_order_networks_have_a_step_of_the_grid() -> None:
    """The step that did best on held-back rows is that of the runs that are reported, of every seed."""
    asked: list[Case] = []

    def measure(cases: Sequence[Case]) -> dict[str, Record]:
        asked.extend(cases)
        return {
            case.name: Record(
                case=case, machine="2 cores, here", device="cpu", payload={}, messages=1, seconds=1.0,
                points=[Measurement(1.0, 10, 80.0 + case.seed - abs(case.train["step"] - 2e-3), 0.4)],
            )
            for case in cases
        }  # fmt: skip

    cases = [case for case in cases_of("mnist4", quick=False) if case.name in ("zoo-vfl", "vafl")]
    found = czofo.of_seeds(czofo.tuned(cases, measure), measure, 3)
    trials, reported = asked[: len(KINDS["mnist"]["values"].tried)], asked[-6:]
    assert {trial.epochs for trial in trials} == {reported[0].epochs}
    assert all(trial.validation and trial.seed not in (0, 1, 2) for trial in trials)
    assert {case.train["step"] for case in reported if case.algorithm == "zoo-vfl"} == {2e-3}
    assert [case.seed for case in reported] == [0, 1, 2] * 2
    assert not any(case.validation for case in reported)
    bench = Bench("czofo", "test", quick=True)
    czofo.frameworks(bench, "mnist4", found, "")
    row = dict(zip(bench.grids[0].columns, bench.grids[0].rows[-1], strict=True))
    assert (row["seeds"], row["ours %"], row["+-"]) == (3, pytest.approx(81), pytest.approx(1))


def test_all_rows_of_a_table_have_as_many_epochs() -> None:
    for part in CASES:
        for quick in (True, False):
            cases = [case for case in cases_of(part, quick=quick) if case.world != "network"]
            assert len({case.epochs for case in cases}) == 1


def test_the_step_of_a_kind_is_the_one_that_did_best_on_validation_rows() -> None:
    tried = trials("mnist", MLP, clients=4, rows=100, epochs=2, batch=64)
    assert all(case.validation for case in tried)
    found = {
        case.name: Record(
            case=case, machine="", device="cpu", points=[Measurement(2.0, 1, accuracy, 0.1)],
            payload={}, messages=None, seconds=1.0,
        )
        for accuracy, case in enumerate(tried)
        if "values" not in case.name
    }  # fmt: skip
    assert best("mnist", found) == {
        kind: how.tried[-1] for kind, how in KINDS["mnist"].items() if kind != "values"
    }


@pytest.mark.parametrize("epsilon", [8.0, 4.0, 1.0])
def test_the_setting_of_noisy_runs_is_one_that_was_tried_on_validation_rows(epsilon: float) -> None:
    tried = noisy_trials(epsilon)
    assert all(case.validation and job_of(case, 10).privacy.epsilon == epsilon for case in tried)
    chosen = NOISY["mnist"][epsilon]
    assert [
        case
        for case in tried
        if case.cascade == chosen["cascade"] and case.epochs == chosen["train"]["epochs"]
    ]


@pytest.mark.parametrize("name", ["czofo", "vfb2"])
def test_a_part_that_is_not_there_is_refused(name: str) -> None:
    done = CliRunner().invoke(main, ["bench", name, "--only", "x"])
    assert done.exit_code == 2
    assert f"--only: {name} has no 'x'; it has " in done.output
