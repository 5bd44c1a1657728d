"""The benches of the linear papers in small: closed forms hold, and every section leaves a table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from colonnade.data.table import Table
from colonnade_bench.calibrate import Calibration, calibrate, fit, words
from colonnade_bench.common import Bench, kept
from colonnade_bench.linear import against, cti, lossless, pace, rates, slow_party, sqn_figures, tuned
from colonnade_bench.linear import trials as linear
from colonnade_bench.linear.sweep import every_case, sweep
from colonnade_bench.linear.trials import Problem, Trace, closed_form, straggler, train
from colonnade_bench.papers import Here

COSTS = {kind: Calibration(kind, 2.0, 1.0, ()) for kind in ("dense", "sparse")}


def made(q: int, rows: int = 768, width: int = 2) -> Problem:
    """Equal blocks for q parties and labels that a linear model explains in part."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((rows + 128, q * width))
    y = np.where(X @ rng.standard_normal(q * width) + rng.standard_normal(len(X)) > 0, 1.0, -1.0)

    def tables(which: slice) -> dict[str, Table]:
        columns = [tuple(f"x{k}" for k in range(p * width, p * width + width)) for p in range(q)]
        parts = [np.ascontiguousarray(X[which, p * width : p * width + width]) for p in range(q)]
        return {f"party-{p}": Table("made", columns[p], parts[p], y[which]) for p in range(q)}

    return Problem("made", tables(slice(rows)), tables(slice(rows, None)), y[:rows], y[rows:])


@pytest.fixture
def made_up(monkeypatch: pytest.MonkeyPatch) -> Bench:
    """Every section on a made-up set, whatever set it asks for."""
    known: dict[int, Problem] = {}

    def problem(name: str, q: int = 8, seed: int = 0) -> Problem:
        return known.setdefault(q, made(q, width=16 if q == 1 else 2))

    for module in (against, lossless, pace, rates, sqn_figures):
        monkeypatch.setattr(module, "problem", problem)
    return Bench("tiny", "tiny", quick=True)


def test_free_forwards_give_the_closed_form() -> None:
    slow, fast = pace.pull_pair(made(4, rows=512), COSTS, "sgd", 0.4, 4, forwards=False)
    assert slow.seconds / fast.seconds == pytest.approx(closed_form(4, 0.4), rel=0.02)
    assert fast.updates[-1] < min(fast.updates[:-1]), "the slow party makes fewer updates"


@pytest.mark.parametrize("s", [0.3, 0.6, 1.0])
def test_the_closed_form_is_the_ratio_of_rates(s: float) -> None:
    rate_async = sum(straggler(s))
    assert closed_form(8, s) == pytest.approx(rate_async / (8 * s))


@pytest.mark.parametrize(("one", "other", "gap"), [(1e-3, 2e-3, 2.1e-3), (-3e-13, 1e-13, 1e-10)])
def test_gaps_that_two_runs_reach_are_not_below_what_is_known(one: float, other: float, gap: float) -> None:
    traces = [Trace((), (0.1, best), {}, {}) for best in (one, other)]
    assert linear.both_reach(*traces) == pytest.approx(gap)


