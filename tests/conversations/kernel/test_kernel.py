"""The kernel conversation equals pooled doubly stochastic gradients, asks once, keeps coefficients apart."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.oracles.dsg import features_of, pooled_dsg
from tests.oracles.tables import pooled, random_job, random_tables, run

from colonnade.arrays import Floats
from colonnade.baselines.svc import bandwidth_and_penalty
from colonnade.conversations.kernel.predict import KernelShare
from colonnade.conversations.kernel.setup import layout_of
from colonnade.data.table import Table
from colonnade.errors import DataError, JobError
from colonnade.job import job_from
from colonnade.job.plan import Facts
from colonnade.losses import LOSSES, with_weights
from colonnade.privacy.noise import Noise
from colonnade.run.federate import Finished, Tables, federate, run_tables
from colonnade.run.resolve import compose, resolve

# a projection of 32 bits is off by at most 2 pi q 2^-32, and a coefficient is a short sum of such
FIXED_POINT = 2e-8


def model(done: Finished) -> tuple[Floats, Floats, Floats]:
    """omega of all columns, b and alpha of all owners' features in the order of the rounds."""
    owners = done.result.active
    parts = [(*features_of(done, owner), done.shares[owner].weights["alpha"]) for owner in owners]
    M, m = done.plan.settings.block, len(owners)
    blocks = [
        tuple(array[..., k : k + M] if index == 0 else array[k : k + M] for index, array in enumerate(part))
        for k in range(0, max(len(part[1]) for part in parts), M)
        for part in parts
        if k < len(part[1])
    ]
    assert len(parts) == m
    omega, b, alpha = zip(*blocks, strict=True)
    return np.hstack(omega), np.concatenate(b), np.concatenate(alpha)


def oracle(done: Finished, setting: Tables, weight: Floats | None = None) -> Floats:
    """The same rows and features on pooled columns."""
    omega, b, _ = model(done)
    X, y = pooled(setting)
    train, kernel = done.job.train, done.plan.settings
    return pooled_dsg(
        X,
        y,
        LOSSES[train.loss or ""],
        omega,
        b,
        l2=train.l2_for(len(y)),
        step=float(train.step),
        batch=done.plan.pace.batch,
        block=kernel.block,
        epochs=train.epochs,
        seed=done.job.seed,
        falling=kernel.step == "falling",
        momentum=kernel.momentum,
        weight=weight,
    )


def trained(setting: Tables, *, kernel: dict[str, Any] | None = None, **sections: Any) -> Finished:
    train = {"step": 0.1, "batch": 8, "l2": 1e-2, **sections.pop("train", {})}
    return run(
        setting,
        "fdskl-capped",
        train=train,
        kernel={"block": 4, "features": 40, "bits": 32, **(kernel or {})},
        **sections,
    )


@pytest.mark.parametrize("omega", ["private", "shared"])
@pytest.mark.parametrize("active", [1, 2, 4])
def test_one_row_and_one_feature_a_step_is_the_paper_s_algorithm(active: int, omega: str) -> None:
    setting = random_tables(parties=4, active=active, rows=50)
    done = run(
        setting,
        "fdskl",
        train={"batch": 1, "epochs": 3, "step": 0.01, "l2": 1e-2, "tolerance": 0.0},
        kernel={"block": 1, "omega": omega, "bits": 32},
    )
    _, b, alpha = model(done)
    assert done.result.cost.rounds == 150 == len(alpha)
    assert ((b >= 0) & (b < 2 * np.pi)).all()
    np.testing.assert_allclose(alpha, oracle(done, setting), atol=1e-9)
    assert np.abs(alpha).max() > 4e-3


