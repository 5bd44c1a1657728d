"""Training as often as a run asks for: once or, where it says what parties are worth, for every coalition.

All trainings of such a run share its lines, its rows and its preparation. Each has keys, masks and noise of
its own, and begins when all parties have ended the one before. A party outside a coalition takes part with a
column that says nothing: zeros, or in a blind run random signs, as nobody could train on zeros there; its
test rows have zeros in either. Where fits go to an optimum they begin at the last one (`Context.start`).

The label holder knows the scores of all test rows, and so all values. It tells every party what each is
worth, rounded to a power of two within the interval. Values are openings about labels: they are declared
with all trainings' own (`whole_openings`), and a party's policy has a word for them (`values`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
from scipy.sparse import csr_array

from colonnade.arrays import Floats, Matrix
from colonnade.data.table import INTERCEPT, Table
from colonnade.errors import JobError, ProtocolError
from colonnade.job.plan import Plan
from colonnade.losses import LOSSES
from colonnade.messages import Announce, Seal, Topic, tag_of
from colonnade.net.endpoint import Endpoint
from colonnade.net.expect import floats
from colonnade.openings.declaration import Declaration
from colonnade.openings.limits import OpeningLimits
from colonnade.openings.opening import DOUBLE, Extent, Opening
from colonnade.result import Estimate, Worth
from colonnade.run.compared import base_scores
from colonnade.run.party import Party, Share, Work, told_by, train_once
from colonnade.run.registry import CONVERSATIONS
from colonnade.worth import NEAREST, Coalition, Game, as_told, rounded, worth_of

NOTHING = "(nothing)"  # the column of a party outside a coalition
TELLING = tag_of(Topic.EVALUATE, 2**47)  # beyond the tags of measurements
UNKNOWN = -1.0  # in place of a step: too few test rows to say
BITS = 16.0 - NEAREST  # of a value as it is told, and of its step
METRICS = {
    "binary": ("test_loss", "test_accuracy", "test_auc"),
    "multiclass": ("test_loss", "test_accuracy"),
    "regression": ("test_loss", "rmse", "r2", "d2"),
}


async def train(party: Party, work: Work, net: Endpoint, measuring: Endpoint | None = None) -> Share:
    """Take part in all trainings of a run to their end; returns this party's share of the first.

    `measuring` is a network for measurements alone, where there is one.
    """
    share = await train_once(party, work, net, measuring)
    if work.plan.value:
        share.worth = await _worth(party, work, share, net, measuring)
        whole = whole_openings(work.plan, work.openings(net.me), work.extent(net.me))
        share.opened = told_by(net.me, whole, work.train.rows)
    await party.leave(net, *([] if measuring is None else [measuring]))
    return share


def game_of(plan: Plan[Any]) -> Game:
    """Return the game of a run: all parties play but a helper that has no columns."""
    neutral: set[str] = set()
    if plan.blind is not None and plan.blind.dealers:
        neutral = set(plan.parties) - {plan.evaluator, *plan.blind.dealers}
    return Game.of([party for party in plan.parties if party not in neutral], plan.seed)


def trained(game: Game) -> list[Coalition]:
    """Return the coalitions that are trained beside all together: nobody's columns need no training."""
    return [each for each in game.coalitions if 0 < len(each) < len(game.players)]


def whole_openings(plan: Plan[Any], once: Iterable[Opening], extent: Extent) -> list[Opening]:
    """Return what a run opens in all its trainings, from what one of them does."""
    if not plan.value:
        return list(once)
    times = 1 + len(trained(game_of(plan)))
    often = [msgspec.structs.replace(each, numbers=times * each.numbers) for each in once]
    return often + _telling(plan, extent)


def _telling(plan: Plan[Any], extent: Extent) -> list[Opening]:
    found = Declaration(plan, extent)
    numbers = 2 * len(game_of(plan).players) * len(METRICS[LOSSES[plan.objective.loss].task])
    found.told(
        "values",
        numbers,
        plan.evaluator,
        Announce,
        Topic.EVALUATE,
        "in the end",
        about="labels",
        bits=BITS,
        carried=DOUBLE,
        rows=extent.test,
    )
    return found.openings


