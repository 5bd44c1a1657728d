"""Rounds in one order: dominators take turns (where each has a pace of its own, see `own_pace`).

A round may begin when all but the last `ahead` rounds before it are finished here; that bounds the delay.
Other parties' thetas may overtake each other, so finished rounds need not be consecutive; `base` is the first
unfinished one. A gate holds back every round from its number on: all rounds before it are finished, then
something is done together, then the gate is lifted.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass, field

from colonnade.conversations.pacing.pacing import Pacing
from colonnade.errors import JobError
from colonnade.messages import Stop
from colonnade.net.expect import out_of_turn
from colonnade.net.network import Network
from colonnade.state import Declared


def check_delay(ahead: int, max_delay: int | None, *, each: int = 2) -> int:
    """Return `ahead`; refuse it if a theta could then be more than `max_delay` updates late.

    Every other batch in flight makes it `each` updates later: two where thetas may overtake each other.
    """
    bound = each * (ahead - 1)
    if max_delay is not None and bound > max_delay:
        raise JobError(
            f"train: ahead = {ahead} batches in flight can be {bound} updates late, over max_delay = "
            f"{max_delay}; set ahead = {max_delay // each + 1} or max_delay = {bound}"
        )
    return ahead


@dataclass
class OneOrderState:
    """How far a party is: `base` is the first unfinished round, `beyond` are finished rounds after it."""

    gates: list[int]  # still to come
    stop: int  # no round from here on
    base: int = 0
    finished: int = 0
    begun: int = 0
    beyond: set[int] = field(default_factory=set)

    def finish(self, number: int) -> None:
        """Mark a round as finished."""
        self.finished += 1
        if number != self.base:
            self.beyond.add(number)
            return
        self.base += 1
        while self.base in self.beyond:
            self.beyond.remove(self.base)
            self.base += 1


class OneOrder(Pacing):
    """Decides which rounds one party may begin where all have one order.

    A party that is behind the others may score up to `stale` rounds beyond its window.
    """

    STATE = Declared(kept=("state",), remade=("_conditions",))

    def __init__(self, ahead: int, rounds: int, gates: Iterable[int] = (), *, stale: int = 0) -> None:
        super().__init__()
        self._ahead, self._rounds, self._stale = ahead, rounds, stale
        self.delay_bound: int = 2 * (ahead - 1)  # as thetas may overtake each other
        self.state = OneOrderState(sorted(set(gates)), rounds)

    @property
    def ahead(self) -> int:
        """The most rounds in flight."""
        return self._ahead

    @property
    def base(self) -> int:
        """The first round that is not finished."""
        return self.state.base

    @property
    def finished(self) -> int:
        """How many rounds are finished."""
        return self.state.finished

    @property
    def begun(self) -> int:
        """The round after the last one that was begun."""
        return self.state.begun

    @property
    def stop(self) -> int:
        """The round after the last one of the run."""
        return self.state.stop

    @property
    def gate(self) -> float:
        """The next gate."""
        return self.state.gates[0] if self.state.gates else float("inf")

    @property
    def ending(self) -> bool:
        """Whether the run is to end before its last round."""
        return self.state.stop < self._rounds

    def ends_in_flight(self) -> tuple[int, int]:
        """Return the rounds at both ends of what is in flight."""
        return self.state.base, max(self.state.base, self.state.begun - 1)

    def past(self, number: int) -> bool:
        """Return whether the round is not to be computed any more."""
        return number >= self.state.stop

    def expects(self, number: int) -> bool:
        """Return whether the round is begun here and not finished."""
        return self.state.base <= number < self.state.begun and number not in self.state.beyond

    async def opens(self, number: int, extra: int = 0) -> bool:
        """Wait until the round may begin, and begin it; False if it is not to be computed any more."""
        await self.until(lambda: self.may_begin(number, extra) or self.past(number), number)
        return self.open_to(number, extra)

    async def until(self, holds: Callable[[], bool], first: int = 0) -> None:
        """Wait until something holds that changes with the rounds that are finished, or may begin."""
        await self._conditions.until(holds, first)

    def begin(self, number: int, extra: int = 0) -> bool:
        """Begin a round before its `end`."""
        self.state.begun = max(self.state.begun, number + 1)
        return True

    def beyond(self, *, behind: bool = False) -> int:
        """Return how many rounds beyond its window a party may score: some, while it is behind.

        A party that makes an update of every theta cannot catch up, and must not get further behind.
        """
        return self._stale if behind else 0

    def end(self, number: int, extra: int = 0) -> int:
        """Return the first round that is beyond the window, a gate or the end."""
        state = self.state
        end = min(state.base + self._ahead + extra, state.stop)
        return min(end, state.gates[0]) if state.gates else end

    async def gates(self) -> AsyncIterator[int]:
        """Yield every gate once all rounds before it are finished; asking for the next one lifts it."""
        while self.state.gates:
            if not await self.reaches(self.state.gates[0]) or self.state.gates[0] >= self.state.stop:
                return
            yield self.state.gates[0]
            self.state.gates.pop(0)
            self._conditions.wake()

    async def reaches(self, number: int) -> bool:
        """Wait until every round before `number` is finished; False if the run stops before that."""
        await self._conditions.until(lambda: self.state.base >= min(number, self.state.stop))
        return self.state.base >= number

    async def ends(self) -> None:
        """Wait until every round of the run is finished."""
        await self._conditions.until(lambda: self.state.base >= self.state.stop)

    def finish(self, numbers: Iterable[int]) -> None:
        """Mark rounds as finished."""
        for number in numbers:
            self.state.finish(number)
        self._conditions.wake()

    def under_way(self) -> list[int]:
        """Return the rounds that are begun here and not finished."""
        return [number for number in range(self.state.base, self.state.begun) if self.expects(number)]

    def over(self, number: int) -> bool:
        """Return whether the round is finished here."""
        return number < self.state.base or number in self.state.beyond

    def hold(self, gate: int) -> None:
        """Put up a gate ahead of all rounds that have begun."""
        self.state.gates = sorted({*self.state.gates, gate})

    def stop_at(self, number: int) -> None:
        """Compute no round from `number` on."""
        self.state.stop = min(self.state.stop, number)
        self._conditions.wake()

    async def end_early(self, net: Network) -> None:
        """Begin no more rounds than needed, and tell all; only the evaluator may."""
        # no theta of a round that we have not begun can exist, so nobody is past this one
        stop = min(self.begun + self.ahead, self.state.stop)
        self.stop_at(stop)
        await net.broadcast(Stop(stop))

    async def agree_on_ends(self, net: Network, evaluator: str, *, may_end_early: bool) -> None:
        """Stop where the evaluator says; for everybody but the evaluator."""
        if not may_end_early or net.me == evaluator:
            return
        for sender, message in await net.drain(Stop, patient=True):
            # it stops behind what is under way at itself, and nobody here is further than the window allows
            if sender != evaluator or not self.base <= message.at <= self.stop:
                why = f"it stops the run at round {message.at}, {self.base} are done"
                raise out_of_turn(sender, message, why)
            self.stop_at(message.at)
