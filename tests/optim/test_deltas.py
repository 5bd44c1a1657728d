"""Deltas: exact by coordinate, unbiased along random directions, and never another batch's directions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from colonnade.losses import LOSSES
from colonnade.models.blackbox import Linear, Model, Sum
from colonnade.models.network import mlp
from colonnade.optim.deltas import Deltas, DeltasClient, DeltasServer
from colonnade.optim.replies import GradientClient, GradientServer, Head
from colonnade.regularizers import REGULARIZERS

ROWS, OWN, WIDTH = 6, slice(2, 5), 7


def head_of(model: Model, classes: bool = False) -> Head:
    loss = LOSSES["softmax" if classes else "logistic"]
    rng = np.random.default_rng(0)
    return Head(model, loss, model.initial(rng) + 0.1 * rng.standard_normal(model.parameters))


def batch(classes: bool = False) -> tuple[Any, Any]:
    rng = np.random.default_rng(1)
    y = rng.integers(0, 3, ROWS).astype(float) if classes else rng.choice([-1.0, 1.0], ROWS)
    return rng.standard_normal((ROWS, WIDTH)), y


def estimate(deltas: Deltas, head: Head, number: int, classes: bool = False) -> Any:
    C, y = batch(classes)
    reply = DeltasServer(head, deltas).answer(C, OWN, C[None, :, OWN], y, (0, number))
    assert reply.shape == deltas.shape(ROWS, 3)
    return deltas.gradient(reply, deltas.draw((0, number), ROWS, 3))


def gradient(head: Head, classes: bool = False) -> Any:
    C, y = batch(classes)
    return GradientServer(head).answer(C, OWN, C[None, :, OWN], y)


HEADS: dict[str, tuple[Model, bool]] = {
    "linear": (Linear(WIDTH, 1, bias=True, start=1.0), False),
    "classes": (mlp(WIDTH, (5,), 3, "float64"), True),
    "deep": (mlp(WIDTH, (6, 4), 1, "float64"), False),
}


@pytest.mark.parametrize("name", HEADS)
def test_by_coordinate_deltas_are_the_gradient(name: str) -> None:
    model, classes = HEADS[name]
    head = head_of(model, classes)
    found = estimate(Deltas("coordinate", 0, 1e-4, per="sample"), head, 0, classes)
    np.testing.assert_allclose(found, gradient(head, classes), atol=1e-7)


@pytest.mark.parametrize("two_sided", [False, True])
@pytest.mark.parametrize("per", ["batch", "sample"])
@pytest.mark.parametrize("directions", ["gaussian", "sphere", "rademacher"])
def test_the_mean_of_many_estimates_is_the_gradient(directions: Any, per: Any, two_sided: bool) -> None:
    head = head_of(*HEADS["classes"])
    deltas, rounds = Deltas(directions, 50, 1e-5, two_sided, per), 120
    found = np.array([estimate(deltas, head, number, classes=True) for number in range(rounds)])
    true = gradient(head, classes=True)
    spread = found.std(axis=0) / rounds**0.5
    assert (np.abs(found.mean(axis=0) - true) < 4.5 * spread + 1e-5).all()
    # the known error of one estimate: sqrt(d / K), d of a batch or of a row
    d = ROWS * 3 if per == "batch" else 3
    error = np.sqrt(((found - true) ** 2).sum(axis=(1, 2)).mean() / (true**2).sum())
    assert 0.6 * ((d - 1) / 50) ** 0.5 < error < 1.4 * ((d + 1) / 50) ** 0.5


def test_the_two_sided_estimate_has_its_half() -> None:
    head = head_of(Linear(WIDTH, 1, start=1.0))
    one, two = (
        estimate(Deltas("gaussian", 3, 1e-6, two_sided, "batch"), head, 5) for two_sided in (False, True)
    )
    np.testing.assert_allclose(one, two, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize(
    "deltas",
    [Deltas("coordinate", 0, 1e-5, per="sample"), Deltas("sphere", 3000, 1e-5, True, "sample")],
    ids=["coordinate", "many"],
)
def test_a_client_steps_along_the_gradient_reply_in_the_limit(deltas: Deltas) -> None:
    rng = np.random.default_rng(3)
    model, X, (C, y) = mlp(4, (5,), 3, "float64"), rng.standard_normal((ROWS, 4)), batch()
    w, head, l2 = model.initial(rng), head_of(*HEADS["deep"]), REGULARIZERS["l2"]
    exact, near = GradientClient(model, l2, 1e-3), DeltasClient(model, l2, 1e-3, deltas)
    C[:, OWN] = model.forward(w[None], X)[0]
    due = exact.gradient(exact.ask(w, X), GradientServer(head).answer(C, OWN, C[None, :, OWN], y))
    query = near.ask(w, X, (7, 1))
    values = DeltasServer(head, deltas).answer(C, OWN, query.outputs, y, (7, 1))
    assert values.shape == near.reply_shape(query)
    found = near.gradient(query, values)
    assert np.linalg.norm(found - due) < (1e-6 if deltas.count == 0 else 0.06) * np.linalg.norm(due)


def test_directions_are_those_of_the_round() -> None:
    deltas = Deltas("rademacher", 4)
    one, same, other = (deltas.draw((0, number), 5, 2) for number in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert (one != other).any()
    assert set(np.unique(one)) == {-1.0, 1.0}
    assert np.linalg.norm(Deltas("sphere", 4).draw((0,), 5, 2), axis=(1, 2)) == pytest.approx(1)
    assert np.linalg.norm(Deltas("sphere", 4, per="sample").draw((0,), 5, 2), axis=2) == pytest.approx(1)


@pytest.mark.parametrize(
    "model",
    [
        Linear(WIDTH, 3, bias=True, start=1.0),
        Sum(9, 3),
        mlp(WIDTH, (), 2, "float64"),
        mlp(WIDTH, (4, 3), 2, "float64"),
    ],
    ids=["linear", "sum", "one layer", "three layers"],
)
def test_exchanging_one_clients_columns_is_evaluating_again(model: Any) -> None:
    rng = np.random.default_rng(4)
    own = slice(3, 6)
    C = rng.standard_normal((ROWS, 9 if isinstance(model, Sum) else WIDTH))
    outputs, w = rng.standard_normal((5, ROWS, 3)), rng.standard_normal(model.parameters)
    model.initial(rng)
    found = model.forward_replaced(w, C, own, outputs)
    for k in range(5):
        naive = C.copy()
        naive[:, own] = outputs[k]
        np.testing.assert_allclose(found[k], model.forward(w[None], naive)[0], atol=1e-12)


@pytest.mark.parametrize("per", ["batch", "sample"])
def test_a_client_that_knows_its_directions_solves_for_the_gradient_and_the_labels(per: Any) -> None:
    """So the randomness of the directions is no privacy mechanism, whatever the paper computes from it."""
    head, (C, y) = head_of(Sum(WIDTH, 1)), batch()
    own, enough = slice(2, 3), ROWS if per == "batch" else 1
    deltas = Deltas("gaussian", enough, 1e-6, two_sided=True, per=per)
    reply = DeltasServer(head, deltas).answer(C, own, C[None, :, own], y, (0, 1))
    u = deltas.draw((0, 1), ROWS, 1)[:, :, 0].astype(np.float64)
    solved = np.linalg.solve(u, reply) if per == "batch" else reply[0] / u[0]
    true = GradientServer(head).answer(C, own, C[None, :, own], y)[:, 0]
    np.testing.assert_allclose(solved, true, atol=1e-6)
    np.testing.assert_array_equal(-np.sign(solved), y)
