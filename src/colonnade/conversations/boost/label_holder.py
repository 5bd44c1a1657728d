"""The label holder, while trees grow: it knows derivatives, finds splits in histograms, and scores leaves."""

from __future__ import annotations

import numpy as np

from colonnade.arrays import Floats, Numbers, Words
from colonnade.conversations.boost.blind import BlindReader
from colonnade.conversations.boost.clear import ClearReader, HistogramReader, NoReader
from colonnade.conversations.boost.long_messages import complete, send_long
from colonnade.conversations.boost.sealed import SealedReader, seals
from colonnade.conversations.boost.settings import BoostSettings
from colonnade.conversations.boost.split_sides import heard_sides, tell_sides
from colonnade.conversations.boost.veiled import VeiledReader, VeilStreams, pays, ring_bytes
from colonnade.conversations.boost.wire import (
    check_constraints,
    divide_for,
    grid_of,
    grown_of,
    receive_outcomes,
    tag_for,
)
from colonnade.conversations.context import Context
from colonnade.conversations.evaluate import Evaluation, Mark, Scribe
from colonnade.messages import Bins, Gradients, Histograms, Joined, Sets
from colonnade.net.expect import PACKED, Number, octets, said_by, whole
from colonnade.net.expect import words as words_due
from colonnade.secure.streams import Roles
from colonnade.state import Declared
from colonnade.trees.bins import SETS, BinGrid, Flags
from colonnade.trees.boosting import Boosting, Sampling
from colonnade.trees.estimate import Told, all_told, beside
from colonnade.trees.frontier import Frontier
from colonnade.trees.gradients import Lesson
from colonnade.trees.grow import Growth, Level, TreeColumns
from colonnade.trees.own_columns import OwnColumns, joined_sides
from colonnade.trees.tree import Forest, Tree

NOTHING = np.zeros(0, dtype=np.uint32)
FELLED = Level.none()  # what those hear of a root who do not take part in its tree any more


