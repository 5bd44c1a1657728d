"""Quasi-Newton directions: one H over all blocks is the pooled H; blocks with an H of their own get there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.conversations.test_variance_reduced import SLOW, gap, problem_of
from tests.oracles.lbfgs import DenseLbfgs
from tests.oracles.tables import random_setting, run, weights
from tests.oracles.variance_reduced import QuasiNewton, pooled_svrg

from colonnade.conversations.direction import Curvature
from colonnade.federation import Run, Setting

Floats = NDArray[np.float64]
TERMS: dict[str, Any] = {"pairs": "joint", "every": 6, "memory": 4, "step": 0.3}
TRAIN: dict[str, Any] = {"direction": "lbfgs", "epochs": 9, "batch": 20, "step": 0.3, "l2": 0.01}


def quasi_newton(setting: Setting, algorithm: str = "vfb-svrg", **sections: Any) -> Run:
    train, terms = TRAIN | sections.pop("train", {}), TERMS | sections.pop("direction", {})
    return run(setting, algorithm, direction=terms, train=train, **sections)


@pytest.fixture
def curvatures(monkeypatch: pytest.MonkeyPatch) -> list[Curvature]:
    """Every party's curvature, as the runs of a test make them."""
    made: list[Curvature] = []
    prepare = Curvature.__post_init__

    def noted(self: Curvature) -> None:
        prepare(self)
        made.append(self)

    monkeypatch.setattr(Curvature, "__post_init__", noted)
    return made


# -- one H over all blocks --------------------------------------------------------------------------


def assert_equals_pooled(setting: Setting, done: Run) -> None:
    terms = done.job.direction
    problem = problem_of(setting, done)
    bfgs = QuasiNewton(problem, terms.every or 0, float(terms.step), DenseLbfgs(terms.memory, terms.delta))
    w = pooled_svrg(problem, done.job.train.epochs, bfgs)
    assert len(bfgs.memory.pairs) == terms.memory  # it has been through more pairs than it keeps
    np.testing.assert_allclose(weights(done), w, atol=1e-6)


@pytest.mark.parametrize("parties", [1, 2, 5])
@pytest.mark.parametrize("world", ["simulated", "local"])
def test_joint_pairs_give_the_pooled_direction_for_any_number_of_parties(parties: int, world: str) -> None:
    setting = random_setting(parties=parties, active=min(parties, 2))
    assert_equals_pooled(setting, quasi_newton(setting, world=world))


@pytest.mark.parametrize("regularizer", ["l2", "nonconvex"])
@pytest.mark.parametrize("loss", ["logistic", "squared", "smooth_hinge", "softmax"])
def test_joint_pairs_give_the_pooled_direction_for_any_objective(loss: str, regularizer: str) -> None:
    classes = 3 if loss == "softmax" else None
    setting = random_setting(regression=loss == "squared", classes=classes)
    train = {"loss": loss, "regularizer": regularizer, "classes": classes, "step": 0.1}
    assert_equals_pooled(setting, quasi_newton(setting, train=train))


@pytest.mark.parametrize("secure", ["masked", "tree", "plain"])
def test_joint_pairs_give_the_pooled_direction_with_every_sum(secure: str) -> None:
    setting = random_setting()
    assert_equals_pooled(setting, quasi_newton(setting, secure={"sum": secure}))


@pytest.mark.parametrize("ahead", [1, 4])
@pytest.mark.parametrize("algorithm", ["vfb2-svrg", "vfb2-saga", "vfb2-sgd"])
def test_all_parties_keep_the_same_table_whatever_their_delays(
    algorithm: str, ahead: int, curvatures: list[Curvature]
) -> None:
    setting = random_setting(rows=200)
    train = {"ahead": ahead, "step": "auto"}
    quasi_newton(setting, algorithm, network=SLOW, train=train, direction={"step": "auto"})
    first, *others = (curvature.memory for curvature in curvatures)
    assert len(others) == 3
    assert first.pairs == 4
    for memory in others:
        np.testing.assert_array_equal(memory.products, first.products)
        assert memory.gamma == first.gamma
    # and the table is that of the vectors, whose parts never left their parties
    whole = np.hstack([np.array(curvature.memory.vectors) for curvature in curvatures])
    np.testing.assert_allclose(whole @ whole.T, first.products, atol=1e-7)