async def _worth(
    party: Party, work: Work, whole: Share, net: Endpoint, measuring: Endpoint | None
) -> Worth | None:
    """Train every coalition, and return what all parties are worth."""
    plan, game, me = work.plan, game_of(work.plan), net.me
    y = None if work.test is None else work.test.labels
    if me == plan.evaluator and y is None:
        raise JobError("value: there are no test rows to measure parties on; set data.test_fraction")
    scores: dict[Coalition, Floats] = {frozenset(game.players): whole.test_scores}
    latest = whole.weights.get("w")  # the own weights in the last coalition that this party was in
    for number, each in enumerate(trained(game)):
        await _together(net, f"{work.digest or plan.digest()} {number}")
        there = me in each
        sub = replace(
            work,
            train=work.train if there else without_columns(work.train, plan, number),
            test=work.test if there or work.test is None else without_columns(work.test, plan, None),
            target_loss=None,
            progress=lambda moment: None,
            digest=f"{work.digest or plan.digest()} of {','.join(sorted(each))}",
            kept=None,
            start=latest if there else np.zeros(0),
        )
        share = await train_once(party, sub, net, measuring)
        latest = share.weights.get("w") if there else latest
        scores[each] = share.test_scores
    await _together(net, work.digest or plan.digest())
    net.declare(OpeningLimits(_telling(plan, Extent(work.train.rows, 0, {})), me))
    if me != plan.evaluator or work.test is None or y is None:
        return await _heard(plan, game, net)
    known, test = work.train, work.test
    scores[frozenset()] = await net.aside(lambda: base_scores(plan, known, test))
    found = worth_of(game, LOSSES[plan.objective.loss], y, scores, 1 + len(trained(game)))
    await _tell(plan, game, found, net)
    return found


async def _together(net: Endpoint, word: str) -> None:
    """Wait until all parties have ended the training before: no tag of it is used from now on."""
    digest = hashlib.sha256(word.encode()).digest()
    await net.broadcast(Seal(digest))
    for peer, seal in (await net.gather(Seal)).items():
        if seal.digest != digest:
            raise ProtocolError(f"{peer} trains another coalition than {net.me}")


def without_columns(table: Table, plan: Plan[Any], number: int | None) -> Table:
    """Return the same rows with a column that says nothing, beside the intercept if it is here.

    `number` draws the signs of a blind run; None: zeros. Models that are built for some columns keep as many.
    """
    keep = "model" in CONVERSATIONS[plan.conversation].understands
    if keep:
        empty: Matrix = (
            np.zeros_like(table.X) if isinstance(table.X, np.ndarray) else csr_array(table.X.shape)
        )
        return replace(table, X=empty)
    nothing = np.zeros((table.rows, 1))
    if plan.blind is not None and number is not None:
        rng = np.random.default_rng([plan.seed, number, table.width])
        nothing = rng.choice([-1.0, 1.0], size=(table.rows, 1))
    if INTERCEPT not in table.columns:
        return replace(table, X=nothing, columns=(NOTHING,), categories=())
    ones = np.ones((table.rows, 1))
    return replace(table, X=np.hstack([nothing, ones]), columns=(NOTHING, INTERCEPT), categories=())


async def _tell(plan: Plan[Any], game: Game, found: Worth, net: Endpoint) -> None:
    """Tell all parties what each is worth, rounded to its interval."""
    numbers: list[float] = []
    for player in game.players:
        for name in METRICS[LOSSES[plan.objective.loss].task]:
            estimate = found.values[player].get(name)
            numbers += [0.0, UNKNOWN] if estimate is None else rounded(estimate)
    await net.broadcast(Announce(TELLING, np.array(numbers)))


async def _heard(plan: Plan[Any], game: Game, net: Endpoint) -> Worth:
    """Return what this party is told of everybody's worth."""
    names = METRICS[LOSSES[plan.objective.loss].task]
    due = floats(2 * len(game.players) * len(names))
    told = (await net.recv(Announce, plan.evaluator, TELLING, values=due)).values.reshape(-1, len(names), 2)
    values: dict[str, dict[str, Estimate]] = {
        player: {name: as_told(*pair) for name, pair in zip(names, pairs, strict=True) if pair[1] > 0}
        for player, pairs in zip(game.players, told.tolist(), strict=True)
    }
    return Worth(values=values, trainings=1 + len(trained(game)), exact=not game.orders)