@pytest.mark.parametrize("world", ["simulated", "local"])
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
@pytest.mark.parametrize("loss", ["logistic", "smooth_hinge", "squared"])
def test_blocks_and_a_cap_equal_the_pooled_algorithm(loss: str, kind: str, sparse: bool, world: str) -> None:
    setting = random_tables(parties=3, active=2, rows=60, sparse=sparse, regression=loss == "squared")
    done = trained(setting, train={"loss": loss, "epochs": 4}, kernel={"kind": kind}, world=world)
    *_, alpha = model(done)
    assert len(alpha) == 40 < done.result.cost.rounds * 4
    np.testing.assert_allclose(alpha, oracle(done, setting), atol=FIXED_POINT)


def classes_setting(classes: int = 3) -> Tables:
    setting = random_tables(parties=3, active=2, rows=60, test_rows=30, regression=True)

    def coded(tables: dict[str, Any]) -> dict[str, Any]:
        return {
            name: table if table.y is None else type(table)(
                name, table.columns, table.X, np.clip(np.floor(table.y / 4 + classes / 2), 0, classes - 1)
            )
            for name, table in tables.items()
        }  # fmt: skip

    assert setting.test is not None
    return Tables("classes", coded(setting.train), coded(setting.test), setting.active)


def test_several_classes_have_a_coefficient_each() -> None:
    setting = classes_setting()
    done = trained(setting, train={"loss": "softmax", "epochs": 12, "l2": 1e-4, "step": 4.0})
    *_, alpha = model(done)
    assert alpha.shape == (40, 3)
    np.testing.assert_allclose(alpha, oracle(done, setting), atol=FIXED_POINT)


def weighing(setting: Tables, weight: Floats) -> Tables:
    """The same rows, which count as much as these weights at the label holders."""
    tables = {
        name: table if table.y is None else replace(table, weight=weight)
        for name, table in setting.train.items()
    }
    return replace(setting, train=tables)


@pytest.mark.parametrize("algorithm", ["fdskl", "fdskl-capped"])
@pytest.mark.parametrize("loss", ["smooth_hinge", "squared", "softmax"])
def test_weighted_rows_are_those_of_the_weighted_pooled_algorithm(loss: str, algorithm: str) -> None:
    if loss == "softmax":
        setting = classes_setting()
    else:
        setting = random_tables(parties=3, active=2, rows=60, regression=loss == "squared")
    weight = np.random.default_rng(6).integers(0, 4, 60).astype(np.float64)
    weight /= weight.mean()
    capped = {"features": 40} if algorithm == "fdskl-capped" else {}
    done = run(
        weighing(setting, weight),
        algorithm,
        train={"loss": loss, "epochs": 4, "step": 0.1, "batch": 8, "l2": 1e-2, "tolerance": 0.0},
        kernel={"block": 4, "bits": 32, **capped},
    )
    *_, alpha = model(done)
    np.testing.assert_allclose(alpha, oracle(done, setting, weight), atol=FIXED_POINT)
    assert np.abs(alpha - oracle(done, setting)).max() > 1e-4  # the weights matter


@pytest.mark.parametrize("algorithm", ["fdskl", "fdskl-capped"])
def test_a_row_of_weight_two_is_a_row_that_comes_twice(algorithm: str) -> None:
    """All rows are one batch; then only sums over rows matter."""
    setting = random_tables(parties=3, active=2, rows=30)
    times = np.random.default_rng(7).integers(0, 3, 30)
    weighed = weighing(setting, times / times.mean())
    again = np.repeat(np.arange(30), times)
    repeated = replace(setting, train={name: table.take(again) for name, table in setting.train.items()})
    capped = {"features": 24} if algorithm == "fdskl-capped" else {}
    once, twice = (
        run(
            tables,
            algorithm,
            train={"batch": 64, "epochs": 20, "l2": 1e-2, "step": 1.0, "tolerance": 0.0},
            kernel={"block": 4, "sigma": 3.0, "bits": 32, **capped},
        )
        for tables in (weighed, repeated)
    )
    for ours, theirs in zip(model(once), model(twice), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-7)
    assert once.result.metrics["objective"] == pytest.approx(twice.result.metrics["objective"], abs=1e-6)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("algorithm", ["fdskl", "fdskl-capped", "pp-svmv"])
