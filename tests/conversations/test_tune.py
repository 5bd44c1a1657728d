"""Tuning: the smoothness found through the secure sum is that of the pooled data."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_array
from tests.oracles.sgd import SCALAR_LOSSES

from colonnade.conversations.tune import MARGIN, smoothness
from colonnade.losses import LOSSES, Loss
from colonnade.net.clock import VirtualClock
from colonnade.net.local import LocalHub
from colonnade.net.mailbox import Endpoint
from colonnade.net.simulated import SimulatedHub
from colonnade.net.virtual import run_virtual
from colonnade.optim.steps import Smoothness
from colonnade.secure.masked import MaskedSum

Floats = NDArray[np.float64]
Runner = Callable[[Coroutine[Any, Any, list[Smoothness]]], list[Smoothness]]


def tuned(
    blocks: list[Any], loss: Loss, penalty: float, *, simulated: bool = False, seed: int = 0
) -> list[Smoothness]:
    """What every party finds."""
    names = tuple(f"p{i}" for i in range(len(blocks)))
    hub: LocalHub | SimulatedHub = SimulatedHub() if simulated else LocalHub()
    runner: Runner = run_virtual if simulated else asyncio.run

    async def main() -> list[Smoothness]:
        ends = [Endpoint(name, names, hub.wire(name), VirtualClock(), run=1) for name in names]

        async def one(i: int) -> Smoothness:
            secrets = {peer: bytes([min(i, j), max(i, j)] * 16) for j, peer in enumerate(names) if j != i}
            return await smoothness(
                ends[i],
                MaskedSum(ends[i], secrets),
                blocks[i],
                loss=loss,
                penalty=penalty,
                root=names[-1],
                rng=np.random.default_rng([seed, i]),
                sample=np.arange(blocks[0].shape[0]),
            )

        found = await asyncio.gather(*(one(i) for i in range(len(names))))
        for end in ends:
            await end.close()
        return found

    return runner(main())


def split(X: Floats, parties: int) -> list[Floats]:
    return [X[:, part] for part in np.array_split(np.arange(X.shape[1]), parties)]


def largest_eigenvalue(X: Floats) -> float:
    return float(np.linalg.eigvalsh(X.T @ X / len(X))[-1])


@pytest.mark.parametrize("simulated", [False, True], ids=["local", "simulated"])
@pytest.mark.parametrize("parties", [1, 2, 3, 4, 5])
def test_the_smoothness_found_is_the_pooled_one(parties: int, simulated: bool) -> None:
    rng = np.random.default_rng(parties)
    X = rng.standard_normal((200, 15)) + 1.0  # a common mean sets the first eigenvalue apart
    for loss in SCALAR_LOSSES.values():
        found = tuned(split(X, parties), loss, 0.01, simulated=simulated)
        exact = loss.smoothness * MARGIN * largest_eigenvalue(X) + 0.01
        assert all(one == found[0] for one in found)
        assert found[0].mean == pytest.approx(exact, rel=1e-4)


@pytest.mark.parametrize("seed", range(6))
def test_without_a_gap_between_eigenvalues_the_estimate_stays_within_the_margin(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((60, 20)) * (rng.random((60, 20)) < 0.5)
    (found, *_) = tuned([csr_array(block) for block in split(X, 3)], LOSSES["squared"], 0.0, seed=seed)
    # the Rayleigh quotient never exceeds the eigenvalue
    assert 0.93 * largest_eigenvalue(X) <= found.mean <= MARGIN * largest_eigenvalue(X) * (1 + 1e-6)


@pytest.mark.parametrize("parties", [1, 3])
def test_the_worst_row_is_bounded_from_above_and_exact_for_one_party(parties: int) -> None:
    X = np.random.default_rng(0).standard_normal((50, 6))
    (found, *_) = tuned(split(X, parties), LOSSES["squared"], 0.0)
    worst = float((X**2).sum(axis=1).max())
    assert found.worst_row >= worst * (1 - 1e-6)
    assert found.worst_row >= found.mean
    if parties == 1:
        assert found.worst_row == pytest.approx(worst, rel=1e-6)


@pytest.mark.parametrize("scale", [1e-4, 1e-2, 1.0, 1e2])
def test_the_scale_of_the_columns_does_not_spoil_the_estimate(scale: float) -> None:
    X = scale * (np.random.default_rng(1).standard_normal((100, 8)) + 1.0)
    (found, *_) = tuned(split(X, 3), LOSSES["squared"], 0.0)
    assert found.mean == pytest.approx(MARGIN * largest_eigenvalue(X), rel=1e-2)


def test_columns_of_nothing_but_zeros_leave_the_penalty_alone() -> None:
    (found, *_) = tuned(split(np.zeros((10, 4)), 2), LOSSES["logistic"], 0.25)
    assert (found.mean, found.worst_row) == (0.25, 0.25)
