"""Quasi-Newton directions: one H over all blocks is the pooled H; blocks with an H of their own get there."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from tests.conversations.linear.test_variance_reduced import SLOW, gap, problem_of
from tests.oracles.lbfgs import DenseLbfgs
from tests.oracles.tables import random_tables, run, weights
from tests.oracles.variance_reduced import QuasiNewton, hessian_times, pooled_svrg

from colonnade import VerticalRegressor
from colonnade.arrays import Floats
from colonnade.conversations.linear.quasi_newton.lbfgs_joint import Joint
from colonnade.conversations.linear.quasi_newton.lbfgs_local import Curvature
from colonnade.data.table import Table
from colonnade.errors import Diverged
from colonnade.run.federate import Finished, Tables

TERMS: dict[str, Any] = {"pairs": "joint", "every": 6, "memory": 4, "step": 0.3}
TRAIN: dict[str, Any] = {"direction": "lbfgs", "epochs": 9, "batch": 20, "step": 0.3, "l2": 0.01}


def quasi_newton(setting: Tables, algorithm: str = "vfb-svrg", **sections: Any) -> Finished:
    train, terms = TRAIN | sections.pop("train", {}), TERMS | sections.pop("direction", {})
    return run(setting, algorithm, direction=terms, train=train, **sections)


@pytest.fixture
def curvatures(monkeypatch: pytest.MonkeyPatch) -> list[Curvature]:
    """Collects every party's `Curvature` that the runs of a test make."""
    made: list[Curvature] = []
    prepare = Curvature.__post_init__

    def noted(self: Curvature) -> None:
        prepare(self)
        made.append(self)

    monkeypatch.setattr(Curvature, "__post_init__", noted)
    return made


class Joints(list[Joint]):
    """Every party's part of a common H, and every vector that was pinned in it, in the order of time."""

    def __init__(self) -> None:
        super().__init__()
        self.noted: dict[str, list[tuple[Floats, float]]] = {}

    def pins(self) -> list[tuple[list[tuple[Floats, Floats]], float]]:
        whole = []
        for parts in zip(*(self.noted[joint.context.me] for joint in self), strict=True):
            vectors = [np.concatenate(each) for each in zip(*(part for part, _ in parts), strict=True)]
            (gamma,) = {gamma for _, gamma in parts}
            whole.append((list(zip(vectors[::2], vectors[1::2], strict=True)), gamma))
        return whole


@pytest.fixture
def joints(monkeypatch: pytest.MonkeyPatch) -> Joints:
    made = Joints()
    prepare, pin = Joint.__post_init__, Joint.pin

    def noted(self: Joint) -> None:
        prepare(self)
        made.append(self)
        made.sort(key=lambda joint: joint.context.me)

    async def noted_pin(self: Joint) -> None:
        await pin(self)
        pinned = self.state.memory.vectors[: 2 * self.state.memory.pinned]
        made.noted.setdefault(self.context.me, []).append((pinned, self.state.memory.gamma))

    monkeypatch.setattr(Joint, "__post_init__", noted)
    monkeypatch.setattr(Joint, "pin", noted_pin)
    return made


# -- one H over all blocks --------------------------------------------------------------------------