@pytest.mark.parametrize("secure", ["masked", "plain"])
def test_joint_pairs_in_fixed_point_go_on_below_its_step(secure: str) -> None:
    """Inner products of tiny vectors would all be rounded to nothing."""
    setting = random_setting(rows=400, columns=20)
    train = {"epochs": 60, "batch": 40, "step": "auto", "l2": 1e-3, "evaluate_every": 0}
    terms = {"step": "auto", "every": 10, "memory": 40}
    done = quasi_newton(setting, secure={"sum": secure}, train=train, direction=terms)
    assert abs(gap(setting, done)) < 1e-14


def test_joint_pairs_are_far_ahead_of_first_order_steps_after_as_many_rounds() -> None:
    setting = random_setting(rows=400, columns=20)
    train = {"epochs": 30, "batch": 40, "step": "auto", "l2": 1e-3, "evaluate_every": 0}
    joint = quasi_newton(setting, train=train, direction={"step": "auto", "every": 10, "memory": 20})
    plain = run(setting, "vfb-svrg", train=train)
    assert joint.result.metrics["suboptimality"] < plain.result.metrics["suboptimality"] / 1000


@pytest.mark.parametrize("ahead", [2, 6])
def test_joint_pairs_with_delays_reach_the_optimum(ahead: int) -> None:
    setting = random_setting(rows=400)
    train = {"ahead": ahead, "step": "auto", "epochs": 40, "batch": 40}
    done = quasi_newton(setting, "vfb2-svrg", network=SLOW, train=train, direction={"step": "auto"})
    assert abs(gap(setting, done)) < 1e-6
    assert done.result.staleness.max > 0


def test_what_curvature_costs_is_in_the_bytes() -> None:
    setting = random_setting()
    plain, joint = run(setting, "vfb-svrg", train={**TRAIN, "direction": "plain"}), quasi_newton(setting)
    assert joint.result.cost.bytes_sent > plain.result.cost.bytes_sent
    assert joint.result.cost.messages > plain.result.cost.messages


# -- every block its own H ----------------------------------------------------------------------------


@pytest.mark.parametrize("pairs", ["hvp", "batch"])
@pytest.mark.parametrize("algorithm", ["vfb-svrg", "vfb2-svrg", "vfb2-saga", "asysqn-svrg", "synsqn-saga"])
def test_local_pairs_from_the_same_rows_reach_the_optimum(
    algorithm: str, pairs: str, curvatures: list[Curvature]
) -> None:
    setting = random_setting(rows=200)
    train = {"step": "auto", "epochs": 60, "l2": 0.05, "evaluate_every": 0}
    terms = {"pairs": pairs, "step": "auto"}
    done = quasi_newton(setting, algorithm, network=SLOW, train=train, direction=terms)
    assert abs(gap(setting, done)) < 1e-6
    assert all(curvature.ready for curvature in curvatures)


def test_the_pairs_of_two_different_batches_are_noise() -> None:
    """The paper's own pairs: with small batches they do worse than no pairs at all."""
    setting = random_setting(rows=200)
    train = {"step": "auto", "epochs": 30, "l2": 0.01, "batch": 8, "evaluate_every": 0}
    paper, hvp = (
        quasi_newton(setting, "vfb-svrg", train=train, direction={"pairs": pairs, "step": "auto"})
        for pairs in ("paper", "hvp")
    )
    assert gap(setting, paper) > 100 * abs(gap(setting, hvp))


def test_a_hessian_vector_product_of_one_party_alone_is_the_pooled_pair(curvatures: list[Curvature]) -> None:
    """With a batch of all rows `hvp` and `joint` learn the same y from the same s."""
    setting = random_setting(parties=1, active=1, rows=60)
    for pairs in ("hvp", "joint"):
        quasi_newton(
            setting, "vfb-sgd", train={"batch": 60, "epochs": 14}, direction={"pairs": pairs, "memory": 1}
        )
    (s, y), (also_s, also_y) = (curvature.memory.vectors for curvature in curvatures)
    H = problem_hessian(setting)
    for a, b in ((s, y), (also_s, also_y)):
        assert np.linalg.norm(a) > 0
        cosine = b @ (H @ a) / np.linalg.norm(b) / np.linalg.norm(H @ a)
        assert cosine > 0.99


def problem_hessian(setting: Setting) -> Floats:
    """Of the logistic loss near the weights of such a short run."""
    (table,) = setting.train.values()
    assert table.y is not None
    done = run(setting, "vfb-sgd", train={"batch": 60, "epochs": 13, "step": 0.3, "l2": 0.01})
    p = 1 / (1 + np.exp(-(table.X @ weights(done))))
    hessian: Floats = table.X.T @ (table.X * (p * (1 - p))[:, None]) / table.rows + 0.01 * np.eye(table.width)
    return hessian
