"""An owner of columns, while trees grow: it sums what it is sent over its bins, and says who goes left."""

from __future__ import annotations

import numpy as np

from colonnade.arrays import Numbers, Words
from colonnade.conversations.boost.settings import BoostSettings
from colonnade.conversations.boost.wire import (
    bits_of,
    flags_of,
    forest_of,
    level_of,
    send_outcomes,
    tag_for,
    words_of,
)
from colonnade.conversations.context import Context
from colonnade.conversations.evaluate import Evaluation
from colonnade.messages import Bins, Divide, Gradients, Grown, Histograms, Sides
from colonnade.trees.bins import Flags
from colonnade.trees.boosting import Sampling
from colonnade.trees.frontier import Frontier
from colonnade.trees.grow import Level
from colonnade.trees.own import OwnColumns, joined_sides
from colonnade.trees.tree import Splits


class Owner:
    """One owner's side of the conversation."""

    def __init__(self, context: Context[BoostSettings], evaluation: Evaluation) -> None:
        self.context, self.evaluation, self.root = context, evaluation, context.evaluator
        plan = context.plan
        self.parties = plan.parties
        sampling = Sampling(plan.settings.trees, plan.seed, context.train.rows)
        self.own = OwnColumns(context.train.X, sampling, self.parties.index(context.me))
        self.trees = 0

    async def run(self) -> dict[str, Numbers]:
        """Take part in trees until the label holder says how many are kept; returns the own splits."""
        net, grid = self.context.net, self.own.grid
        await net.send(self.root, Bins(grid.ordered.astype(np.uint16), grid.gaps.astype(np.uint8)))
        while True:
            message = await net.recv(Gradients, self.root, tag_for(self.trees))
            if message.kept is not None:
                break
            if message.words.size:
                await self.grow(self.trees, words_of(message, self.own.sampling.rows_of(self.trees)))
            self.trees += 1
        splits = self.own.splits.first(message.kept)
        await self._measure(splits)
        if not self.context.plan.settings.additive:
            return splits.arrays()
        told, classes = await net.recv(Grown, self.root), self.context.plan.objective.classes
        forest = forest_of(told, self.own.party, classes, splits.count)
        return {**forest.arrays(), **splits.arrays()}

    async def grow(self, tree: int, words: Words) -> None:
        """Take part in one tree, level by level, until no node of it is open for this party."""
        net, own = self.context.net, self.own
        own.begin(tree)
        frontier, depth = Frontier(own.sampling.rows_of(tree)), 0
        while frontier.open:
            await self.context.charge(int((frontier.slot >= 0).sum()) * own.chosen.grid.columns)
            tag = tag_for(tree, depth)
            sums = own.sums(words, frontier)
            await net.send(self.root, Histograms(tag, sums, self.evaluation.sent_bytes()))
            level = level_of(await net.recv(Divide, self.root, tag), frontier)
            left = await self._sides(tag, level, frontier)
            frontier.divide(level.split, left, level.stays)
            depth += 1

    async def _sides(self, tag: int, level: Level, frontier: Frontier) -> Flags:
        """The side of every row; tells those of the own splits to whoever grows the tree further."""
        net, me = self.context.net, self.own.party
        sides: list[tuple[int, Flags]] = []
        if (level.party == me).any():
            sides.append((me, self.own.left(level, frontier)))
            said = Sides(tag, bits_of(sides[0][1]))
            alone = level.last or self.context.plan.settings.additive
            for peer in (self.root,) if alone else net.peers:
                await net.send(peer, said)
        if not level.last:
            for party in np.unique(level.party[level.split & (level.party != me)]).tolist():
                rows = len(frontier.rows(level.party == party))
                heard = await net.recv(Sides, self.parties[party], tag)
                sides.append((party, flags_of(heard.left, rows)))
        return joined_sides(sides, level, frontier)

    async def _measure(self, splits: Splits) -> None:
        """Tell the label holder which test rows go left in every own split, to measure the model with."""
        test = self.context.test
        if test is not None:
            net = self.context.measuring.net
            await send_outcomes(net, self.root, self.evaluation.next_tag(), splits, test.X)
