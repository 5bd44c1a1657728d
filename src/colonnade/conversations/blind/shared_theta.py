"""Theta of scores in two parts, the label holder's and its mate's: a part at either, and nobody sees a score.

    logistic   a sum of sines, for which a dealer deals words (`secure.shared_logistic`)
    squared    the parts of scores themselves

The label holder takes labels off its part.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from colonnade.arrays import Floats, Words
from colonnade.conversations.blind.products import NOTHING
from colonnade.conversations.context import Context
from colonnade.losses import LOSSES
from colonnade.messages import Dealt, Topic, Veil, tag_of
from colonnade.net.expect import PACKED, like, words
from colonnade.secure import shared_logistic
from colonnade.secure.ring import whole
from colonnade.secure.streams import Roles

SINE_BITS = 16
STRETCH = 2**14  # rows at a time
_LINE = 2**44  # tags of messages between two parties alone


@dataclass(frozen=True, eq=False)
class Sines:
    """The asker's or the owner's random phases and words of the sines of some rows."""

    phases: shared_logistic.Phases
    words: Words

    def of(self, cut: slice) -> Sines:
        """Return those of some of the rows."""
        return Sines(self.phases[cut], self.words[cut])


@dataclass(frozen=True, eq=False)
class SharedSines:
    """One party's side of sums of sines: the asker's, the owner's, the dealer's, or nobody's."""

    context: Context[Any]
    roles: Roles
    bits: int  # of what is dealt

    async def dealt(self, line: int, count: int) -> Sines | None:
        """Return what asker and owner need for some rows; the dealer deals it, and others have none."""
        net, roles, streams = self.context.net, self.roles, self.context.streams
        if self.context.me not in roles:
            return None
        if self.context.me == roles.dealer:
            values = shared_logistic.LogisticDealer(streams, roles).deal(line, count, self.bits)
            await net.send(roles.owner, Dealt(line, values))
            return None
        holder = shared_logistic.LogisticHolder(streams, roles)
        if self.context.me == roles.asker:
            return Sines(holder.phases(line, count), holder.dealt(line, count))
        message = await net.recv(Dealt, roles.dealer, line, values=words(count, shared_logistic.WORDS))
        return Sines(holder.phases(line, count), message.values)

    async def combined(self, line: int, part: Words, bits: int, sines: Sines, factor: float) -> Words:
        """Return a part of factor times (the logistic function less a half), of a part of scores.

        `bits` are the fraction of scores, and the factor has that of the result.
        """
        mine = shared_logistic.phases_of(part, bits) - sines.phases
        other = self.roles.owner if self.context.me == self.roles.asker else self.roles.asker
        await self.context.net.send(other, Veil(line, mine, NOTHING))
        heard = await self.context.net.recv(Veil, other, line, moved=like(mine), weights=PACKED)
        return shared_logistic.combined(mine + heard.moved, sines.words, factor * 2.0**-self.bits)


class SharedTheta:
    """One party's side of theta of all rows, in stretches; the owner of the roles is the mate."""

    def __init__(self, context: Context[Any], pair: Roles, bits: int) -> None:
        self.rows, self.bits = context.train.rows, bits
        self.has_sines = LOSSES[context.plan.objective.loss].shared_form == "sines"
        self._sines, self._lines = SharedSines(context, pair, SINE_BITS), 0

    async def of(self, share: Words | None, y: Floats | None) -> Words | None:
        """Return a part of theta, from a part of scores and the label holder's labels.

        These are -1/2 and 1/2 for sines, which are the logistic function less a half, or in theta's unit.
        """
        labels: Words = np.zeros(1, dtype=np.uint64) if y is None else whole(y * 2.0**self.bits)
        if not self.has_sines:
            return None if share is None else share - labels
        found: list[Words] = []
        for start in range(0, self.rows, STRETCH):
            end = min(start + STRETCH, self.rows)
            self._lines += 1
            line = tag_of(Topic.BLIND, _LINE + self._lines)
            sines = await self._sines.dealt(line, end - start)
            if sines is not None and share is not None:
                part = share[start:end]
                found.append(await self._sines.combined(line, part, self.bits, sines, 2.0**self.bits))
        return np.concatenate(found) - labels if found else None
