"""Shapley values: against the definition over all orders, and what the definition promises."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from colonnade.describe.prospects import most_auc
from colonnade.losses import LOSSES
from colonnade.worth import Coalition, Game, as_told, rounded, worth_of

LOGISTIC = LOSSES["logistic"]


def scores_of(game: Game, rows: int, seed: int) -> tuple[np.ndarray, dict[Coalition, np.ndarray]]:
    """Labels, and scores of every coalition that are better the more parties it has; 'noise' adds nothing."""
    rng = np.random.default_rng(seed)
    y = rng.choice([-1.0, 1.0], size=rows)
    parts = {player: y * k / 4 + rng.normal(size=rows) for k, player in enumerate(game.players, 1)}
    parts["noise"] = np.zeros(rows)
    return y, {each: np.sum([np.zeros(rows), *(parts[p] for p in each)], axis=0) for each in game.coalitions}


def by_definition(game: Game, value: dict[Coalition, float], player: str) -> float:
    """What a player adds, in the mean over all orders in which players may come."""
    orders = list(permutations(game.players))
    added = 0.0
    for order in orders:
        before = frozenset(order[: order.index(player)])
        added += value[before | {player}] - value[before]
    return added / len(orders)


@pytest.mark.parametrize("players", [("a",), ("a", "noise"), ("a", "b", "c", "noise"), tuple("abcdef")])
def test_values_are_those_of_the_definition(players: tuple[str, ...]) -> None:
    game = Game.of(players, 0)
    assert len(game.coalitions) == 2 ** len(players) == len(set(game.coalitions))
    following = zip(game.coalitions, game.coalitions[1:], strict=False)
    assert all(len(one ^ other) == 1 for one, other in following)
    y, scores = scores_of(game, 400, 1)
    found = worth_of(game, LOGISTIC, y, scores, 3)
    for metric in ("test_loss", "test_accuracy", "test_auc"):
        value = {frozenset(each.parties): each.metrics[metric] for each in found.coalitions}
        for player in players:
            middle, low, high = found.values[player][metric]
            assert middle == pytest.approx(by_definition(game, value, player), abs=1e-12)
            assert low <= middle <= high
        total = sum(each[metric][0] for each in found.values.values())
        assert total == pytest.approx(value[frozenset(players)] - value[frozenset()], abs=1e-12)
    if "noise" in players:
        assert found.values["noise"]["test_auc"] == pytest.approx((0.0, 0.0, 0.0), abs=1e-12)


def test_intervals_are_those_of_other_test_rows() -> None:
    game = Game.of(("a", "b", "c"), 0)
    y, scores = scores_of(game, 600, 2)
    found = worth_of(game, LOGISTIC, y, scores, 7)
    rng, drawn = np.random.default_rng(3), []
    for _ in range(300):
        rows = rng.integers(0, len(y), len(y))
        again = worth_of(game, LOGISTIC, y[rows], {each: z[rows] for each, z in scores.items()}, 7)
        drawn.append([again.values[player][metric][0] for player in "abc" for metric in again.values["a"]])
    ends = [found.values[player][metric] for player in "abc" for metric in found.values["a"]]
    halves = np.array([(high - low) / 2 for _, low, high in ends])
    np.testing.assert_allclose(1.96 * np.std(drawn, axis=0), halves, rtol=0.15)


def test_orders_that_are_drawn_come_near_and_say_how_near() -> None:
    players = tuple("abcdefghi")
    game = Game.of(players, 5)
    assert game.orders
    assert len(game.coalitions) < 2 ** len(players) / 1.5
    places = [[order.index(player) for order in game.orders] for player in players]
    assert all(sorted(each) == sorted(8 * list(range(9))) for each in places)
    y, scores = scores_of(game, 300, 4)
    found = worth_of(game, LOGISTIC, y, scores, len(game.coalitions))
    assert not found.exact
    total = sum(each["test_auc"][0] for each in found.values.values())
    ends = [each.metrics["test_auc"] for each in found.coalitions if len(each.parties) in (0, 9)]
    assert total == pytest.approx(max(ends) - min(ends), abs=1e-12)
    whole = Game(players)
    _, everything = scores_of(whole, 300, 4)
    exact = worth_of(whole, LOGISTIC, y, everything, 512)
    within, errors = 0, []
    for player in players:
        value, low, high = found.values[player]["test_auc"]
        within += low < exact.values[player]["test_auc"][0] < high
        one, _, _ = exact.values[player]["test_auc"]
        errors.append((value - one) / ((high - low) / 2 / 1.96))
    assert within >= 7  # of nine, at 95% each
    assert np.sqrt(np.mean(np.square(errors))) < 2  # in units of the standard error


def test_what_is_told_is_within_the_interval_and_no_finer() -> None:
    for estimate in ((0.0312, 0.0262, 0.0362), (-1.7, -2.1, -1.3), (0.0, 0.0, 0.0), (3e-7, -1e-3, 1e-3)):
        value, step = rounded(estimate)
        _, low, high = estimate
        assert low <= value <= high
        assert value == 0 or abs(value) >= step
        assert step * 2 >= (high - low) / 2 or step == 2.0**-20
        assert as_told(value, step)[1] <= low <= high <= as_told(value, step)[2]


def test_no_score_of_independent_columns_beats_the_bound() -> None:
    """Jeffreys' divergence of naive Bayes' own classes, and the AUC of its score, exact."""
    rng = np.random.default_rng(6)
    for strength in (0.1, 0.5, 1.5):
        columns = [rng.dirichlet(np.ones(3) / strength, size=2) for _ in range(5)]
        iv = sum(float(((good - bad) * np.log(good / bad)).sum()) for good, bad in columns)
        good, bad = np.ones(1), np.ones(1)
        for one, other in columns:
            good, bad = np.outer(good, one).ravel(), np.outer(bad, other).ravel()
        order = np.argsort(good / bad)
        below = np.cumsum(bad[order]) - bad[order] / 2
        assert float(good[order] @ below) <= most_auc(iv) + 1e-9