def assert_equals_pooled(setting: Tables, done: Finished, joints: Joints) -> None:
    """A run must equal pooled quasi-Newton SVRG with the same pinned directions, which other tests check."""
    terms = done.job.direction
    problem = problem_of(setting, done)
    per_epoch = -(-len(problem.y) // problem.batch)
    pins = dict(zip((0, per_epoch, 3 * per_epoch), joints.pins(), strict=True))
    memory = DenseLbfgs(terms.memory, terms.delta)
    bfgs = QuasiNewton(problem, terms.every or 0, float(terms.step), memory, pins)
    w = pooled_svrg(problem, done.job.train.epochs, bfgs)
    assert len(memory.pairs) == terms.memory  # it has been through more pairs than it keeps
    np.testing.assert_allclose(weights(done), w, atol=1e-6)


@pytest.mark.parametrize("parties", [1, 2, 5])
@pytest.mark.parametrize("world", ["simulated", "local"])
def test_joint_pairs_give_the_pooled_direction_for_any_number_of_parties(
    parties: int, world: str, joints: Joints
) -> None:
    setting = random_tables(parties=parties, active=min(parties, 2))
    assert_equals_pooled(setting, quasi_newton(setting, world=world), joints)


@pytest.mark.parametrize("regularizer", ["l2", "nonconvex"])
@pytest.mark.parametrize("loss", ["logistic", "squared", "smooth_hinge", "softmax"])
def test_joint_pairs_give_the_pooled_direction_for_any_objective(
    loss: str, regularizer: str, joints: Joints
) -> None:
    classes = 3 if loss == "softmax" else None
    setting = random_tables(regression=loss == "squared", classes=classes)
    train = {"loss": loss, "regularizer": regularizer, "classes": classes, "step": 0.1}
    assert_equals_pooled(setting, quasi_newton(setting, train=train), joints)


@pytest.mark.parametrize("secure", ["masked", "tree", "plain"])
def test_joint_pairs_give_the_pooled_direction_with_every_sum(secure: str, joints: Joints) -> None:
    setting = random_tables()
    assert_equals_pooled(setting, quasi_newton(setting, secure={"sum": secure}), joints)


@pytest.mark.parametrize("ahead", [1, 4])
@pytest.mark.parametrize("algorithm", ["vfb2-svrg", "vfb2-saga", "vfb2-sgd"])
def test_all_parties_keep_the_same_table_whatever_their_delays(
    algorithm: str, ahead: int, joints: Joints
) -> None:
    setting = random_tables(rows=200)
    train = {"ahead": ahead, "step": "auto"}
    quasi_newton(setting, algorithm, network=SLOW, train=train, direction={"step": "auto"})
    first, *others = (joint.state.memory for joint in joints)
    assert len(others) == 3
    assert (first.pairs, first.pinned) == (8, 4)
    for memory in others:
        np.testing.assert_array_equal(memory.products, first.products)
        assert memory.gamma == first.gamma
    # and the table is that of the vectors, whose parts never left their parties
    whole = np.hstack([np.array(joint.state.memory.vectors) for joint in joints])
    np.testing.assert_allclose(whole @ whole.T, first.products, atol=1e-7)


@pytest.mark.parametrize("secure", ["masked", "plain"])
def test_joint_pairs_in_fixed_point_go_on_below_its_step(secure: str) -> None:
    """Inner products of tiny vectors would all be rounded to nothing."""
    setting = random_tables(rows=400, columns=20)
    train = {"epochs": 60, "batch": 40, "step": "auto", "l2": 1e-3, "evaluate_every": 0}
    terms = {"step": "auto", "every": 10, "memory": 40}
    done = quasi_newton(setting, secure={"sum": secure}, train=train, direction=terms)
    assert abs(gap(setting, done)) < 1e-14


def test_joint_pairs_are_far_ahead_of_first_order_steps_after_as_many_rounds() -> None:
    setting = random_tables(rows=400, columns=20)
    train = {"epochs": 30, "batch": 40, "step": "auto", "l2": 1e-3, "evaluate_every": 0}
    joint = quasi_newton(setting, train=train, direction={"step": "auto", "every": 10, "memory": 20})
    plain = run(setting, "vfb-svrg", train=train)
    assert joint.result.metrics["suboptimality"] < plain.result.metrics["suboptimality"] / 1000


@pytest.mark.parametrize("ahead", [2, 6])
def test_joint_pairs_with_delays_reach_the_optimum(ahead: int) -> None:
    setting = random_tables(rows=400)
    train = {"ahead": ahead, "step": "auto", "epochs": 40, "batch": 40}
    done = quasi_newton(setting, "vfb2-svrg", network=SLOW, train=train, direction={"step": "auto"})
    assert abs(gap(setting, done)) < 1e-6
    assert done.result.staleness.max > 0


def test_what_curvature_costs_is_in_the_bytes() -> None:
    setting = random_tables()
    plain, joint = run(setting, "vfb-svrg", train={**TRAIN, "direction": "plain"}), quasi_newton(setting)
    assert joint.result.cost.bytes_sent > plain.result.cost.bytes_sent
    # everything rides with the scores, but for 10, 6 and 6 products to find the steepest directions, and one
    # exchange of inner products each time
    assert joint.result.cost.rounds == plain.result.cost.rounds + 11 + 7 + 7


def test_the_steepest_directions_are_those_of_the_pooled_hessian(joints: Joints) -> None:
    setting = random_tables(rows=300, columns=30)
    scale = np.geomspace(3.0, 0.3, 30)
    for table, part in zip(setting.train.values(), np.array_split(scale, 4), strict=True):
        table.X[:] *= part
    done = quasi_newton(setting, train={"epochs": 1})
    ((pairs, gamma),) = joints.pins()
    problem = problem_of(setting, done)
    H = np.array([hessian_times(problem, problem.start(), unit) for unit in np.eye(30)])
    values = np.linalg.eigvalsh(H)[::-1]
    S, Y = (np.array(side) for side in zip(*pairs, strict=True))
    assert len(S) == 4
    np.testing.assert_allclose(S @ S.T, np.eye(4), atol=1e-4)
    np.testing.assert_allclose(Y, S @ H, atol=1e-6)
    np.testing.assert_allclose(np.diag(S @ H @ S.T)[:2], values[:2], rtol=0.05)
    assert gamma == pytest.approx(S[-1] @ H @ S[-1], rel=1e-4)


@pytest.mark.parametrize("memory", [1, 5, 40])
def test_no_memory_is_too_short_for_one_steep_direction(memory: int) -> None:
    """Columns that are never negative, as one-hot ones, have a direction far steeper than all others."""
    setting = random_tables(rows=600, columns=24)
    for table in setting.train.values():
        table.X[:] = table.X > 0.5
    train = {"epochs": 30, "batch": 60, "step": "auto", "l2": 1e-3, "evaluate_every": 0.2}
    terms = {"memory": memory, "step": 0.5, "every": 4}
    losses = [moment.loss for moment in quasi_newton(setting, train=train, direction=terms).result.history]
    best = min(losses)
    above = [loss - best + 1e-5 for loss in losses]
    assert above[-1] < 2e-5
    assert max(b / a for a, b in itertools.pairwise(above)) < 4


# -- every block its own H ----------------------------------------------------------------------------


@pytest.mark.parametrize("pairs", ["hvp", "batch"])
@pytest.mark.parametrize("algorithm", ["vfb-svrg", "vfb2-svrg", "vfb2-saga", "asysqn-svrg", "synsqn-saga"])
def test_local_pairs_from_the_same_rows_reach_the_optimum(
    algorithm: str, pairs: str, curvatures: list[Curvature]
) -> None:
    setting = random_tables(rows=200)
    train = {"step": "auto", "epochs": 60, "l2": 0.05, "evaluate_every": 0}
    terms = {"pairs": pairs, "step": "auto"}
    done = quasi_newton(setting, algorithm, network=SLOW, train=train, direction=terms)
    assert abs(gap(setting, done)) < 1e-6
    assert all(curvature.ready for curvature in curvatures)


@pytest.mark.parametrize("seed", [0, 1])
def test_plain_sgd_ends_no_higher_where_first_order_has_nothing_left_to_gain(seed: int) -> None:
    """Columns of one scale: all that H can add is noise, and it is gone when the run ends."""
    setting = random_tables(parties=2, active=2, rows=400, regression=True)
    train = {"estimator": "sgd", "loss": "squared", "batch": 8, "step": "auto", "epochs": 30}
    plain = run(setting, "fd-svrg", seed=seed, train=train).result.metrics["objective"]
    bent = run(setting, "synsqn-sgd", seed=seed, train=train).result.metrics["objective"]
    assert bent < plain * (1 + 1e-4)


def test_the_pairs_of_two_different_batches_are_noise() -> None:
    """The paper's own pairs: with small batches they end worse than no training at all."""
    setting = random_tables(rows=200)
    train = {"step": "auto", "epochs": 30, "l2": 0.01, "batch": 8, "evaluate_every": 0}
    with pytest.raises(Diverged, match="without any"):
        quasi_newton(setting, "vfb-svrg", train=train, direction={"pairs": "paper", "step": "auto"})
    hvp = quasi_newton(setting, "vfb-svrg", train=train, direction={"pairs": "hvp", "step": "auto"})
    assert gap(setting, hvp) < 1e-3


def test_a_hessian_vector_product_of_one_party_alone_is_the_pooled_pair(
    curvatures: list[Curvature], joints: Joints
) -> None:
    """With a batch of all rows `hvp` and `joint` learn such a y from their s."""
    setting = random_tables(parties=1, active=1, rows=60)
    runs = [
        quasi_newton(
            setting, "vfb-sgd", train={"batch": 60, "epochs": 14}, direction={"pairs": pairs, "memory": 1}
        )
        for pairs in ("hvp", "joint")
    ]
    for memory, done in zip((curvatures[0].memory, joints[0].state.memory), runs, strict=True):
        s, y = memory.vectors[-2:]
        assert np.linalg.norm(s) > 0
        expected = hessian_times(problem_of(setting, done), weights(done), s)
        assert y @ expected / np.linalg.norm(y) / np.linalg.norm(expected) > 0.95


@pytest.mark.parametrize("seed", range(3))
def test_a_column_of_a_few_rows_does_not_lead_an_own_h_astray(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(68, 5))
    X[:, 0] = 0
    X[rng.permutation(68)[:2], 0] = -200  # in most batches nobody knows how steep this is
    y = 230 + 10 * X[:, 1:] @ rng.normal(size=4) + 5 * rng.normal(size=68)
    model = VerticalRegressor("synsqn-saga", parties=4, random_state=0, world="simulated")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y)
    assert model.result_.metrics["objective"] < 16  # the noise alone has 12.5


