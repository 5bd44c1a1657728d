"""Label holders that each pull scores for themselves: how far they are, and how far apart they may be.

Work comes in stints: as many updates as all label holders make in one pass over the rows. At the end of a
stint everybody finishes the update it is at, and all stand at one point. Scores that were asked for and not
used yet are used in the next stint: nobody waits until a slow party has worked them off.

Delays are bounded where the job says so (`max_delay`): then no party makes an update while it is more than
`lead` rounds ahead of the slowest. With m label holders, `ahead` batches in flight and a lead of d a batch
is at most (ahead - 1) + (m - 1) (ahead + 1 + 2 d) updates late (`pulled_bound`).
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np

from colonnade.arrays import Floats
from colonnade.conversations.pacing.delay_bound import UNBOUNDED
from colonnade.conversations.pacing.schedule import Round, Schedule
from colonnade.messages import Announce, Ask, Stop, Topic, tag_of
from colonnade.net.expect import floats, out_of_turn
from colonnade.net.network import Network
from colonnade.state import Declared

_NOTHING = np.zeros(0)


def pulled_bound(ahead: int, label_holders: int, lead: int) -> int | None:
    """Return the most updates that a batch can be late if nobody is over `lead` rounds ahead; None: no bound.

    From the moment that a party asks for a batch to the moment that it steps on it, it makes ahead - 1 other
    steps of its own. Another party was at most lead + 1 rounds behind at the first moment and is at most
    lead + 1 ahead at the second, and the own rounds between.

    >>> pulled_bound(1, 3, 0), pulled_bound(2, 1, UNBOUNDED), pulled_bound(1, 3, UNBOUNDED)
    (4, 1, None)
    """
    others = label_holders - 1
    if others and lead >= UNBOUNDED:
        return None
    return (ahead - 1) + (others * (ahead + 1 + 2 * lead) if others else 0)


@dataclass
class StintsState:
    """How far every party is, and the scores of own rounds that are not used yet."""

    known: dict[str, int]  # rounds that every puller is known to have finished
    stint: int = 0
    begun: int = 0  # own rounds asked for
    done: int = 0  # own rounds finished
    fetched: dict[int, Floats] = field(default_factory=dict)
    ended_early: bool = False
    served: dict[str, int] = field(default_factory=dict)  # batches that every other puller has asked for
    stopped: int = 0  # stints that the evaluator has ended


class Stints:
    """How far one party knows all label holders to be, and when the stint ends."""

    STATE = Declared(kept=("state",), remade=("moved", "stops"))

    def __init__(self, net: Network, evaluator: str, schedule: Schedule, ahead: int, lead: int) -> None:
        self.net, self.evaluator = net, evaluator
        self.schedule, self.ahead, self.lead = schedule, ahead, lead
        self.state = StintsState(known=dict.fromkeys(schedule.dominators, 0))
        self.moved = asyncio.Event()  # somebody finished a round, or the stint ends
        # by stint: the word to stop may come before a slow party has even begun that stint
        self.stops: defaultdict[int, asyncio.Event] = defaultdict(asyncio.Event)

    # -- rounds -------------------------------------------------------------------------------------

    def tag(self, puller: str, number: int) -> int:
        """Return the tag of a puller's own round; no two are alike."""
        pullers = self.schedule.dominators
        return tag_of(Topic.TRAIN, number * len(pullers) + pullers.index(puller))

    def batch(self, puller: str, number: int) -> Round:
        """Return the batch of a puller's own round: all have an epoch's order, and each begins elsewhere."""
        pullers = self.schedule.dominators
        offset = pullers.index(puller) * self.schedule.per_epoch // len(pullers)
        return self.schedule.round(number, offset)

    @property
    def rounds(self) -> int:
        """Rounds of every label holder up to the end of this stint, if all were as fast."""
        return (self.state.stint + 1) * self.schedule.per_epoch

    @property
    def updates(self) -> int:
        """Updates that all label holders are known to have made."""
        return sum(self.state.known.values())

    def progress(self) -> float:
        """Return the part of the run's updates that is done, from 0 to 1."""
        return min(1.0, self.updates / (self.schedule.rounds * len(self.schedule.dominators)))

    def epochs(self) -> set[int]:
        """Return the passes that label holders are in, or come to next."""
        ends = [known + more for known in self.state.known.values() for more in (0, self.ahead)]
        return {number // self.schedule.per_epoch for number in ends}

    # -- going on -----------------------------------------------------------------------------------

    def asked_for(self, sender: str, message: Ask) -> int:
        """Return the number of the batch that a label holder asks for: its next, no further than it may."""
        number, pullers = self.state.served.get(sender, 0), self.schedule.dominators
        if sender not in pullers or message.tag != self.tag(sender, number):
            raise out_of_turn(sender, message, "it is not the batch that it may ask for now")
        if number >= self.schedule.rounds * len(pullers) + self.ahead:
            raise out_of_turn(sender, message, "it has asked for all batches of the run")
        self.state.served[sender] = number + 1
        self.state.known[sender] = max(0, number - self.ahead + 1)
        return number

    async def may_go_on(self) -> bool:
        """Wait until this party is not too far ahead of the slowest; False if the stint ends meanwhile."""
        state = self.state
        while state.done - min(state.known.values()) > self.lead and not self.stopping.is_set():
            self.moved.clear()
            await self.moved.wait()
        return not self.stopping.is_set()

    # -- the end of a stint -------------------------------------------------------------------------

    @property
    def stopping(self) -> asyncio.Event:
        """Set when the evaluator has ended this stint."""
        return self.stops[self.state.stint]

    async def end_if_full(self) -> None:
        """End the stint once all parties together have made its updates; only the evaluator does."""
        if self.net.me != self.evaluator or self.stopping.is_set():
            return
        if self.updates >= self.rounds * len(self.schedule.dominators):
            self.stopping.set()
            self.moved.set()
            await self.net.broadcast(Stop(self.state.stint))

    async def heed(self) -> None:
        """End stints when the evaluator says so."""
        async for waiting in self.net.stream(Stop, patient=True):
            for sender, message in waiting:
                if sender != self.evaluator or message.at != self.state.stopped:
                    raise out_of_turn(
                        sender, message, f"it ends stint {message.at}, which is not for it to do"
                    )
                self.state.stopped += 1
                self.stops[message.at].set()
            self.moved.set()

    async def all_served(self) -> None:
        """Wait until the stint ends, and everybody has got what it asked for."""
        await self.stopping.wait()
        tag = tag_of(Topic.PAUSE, self.state.stint)
        await self.net.broadcast(Announce(tag, _NOTHING))
        await self.net.gather(Announce, tag, values=floats(0))