def test_a_slow_party_and_the_speed_up_are_tables(
    made_up: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    terms = pace.Straggling(gap=1e-2, s=0.4, epochs=1)
    pace.straggling(made_up, COSTS, lambda line: None, terms, ("free", "charged"))
    monkeypatch.setattr(tuned, "STEPS", tuned.STEPS[2:4])
    pace.stepped(made_up, COSTS, lambda line: None, terms)
    pace.speedup(made_up, COSTS, lambda line: None, "mnist-4v9", counts=(1, 2), epochs=1)
    pace.loss_curves(made_up, COSTS, lambda line: None, sets=("made",), regularizers=("l2",), epochs=1)
    files = made_up.write(tmp_path)
    assert {file.suffix for file in files} == {".json", ".md", ".png"}
    stored = json.loads(files[0].read_text())
    assert len(stored["tables"]) == 4
    assert [row[2] for row in made_up.grids[1].rows if row[2] not in (0.5, 1)] == []
    accountings = {row[1] for row in made_up.grids[0].rows}
    assert accountings == {"free", "charged"}


def test_asysqn_s_own_figures_are_tables_with_quasi_newton_on(
    made_up: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    for grid in ("STEPS", "ADDED", "PAPERS"):
        monkeypatch.setattr(tuned, grid, getattr(tuned, grid)[:2])

    def say(line: str) -> None:
        pass

    one: dict[str, Any] = {"sets": ("made",), "estimators": ("saga",), "epochs": 2, "rows": 128}
    table_5: dict[str, Any] = {"sets": ("made",), "estimators": ("sgd",), "speeds": (0.4,), "rows": 256}
    sqn_figures.crui_on(made_up, COSTS, say, **table_5)
    sqn_figures.figure_2(made_up, say, **one)
    sqn_figures.figure_3(made_up, COSTS, say, **one)
    sqn_figures.figure_4(made_up, COSTS, say, "made", counts=(1, 2), epochs=2, rows=128)
    crui, against_rounds, grids, against_time, speed_up = made_up.grids
    assert crui.rows[0][1:3] == [256, 16], "as many rows as the set has, and their square root for a batch"
    assert crui.rows[0][6] == pytest.approx(closed_form(8, 0.4), rel=0.2)
    assert [row[2] for row in against_rounds.rows[::2]] == [f"{row[1]}, chosen" for row in grids.rows]
    assert [row[3] for row in against_rounds.rows[::2]] == [row[3] for row in grids.rows]
    assert {row[3] for row in against_rounds.rows[1::2]} == {"automatic"}
    assert against_time.rows[0][-1] > 1.2, "a slow party costs synchronous runs more"
    assert {row[0] for row in speed_up.rows} >= {"asysqn-svrg", "synsqn-svrg, one slow"}
    assert speed_up.rows[1][1] == "of a pass"
    assert speed_up.rows[1][3] > 1
    assert [panel.title[:8] for panel in made_up.panels] == ["Figure 2", "Figure 3", "Figure 4"]


def test_a_quasi_newton_direction_takes_its_time() -> None:
    network = {**COSTS["dense"].network(), "ns_per_value": 1e5, "charge_forward": False}
    seconds = [
        train(
            made(2, rows=96),
            "synsqn-sgd",
            train={"batch": 8, "epochs": 4, "direction": direction},
            network=network,
        ).seconds
        for direction in ("plain", "lbfgs")
    ]
    assert seconds[1] > 1.1 * seconds[0]


@pytest.mark.parametrize("kind", ["svrg", "asysqn-saga"])
def test_the_sweep_sees_no_tiny_set_above_first_order(kind: str) -> None:
    bench = Bench("tiny", "tiny", quick=True)
    sweep(bench, lambda line: None, every_case(100, 1, (), ("tiny",)), (kind,), epochs=10)
    verdicts = [row[-1] for row in bench.grids[0].rows]
    assert len(verdicts) == 1
    assert "ABOVE" not in verdicts


def test_where_curvature_falls_old_pairs_do_not_hold_a_run_back() -> None:
    """Labels that columns explain well: near the optimum all is flatter than H knows from before."""
    bench = Bench("sweep", "sweep", quick=True)
    cases = every_case(None, 1, ("breast-cancer",), ())
    sweep(bench, lambda line: None, cases, ("asysqn-svrg",), epochs=20)
    ((*_, verdict),) = bench.grids[0].rows
    assert verdict == "below"


def test_losslessness_is_judged_by_the_difference_of_means(made_up: Bench, tmp_path: Path) -> None:
    terms = lossless.TrialTerms(1e-7, {"batch": 32, "epochs": 20}, {"batch": 128, "epochs": 4})
    lossless.TERMS["made"] = terms
    try:
        table = lossless.Lossless(Here(["made"], []), ("vfb2-saga",), ("l2",), 1, {})
        table.add(made_up, lambda line: None, tmp_path)
    finally:
        del lossless.TERMS["made"]
    (row,) = made_up.grids[0].rows
    assert row[7] == "yes"
    assert float(row[4]) < float(row[3]), "half of the blocks are never trained"


def test_a_bench_goes_on_where_it_was_stopped(tmp_path: Path) -> None:
    answers = iter([0.5, 0.75])
    path = tmp_path / "trials" / "one.json"
    assert kept(path, {"seed": 1}, lambda: next(answers)) == 0.5
    assert kept(path, {"seed": 1}, lambda: next(answers)) == 0.5, "the same question is not asked twice"
    assert kept(path, {"seed": 2}, lambda: next(answers)) == 0.75, "another question has another answer"
    assert [file.name for file in path.parent.iterdir()] == ["one.json"]


def test_without_a_minimum_the_same_algorithm_at_one_party_is_the_measure(
    made_up: Bench, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for module in (linear, lossless):
        monkeypatch.setattr(module, "ENDLESS", {("made", "nonconvex")})
    table = lossless.Lossless(Here(["made"], []), ("vfb2-svrg",), ("nonconvex",), 1, {})
    table.add(made_up, lambda line: None, tmp_path)
    (row,) = made_up.grids[0].rows
    assert row[7] == "yes"
    assert (tmp_path / "trials" / "made-vfb2-svrg-nonconvex-0-alone.json").is_file()


@pytest.fixture
def virtual(monkeypatch: pytest.MonkeyPatch) -> list[list[float]]:
    """Trials that ask for processes run on the virtual clock; the speeds that they had."""
    trace, seen = lossless.Trial.trace, list[list[float]]()

    def simulated(trial: lossless.Trial, world: str, **sections: Any) -> Trace:
        if world == "local":
            return trace(trial, world)
        seen.append(sections["network"]["speeds"])
        clock = {"us_per_call": 1e3, "ns_per_value": 0.0}
        return trace(trial, "simulated", network={**sections["network"], **clock})

    monkeypatch.setattr(lossless.Trial, "trace", simulated)
    terms = lossless.TrialTerms(1e-6, {"batch": 32, "epochs": 20, "stale": 0}, {"batch": 128})
    monkeypatch.setitem(lossless.TERMS, "made", terms)
    return seen


def test_every_run_has_a_twin_with_a_slow_party(
    made_up: Bench, virtual: list[list[float]], tmp_path: Path
) -> None:
    table = lossless.Lossless(Here(["made"], []), ("vfb2-saga",), ("l2",), 1, {})
    slow = slow_party.SlowParty(table, splits=2)
    assert slow.pieces() == ["slow:made:l2:vfb2-saga:0", "slow:made:l2:vfb2-saga:1"]
    slow.add(made_up, lambda line: None, tmp_path, ["kept"])
    assert made_up.grids.pop().rows == [], "nothing is run"
    slow.add(made_up, lambda line: None, tmp_path, ["made", "l2", "vfb2-saga", "1"])
    assert virtual == [[1.0] * 8, [1.0] * 4 + [0.4] + [1.0] * 3]
    slow.add(made_up, lambda line: None, tmp_path, ["kept"])
    (row,) = made_up.grids.pop().rows
    assert row[3] == 1, "one split is known"
    slow.add(made_up, lambda line: None, tmp_path)
    (grid,) = made_up.grids
    found = dict(zip(grid.columns, grid.rows[0], strict=True))
    assert (found["splits"], found["within 0.1"]) == (2, "yes")
    assert len(found["mean delay: without, with"].split(", ")) == 2
    assert len(virtual) == 4, "no pair is run twice"


def test_pulled_rounds_are_counted(made_up: Bench) -> None:
    rates.pulled(made_up, lambda line: None, sets=("made",), target=1e-2, aggregations=64)
    assert [row[1].split()[0] for row in made_up.grids[0].rows] == ["first", "ours:", "the"]


def test_pooled_fits_and_the_local_world_are_timed(made_up: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    data = made(4)
    monkeypatch.setattr(against, "ROUNDS", 4)  # few rows make noisy batches
    assert against.lbfgs(data, 1e-3)() > 0
    assert against.complete(data)() > 0
    moment = against.federated(data, 1e-3, "local")()
    assert moment is not None
    assert moment.seconds > 0
    assert moment.loss <= data.optimum().loss + 1e-3
    assert against.met([moment], moment.loss - 1.0) is None


def test_a_trace_tells_where_a_gap_is_met() -> None:
    trace = train(made(2), "vfb2-svrg", active=1, train={"batch": 32, "epochs": 12})
    assert trace.gaps[-1] < 1e-3
    assert trace.epochs_to(1e-3) is not None
    assert trace.rounds_to(1e-30) is None
    time = trace.time_to(1e-3)
    assert time is not None
    assert 0 < time <= trace.seconds


def test_costs_are_positive_and_told() -> None:
    costs = calibrate(repeats=1)
    assert all(cost.us_per_call > 0 and cost.ns_per_value > 0 for cost in costs.values())
    assert "us a call" in words(costs)
    assert fit([(0, 3.0), (1000, 5.0)]) == pytest.approx((3.0, 2.0))


def test_a_longer_vector_takes_longer_on_a_line_and_both_lines_are_in_the_table() -> None:
    link = cti.simulated((16, 4096))
    assert 1 < link[16] < link[4096]
    tls = cti.over_tls(times=10, trials=3, sizes=(16, 65_536))  # real seconds: no test compares them
    assert set(tls) == {16, 65_536}
    assert min(tls.values()) > 0
    assert len(cti.table(tls, link)) == len(cti.PAPER)
