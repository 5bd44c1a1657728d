"""Deltas: exact by coordinate, unbiased along random directions, and never another batch's directions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from colonnade.losses import LOSSES
from colonnade.models.blackbox import Linear, Model, Sum
from colonnade.models.network import NeuralNetwork, mlp
from colonnade.optim.deltas import Deltas, DeltasClient, DeltasServer
from colonnade.optim.replies import GradientClient, GradientServer, Head
from colonnade.regularizers import REGULARIZERS, Penalty

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
@pytest.mark.parametrize(("per", "shared"), [("batch", True), ("batch", False), ("sample", True)])
@pytest.mark.parametrize("directions", ["gaussian", "sphere", "rademacher"])
def test_the_mean_of_many_estimates_is_the_gradient(
    directions: Any, per: Any, shared: bool, two_sided: bool
) -> None:
    head = head_of(*HEADS["classes"])
    deltas, rounds = Deltas(directions, 50, 1e-5, two_sided, per, shared), 120
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
    w, head, l2 = model.initial(rng), head_of(*HEADS["deep"]), Penalty(REGULARIZERS["l2"], 1e-3)
    exact, near = GradientClient(model, l2), DeltasClient(model, l2, deltas)
    C[:, OWN] = model.forward(w[None], X)[0]
    due = exact.gradient(exact.ask(w, X), GradientServer(head).answer(C, OWN, C[None, :, OWN], y))
    query = near.ask(w, X, (7, 1))
    values = DeltasServer(head, deltas).answer(C, OWN, query.outputs, y, (7, 1))
    assert values.shape == near.reply_shape(query)
    found = near.gradient(query, values)
    assert np.linalg.norm(found - due) < (1e-6 if deltas.count == 0 else 0.06) * np.linalg.norm(due)


def dense(deltas: Deltas, seed: Any, rows: int, d: int) -> Any:
    """u [K, rows, d], the long way: what evaluation k does to every row."""
    moves, K, own = deltas.draw(seed, rows, d), deltas.count, not deltas.factored
    u = np.empty((K, rows, d))
    for k in range(K):
        for b in range(rows):
            j = k if own else (k + b) % K
            # the first point is unmoved
            u[k, b] = moves.steps[1 + j, b] / deltas.mu * moves.bases[1 + j, b if own else 0]
    return u


def test_directions_are_those_of_the_round() -> None:
    deltas = Deltas("rademacher", 4)
    one, same, other = (dense(deltas, (0, number), 5, 2) for number in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert (one != other).any()
    np.testing.assert_allclose(np.abs(one), 1.0, rtol=1e-6)
    assert np.linalg.norm(dense(Deltas("sphere", 4), (0,), 5, 2), axis=(1, 2)) == pytest.approx(1)
    assert np.linalg.norm(dense(Deltas("sphere", 4, per="sample"), (0,), 5, 2), axis=2) == pytest.approx(1)
    independent = Deltas("sphere", 4, shared_bases=False)
    assert np.linalg.norm(dense(independent, (0,), 5, 2), axis=(1, 2)) == pytest.approx(1)


def test_without_shared_bases_rows_have_directions_of_their_own() -> None:
    shared, own = (dense(Deltas("gaussian", 4, shared_bases=each), (0,), 9, 2) for each in (True, False))
    different = [len(np.unique(np.abs(u).reshape(-1, 2).round(6), axis=0)) for u in (shared, own)]
    assert different == [4, 4 * 9]


@pytest.mark.parametrize("two_sided", [False, True])
@pytest.mark.parametrize(("per", "shared"), [("batch", True), ("batch", False), ("sample", True)])
@pytest.mark.parametrize("name", [*HEADS, "sum", "convolution"])
def test_factored_moves_are_the_differences_of_the_loss_along_every_direction(
    name: str, per: Any, shared: bool, two_sided: bool
) -> None:
    """More rows than directions, so that rows share bases; the last server knows nothing of moves."""
    extra: dict[str, tuple[Model, bool]] = {
        "sum": (Sum(9, 3), True),
        "convolution": (NeuralNetwork(Convolution(), (1, WIDTH), "float64"), True),
    }
    model, classes = (HEADS | extra)[name]
    head, (C, y) = head_of(model, classes), batch(classes)
    if name == "sum":
        C = np.random.default_rng(2).standard_normal((ROWS, 9))
    own = slice(3, 6) if name == "sum" else OWN
    deltas = Deltas("gaussian", 4, 1e-3, two_sided, per, shared)
    reply = DeltasServer(head, deltas).answer(C, own, C[None, :, own], y, (0, 1))
    u = dense(deltas, (0, 1), ROWS, 3)

    def losses(h: Any) -> Any:
        moved = C.copy()
        moved[:, own] = h
        return head.losses(head.w[None], moved, y)[0]

    h, mu = C[:, own], deltas.mu
    for k in range(4):
        near = losses(h - mu * u[k]) if two_sided else losses(h)
        slopes = (losses(h + mu * u[k]) - near) / (2 * mu if two_sided else mu)
        due = slopes.mean() if per == "batch" else slopes / ROWS
        np.testing.assert_allclose(reply[k], due, atol=1e-7)
    phi = np.einsum("k,kbd->bd", reply, u) if per == "batch" else np.einsum("kb,kbd->bd", reply, u)
    found = deltas.gradient(reply, deltas.draw((0, 1), ROWS, 3))
    np.testing.assert_allclose(found, phi / 4, rtol=1e-5, atol=1e-6)


class Convolution(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Conv1d(1, 2, 3), torch.nn.Tanh(), torch.nn.Flatten())
        self.last = torch.nn.Linear(2 * (WIDTH - 2), 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.last(self.layers(x))
        return found


@pytest.mark.parametrize("K", [3, 8], ids=["more rows than bases", "more bases than rows"])
@pytest.mark.parametrize("directions", ["gaussian", "sphere", "rademacher"])
def test_shared_bases_err_as_much_as_directions_of_their_own(directions: Any, K: int) -> None:
    """Of a linear function, for which E|error|^2 of independent directions is known in closed form.

    Rows that meet the same base in one evaluation (only with more rows than bases) have Gaussian fourth
    moments in common: (d + 2) instead of d for each such pair.
    """
    rows, d, rounds = 6, 4, 6000
    g = np.random.default_rng(1).standard_normal((rows, d)) * np.arange(1, rows + 1)[:, None]
    deltas = Deltas(directions, K)
    errors = np.empty((rounds, rows, d))
    for number in range(rounds):
        moves = deltas.draw((9, number), rows, d)
        along = moves.steps[1:] / deltas.mu * (moves.bases[1:, 0] @ g.T)  # [bases, rows]
        reply = np.array([sum(along[(k + b) % K, b] for b in range(rows)) for k in range(K)])
        errors[number] = deltas.gradient(reply, moves) - g
    own = {"gaussian": d + 1, "sphere": d - 1, "rademacher": d - 1}[directions]
    sizes = (g**2).sum(axis=1)
    meets = (np.arange(rows)[:, None] - np.arange(rows)) % K == 0
    pairs = np.where(meets & (directions == "gaussian"), d + 2, d)
    np.fill_diagonal(pairs, own)
    found = (errors**2).sum(axis=2)
    spread = found.std(axis=0) / rounds**0.5
    assert (np.abs(found.mean(axis=0) - pairs @ sizes / K) < 4.5 * spread).all()
    assert (np.abs(errors.mean(axis=0)) < 4.5 * errors.std(axis=0) / rounds**0.5).all()
    if rows < K:  # then nothing tells them from independent draws
        independent = (rows * d + (own - d)) / K * sizes.sum()
        assert found.sum(axis=1).mean() == pytest.approx(independent, rel=0.1)


@pytest.mark.parametrize(("alike", "low", "high"), [(True, 1.75, 2.1), (False, 0.85, 1.05)])
def test_shared_bases_at_most_double_the_error_of_a_weight_gradient(
    alike: bool, low: float, high: float
) -> None:
    """sum_b J_b' error_b: a row's own term (V'V / K - I) g_b is the same for all rows and adds up.

    At worst, where all rows have one J and one g, it is as large as the terms between rows. Where the
    gradients of rows cancel, as labels of several classes make them, it vanishes.
    """
    rows, d, K, rounds = 16, 8, 32, 1500
    rng = np.random.default_rng(5)
    g = np.ones((rows, d)) if alike else rng.standard_normal((rows, d))
    g = g if alike else g - g.mean(axis=0)
    deltas, shared, apart = Deltas("gaussian", K), [], []
    for number in range(rounds):
        moves = deltas.draw((3, number), rows, d)
        along = moves.steps[1:] / deltas.mu * (moves.bases[1:, 0] @ g.T)
        j = (np.arange(K)[:, None] + np.arange(rows)) % K
        found = deltas.gradient(along[j, np.arange(rows)].sum(axis=1), moves)
        shared.append(((found - g).sum(axis=0) ** 2).sum())
        u = rng.standard_normal((K, rows, d))
        each = np.einsum("k,kbd->bd", np.einsum("kbd,bd->k", u, g), u) / K
        apart.append(((each - g).sum(axis=0) ** 2).sum())
    assert low < np.mean(shared) / np.mean(apart) < high


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
    u = dense(deltas, (0, 1), ROWS, 1)[:, :, 0]
    solved = np.linalg.solve(u, reply) if per == "batch" else reply[0] / u[0]
    true = GradientServer(head).answer(C, own, C[None, :, own], y)[:, 0]
    np.testing.assert_allclose(solved, true, atol=1e-6)
    np.testing.assert_array_equal(-np.sign(solved), y)
