"""Tuning: the smoothness found through the secure sum is that of the pooled data."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array
from tests.oracles.sgd import BOUNDED_LOSSES, SCALAR_LOSSES

from colonnade.arrays import Floats
from colonnade.conversations.context import Context, Measuring
from colonnade.conversations.linear.settings import LinearSettings
from colonnade.conversations.linear.tune import MARGIN, Tuner
from colonnade.data.table import Table
from colonnade.job import job_from
from colonnade.job.plan import Facts
from colonnade.losses import LOSSES, Loss
from colonnade.net.clock import VirtualClock, run_virtual
from colonnade.net.endpoint import Endpoint
from colonnade.net.local import LocalHub
from colonnade.net.simulated import SimulatedHub
from colonnade.optim.steps import Smoothness
from colonnade.run.resolve import compose, resolve
from colonnade.secure.masked import MaskedSum

Runner = Callable[[Coroutine[Any, Any, list[Smoothness]]], list[Smoothness]]


def tuned(
    blocks: list[Any],
    loss: Loss,
    penalty: float = 0.0,
    *,
    y: Floats | None = None,
    weights: tuple[list[Floats], ...] = (),
    simulated: bool = False,
    seed: int = 0,
) -> list[Smoothness]:
    """The smoothness that every party finds: the bound for any weights first, then at each of these."""
    names = tuple(f"p{i}" for i in range(len(blocks)))
    rows = blocks[0].shape[0]
    hub: LocalHub | SimulatedHub = SimulatedHub() if simulated else LocalHub()
    runner: Runner = run_virtual if simulated else asyncio.run
    job = job_from(
        {
            "algorithm": "vfb2-sgd",
            "seed": seed,
            "data": {"train": "x", "parties": len(names)},
            "train": {"loss": loss.name, "l2": penalty},
        }
    )

    columns_of = {name: block.shape[1] for name, block in zip(names, blocks, strict=True)}
    facts = Facts(columns=columns_of, label_holders=(names[-1],), rows=rows, task=loss.task, classes=2)
    plan = resolve(compose(job), facts)

    async def main() -> list[Smoothness]:
        ends = [Endpoint(name, names, hub.wire(name), VirtualClock(), run=1) for name in names]

        async def one(i: int) -> Smoothness:
            secrets = {peer: bytes([min(i, j), max(i, j)] * 16) for j, peer in enumerate(names) if j != i}
            secure = MaskedSum(ends[i], secrets)
            label = (np.ones(rows) if y is None else y) if i == len(names) - 1 else None
            columns = tuple(f"c{j}" for j in range(blocks[i].shape[1]))
            context: Context[LinearSettings] = Context(
                plan=plan,
                net=ends[i],
                sum=secure,
                measuring=Measuring(ends[i], secure),
                train=Table(names[i], columns, blocks[i], label),
            )
            tuner = Tuner(context, np.arange(rows))
            found = await tuner.measure(np.zeros(blocks[i].shape[1]), first=True)
            for w in weights:
                found = await tuner.measure(w[i])
            return found

        found = await asyncio.gather(*(one(i) for i in range(len(names))))
        for end in ends:
            await end.close()
        return found

    return runner(main())


def split(X: Floats, parties: int) -> list[Floats]:
    return [X[:, part] for part in np.array_split(np.arange(X.shape[1]), parties)]


def largest_eigenvalue(X: Floats, curvature: Floats | float = 1.0) -> float:
    weighted = X * np.broadcast_to(curvature, len(X))[:, None]
    return float(np.linalg.eigvalsh(X.T @ weighted / len(X))[-1])


# -- a bound, whatever the weights ------------------------------------------------------------------


@pytest.mark.parametrize("simulated", [False, True], ids=["local", "simulated"])
@pytest.mark.parametrize("parties", [1, 2, 3, 4, 5])
def test_the_smoothness_found_is_the_pooled_one(parties: int, simulated: bool) -> None:
    rng = np.random.default_rng(parties)
    X = rng.standard_normal((200, 15)) + 1.0  # a common mean sets the first eigenvalue apart
    for loss in BOUNDED_LOSSES.values():
        found = tuned(split(X, parties), loss, 0.01, simulated=simulated)
        exact = loss.smoothness * MARGIN * largest_eigenvalue(X) + 0.01
        assert all(one == found[0] for one in found)
        assert found[0].mean == pytest.approx(exact, rel=1e-4)


@pytest.mark.parametrize("seed", range(6))
def test_without_a_gap_between_eigenvalues_the_estimate_stays_within_the_margin(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((60, 20)) * (rng.random((60, 20)) < 0.5)
    (found, *_) = tuned([csr_array(block) for block in split(X, 3)], LOSSES["squared"], seed=seed)
    # the Rayleigh quotient never exceeds the eigenvalue
    assert 0.93 * largest_eigenvalue(X) <= found.mean <= MARGIN * largest_eigenvalue(X) * (1 + 1e-6)


@pytest.mark.parametrize("parties", [1, 3])
def test_the_worst_row_is_bounded_from_above_and_exact_for_one_party(parties: int) -> None:
    X = np.random.default_rng(0).standard_normal((50, 6))
    (found, *_) = tuned(split(X, parties), LOSSES["squared"])
    worst = float((X**2).sum(axis=1).max())
    assert found.worst_row >= worst * (1 - 1e-6)
    assert found.worst_row >= found.mean
    if parties == 1:
        assert found.worst_row == pytest.approx(worst, rel=1e-6)


@pytest.mark.parametrize("scale", [1e-4, 1e-2, 1.0, 1e2])
def test_the_scale_of_the_columns_does_not_spoil_the_estimate(scale: float) -> None:
    X = scale * (np.random.default_rng(1).standard_normal((100, 8)) + 1.0)
    (found, *_) = tuned(split(X, 3), LOSSES["squared"])
    assert found.mean == pytest.approx(MARGIN * largest_eigenvalue(X), rel=1e-2)


def test_columns_of_nothing_but_zeros_leave_the_penalty_alone() -> None:
    (found, *_) = tuned(split(np.zeros((10, 4)), 2), LOSSES["logistic"], 0.25)
    assert (found.mean, found.worst_row) == (0.25, 0.25)


# -- what is really there, at the weights of now ----------------------------------------------------


def labels(rng: np.random.Generator, rows: int) -> Floats:
    return rng.choice([-1.0, 1.0], rows)


@pytest.mark.parametrize("simulated", [False, True], ids=["local", "simulated"])
@pytest.mark.parametrize("parties", [1, 3, 5])
@pytest.mark.parametrize("name", sorted(SCALAR_LOSSES))
def test_at_given_weights_it_is_the_largest_eigenvalue_of_the_hessian_there(
    name: str, parties: int, simulated: bool
) -> None:
    rng = np.random.default_rng(parties)
    X, loss = rng.standard_normal((200, 15)) + 1.0, LOSSES[name]
    y, w = labels(rng, 200), rng.standard_normal(15)
    found = tuned(
        split(X, parties),
        loss,
        0.01,
        y=y,
        weights=([part[0] for part in split(w[None], parties)],) * 2,
        simulated=simulated,
    )
    h, z = 1e-5, X @ w
    second = (loss.dz(z + h, y) - loss.dz(z - h, y)) / (2 * h)
    if name == "smooth_hinge":  # rows cross its kinks, so its bound is all that is sure
        second = np.ones(200)
    assert all(one == found[0] for one in found)
    assert found[0].mean == pytest.approx(MARGIN * largest_eigenvalue(X, second) + 0.01, rel=1e-3)


@pytest.mark.parametrize("parties", [1, 3])
def test_at_given_weights_softmax_is_bounded_by_what_is_found_and_not_by_far(parties: int) -> None:
    rng = np.random.default_rng(parties)
    n, d, K = 200, 6, 4
    X, loss = rng.standard_normal((n, d)) + 1.0, LOSSES["softmax"]
    w, y = rng.standard_normal((d, K)), rng.integers(0, K, n).astype(np.float64)
    blocks = [w[part] for part in np.array_split(np.arange(d), parties)]
    found = tuned(split(X, parties), loss, y=y, weights=(blocks,) * 2)
    theta = loss.dz(X @ w, y)
    H = np.array([(X.T @ loss.bend(theta, X @ e.reshape(d, K)) / n).ravel() for e in np.eye(d * K)])
    exact = float(np.linalg.eigvalsh(H)[-1])
    assert exact <= found[0].mean <= 2.5 * exact
    assert found[0].mean <= tuned(split(X, parties), loss)[0].mean


def test_where_every_row_is_right_by_far_the_step_may_be_much_larger() -> None:
    rng = np.random.default_rng(0)
    X, w = rng.standard_normal((200, 6)), 10 * rng.standard_normal(6)
    y = np.where(X @ w >= 0, 1.0, -1.0)
    bound, there = (
        tuned(split(X, 2), LOSSES["logistic"], y=y, weights=at)[0]
        for at in ((), ([part[0] for part in split(w[None], 2)],))
    )
    assert there.mean < bound.mean / 3
    assert there.worst_row == bound.worst_row  # the next row may be one that is wrong
