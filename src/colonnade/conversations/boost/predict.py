"""Scores of new rows by boosted trees whose splits lie with several parties.

For a request every owner tells the label holder on which side of each of its splits the rows are, a bit each,
in one message; the label holder, which knows the trees and their leaves, follows every row to its leaves.
Where every tree uses one party's columns, nobody needs that: each party scores its own trees, and the parts
go through the secure sum.

What each side learns: an owner learns which rows are asked for, and nothing of their way or score; the label
holder learns the rows' sides in all splits, which is more than their way through the trees, and the score,
also where somebody else asks; the asker learns the score. From sides and cover follows what every party's
columns did to a score, so the label holder can be told these values without hearing anything more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from colonnade.arrays import Floats, Matrix, Rows
from colonnade.conversations.boost.settings import BoostSettings
from colonnade.conversations.boost.wire import bytes_of_outcomes, receive_outcomes, send_outcomes
from colonnade.conversations.predict import Holding, PartyValues, Scorer, Session, SummedPart
from colonnade.job import Job
from colonnade.job.plan import Plan
from colonnade.job.presets import PRESETS
from colonnade.messages import Announce, Outcomes
from colonnade.net.expect import floats
from colonnade.openings.opening import Opening
from colonnade.openings.scoring import ScoringRequest
from colonnade.trees.attribution import tree_shapley
from colonnade.trees.bins import Flags
from colonnade.trees.tree import Forest, Splits


@dataclass(frozen=True, eq=False)
class SplitsScorer:
    """An owner's splits and its columns of the rows it may be asked for."""

    overlaps: ClassVar[bool] = False

    splits: Splits
    X: Matrix
    holder: str
    classes: int

    @property
    def rows(self) -> int:
        return int(self.X.shape[0])

    async def score(self, session: Session, rows: Rows) -> Floats | None:
        net, tag = session.net, session.next_tag()
        await send_outcomes(net, self.holder, tag, self.splits, self.X[rows], session.workplace)
        if session.asker != net.me:
            return None
        due = floats(len(rows), self.classes) if self.classes else floats(len(rows))
        return (await net.recv(Announce, self.holder, tag, values=due)).values

    def opens(self, request: ScoringRequest) -> list[Opening]:
        """Return on which side of each split every row is, a bit each."""
        splits, rows = self.splits.count, request.rows
        sides = request.told(
            "sides", splits * rows, self.holder, Outcomes, bits=1, size=bytes_of_outcomes(splits, rows)
        )
        return [sides]


@dataclass(frozen=True, eq=False)
class ForestScorer:
    """The label holder's trees, its own splits and columns."""

    overlaps: ClassVar[bool] = False

    forest: Forest
    splits: Splits
    X: Matrix
    plan: Plan[BoostSettings]
    explained: list[PartyValues] | None = None

    @property
    def rows(self) -> int:
        return int(self.X.shape[0])

    def explaining(self, kept: list[PartyValues]) -> ForestScorer:
        """Return the same, which keeps every party's values of the rows that are asked for."""
        return replace(self, explained=kept)

    async def score(self, session: Session, rows: Rows) -> Floats | None:
        net, tag, parties = session.net, session.next_tag(), self.plan.parties
        own = await session.workplace.do(lambda: self.splits.left(self.X[rows]))
        left: dict[int, Flags] = {parties.index(net.me): own}
        for party, name in enumerate(parties):
            if name != net.me:
                count = self.forest.splits_of(party)
                left[party] = await receive_outcomes(net, name, tag, count, len(rows))
        z = _shaped(self.plan, await session.workplace.do(lambda: self.forest.scores(left, len(rows))))
        if self.explained is not None:
            self.explained.append(await session.workplace.do(lambda: self._by_party(left, len(rows))))
        if session.asker == net.me:
            return z
        await net.send(session.asker, Announce(tag, z))
        return None

    def _by_party(self, left: Mapping[int, Flags], rows: int) -> PartyValues:
        """Return Shapley values over parties: path-dependent, all columns of a party known or none."""
        parties = {party: [party] * self.forest.splits_of(party) for party in left}
        return PartyValues(*tree_shapley(self.forest, left, parties, rows, len(left)))

    def opens(self, request: ScoringRequest) -> list[Opening]:
        """Return the scores, where somebody else asks."""
        if request.asker == request.me:
            return []
        numbers = request.rows * max(1, self.plan.objective.classes)
        return [request.told("predictions", numbers, request.asker, Announce)]


class TreeShares:
    """Shares of boosted trees: a party's own splits and, at the label holder, all trees and their leaves."""

    name = "trees"

    def is_sum(self, job: Job) -> bool:
        return PRESETS[job.algorithm].additive

    def scorer(self, holding: Holding) -> Scorer:
        plan: Plan[BoostSettings] = holding.plan
        splits = Splits.from_arrays(holding.arrays)
        if plan.settings.additive:
            return SummedPart(_part(holding))
        if holding.me == plan.evaluator:
            return ForestScorer(Forest.from_arrays(holding.arrays), splits, holding.X, plan)
        return SplitsScorer(splits, holding.X, plan.evaluator, plan.objective.classes)

    def together(self, holdings: Mapping[str, Holding]) -> Floats:
        """Return the scores of all rows, where one process holds all shares."""
        plan: Plan[BoostSettings] = next(iter(holdings.values())).plan
        if plan.settings.additive:
            total: Floats = np.sum([_part(held) for held in holdings.values()], axis=0)
            return total
        forest = Forest.from_arrays(holdings[plan.evaluator].arrays)
        left = {
            party: Splits.from_arrays(holdings[name].arrays).left(holdings[name].X)
            for party, name in enumerate(plan.parties)
        }
        return _shaped(plan, forest.scores(left, int(holdings[plan.evaluator].X.shape[0])))


def _part(holding: Holding) -> Floats:
    """Return this party's part of every score: what its own trees give; the label holder also adds the
    base."""
    plan: Plan[BoostSettings] = holding.plan
    party, first = plan.parties.index(holding.me), holding.me == plan.evaluator
    forest = Forest.from_arrays(holding.arrays).part_of(party, first=first)
    left = {party: Splits.from_arrays(holding.arrays).left(holding.X)}
    return _shaped(plan, forest.scores(left, int(holding.X.shape[0])))


def _shaped(plan: Plan[BoostSettings], z: Floats) -> Floats:
    """Return scores as losses have them."""
    return z if plan.objective.classes else z[:, 0]
