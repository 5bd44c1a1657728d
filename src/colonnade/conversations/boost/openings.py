"""What growing trees together opens, at the most: how far nodes are split is for the data to decide."""

from __future__ import annotations

from math import log2

from colonnade.conversations.boost import long_messages
from colonnade.conversations.boost.sealed import seals
from colonnade.conversations.boost.settings import BoostSettings
from colonnade.job.plan import Plan
from colonnade.messages import (
    Announce,
    Bins,
    Divide,
    Gradients,
    Grown,
    Histograms,
    Joined,
    Outcomes,
    Rest,
    Sets,
    Sides,
    Topic,
)
from colonnade.openings.declaration import Declaration
from colonnade.openings.opening import DOUBLE, Extent, Kind, Opening
from colonnade.trees.bins import MOST_BINS

TREE = "in every tree"
SET_BYTES = 32  # of a set of bins
JOINED_BITS = 68  # of a bin: a sum, and whether it ends a joined one
NOISE_BITS = 64  # of a column: of g and of h
GROWN_BITS = 6 * 64  # of a node: which tree, class, split and children, and its score


def of_boost(plan: Plan[BoostSettings], extent: Extent) -> list[Opening]:
    """Return what growing trees opens."""
    return _Trees(plan, extent).written()


class _Trees(Declaration):
    """The openings of one forest."""

    def __init__(self, plan: Plan[BoostSettings], extent: Extent) -> None:
        super().__init__(plan, extent)
        rules = plan.settings.trees
        self.trees = plan.pace.epochs * self.scores
        self.levels = max(1, rules.max_depth)  # that are split
        self.open = sum(min(2**level, extent.rows) for level in range(self.levels))  # nodes of a tree
        # of two children one is summed, and the other follows
        self.slots = 1 + sum(min(2**level, extent.rows) for level in range(self.levels - 1))
        # of a column with gaps; one of categories that are split as sets has a bin for each of them
        self.bins = 1 + max(rules.max_bin, MOST_BINS if rules.categories == "sets" else 0)

    def written(self) -> list[Opening]:
        """Return the openings of both sides."""
        self.gates()
        root, blind = self.plan.evaluator, self.plan.blind is not None
        rows, trees = self.extent.rows, self.trees
        told: Kind = "masked" if blind else "gradients"
        bits = 128 if blind else 32  # where bins are veiled once both derivatives have words of their own
        if not seals(self.plan):
            self._long(told, trees * rows, root, Gradients, TREE, bits, "nothing" if blind else "labels")
        self.told(
            "sides",
            trees * self.open,
            root,
            Divide,
            Topic.TRAIN,
            TREE,
            about="columns",
            bits=96,
            of=self.plan.parties,
        )
        # which split of a node is the best follows from derivatives of its rows, and so from labels
        splits = 2 * self.bins * sum(self.extent.width(party) for party in self.plan.parties)
        self.follows(
            "sides",
            trees * self.open,
            self.plan.label_holders,
            self.others(root),
            TREE,
            about="labels",
            bits=log2(1 + splits),
        )
        sets = 8 * SET_BYTES
        self.told("sides", trees * self.open, root, Sets, Topic.TRAIN, TREE, about="columns", bits=sets)
        self._sides(root)
        if self.plan.settings.additive:
            nodes = trees * (2 * self.open + 1)
            self.told("model", nodes, root, Grown, Topic.TRAIN, "in the end", about="labels", bits=GROWN_BITS)
        for owner in self.others(root):
            self._of_owner(owner, blind=blind)
        if self.plan.blind is not None and rows * 8 > long_messages.PIECE:
            for owner, dealer in self.plan.blind.dealers.items():
                words = trees * rows * self.extent.width(owner)
                for to in (owner, root):  # to the label holder, where bins are veiled once
                    self.told("masked", words, dealer, Rest, Topic.TRAIN, TREE, about="nothing", to=(to,))
        return self.openings

    def _of_owner(self, owner: str, *, blind: bool) -> None:
        """Write down what an owner of columns tells."""
        root, rows, trees = self.plan.evaluator, self.extent.rows, self.trees
        columns, to = self.extent.width(owner), (self.plan.evaluator,)
        self.told("sizes", columns, owner, Bins, Topic.TRAIN, "at the start", about="columns", to=to, bits=56)
        helped = self.plan.blind.dealers.get(owner) if self.plan.blind is not None else None
        if helped is not None:
            start = "at the start"
            self.told("sizes", 2, owner, Announce, Topic.TRAIN, start, about="nothing", to=(helped,))
        summed = trees * self.slots * columns * self.bins
        coarse = bool(self.plan.settings.trees.bits)  # joined bins: a sum, and two bits on where they end
        message, bits = (Joined, JOINED_BITS) if coarse else (Histograms, DOUBLE)
        kind: Kind = "histograms"
        if seals(self.plan):  # then a message says where bins end, and their sums are opened beside it
            # of every column one sum follows from the others, and is told as the noise of them all
            rest = trees * self.slots * columns
            self.product(kind, summed - rest, root, Topic.TRAIN, TREE, about="columns", of=(owner,))
            kind, bits = "bin counts", 2  # in whole bytes
            summed += 4 * trees * self.levels + NOISE_BITS // bits * rest
        self.told(kind, summed, owner, message, Topic.TRAIN, TREE, about="columns", to=to, bits=bits)
        if blind and not seals(self.plan):
            # rows of every bin in an order that is unknown, and then which of them go left
            self._long("bin counts", trees * columns * rows, owner, message, TREE, 8, "columns", to)
            sides = trees * columns * self.levels * (rows + 8)
            self._long("sides", sides, owner, message, TREE, 1, "columns", to)
        self._sides(owner)
        tests = self.extent.test
        outcomes = trees * self.open * (tests + 8)
        self.told(
            "sides",
            outcomes if tests else 0,
            owner,
            Outcomes,
            Topic.EVALUATE,
            "in the end",
            about="columns",
            to=(root,),
            bits=1,
        )

    def _sides(self, by: str) -> None:
        """Write down which rows go left in a party's splits, told to all that take part."""
        levels = self.levels - (by == self.plan.evaluator)  # of the last one the label holder alone hears
        sides = self.trees * levels * (self.extent.rows + 8)
        self._long("sides", sides, by, Sides, TREE, 1, "columns")

    def _long(
        self,
        kind: Kind,
        numbers: int,
        by: str,
        message: type,
        when: str,
        bits: float,
        about: str,
        to: tuple[str, ...] | None = None,
    ) -> None:
        """Write down an array that is sent in pieces where it is long."""
        self.told(kind, numbers, by, message, Topic.TRAIN, when, about=about, to=to, bits=bits)  # type: ignore[arg-type]
        if numbers * bits / 8 / max(1, self.trees) > long_messages.PIECE:
            self.told("masked", numbers, by, Rest, Topic.TRAIN, when, about="nothing", to=to, bits=bits)
