"""Which rounds of other dominators a party gives its share to next."""

from __future__ import annotations

from collections.abc import Callable
from itertools import repeat

from colonnade.conversations.pacing.pacing import Pacing
from colonnade.conversations.pacing.schedule import Round, Schedule


class Upcoming:
    """The next round of every list of rounds to give shares to: one list, or one for each dominator.

    `together`: all rounds that may begin now are begun at once, as their scores are one product. `extra` says
    how many rounds beyond the window may begin.
    """

    def __init__(
        self, schedule: Schedule, pace: Pacing, me: str, extra: Callable[[], int], *, together: bool
    ) -> None:
        self._schedule, self._pace, self._extra, self._together = schedule, pace, extra, together
        self._lists = schedule.given(me)
        self._next: dict[int, int] = {}
        self._looked = -1  # `changes` of the pace when no more rounds could begin
        self.taken = False  # somebody else is about to give all shares that may be given

    def begin(self) -> None:
        """Find the first round of each list that is not begun: where a run goes on, not the first of all."""
        begun = set(self._pace.under_way())
        for place, numbers in enumerate(self._lists):
            self._next[place] = next(k for k in numbers if k not in begun and not self._pace.over(k))
        self._looked = -1

    @property
    def first(self) -> int | None:
        """The first of the next rounds that is still to be computed; None: none is."""
        return min((number for number in self._next.values() if not self._pace.past(number)), default=None)

    def may_give(self) -> bool:
        """Return whether one of the next rounds may begin now."""
        if self._looked == self._pace.changes:
            return False
        may_begin, extra = self._pace.may_begin, self._extra()
        return any(map(may_begin, self._next.values(), repeat(extra)))

    async def wait(self, first: int) -> None:
        """Wait until one of the next rounds may begin, or none is left; `first` was the first of them."""
        await self._pace.until(lambda: not self.taken and (self.may_give() or not self._left), first)

    @property
    def _left(self) -> bool:
        """Whether one of the next rounds is still to be computed; asked whenever something changes."""
        return not all(map(self._pace.past, self._next.values()))

    def begun(self) -> list[Round]:
        """Begin every round that may begin now, of those that are behind first; or one, if not `together`."""
        batches: list[Round] = []
        upcoming, extra, pace = self._next, self._extra(), self._pace
        for place in sorted(upcoming, key=upcoming.__getitem__):
            number = upcoming[place]
            end = pace.end(number, extra)
            while number < end and (self._together or not batches) and pace.begin(number, extra):
                batches.append(self._schedule.round(number))
                number = upcoming[place] = next(self._lists[place])
        if self._together:
            self._looked = pace.changes
        return batches
