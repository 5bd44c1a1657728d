"""Theta of scores in two parts, the label holder's and its mate's: a part at either, and nobody sees a score.

    logistic   a sum of sines, for which a dealer deals words (`secure.shared_logistic`)
    squared    the parts of scores themselves

The label holder takes labels off its part.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from colonnade.arrays import Floats, Words
from colonnade.conversations.blind.products import NOTHING
from colonnade.conversations.context import Context
from colonnade.losses import LOSSES
from colonnade.messages import Dealt, Topic, Veil, tag_of
from colonnade.net.expect import PACKED, like, words
from colonnade.secure import shared_logistic
from colonnade.secure.streams import Roles

SINE_BITS = 16
STRETCH = 2**14  # rows at a time
_LINE = 2**44  # tags of messages between two parties alone


class SharedTheta:
    """One party's side: the asker's, the mate's (the owner of the roles), the dealer's, or nobody's."""

    def __init__(self, context: Context[Any], pair: Roles, bits: int) -> None:
        self.context, self.pair, self.bits = context, pair, bits
        self.sines = LOSSES[context.plan.objective.loss].shared_form == "sines"
        self._lines = 0

    async def of(self, share: Words | None, y: Floats | None) -> Words | None:
        """Return a part of theta, from a part of scores and the label holder's labels.

        These are -1/2 and 1/2 for sines, which are the logistic function less a half, or in theta's unit.
        """
        labels: Words = np.zeros(1, dtype=np.uint64) if y is None else whole(y, self.bits)
        if not self.sines:
            return None if share is None else share - labels
        found: list[Words] = []
        for start in range(0, self.context.train.rows, STRETCH):
            end = min(start + STRETCH, self.context.train.rows)
            self._lines += 1
            line = tag_of(Topic.BLIND, _LINE + self._lines)
            if self.context.me == self.pair.dealer:
                await self._deal(line, end - start)
            elif share is not None:
                found.append(await self._part(share[start:end], line))
        return np.concatenate(found) - labels if found else None

    async def _deal(self, line: int, count: int) -> None:
        dealt = shared_logistic.LogisticDealer(self.context.streams, self.pair).deal(line, count, SINE_BITS)
        await self.context.net.send(self.pair.owner, Dealt(line, dealt))

    async def _part(self, share: Words, line: int) -> Words:
        """Return a part of the logistic function less a half, of some rows."""
        net, count, asks = self.context.net, len(share), self.context.me == self.pair.asker
        holder = shared_logistic.LogisticHolder(self.context.streams, self.pair)
        mine = shared_logistic.phases_of(share, self.bits) - holder.phases(line, count)
        other = self.pair.owner if asks else self.pair.asker
        await net.send(other, Veil(line, mine, NOTHING))
        if asks:
            dealt = holder.dealt(line, count)
        else:
            due = words(count, shared_logistic.WORDS)
            dealt = (await net.recv(Dealt, self.pair.dealer, line, values=due)).values
        heard = await net.recv(Veil, other, line, moved=like(mine), weights=PACKED)
        return shared_logistic.combined(mine + heard.moved, dealt, 2.0 ** (self.bits - SINE_BITS))


def whole(numbers: Floats, bits: int) -> Words:
    """Return numbers as words, with these bits of fraction."""
    steps: Words = np.rint(numbers * 2.0**bits).astype(np.int64).view(np.uint64)
    return steps