def tables_alike(rows: int, parties: int = 8) -> Tables:
    """Every party has noisy measurements of the same few things, the later ones the smaller."""
    rng = np.random.default_rng(0)
    sizes = 0.5 ** np.arange(6)
    things = rng.standard_normal((rows, 6)) * sizes
    y = things @ (rng.standard_normal(6) / sizes) + 0.5 * rng.standard_normal(rows)
    columns = tuple(f"c{j}" for j in range(6))
    names = tuple(f"party{i}" for i in range(parties))
    train = {
        name: Table(name, columns, things + 0.3 * sizes * rng.standard_normal(things.shape), y)
        for name in names
    }
    return Tables("alike", train, None, names)


@pytest.mark.parametrize(
    ("algorithm", "batch", "ahead"),
    [("asysqn-svrg", 256, 2), ("asysqn-svrg", 1024, 1), ("vfb2-svrg", 64, 3)],
)
def test_blocks_that_say_the_same_do_not_run_away_with_batches_in_flight(
    algorithm: str, batch: int, ahead: int
) -> None:
    """All blocks take the step that would be right for one, and on scores that are not of now."""
    train = {"batch": batch, "ahead": ahead, "step": "auto", "epochs": 24, "l2": 1e-3, "loss": "squared"}
    network = {"latency_ms": 2.0, "us_per_call": 1e3, "ns_per_value": 0.0, "charge_forward": False}
    terms = {"pairs": "hvp", "step": "auto"}
    parties = 16 if ahead == 1 else 8
    done = quasi_newton(tables_alike(4000, parties), algorithm, network=network, train=train, direction=terms)
    above = [moment.loss - done.result.pooled["objective"] for moment in done.result.history]
    assert max(b / a for a, b in itertools.pairwise(above)) < 1
    assert above[-1] < above[0] / 3
