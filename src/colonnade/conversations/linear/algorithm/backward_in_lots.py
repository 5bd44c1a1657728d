"""The backward conversation where products are prepared in lots: all parties make Algorithms 1-3 in one go.

Here weights, and in a hidden run scores too, are shared between parties. A share of scores is the answer to
a question, a step has two sides, and the products of a lot of rounds are prepared before its first. Every
score belongs to one version of the weights that all parties count alike. So all give, reply and step in one
order, with `ahead` rounds under way. In `backward` these are tasks apart and a party steps whenever it has
theta; here the two parts of a weight would then be of different versions, and a total at mixed versions
tells one party's scores from others'.

What a round's share, reply and step are, and what is due between rounds, is the party's (`parties.blind`,
`parties.hidden`).
"""

from __future__ import annotations

from collections import deque
from typing import TypeVar

from colonnade.conversations.context import Outcome
from colonnade.conversations.linear.parties.in_lots import InLot, PartyInLots

Lot = TypeVar("Lot")
Asked = TypeVar("Asked")


async def converse(party: PartyInLots[Lot, Asked]) -> Outcome:
    """Train to the end."""
    await party.begin()
    while rounds := await party.next_rounds():
        await make(party, rounds)
        await party.pause()
    return await party.outcome()


async def make(party: PartyInLots[Lot, Asked], rounds: range) -> None:
    """Make some rounds, lot by lot; none of them is under way any more in the end."""
    under_way = deque[tuple[InLot[Lot], Asked]]()
    ahead = party.context.plan.pace.ahead

    async def finish() -> None:
        """Make the reply and the step of the earliest round under way."""
        at, asked = under_way.popleft()
        await party.step(at, await party.reply(at, asked))

    for first in range(0, len(rounds), party.together):
        batches = [party.schedule.round(number) for number in rounds[first : first + party.together]]
        lot = await party.open(batches)
        for place, batch in enumerate(batches):
            if len(under_way) == ahead:
                await finish()
            at = InLot(batch, lot, place)
            under_way.append((at, await party.give(at, behind=len(under_way))))
    while under_way:
        await finish()
