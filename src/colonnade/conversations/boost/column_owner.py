"""An owner of columns, while trees grow: it sums what it is sent over its bins, and says who goes left."""

from __future__ import annotations

import numpy as np

from colonnade.arrays import Numbers
from colonnade.conversations.boost.blind import BlindTeller, HistogramDealer
from colonnade.conversations.boost.clear import ClearTeller, Teller
from colonnade.conversations.boost.long_messages import complete, send_long
from colonnade.conversations.boost.sealed import WORK, SealedTeller, seals
from colonnade.conversations.boost.settings import BoostSettings
from colonnade.conversations.boost.split_sides import heard_sides, tell_sides
from colonnade.conversations.boost.veiled import VeilDealer, VeiledTeller, VeilStreams, pays, ring_bytes
from colonnade.conversations.boost.wire import (
    GROWN,
    divided,
    forest_of,
    joined_of,
    level_of,
    send_outcomes,
    tag_for,
)
from colonnade.conversations.context import Context
from colonnade.conversations.evaluate import Evaluation
from colonnade.errors import ProtocolError
from colonnade.messages import Announce, Bins, Divide, Gradients, Grown, Histograms, Joined, Sets
from colonnade.net.expect import PACKED, Number, octets, out_of_turn, said_by, whole
from colonnade.secure.streams import Roles
from colonnade.state import Declared
from colonnade.trees.bins import Codes, Flags
from colonnade.trees.boosting import Sampling
from colonnade.trees.frontier import Frontier
from colonnade.trees.grow import Level
from colonnade.trees.own_columns import OwnColumns, joined_sides
from colonnade.trees.tree import Splits

COLUMNS, MOST_BINS = 2**16, 256  # at most, and of a column
SET_BYTES = 32  # of a set of bins