def test_bandwidth_and_penalty_are_those_that_pooled_rows_choose(algorithm: str, weighted: bool) -> None:
    """There are fewer rows than a sample may have, so the sample is all of them whoever draws it."""
    setting = ring(rows=300, test_rows=30)
    X, y = pooled(setting)
    if weighted:
        weight = np.where(y > 0, 1.8, 0.2) * (len(y) / np.where(y > 0, 1.8, 0.2).sum())
        setting, y = weighing(setting, weight), with_weights(y, weight)
    sections: dict[str, Any] = {} if algorithm != "fdskl-capped" else {"kernel": {"features": 64}}
    done = run(setting, algorithm, train={"loss": "smooth_hinge", "epochs": 1}, **sections)
    sigma, l2 = bandwidth_and_penalty(X, y, LOSSES["smooth_hinge"])
    assert done.result.chosen == pytest.approx({"sigma": sigma, "l2": l2})
    assert l2 * len(y) <= 1.0  # a ring without noise


def test_a_given_penalty_is_taken_and_fewer_distances_are_asked_for() -> None:
    setting = ring(rows=300, test_rows=30)

    def ran(**train: Any) -> Finished:
        kernel = {"features": 16, "block": 16, "sigma": 2.0}
        return run(setting, "fdskl-capped", train={"epochs": 1, **train}, kernel=kernel)

    given, chosen = ran(l2=1e-3), ran()
    assert given.result.chosen == {"sigma": 2.0, "l2": 1e-3}
    assert chosen.result.cost.bytes_sent - given.result.cost.bytes_sent > 3 * 8 * (300 * 299 // 2 - 1024)
    assert any("train.l2" in note for note in chosen.result.privacy.notes)
    assert not any("train.l2" in note for note in given.result.privacy.notes)


def test_three_species_and_a_number_are_learnt_with_default_settings() -> None:
    def metrics(dataset: str) -> dict[str, float]:
        data = {"train": dataset, "parties": 3, "active": 2}
        return federate(
            job_from({"algorithm": "fdskl-capped", "data": data, "kernel": {"features": 512}})
        ).result.metrics

    assert metrics("iris")["test_accuracy"] >= 0.9
    assert metrics("diabetes")["r2"] > 0.3


@pytest.mark.parametrize("active", [1, 3])
def test_without_a_cache_the_result_is_the_same(active: int) -> None:
    setting = random_tables(parties=3, active=active, rows=40)
    kept, asked = (
        trained(setting, train={"epochs": 3}, kernel={"cache": cache, "sigma": 3.0})
        for cache in (True, False)
    )
    np.testing.assert_allclose(model(kept)[2], model(asked)[2], atol=FIXED_POINT)
    assert kept.result.metrics["objective"] == pytest.approx(asked.result.metrics["objective"], abs=1e-6)


@pytest.mark.parametrize("loss", ["smooth_hinge", "softmax"])
@pytest.mark.parametrize("active", [1, 3])
def test_a_running_score_is_the_paper_s_sum_over_all_features(active: int, loss: str) -> None:
    """Without a cache every visit of a row asks again for all features so far, as Algorithm 2 is written."""
    classes = 3 if loss == "softmax" else 2
    setting = random_tables(parties=3, active=active, rows=60, test_rows=30, classes=classes)
    running, asked = (
        run(
            setting,
            "fdskl",
            train={"loss": loss, "epochs": 5, "batch": 8, "step": 1.0, "l2": 1e-2, "tolerance": 0.0},
            kernel={"block": 4, "bits": 32, "cache": cache, "sigma": 3.0},
        )
        for cache in (True, False)
    )
    assert "seeds.party0" in running.shares["party0"].weights
    for done in (running, asked):
        *_, alpha = model(done)
        assert len(alpha) == 4 * 8 * 5
        np.testing.assert_allclose(alpha, oracle(done, setting), atol=FIXED_POINT)


def test_what_a_growing_machine_holds_does_not_grow_with_its_features() -> None:
    setting = random_tables(parties=2, active=1, rows=400)

    def peak(epochs: int) -> int:
        train = {"epochs": epochs, "batch": 16, "tolerance": 0.0, "l2": 1e-4}
        tracemalloc.start()
        try:
            run(setting, "fdskl", train=train, compare=False)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(1)  # what is loaded once
    few, many = peak(1), peak(16)
    phases = 2 * 400 * 64 * 25 * (16 - 1)  # bytes of those that the longer run has more
    assert many - few < 0.1 * phases


def test_rounds_in_flight_are_late_and_still_learn() -> None:
    setting = random_tables(parties=4, active=3, rows=200, columns=8, test_rows=100)
    done = run(
        setting,
        "fdskl-capped",
        train={"loss": "logistic", "epochs": 20, "ahead": 3, "step": "auto"},
        kernel={"features": 256, "block": 16},
        network={"latency_ms": 5.0},
    )
    assert 0 < done.result.staleness.max <= 4 == done.result.staleness.bound
    assert done.result.metrics["test_accuracy"] > 0.8


def test_a_run_repeats_itself_and_another_seed_does_not() -> None:
    setting = random_tables(rows=40)
    one, same, other = (trained(setting, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(model(one)[2], model(same)[2])
    assert one.result.cost.bytes_sent == same.result.cost.bytes_sent
    assert not np.array_equal(model(one)[2], model(other)[2])


@pytest.mark.parametrize("algorithm", ["fdskl", "fdskl-capped"])
def test_only_label_holders_keep_coefficients_and_offsets_come_from_others(algorithm: str) -> None:
    features = {"features": 8} if algorithm == "fdskl-capped" else {}
    done = run(random_tables(parties=4, active=2, rows=40), algorithm, kernel={"block": 4, **features})
    assert {party for party, share in done.shares.items() if "alpha" in share.weights} == {"party0", "party1"}
    for owner in ("party0", "party1"):
        shares = {party: KernelShare.from_arrays(share.weights) for party, share in done.shares.items()}
        offsets = {party: share.features[owner].whole().b for party, share in shares.items()}
        assert (np.sum([b != 0 for b in offsets.values()], axis=0) == 1).all()
        assert not offsets[owner].any()


def test_the_bandwidth_is_a_fraction_of_the_median_distance() -> None:
    setting = random_tables(rows=400, columns=12)
    X, _ = pooled(setting)
    apart = np.linalg.norm(X[:200] - X[200:], axis=1)
    train = {"batch": 1, "epochs": 2, "step": 0.02}
    done = trained(setting, kernel={"features": 2000, "fraction": 0.5}, train=train)
    omega, *_ = model(done)
    assert 1 / omega.std() == pytest.approx(0.5 * np.median(apart), rel=0.05)


def test_the_chosen_bandwidth_is_that_of_the_pooled_rows() -> None:
    """A plane with noise wants a wide kernel, a chessboard a narrow one; all rows are sampled."""
    X = np.random.default_rng(3).uniform(-2, 2, (600, 2))
    chosen = []
    noise = np.random.default_rng(4).standard_normal(600)
    for y in (np.sign(X.sum(axis=1) + noise), np.sign(np.prod(np.sin(np.pi * X), axis=1))):
        tables = {
            f"party{i}": Table(f"party{i}", (f"c{i}",), X[:, i : i + 1].copy(), y if i == 0 else None)
            for i in range(2)
        }
        done = trained(
            Tables("plane", tables, None, ("party0",)), kernel={"features": 4000, "fraction": "auto"}
        )
        omega, *_ = model(done)
        chosen.append(bandwidth_and_penalty(X, y, LOSSES["smooth_hinge"], l2=1e-2)[0])
        assert 1 / omega.std() == pytest.approx(chosen[-1], rel=0.05)
    assert chosen[0] > 1.5 * chosen[1]


def test_rows_that_are_all_alike_are_refused_with_what_to_do() -> None:
    setting = random_tables(rows=30)
    alike = {
        name: type(table)(name, table.columns, np.ones((30, table.width)), table.y)
        for name, table in setting.train.items()
    }
    with pytest.raises(DataError, match=r"set kernel\.sigma"):
        trained(Tables("alike", alike, None, setting.active))


def test_a_target_ends_the_run_early() -> None:
    setting = random_tables(rows=100)
    options: dict[str, Any] = {"loss": "logistic", "epochs": 30, "step": "auto", "l2": 1e-3}
    done = run(
        setting, "fdskl-capped", train={**options, "target": 0.1}, kernel={"features": 256, "block": 16}
    )
    # the rounds under way when the target was met are still finished, so the last loss may lie above it
    assert min(moment.loss for moment in done.result.history) <= done.result.pooled["objective"] + 0.1
    assert done.result.cost.epochs < 30


def test_the_automatic_cap_follows_memory_and_a_cache_too_large_is_refused() -> None:
    def features(rows: int, **kernel: Any) -> int:
        data = {"train": "x", "parties": 2}
        job = job_from({"algorithm": "fdskl-capped", "data": data, "kernel": kernel})
        facts = Facts(columns={"a": 2, "b": 2}, label_holders=("a",), rows=rows, task="binary")
        return layout_of(resolve(compose(job), facts), rows).features

    assert features(10_000) == 8192
    assert 50 <= features(1_000_000) <= 100
    assert features(300, features=100) == 100  # a block is never wider than the cap
    assert features(300, features=600) == 512
    assert features(1_000_000, features=50_000, cache=False) == 49_920
    with pytest.raises(JobError, match=r"features = 2147 or less, or cache = false"):
        features(1_000_000, features=50_000)


def test_a_growing_machine_brings_features_in_every_round_whatever_its_rows() -> None:
    def layout(rows: int, epochs: int = 10, **kernel: Any) -> tuple[int, int]:
        data = {"train": "x", "parties": 2}
        job = job_from({"algorithm": "fdskl", "data": data, "kernel": kernel, "train": {"epochs": epochs}})
        facts = Facts(columns={"a": 2, "b": 2}, label_holders=("a",), rows=rows, task="binary")
        found = layout_of(resolve(compose(job), facts), rows)
        return found.block, found.features

    assert layout(44_651) == (64, 64 * 400)
    assert layout(44_651, epochs=40) == (64, 64 * 1600)
    assert layout(300) == (64, 64 * 190)  # batches of 16 rows
    assert layout(2**20) == (16, 16 * 400)  # all rows are projected in every round
    assert layout(1000, block=2_000_000) == (2_000_000, 800_000_000)
    with pytest.raises(JobError, match="block = 2147483 or less, or cache = false"):
        layout(1000, block=3_000_000)


def test_what_does_not_go_together_is_refused() -> None:
    setting = random_tables(rows=30)
    with pytest.raises(JobError, match="use l2"):
        trained(setting, train={"regularizer": "nonconvex"})
    with pytest.raises(JobError, match=r"kernel\.block"):
        random_job(setting, "fdskl-capped", kernel={"block": 0})


@pytest.mark.parametrize(
    "kernel", [{"features": 64}, {"momentum": 0.5}, {"step": "falling"}], ids=lambda each: next(iter(each))
)
def test_what_the_paper_does_not_have_is_refused_under_its_name(kernel: dict[str, Any]) -> None:
    with pytest.raises(JobError, match="use fdskl-capped"):
        compose(random_job(random_tables(rows=30), "fdskl", kernel=kernel))


def test_every_round_of_the_paper_s_algorithm_brings_features() -> None:
    setting = random_tables(parties=3, active=2, rows=300, columns=6, test_rows=200)
    train = {"loss": "logistic", "step": "auto", "epochs": 10, "tolerance": 0.0}
    done = run(setting, "fdskl", train=train, kernel={"sigma": 4.0})
    layout = layout_of(done.plan, 300)
    assert layout.growth == layout.schedule.rounds >= 100
    assert done.plan.settings.step == "constant"
    assert done.result.metrics["test_accuracy"] > 0.75


def test_a_large_penalty_is_no_loss_of_the_paper_s_algorithm() -> None:
    """A cosine has no norm in the kernel's space: what its coefficients add up to says nothing of f."""
    setting = random_tables(parties=2, active=1, rows=100)
    train = {"loss": "smooth_hinge", "step": "auto", "batch": 4, "l2": 0.01, "tolerance": 0.0}
    done = run(setting, "fdskl", train={**train, "epochs": 8}, kernel={"sigma": 4.0, "block": 8})
    omega, b, alpha = model(done)
    X, y = pooled(setting)
    scores = np.sqrt(2) * np.cos(X @ omega + b) @ alpha
    loss = LOSSES["smooth_hinge"].value(scores, y).mean()
    assert done.result.metrics["objective"] == pytest.approx(loss, abs=2e-3)


def test_sixteen_bits_are_as_good_as_sixty_four() -> None:
    """The angle is off by a few parts in 10,000 of a turn, which is far below what features leave open.

    Beside it the same rows and features in doubles, on pooled columns.
    """
    setting = ring(rows=400, test_rows=400)
    train = {"loss": "smooth_hinge", "batch": 64, "epochs": 15, "step": 4.0, "l2": 1e-4}
    kernel = {"features": 256, "block": 16, "fraction": 0.6}
    coarse, fine = (
        run(setting, "fdskl-capped", train=train, kernel={**kernel, "bits": bits}) for bits in (16, 32)
    )
    for key in ("train_loss", "test_accuracy"):
        assert coarse.result.metrics[key] == pytest.approx(fine.result.metrics[key], abs=3e-3)
    assert coarse.result.cost.bytes_sent < 0.6 * fine.result.cost.bytes_sent
    (X, y), (omega, b, alpha), exact = pooled(setting), model(coarse), oracle(coarse, setting)
    phi = np.sqrt(2) * np.cos(X @ omega + b)
    assert np.abs(exact).max() > 0.02
    np.testing.assert_allclose(phi @ alpha, phi @ exact, atol=2e-3)
    loss = LOSSES["smooth_hinge"].value(phi @ exact, y).mean()
    assert LOSSES["smooth_hinge"].value(phi @ alpha, y).mean() == pytest.approx(loss, abs=2e-4)


def test_a_party_alone_and_a_block_wider_than_the_rows_work() -> None:
    setting = random_tables(parties=1, active=1, rows=20)
    done = trained(setting, train={"batch": 64, "epochs": 3}, kernel={"block": 64, "features": 64})
    np.testing.assert_allclose(model(done)[2], oracle(done, setting), atol=FIXED_POINT)


def test_processes_over_tls_learn_too(tmp_path: Any) -> None:
    job = job_from(
        {
            "algorithm": "fdskl-capped",
            "world": "network",
            "data": {"train": "breast-cancer", "parties": 3, "active": 2},
            "train": {"epochs": 30},
            "kernel": {"features": 256},
        }
    )
    done = federate(job, out=tmp_path)
    assert done.result.metrics["test_accuracy"] > 0.9
    assert done.result.cost.bytes_by_kind["piece"] > 0
    np.testing.assert_array_less(0, np.abs(done.shares["party-0"].weights["alpha"]).max())


def test_run_tables_takes_the_automatic_loss_of_the_job() -> None:
    setting = random_tables(rows=40)
    done = run_tables(
        random_job(setting, "fdskl-capped", train={"loss": "smooth_hinge"}, kernel={"block": 8}), setting
    )
    assert done.result.pooled["objective"] > 0


def test_private_and_shared_directions_give_the_same_errors() -> None:
    """The distribution is the same, so over ten trials the means agree within their spread."""
    setting = ring(rows=400, test_rows=400)

    def errors(omega: str) -> Floats:
        runs = [
            run(
                setting,
                "fdskl-capped",
                seed=seed,
                train={"loss": "smooth_hinge", "batch": 64, "epochs": 15, "step": "auto", "l2": 1e-4},
                kernel={"omega": omega, "features": 256, "block": 16, "fraction": 0.6},
            )
            for seed in range(10)
        ]
        return np.array([1 - done.result.metrics["test_accuracy"] for done in runs])

    private, shared = errors("private"), errors("shared")
    spread = np.sqrt((private.var(ddof=1) + shared.var(ddof=1)) / 10)
    assert abs(private.mean() - shared.mean()) < 3 * spread
    assert not np.array_equal(private, shared)
    assert max(private.mean(), shared.mean()) < 0.25  # a linear model is wrong on almost half of the rows


def ring(rows: int, test_rows: int) -> Tables:
    """Gaussian rows in four dimensions, labelled by whether their norm is above its median."""
    X = np.random.default_rng(5).standard_normal((rows + test_rows, 4))
    norm = np.linalg.norm(X, axis=1)
    y = np.where(norm > np.median(norm), 1.0, -1.0)

    def tables(part: slice) -> dict[str, Table]:
        return {
            f"party{i}": Table(f"party{i}", (f"c{i}",), X[part, i : i + 1].copy(), y[part] if i < 2 else None)
            for i in range(4)
        }

    return Tables("ring", tables(slice(rows)), tables(slice(rows, None)), ("party0", "party1"))


@pytest.mark.parametrize("fraction", ["auto", 0.5])
@pytest.mark.parametrize("active", [1, 2])
def test_bytes_are_what_the_formula_says(active: int, fraction: Any) -> None:
    """Every row and feature once from every party but the owner; then one score per row and round."""
    n, q, B, D, epochs = 96, 4, 32, 64, 5
    setting = random_tables(parties=q, active=active, rows=n)
    done = run(
        setting,
        "fdskl-capped",
        train={"batch": B, "epochs": epochs, "loss": "logistic", "l2": 1e-4},
        kernel={"block": 16, "features": D, "fraction": fraction},
    )
    projections = 2 * (q - 1) * n * D  # 16 bits each
    scores = 8 * (q - 1) * n * epochs if active > 1 else 0
    # every pair of the rows, or 1,024 drawn with replacement, less those of a row with itself
    counted = (n * (n - 1) // 2,) * 2 if fraction == "auto" else (950, 1024)
    least, most = (8 * (q - 1) * count for count in counted)
    sent = done.result.cost.bytes_by_kind
    pieces = 3 * active + (3 * epochs if active > 1 else 0) + 1
    rest = sent["piece"] - projections - scores
    assert least <= rest <= most + 90 * pieces * (q - 1)
    thetas = 8 * n * (active - 1) * (epochs - D / 16 / 3) if active > 1 else 0
    assert 0 <= sent.get("backward", 0) - thetas <= 90 * 3 * epochs * (active - 1)


def test_the_second_pass_sends_less_than_a_quarter_of_asking_again() -> None:
    setting = random_tables(parties=4, active=2, rows=96)

    def sent(epochs: int, cache: bool) -> int:
        return run(
            setting,
            "fdskl-capped",
            train={"batch": 32, "epochs": epochs, "loss": "logistic"},
            kernel={"block": 16, "features": 48, "cache": cache},
        ).result.cost.bytes_sent

    def second_pass(cache: bool) -> int:
        return sent(2, cache) - sent(1, cache)

    assert second_pass(cache=True) < second_pass(cache=False) / 4


def test_there_are_as_many_classes_as_the_job_says_whatever_noise_leaves_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Noise, "response", lambda self, codes, *others: 0 * codes)
    setting = random_tables(parties=2, active=1, classes=3, test_rows=50)
    private = {"mechanism": "labels", "epsilon": 1.0}
    done = run(setting, "fdskl-capped", train={"loss": "softmax", "classes": 3}, privacy=private)
    assert model(done)[2].shape[1:] == (3,)
