"""Gradients of all rows for the owners of columns, from a theta that others hold, for some passes at once.

The product is `add` of `secure.product`, but its result is the owner's: an asker sends, with t - a, its own
part E'a + (M'a + r) of X't as well, plus noise that it draws. One message a pass and owner says both; the
owner adds its X'(t - a) - r, and has X't with noise. Of two askers each has a part of t, and the owner adds
what both say.

Dealers deal masks of several passes together: so they make their words M, and askers read what is veiled,
once for all of them. A mask is good for one pass.

What each side learns: the owner its own X't with noise; the asker and the dealer nothing. An owner and its
dealer know t together, and an asker and a dealer the columns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from colonnade.arrays import Words
from colonnade.conversations.blind.products import STRETCH
from colonnade.conversations.blind.sides import ProductSide, set_up
from colonnade.conversations.context import Context
from colonnade.errors import SumError
from colonnade.messages import Dealt, Topic, Veil, tag_of
from colonnade.net.expect import words
from colonnade.secure.product import AskerLot, Columns, Lot, OwnerLot
from colonnade.secure.protocol import UsedTags
from colonnade.secure.streams import Roles
from colonnade.secure.words import sums_of

TOGETHER = 2**22  # words of masks that are made together, of one asker and block
_PASSES = 2**40  # tags of passes: no run has as many lots
Part = Callable[[str, int], Words]  # what an asker adds to its part, for an owner of this many columns


@dataclass(eq=False)
class GradientSide(ProductSide):
    """The same with its part in the lot of passes that is under way."""

    asked: AskerLot | None = None
    owned: OwnerLot | None = None
    dealt: Words | None = None


@dataclass(eq=False)
class DealtGradients:
    """One party's products; all parties call the same verbs in the same order."""

    context: Context[Any]
    roles: Sequence[Roles]
    X: Columns | None  # the own columns, in whole numbers
    passes: int  # that are left
    sides: list[GradientSide] = field(init=False)

    def __post_init__(self) -> None:
        self.sides = [GradientSide(roles) for roles in self.roles]
        self.net, self.rows = self.context.net, self.context.train.rows
        self._batches = tuple(
            np.arange(start, min(start + STRETCH, self.rows)) for start in range(0, self.rows, STRETCH)
        )
        self._lots = self._done = self._left = self._place = 0
        self._used = UsedTags()

    async def set_up(self) -> None:
        """Veil all columns, for every asker with words of its own."""
        await set_up(self.context, self.sides, self.X)

    # -- a pass ---------------------------------------------------------------------------------------

    async def ready(self) -> None:
        """Begin a pass: where no masks are left, askers and dealers do their part for the next ones."""
        self._done, self._place = self._done + 1, self._place + 1
        if self._place < self._left:
            return
        self._place, self._left = 0, max(1, min(self.passes, TOGETHER // max(1, self.rows)))
        self.passes -= self._left
        number, self._lots = self._lots, self._lots + 1
        lot = Lot(tag_of(Topic.BLIND, number), "train", self._batches, 0, self._left)
        for place, side in enumerate(self.sides):
            if side.dealer is not None:
                dealt = side.dealer.deal(lot)[1].sum(axis=0, dtype=np.uint64)
                await self.net.send(side.roles.asker, Dealt(self._tag(number, place), dealt))
                await self._charge(side.dealer.width)
            if side.asker is not None:
                side.asked = side.asker.take(lot)
                await self._charge(side.asker.width)
            if side.owner is not None:
                side.owned = side.owner.take(lot)
        for place, side in enumerate(self.sides):
            if side.asker is not None:
                due = words(self._left, side.asker.width)
                tag = self._tag(number, place)
                side.dealt = (await self.net.recv(Dealt, side.roles.dealer, tag, values=due)).values

    async def ask(self, t: Words, added: Part) -> None:
        """Send every owner that this party asks t without its mask, and the own part of its X't with what is
        added."""
        self._used.use(self._done)
        for place, side in enumerate(self.sides):
            if side.asker is None or side.asked is None or side.dealt is None:
                continue
            lot, k = side.asked, self._place
            masks = np.concatenate([each[0, k] for each in lot.a])
            own = np.sum([each[k] for each in lot.sums], axis=0, dtype=np.uint64) + side.dealt[k]
            own += added(side.roles.owner, side.asker.width)
            self.net.let_open(side.roles.owner, Topic.BLIND, side.asker.width)
            veil = Veil(self._tag(_PASSES + self._done, place), t - masks, own, self._done)
            await self.net.send(side.roles.owner, veil)

    async def answer(self, alone: str | None = None) -> Words | None:
        """Return the sum of what all askers of the own block say, or this one alone, with noise; None where
        there are none."""
        found: list[Words] = []
        for place, side in enumerate(self.sides):
            if side.owner is None or side.owned is None or self.X is None:
                continue
            if side.roles.asker != (alone or side.roles.asker):
                continue
            due = {"moved": words(self.rows), "weights": words(self.X.width)}
            veil = await self.net.recv(Veil, side.roles.asker, self._tag(_PASSES + self._done, place), **due)
            hidden = side.owned.hidden[:, self._place].sum(axis=0, dtype=np.uint64)
            found.append(self.own(veil.moved) - hidden + veil.weights)
            await self._charge(self.X.width)
        return np.sum(found, axis=0, dtype=np.uint64) if found else None

    def own(self, t: Words) -> Words:
        """Return X't of the own columns."""
        if self.X is None:
            raise SumError(f"{self.context.me} has no columns")
        total = np.zeros(self.X.width, dtype=np.uint64)
        for rows in self._batches:
            total += sums_of(self.X.values, rows, np.ascontiguousarray(t[None, rows[0] : rows[-1] + 1]))[0]
        return total

    def _tag(self, number: int, place: int) -> int:
        return tag_of(Topic.BLIND, number * len(self.sides) + place)

    async def _charge(self, width: int) -> None:
        await self.context.charge(self.rows * width)


def sides_of(
    asker: str, dealers: Mapping[str, str], mate: str | None = None, of_mate: Mapping[str, str] | None = None
) -> list[Roles]:
    """Return who asks whom with whose help: the label holder all owners and, where there is a mate, that all
    but itself.

    >>> sides_of("bank", {"shop": "telco", "telco": "shop"})[0]
    Roles(asker='bank', owner='shop', dealer='telco')
    """
    first = [Roles(asker, owner, dealer) for owner, dealer in dealers.items()]
    if mate is None:
        return first
    return first + [Roles(mate, owner, dealer) for owner, dealer in (of_mate or {}).items()]