class ColumnOwner:
    """One owner's side of the conversation."""

    STATE = Declared(
        kept=("trees",), parts=("own",), remade=("teller", "veiled", "sealed", "dealers", "helped")
    )

    def __init__(self, context: Context[BoostSettings], evaluation: Evaluation) -> None:
        self.context, self.evaluation, self.root = context, evaluation, context.evaluator
        plan = context.plan
        self.parties = plan.parties
        sampling = Sampling(plan.settings.trees, plan.seed, context.train.rows)
        place = self.parties.index(context.me)
        train = context.train
        self.own = OwnColumns(
            train.X, sampling, place, train.columns, context.engine.sums, categories=train.categories
        )
        self.trees = 0
        self.helped: dict[str, int] = {}  # for whom this party deals words, and how many columns they have
        self.teller: Teller = ClearTeller(self.own)
        self.veiled: VeiledTeller | None = None  # instead of the teller, where bins are veiled once
        self.sealed = SealedTeller.at(context.net, self.root, self.own) if seals(plan) else None
        self.dealers: dict[int, VeilDealer] = {}  # of parties whose bins are veiled, by their places
        if plan.blind is not None and context.me in plan.blind.dealers:
            roles = Roles(self.root, context.me, plan.blind.dealers[context.me])
            self.teller = BlindTeller(context.net, roles, context.streams, self.own)
            rows, trees = context.train.rows, plan.passes * max(1, plan.objective.classes)
            if not plan.settings.additive and pays(sampling.rules, rows, trees, self.own.grid):
                words, size = VeilStreams(roles, context.streams), ring_bytes(rows, sampling.rules)
                self.veiled = VeiledTeller(context.net, words, self.own, size)

    async def run(self) -> dict[str, Numbers]:
        """Take part in trees until the label holder says how many are kept; returns the own splits."""
        net, grid, plan = self.context.net, self.own.grid, self.context.plan
        bins = grid.ordered.astype(np.uint16), grid.gaps.astype(np.uint8), grid.rises.astype(np.int32)
        await net.send(self.root, Bins(*bins))
        await self._introduce()
        gates, epochs = self.context.gates, self.context.plan.pace.epochs
        gates.keep(self, name="Owner")  # as 0.2 calls it in checkpoints
        gates.begin(1)
        while True:
            rounds, within = divmod(self.trees, plan.objective.classes or 1)
            if not within and gates.due(rounds) and rounds < epochs:
                await gates.reached(rounds)
            message = await net.recv(
                Gradients,
                self.root,
                tag_for(self.trees),
                words=PACKED,
                kept=Number(0, len(self.own.splits.column), optional=True),
            )
            if message.kept is not None:
                break
            if self.trees >= plan.pace.epochs * max(1, plan.objective.classes):
                raise out_of_turn(self.root, message, "all trees of the job have grown")
            await self._deal(message.deals)
            if message.words.size:
                rows = int(self.own.sampling.rows_of(self.trees).sum())
                due = rows if self.veiled is None else self.veiled.due(rows)
                await self.grow(self.trees, await complete(net, self.root, message, due))
            elif self._veils(message.deals) or self._sums_sealed(message):
                await self.grow(self.trees, message)
            self.trees += 1
        splits = self.own.splits.first(message.kept)
        await self._measure(splits)
        if not self.context.plan.settings.additive:
            return splits.arrays()
        told, classes = await net.recv(Grown, self.root, -1, **GROWN), self.context.plan.objective.classes
        with said_by(self.root):
            forest = forest_of(told, self.own.party, classes, splits.count)
        return {**forest.arrays(), **splits.arrays()}

    async def _introduce(self) -> None:
        """Tell the dealer how many columns there are, where labels are blind, and hear the same of the
        parties that are helped."""
        net, blind = self.context.net, self.context.plan.blind
        if blind is None:
            return
        if net.me in blind.dealers:
            grid = self.own.grid
            sizes = [grid.columns] if self.veiled is None else [grid.columns, grid.total]
            await net.send(blind.dealers[net.me], Announce(tag_for(0), np.array(sizes)))
            if self.veiled is not None:
                await self.veiled.introduce()
        for client in [owner for owner, dealer in blind.dealers.items() if dealer == net.me]:
            due = whole(None, low=1, high=COLUMNS * MOST_BINS)
            told = (await net.recv(Announce, client, tag_for(0), values=due)).values
            if len(told) not in (1, 2) or told[0] >= COLUMNS or told[-1] < told[0]:
                raise ProtocolError(f"{client} says that it has columns and bins: {told.tolist()}")
            self.helped[client] = int(told[0])
            if len(told) == 2:
                roles, rules = Roles(self.root, client, net.me), self.own.sampling.rules
                size = ring_bytes(self.context.train.rows, rules)
                words = VeilStreams(roles, self.context.streams)
                self.dealers[self.parties.index(client)] = VeilDealer(words, int(told[1] - told[0]), size)

    async def _deal(self, clients: tuple[int, ...]) -> None:
        """Deal random words to those that this party helps, for the tree that begins."""
        sampling, plan = self.own.sampling, self.context.plan
        for place in clients:
            client = self.parties[place] if 0 <= place < len(self.parties) else ""
            if plan.blind is None or plan.blind.dealers.get(client) != self.context.me:
                raise ProtocolError(f"{self.root} asks for words that {self.context.me} does not deal")
            if place in self.dealers:
                continue
            columns = len(sampling.columns_of(self.trees, place, self.helped[client]))
            rows = int(sampling.rows_of(self.trees).sum())
            await self.context.charge(4 * rows * columns)
            dealer = HistogramDealer(Roles(self.root, client, self.context.me), self.context.streams)
            await dealer.deal(self.context.net, self.trees, columns, rows)

    async def grow(self, tree: int, message: Gradients) -> None:
        """Take part in one tree, level by level, until no node of it is open for this party."""
        net, own = self.context.net, self.own
        own.begin(tree)
        tells = bool(message.words.size) or self._sums_sealed(message)
        teller = self.sealed or self.veiled or self.teller
        for dealer in self._veils(message.deals):
            dealer.begin(tree, own.sampling.rows_of(tree))
        if tells:
            with said_by(self.root):
                await teller.begin(tree, message, own.sampling.rows_of(tree))
        frontier, depth, last = Frontier(own.sampling.rows_of(tree)), 0, False
        while not last:
            await self.context.charge(int(frontier.summed.sum()) * own.chosen.grid.columns)
            tag = tag_for(tree, depth)
            if tells:
                await send_long(net, self.root, await self._histograms(tree, depth, frontier))
            for dealer in self._veils(message.deals):
                await self.context.charge(2 * int(frontier.summed.sum()) * dealer.bins)
                await dealer.deal(net, tree, depth, frontier)
            divide = await net.recv(Divide, self.root, tag, **divided(frontier.open, len(self.parties)))
            sets = await self._sets(tag, divide)
            with said_by(self.root):
                level = level_of(divide, frontier, sets)
            if depth >= self.context.plan.settings.trees.max_depth and level.split.any():
                raise out_of_turn(self.root, divide, "the tree is as deep as the job allows")
            left = await self._sides(tag, level, frontier, message.turn)
            last, depth = level.last, depth + 1
            if not last:
                rows = frontier.rows
                frontier.divide(level.split, left, level.stays)
                if tells:
                    teller.divided(level, rows, left, frontier)

    def _veils(self, clients: tuple[int, ...]) -> list[VeilDealer]:
        """Return the dealers of these parties' veiled bins."""
        return [self.dealers[place] for place in clients if place in self.dealers]

    async def _sets(self, tag: int, divide: Divide) -> Codes | None:
        """Return which bins go left in the own splits of categories, if there are some on a level."""
        mine = divide.party == self.own.party
        column, grid = divide.column[mine], self.own.grid
        if not grid.sets[column[column < grid.columns]].any():
            return None
        due = octets(SET_BYTES * int(mine.sum()))
        told = (await self.context.net.recv(Sets, self.root, tag, left=due)).left
        sets = np.zeros((len(divide.party), SET_BYTES), dtype=np.uint8)
        sets[mine] = told.reshape(-1, SET_BYTES)
        return sets

    def _sums_sealed(self, message: Gradients) -> bool:
        """Return whether this party adds up numbers of a tree that come encrypted, level by level."""
        return self.sealed is not None and self.own.party in message.turn

    async def _histograms(self, tree: int, depth: int, frontier: Frontier) -> Histograms | Joined:
        """Return what is told of the histograms of a level."""
        tag, sent = tag_for(tree, depth), self.evaluation.sent_bytes()
        if self.sealed is not None:
            await self.context.charge(WORK * int(frontier.summed.sum()) * self.own.chosen.grid.columns)
            return await self.sealed.histograms(tree, depth, frontier, sent)
        if self.veiled is not None:
            return self.veiled.histograms(tree, depth, frontier, sent)
        sums, spots, floors = self.teller.sums(frontier), self.teller.spots(), self.own.floors
        if floors is None:
            return Histograms(tag, sums, spots, sent)
        told = self.own.told(sums, self.teller.counts(frontier), tree, depth)
        return joined_of(tag, told, spots, sent, clear=self.context.plan.blind is None)

    async def _sides(self, tag: int, level: Level, frontier: Frontier, turn: tuple[int, ...]) -> Flags:
        """Return the side of every row; tells those of the own splits to the party that grows the tree
        further."""
        net, me = self.context.net, self.own.party
        sides: list[tuple[int, Flags]] = []
        if (level.party == me).any():
            with said_by(self.root):
                sides.append((me, self.own.left(level, frontier)))
            alone = level.last or self.context.plan.settings.additive
            others = [] if alone else [self.parties[place] for place in turn]
            await tell_sides(net, tag, sides[0][1], sorted({self.root, *others} - {net.me}))
        if not level.last:
            sides += await heard_sides(net, tag, level, frontier, self.parties, me)
        return joined_sides(sides, level, frontier)

    async def _measure(self, splits: Splits) -> None:
        """Tell the label holder which test rows go left in every own split, to measure the model with."""
        test = self.context.test
        if test is not None:
            net = self.context.measuring.net
            await send_outcomes(net, self.root, self.evaluation.next_tag(), splits, test.X)
