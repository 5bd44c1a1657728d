"""The accountant against the closed form of the Gaussian mechanism (Balle and Wang 2018), and the budget."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtr

from colonnade.privacy.accountant import Budget, epsilon_of, multiplier_for


def delta_of(epsilon: float, multiplier: float) -> float:
    """The exact delta of one Gaussian release of sensitivity 1."""
    s = multiplier
    return float(ndtr(0.5 / s - epsilon * s) - np.exp(epsilon) * ndtr(-0.5 / s - epsilon * s))


@pytest.mark.parametrize(("epsilon", "releases"), [(1.0, 1), (1.0, 40), (8.0, 160)])
def test_the_noise_is_enough_and_hardly_more(epsilon: float, releases: int) -> None:
    multiplier = multiplier_for(epsilon, 1e-5, releases)
    alone = multiplier / np.sqrt(releases)
    assert delta_of(epsilon, alone) <= 1e-5 * 1.01
    assert delta_of(epsilon, alone * 0.99) > 1e-5
    assert epsilon_of(multiplier, releases, 1e-5) == pytest.approx(epsilon, rel=1e-3)


def test_more_replies_cost_more_and_none_cost_nothing() -> None:
    multiplier = multiplier_for(1.0, 1e-5, 10)
    spent = [epsilon_of(multiplier, k, 1e-5) for k in (0, 1, 5, 10, 20)]
    assert spent == sorted(spent)
    assert spent[0] == 0.0
    assert spent[3] <= 1.0 < spent[4]


def test_a_budget_counts_per_row_and_says_when_it_is_spent() -> None:
    budget = Budget.plan(2.0, 1e-5, allowed=3, rows=6)
    first, second = np.array([0, 1, 2]), np.array([2, 3])
    for _ in range(2):
        budget.spend(first)
    budget.spend(second)
    assert budget.spent.tolist() == [2, 2, 3, 1, 0, 0]
    assert not budget.affords(second)  # row 2 has been told about three times
    assert budget.affords(np.array([0, 1, 3]))
    assert budget.epsilon_spent() == pytest.approx(2.0, rel=1e-3)
