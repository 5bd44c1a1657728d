"""The products of a run that hides scores as well: two askers, whose parts of theta add up.

The label holder A and its mate B hold theta in two parts, so each asks for products with its own part
(`secure.product`), of every block but its own. Weights of a block are shared between its owner and one other
party, A for all blocks but A's own, B for that one: what B works out for other blocks it passes on at
once, as words minus those that A knows too, to the owner.

    forward    every block by its one asker, into a sum with root A, from which B takes random words away:
               A's total and B's words add up to the scores
    backward   both askers add X't with their part of t, B's result merges into A's and the owner's parts

Nobody learns a score, a theta or a gradient. What an owner sees are words minus words that it does not know.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from colonnade.arrays import Rows, Words
from colonnade.conversations.blind.columns import own_key
from colonnade.conversations.blind.products import NOTHING, of_version
from colonnade.conversations.blind.sides import ProductSide, set_up
from colonnade.conversations.context import Context
from colonnade.errors import ProtocolError, SumError
from colonnade.job.plan import Hidden
from colonnade.messages import Dealt, Topic, Veil, tag_of
from colonnade.net.expect import PACKED, said_by, words
from colonnade.secure.product import AskerLot, Columns, Lot, OwnerLot
from colonnade.secure.streams import Roles, Stream
from colonnade.secure.words import sums_of

MERGED = "merged"  # the purpose of the words that B's results are passed on with


@dataclass(eq=False)
class Open:
    """A lot as one party holds it, by the place of its sides."""

    lot: tuple[Lot, Lot]  # without and with scores
    asked: dict[int, AskerLot] = field(default_factory=dict)
    owned: dict[int, OwnerLot] = field(default_factory=dict)
    scores: dict[int, list[Words]] = field(default_factory=dict)
    dealt: dict[int, Words] = field(default_factory=dict)


class PairProducts:
    """One party's products. `own` is its part of its own weights, `parts` those of others, [1, columns]."""

    def __init__(self, context: Context[Any], hidden: Hidden, X: Columns | None) -> None:
        blind = context.plan.blind
        if blind is None:
            raise RuntimeError("the plan is not blind")
        self.context, self.net, self.me, self.X = context, context.net, context.me, X
        self.A, self.B, self.T = context.evaluator, hidden.mate, hidden.dealer
        first = [ProductSide(Roles(self.A, owner, dealer), 1) for owner, dealer in blind.dealers.items()]
        second = [
            ProductSide(Roles(self.B, owner, dealer), int(owner == self.A))
            for owner, dealer in hidden.dealers.items()
        ]
        self.sides = first + second
        self.own: Words = np.zeros((1, 0 if X is None else X.width), dtype=np.uint64)
        self.parts: dict[str, Words] = {}
        self._secret = Stream(own_key(context, "scores"))
        roles = Roles(self.A, self.B, self.T)
        peer = self.B if self.me == self.A else self.A
        both = self.me in (self.A, self.B)
        self._merged = context.streams.shared(peer, MERGED, roles) if both else None
        self._due: tuple[Open, int, dict[int, Veil]] | None = None
        self._lots = self._asked = self._version = 0

    # -- set-up ---------------------------------------------------------------------------------------

    async def set_up(self) -> None:
        """Veil the own columns for every asker; an asker's part of all weights begins as zero."""
        await set_up(self.context, self.sides, self.X)
        for side in self.sides:
            if side.scored and side.asker is not None:
                self.parts[side.roles.owner] = np.zeros((1, side.asker.width), dtype=np.uint64)

    # -- verbs ----------------------------------------------------------------------------------------

    async def open(self, batches: Sequence[Rows]) -> Open:
        """Begin a lot of batches: askers and dealers do their part of its products now, and deal."""
        number, self._lots = self._lots, self._lots + 1
        tag = tag_of(Topic.BLIND, number)
        lots = Lot(tag, "train", tuple(batches), 0, 1), Lot(tag, "train", tuple(batches), 1, 1)
        mine = Open(lots)
        for place, side in enumerate(self.sides):
            lot = lots[side.scored]
            if side.dealer is not None:
                mine.scores[place], values = side.dealer.deal(lot)
                await self.net.send(side.roles.asker, Dealt(self._dealt_tag(number, place), values))
            if side.asker is not None:
                mine.asked[place] = side.asker.take(lot)
            if side.owner is not None:
                mine.owned[place] = side.owner.take(lot)
            if side.dealer or side.asker or side.owner:
                await self._charge(lot, side)
        for place, side in enumerate(self.sides):
            if side.asker is not None:
                due, line = words(len(batches), 1, side.asker.width), self._dealt_tag(number, place)
                dealt = await self.net.recv(Dealt, side.roles.dealer, line, values=due)
                mine.dealt[place] = dealt.values
        return mine

    async def scores(self, lot: Open, batch: int) -> Words | None:
        """Return a's and B's part of the scores of a batch; None elsewhere."""
        number, self._asked = self._asked, self._asked + 1
        tag = tag_of(Topic.BLIND, number)
        rows = lot.lot[0].cuts[batch]
        piece: Words = np.zeros(rows.stop - rows.start, dtype=np.uint64)
        await self._send(tag, lot, batch)
        await self._hear(tag)
        for place, side in enumerate(self.sides):
            if place in lot.owned and side.scored:
                if place not in self._weights:
                    raise ProtocolError(f"{side.roles.asker} sent no part of the weights with its question")
                weights = self.own + self._weights.pop(place)
                piece += lot.owned[place].scores(batch, weights)[0]
            if side.scored and place in lot.asked:
                piece += lot.asked[place].scores[batch][0]
            if side.scored and place in lot.scores:
                piece += lot.scores[place][batch][0]
        if self.me == self.A:
            return await self.context.sum.collect(piece, tag=tag)
        kept = self._secret.once(tag, len(piece)) if self.me == self.B else None
        await self.context.sum.give(piece if kept is None else piece - kept, root=self.A, tag=tag)
        return kept

    async def add(self, lot: Open, batch: int, t: Words | None) -> None:
        """Add X't to all weights; t is A's or B's part of it, one word for every row."""
        messages: dict[int, Veil] = {}
        for place, side in enumerate(self.sides):
            if t is not None and place in lot.asked:
                moved = lot.asked[place].moved(batch, t[None])[0]
                gain = lot.asked[place].sums[batch] + lot.dealt[place][batch]
                if side.scored:
                    self.parts[side.roles.owner] += gain
                    messages[place] = Veil(0, moved, NOTHING)
                else:
                    messages[place] = Veil(0, moved, gain - self._passed_on(place, gain.shape[1]))
            elif self.me == self.A and not side.scored:
                part = self.parts[side.roles.owner]
                part += self._passed_on(place, part.shape[1])
        if t is not None and self.X is not None:
            self.own += sums_of(self.X.values, lot.lot[0].batches[batch], t[None])
        self._due = lot, batch, messages
        self._version += 1

    async def flush(self) -> None:
        """Tell owners of what was added last."""
        number, self._asked = self._asked, self._asked + 1
        tag = tag_of(Topic.BLIND, number)
        await self._send(tag, None, 0)
        await self._hear(tag)
        self._weights.clear()

    # -- within ---------------------------------------------------------------------------------------

    async def _send(self, tag: int, lot: Open | None, batch: int) -> None:
        """Send every owner, from an asker, what was added last and, for scores, its part of the weights."""
        due = self._due[2] if self._due is not None else {}
        for place, side in enumerate(self.sides):
            if side.asker is None:
                continue
            said = due.get(place, Veil(0, NOTHING, NOTHING))
            weights = said.weights
            if side.scored and lot is not None:
                weights = lot.asked[place].veil(batch, self.parts[side.roles.owner])
            await self.net.send(side.roles.owner, Veil(tag, said.moved, weights, self._version))

    async def _hear(self, tag: int) -> None:
        """Take in, at an owner, what was added, and keep the askers' parts of the weights."""
        self._weights: dict[int, Words] = {}
        for place, side in enumerate(self.sides):
            if side.owner is None:
                continue
            asker = side.roles.asker
            veil = await self.net.recv(Veil, asker, tag, moved=PACKED, weights=PACKED)
            of_version(asker, veil, self._version)
            with said_by(asker):
                if self._due is not None:
                    lot, batch, _ = self._due
                    self.own += lot.owned[place].add(batch, _words(veil.moved))
                    if not side.scored:
                        self.own += _alike(veil.weights, self.own)
                if side.scored and veil.weights.size:
                    self._weights[place] = _alike(veil.weights, self.own)
        self._due = None

    def _passed_on(self, place: int, width: int) -> Words:
        """Return the words with which B passes on what it worked out for a block; A has them too."""
        if self._merged is None:
            raise RuntimeError(f"{self.me} passes nothing on")
        return self._merged.once(self._asked * len(self.sides) + place, width)[None]

    def _dealt_tag(self, number: int, place: int) -> int:
        return tag_of(Topic.BLIND, number * len(self.sides) + place)

    async def _charge(self, lot: Lot, side: ProductSide) -> None:
        width = next(each.width for each in (side.owner, side.asker, side.dealer) if each is not None)
        await self.context.charge(lot.rows * width * (lot.scored + lot.added))


def _alike(values: Words, own: Words) -> Words:
    if values.shape != own.shape:
        raise SumError(f"{values.shape} values came for {own.shape} weights")
    return _words(values)


def _words(values: Words) -> Words:
    if values.dtype != np.uint64:
        raise SumError(f"{values.dtype} values came for a product, uint64 were due")
    return values
