"""AsySQN's Algorithm 1 as it is printed: every block's steps are those of a dense H of its own pairs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.conversations.linear.test_variance_reduced import problem_of
from tests.oracles.asysqn import pooled_asysqn
from tests.oracles.tables import random_tables, run, weights

from colonnade.conversations.linear.quasi_newton.lbfgs_local import Curvature

DIRECTION: dict[str, Any] = {"pairs": "paper", "memory": 3, "delta": 3.0, "step": 0.1}


@pytest.mark.parametrize("estimator", ["sgd", "svrg", "saga"])
@pytest.mark.parametrize("parties", [1, 3])
def test_synchronous_steps_equal_those_of_dense_matrices(parties: int, estimator: str) -> None:
    setting = random_tables(parties=parties, active=parties, rows=60, columns=9)
    train = {"epochs": 4, "batch": 12, "step": 0.1, "l2": 0.01, "tolerance": 0.0}
    done = run(setting, f"synsqn-{estimator}", train=train, direction=DIRECTION, secure={"sum": "plain"})
    blocks = [table.width for table in setting.train.values()]
    expected = pooled_asysqn(problem_of(setting, done), estimator, 4, blocks, memory=3, delta=3.0, gamma=0.1)
    np.testing.assert_allclose(weights(done), expected, atol=1e-9)


def test_the_pair_is_of_the_same_two_moments() -> None:
    """With a batch of all rows y is the change of the gradient along s: it must point along s."""
    setting = random_tables(parties=2, active=2, rows=60)
    cosines: list[float] = []
    remember = Curvature._remember

    def noted(self: Curvature, v: np.ndarray[Any, np.dtype[np.float64]]) -> None:
        before = self.memory.pairs
        remember(self, v)
        if self.memory.pairs > before:
            s, y = self.memory.vectors[-2:]
            cosines.append(float(s @ y / np.linalg.norm(s) / np.linalg.norm(y)))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Curvature, "_remember", noted)
        train = {"epochs": 6, "batch": 60, "step": 0.1, "tolerance": 0.0}
        run(setting, "synsqn-sgd", train=train, direction={**DIRECTION, "memory": 20})
    assert len(cosines) == 2 * 5
    assert min(cosines) > 0.3