class TreeLabelHolder:
    """The label holder's side of the conversation; it owns columns, too, or none."""

    STATE = Declared(
        kept=("splits", "sent", "number"),
        parts=("boosting", "own"),
        remade=("readers", "veiled", "sealed", "grids"),
    )

    def __init__(self, context: Context[BoostSettings], evaluation: Evaluation, scribe: Scribe) -> None:
        self.context, self.evaluation, self.scribe = context, evaluation, scribe
        plan = context.plan
        self.parties, self.me = plan.parties, plan.parties.index(context.me)
        y, rules = context.label_holder.y, plan.settings.trees
        self.sampling = Sampling(rules, plan.seed, len(y))
        self.boosting = Boosting(context.loss, y, plan.objective.classes, rules, self.sampling)
        self.own = OwnColumns(
            context.train.X,
            self.sampling,
            self.me,
            context.train.columns,
            context.engine.sums,
            categories=context.train.categories,
            exact=True,
        )
        self.grids: list[BinGrid] = []
        self.splits = [0] * len(self.parties)  # how many each party has
        self.sent: dict[str, int] = {}  # bytes, as each owner last said
        self.number = 0  # of the next tree
        self.veiled: dict[int, VeiledReader] = {}  # of parties whose bins are veiled once, by place
        self.sealed: dict[int, SealedReader] = {}  # of the one other party, if sums are encrypted
        if seals(plan):
            other = 1 - self.me
            self.sealed[other] = SealedReader.at(context.net, self.parties[other], rules)
        self.readers = {party: self._reader(name) for party, name in enumerate(self.parties)}

    async def run(self) -> dict[str, Numbers]:
        """Grow all trees, tell every owner how many of its splits are kept, and measure the model."""
        net, pace = self.context.net, self.context.plan.pace
        as_sets = self.sampling.rules.categories == "sets"
        told = await net.gather(
            Bins,
            ordered=whole(None, low=1, high=256, dtype="uint16"),
            gaps=octets(None),
            rises=whole(None, low=-1, high=SETS if as_sets else 1, dtype="int32"),
        )
        self.grids = [
            self.own.grid if party == net.me else grid_of(told[party], party) for party in self.parties
        ]
        check_constraints(self.sampling.rules, self.grids)
        for party, name in self._others(set(range(len(self.parties)))):
            if (reader := self._veiled(party, name)) is not None:
                self.veiled[party] = reader
                await reader.introduce()
        boosting, gates = self.boosting, self.context.gates
        gates.keep(self, name="Holder")  # as 0.2 calls it in checkpoints
        gates.begin(1)
        enough = False
        while not enough and boosting.rounds < pace.epochs:
            for lesson in boosting.lessons():
                boosting.add(*await self.grow(self.number, lesson))
                self.number += 1
            self._note()
            enough = boosting.enough() or self.scribe.ending.stopped
            if gates.due(boosting.rounds) and boosting.rounds < pace.epochs:
                await gates.reached(boosting.rounds, ending=enough)
        forest = boosting.finish()
        kept = [forest.splits_of(party) for party in range(len(self.parties))]
        for party, name in enumerate(self.parties):
            if name != net.me:
                await net.send(name, Gradients(tag_for(self.number), NOTHING, kept[party]))
                if self.context.plan.settings.additive:
                    await net.send(name, grown_of(forest.part_of(party, first=False)))
        await self._measure(forest, kept)
        return {**forest.arrays(), **self.own.splits.first(kept[self.me]).arrays()}

    async def grow(self, number: int, lesson: Lesson) -> tuple[Tree, Numbers]:
        """Grow one tree with all owners; returns it, and the node in which every row ended."""
        net, rules = self.context.net, self.context.plan.settings.trees
        sampled = self.sampling.rows_of(number)
        chosen = [
            self.sampling.columns_of(number, party, grid.columns) for party, grid in enumerate(self.grids)
        ]
        growth, words = Growth(rules, TreeColumns.of(self.grids, chosen), lesson, sampled), lesson.words
        turn, learnt = self._turn(number), words if sampled.all() else words[sampled]
        self.own.begin(number)
        deals = self._deals(turn)
        following = self._followers(deals)
        for party, name in self._others(set(range(len(self.parties)))):
            given = NOTHING
            if party in turn:
                bins = self.grids[party].width[chosen[party]]
                if party in self.sealed:
                    given = self.sealed[party].gradients(words)
                elif party in self.veiled:
                    given = self.veiled[party].gradients(number, learnt, sampled, chosen[party])
                else:
                    given = self.readers[party].gradients(number, learnt, bins)
            heard = tuple(sorted(turn | following))
            told = Gradients(tag_for(number), given, deals=deals.get(name, ()), turn=heard)
            await send_long(net, name, told)
        while growth.open:
            tag = tag_for(number, growth.depth)
            level = growth.decide(await self._told(tag, turn, words, growth), self.splits)
            goes_on = self._goes_on(level, turn, growth)
            for party, name in self._others(turn | following):
                known = level if party in goes_on | following else FELLED
                await net.send(name, divide_for(party, known, tag))
                mine = known.party == party
                if known.sets is not None and self.grids[party].sets[known.column[mine]].any():
                    await net.send(name, Sets(tag, known.sets[mine].ravel()))
            turn = goes_on
            growth.divide(level, await self._sides(tag, level, turn | following, growth.frontier))
            if growth.open:
                for party, _ in self._others(turn):
                    if party not in self.sealed:
                        self.readers[party].divided(level, growth.frontier)
        return growth.finish(), growth.at

    def _deals(self, turn: set[int]) -> dict[str, tuple[int, ...]]:
        """Return for whom every dealer deals words in a tree, where labels are blind."""
        blind = self.context.plan.blind
        deals: dict[str, tuple[int, ...]] = {}
        if blind is not None and not self.sealed:
            for party, name in self._others(turn):
                dealer = blind.dealers[name]
                deals[dealer] = (*deals.get(dealer, ()), party)
        return deals

    def _reader(self, owner: str) -> HistogramReader:
        """Return this party's end of what passes between it and an owner."""
        blind = self.context.plan.blind
        if blind is None:
            return ClearReader(self.sampling.rules.bits)
        if owner not in blind.dealers:
            return NoReader(owner)
        return BlindReader(Roles(self.context.me, owner, blind.dealers[owner]), self.context.streams)

    def _veiled(self, party: int, name: str) -> VeiledReader | None:
        """Return this party's end where an owner's bins are veiled once; None where they are not."""
        plan, rules, rows = self.context.plan, self.sampling.rules, self.sampling.rows
        trees = plan.passes * self.boosting.outputs
        if plan.blind is None or name not in plan.blind.dealers or plan.settings.additive:
            return None
        if not pays(rules, rows, trees, self.grids[party]):
            return None
        words = VeilStreams(Roles(self.context.me, name, plan.blind.dealers[name]), self.context.streams)
        return VeiledReader(self.context.net, words, rows, ring_bytes(rows, rules), self.grids[party])

    def _followers(self, deals: dict[str, tuple[int, ...]]) -> set[int]:
        """Return the parties that must follow a tree as they deal for veiled bins."""
        return {
            self.parties.index(name) for name, clients in deals.items() if self.veiled.keys() & set(clients)
        }

    def _turn(self, number: int) -> set[int]:
        """Return the parties that a tree may use: all or, where they take turns, one."""
        holders = [party for party, grid in enumerate(self.grids) if grid.columns]
        settings = self.context.plan.settings
        if settings.additive and settings.trees.turns == "round":
            return {holders[number // self.boosting.outputs % len(holders)]}
        return set(holders)

    def _goes_on(self, level: Level, turn: set[int], growth: Growth) -> set[int]:
        """Return the parties that hear of this level: where a tree uses one party's columns, that of its
        root."""
        if not self.context.plan.settings.additive or len(turn) == 1 or not level.split.any():
            return turn
        growth.allowed = int(level.party[0])
        return {growth.allowed}

    def _others(self, turn: set[int]) -> list[tuple[int, str]]:
        """Return the places and names of these parties, but for this one."""
        return [(party, self.parties[party]) for party in sorted(turn - {self.me})]

    async def _told(self, tag: int, turn: set[int], words: Words, growth: Growth) -> Told:
        """Return the sums of every slot over all parties' bins, in the order of parties."""
        frontier, found = growth.frontier, {}
        slots = len(frontier.summed)
        for party, _ in self._others(turn):
            if party in self.sealed:
                await self.sealed[party].ask(frontier, growth.columns.grids[party])
        if self.me in turn:
            await self.context.charge(int(frontier.summed.sum()) * self.own.chosen.grid.columns)
            found[self.me] = all_told(self.own.sums(words, frontier))
        for party, name in self._others(turn):
            found[party] = await self._told_by(name, tag, frontier, growth.columns.grids[party])
        for party, grid in enumerate(growth.columns.grids):
            found.setdefault(party, all_told(np.zeros((slots, grid.total), dtype=np.uint64)))
        whole = [each for _, each in sorted(found.items())]
        return beside(whole)

    async def _told_by(self, name: str, tag: int, frontier: Frontier, grid: BinGrid) -> Told:
        """Return what an owner tells of the histograms of a level."""
        slots = len(frontier.summed)
        net, reader = self.context.net, self.readers[self.parties.index(name)]
        sent = Number(0, 2**53)
        if self.sampling.rules.bits:
            told = await net.recv(Joined, name, tag, sums=PACKED, ends=PACKED, spots=PACKED, sent=sent)
            self.sent[name] = told.sent
            if (sealed := self.sealed.get(self.parties.index(name))) is not None:
                with said_by(name):
                    return await sealed.told(told, frontier, grid)
            if (veiled := self.veiled.get(self.parties.index(name))) is not None:
                with said_by(name):
                    return await veiled.told(told, frontier, grid)
            with said_by(name):
                return reader.told(await complete(net, name, told, reader.spots), slots, grid)
        due = words_due(slots, grid.total)
        message = await net.recv(Histograms, name, tag, sums=due, spots=PACKED, sent=sent)
        self.sent[name] = message.sent
        with said_by(name):
            return all_told(reader.sums(await complete(net, name, message, reader.spots)))

    async def _sides(self, tag: int, level: Level, turn: set[int], frontier: Frontier) -> Flags:
        """Return the side of every row; those of the own splits are told to the parties that sum on."""
        net, sides = self.context.net, []
        if (level.party == self.me).any():
            sides.append((self.me, self.own.left(level, frontier)))
            if not level.last:
                await tell_sides(net, tag, sides[0][1], [name for _, name in self._others(turn)])
        sides += await heard_sides(net, tag, level, frontier, self.parties, self.me)
        return joined_sides(sides, level, frontier)

    # --- measuring ----------------------------------------------------------------------------------

    def _note(self) -> None:
        """Write down the loss after a round, which costs no message."""
        every, rounds = self.context.plan.pace.evaluate_every, self.boosting.rounds
        if every and rounds % every == 0:
            self._record([self.boosting.z], final=False)

    def _record(self, scores: list[Floats], *, final: bool) -> None:
        clock, boosting = self.context.net.clock, self.boosting
        with clock.uncharged():
            sent = self.context.net.meter.bytes() + sum(self.sent.values())
            mark = Mark(boosting.rounds, len(boosting.trees), final)
            self.scribe.record([boosting.shaped(z) for z in scores], 0.0, sent, clock.now(), mark)

    async def _measure(self, forest: Forest, kept: list[int]) -> None:
        """Measure the finished model, on test rows too: owners tell their sides in every split."""
        scores, test, net = [self.boosting.z], self.context.test, self.context.measuring.net
        if test is not None:
            tag = self.evaluation.next_tag()
            left = {self.me: self.own.splits.first(kept[self.me]).left(test.X)}
            for party, name in self._others(set(range(len(self.parties)))):
                left[party] = await receive_outcomes(net, name, tag, kept[party], test.rows)
            scores.append(forest.scores(left, test.rows))
        self._record(scores, final=True)
