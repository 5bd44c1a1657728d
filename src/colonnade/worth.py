"""What every party is worth: Shapley values over parties, of how good a model of each coalition's columns is.

A coalition is some of the parties; its value is a metric on the test rows of a model that is trained on
their columns alone. A party's Shapley value is what it adds, in the mean over all orders in which parties may
come together (Shapley 1953). All values add up to what everybody reaches beyond the base rate, a party whose
columns add nothing to any coalition has 0, and parties that add the same have the same.

Up to eight parties it is exact: all coalitions are trained. With more, orders are drawn, each with all its
rotations, so that every party comes first, second, ... equally often: what comes first adds most. The spread
among such rounds is part of the interval, which then holds the value in nine of ten cases or more.

Every value is a sum over coalitions with weights that depend on nobody's data. So its influence function is
the same sum of theirs (`intervals`), and its interval makes no assumption on how alike models are. Intervals
are for other test rows, and not for other training rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import comb, floor, log2

import numpy as np

from colonnade.arrays import Floats
from colonnade.intervals import NORMAL, influences
from colonnade.losses import Loss
from colonnade.metrics import metrics_of
from colonnade.result import CoalitionValue, Estimate, Worth

Coalition = frozenset[str]
EXACT = 8  # players of whom all coalitions are trained
ROUNDS = 8  # of orders that are drawn where there are more
STUDENT = 2.364624  # 97.5% of Student's t of ROUNDS - 1 degrees of freedom lies below
NEAREST = -20  # the finest power of two to which a value is told


@dataclass(frozen=True)
class Game:
    """The coalitions that are trained, and how a party's value is made of theirs."""

    players: tuple[str, ...]
    orders: tuple[tuple[str, ...], ...] = ()  # rounds of rotations; none: all coalitions

    @staticmethod
    def of(players: Sequence[str], seed: int) -> Game:
        """Return the game of these players; orders are drawn where they are many."""
        if len(players) <= EXACT:
            return Game(tuple(players))
        rng = np.random.default_rng([seed, len(players)])
        drawn = [tuple(players[k] for k in rng.permutation(len(players)).tolist()) for _ in range(ROUNDS)]
        turned = tuple(one[k:] + one[:k] for one in drawn for k in range(len(players)))
        return Game(tuple(players), turned)

    @cached_property
    def coalitions(self) -> tuple[Coalition, ...]:
        """All coalitions whose value is asked for, the empty one first.

        Where all are, each differs from the one before by one party, so that a fit can begin at the last one.

        >>> [sorted(each) for each in Game(("a", "b")).coalitions]
        [[], ['a'], ['a', 'b'], ['b']]
        """
        if not self.orders:
            codes = [k ^ k >> 1 for k in range(2 ** len(self.players))]
            return tuple(
                frozenset(player for bit, player in enumerate(self.players) if code >> bit & 1)
                for code in codes
            )
        found: dict[Coalition, None] = {}
        for order in self.orders:
            found.update((frozenset(order[:size]), None) for size in range(len(order) + 1))
        return tuple(found)

    def weights(self, player: str) -> dict[Coalition, float]:
        """Return with which weight every coalition's value is in this player's."""
        if self.orders:
            return _weights_of(player, self.orders)
        q, found = len(self.players), {}
        for each in self.coalitions:
            others = len(each - {player})
            found[each] = (1 if player in each else -1) / (q * comb(q - 1, others))
        return found

    def sampling(self, player: str, values: Mapping[Coalition, float]) -> float:
        """Return half the interval of this player's value that comes of drawing orders; 0 where all count."""
        q = len(self.players)
        rounds = [self.orders[k : k + q] for k in range(0, len(self.orders), q)]
        if not rounds:
            return 0.0
        means = [sum(w * values[each] for each, w in _weights_of(player, one).items()) for one in rounds]
        return STUDENT * float(np.std(means, ddof=1) / np.sqrt(len(means)))


def _weights_of(player: str, orders: Sequence[tuple[str, ...]]) -> dict[Coalition, float]:
    """Return the weights of coalitions where these orders alone count."""
    found: dict[Coalition, float] = {}
    for order in orders:
        before = order.index(player)
        for size, sign in ((before, -1.0), (before + 1, 1.0)):
            each = frozenset(order[:size])
            found[each] = found.get(each, 0.0) + sign / len(orders)
    return found


def worth_of(game: Game, loss: Loss, y: Floats, scores: Mapping[Coalition, Floats], trainings: int) -> Worth:
    """Return what every player is worth, from the test rows' scores by every coalition's model."""
    metrics = {each: metrics_of(loss, scores[each], y) for each in game.coalitions}
    parts = {each: influences(loss, scores[each], y) for each in game.coalitions}
    names = [
        name
        for name in metrics[game.coalitions[0]]
        if all(name in metrics[each] and name in parts[each] for each in game.coalitions)
    ]
    values: dict[str, dict[str, Estimate]] = {}
    for player in game.players:
        weights, found = game.weights(player), {}
        for name in names:
            value = sum(w * metrics[each][name] for each, w in weights.items())
            influence = np.sum([w * parts[each][name] for each, w in weights.items()], axis=0)
            drawn = game.sampling(player, {each: metrics[each][name] for each in game.coalitions})
            rows = NORMAL * float((influence**2).sum()) ** 0.5 / len(influence)
            half = (rows**2 + drawn**2) ** 0.5
            found[name] = (value, value - half, value + half)
        values[player] = found
    told = [CoalitionValue(sorted(each), metrics[each]) for each in game.coalitions]
    return Worth(values=values, trainings=trainings, exact=not game.orders, coalitions=told)


def rounded(estimate: Estimate) -> tuple[float, float]:
    """Return an estimate as others are told it: to a power of two within its interval, and that power.

    >>> rounded((0.0312, 0.0262, 0.0362))
    (0.03125, 0.00390625)
    """
    value, low, high = estimate
    half = (high - low) / 2
    step = 2.0 ** max(NEAREST, floor(log2(half)) if half > 0 else NEAREST)
    return round(value / step) * step, step


def as_told(value: float, step: float) -> Estimate:
    """Return the estimate that somebody has who was told this: its interval is within four steps."""
    return value, value - 2.5 * step, value + 2.5 * step
