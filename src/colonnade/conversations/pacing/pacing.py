"""Which rounds a party may begin: what its program asks, in one order (`one_order`) or not (`own_pace`)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterable, Sequence

from colonnade.conversations.pacing.conditions import Conditions
from colonnade.conversations.pacing.delays import Lateness
from colonnade.net.network import Network


class Pacing(ABC):
    """Says which rounds one party may begin, and counts those that it has finished."""

    delay_bound: int | None
    """The most updates that a theta can be late; None: there is no bound."""

    def __init__(self) -> None:
        self._conditions = Conditions()  # of those who wait for a round to begin

    # -- how far it is ------------------------------------------------------------------------------

    @property
    @abstractmethod
    def ahead(self) -> int:
        """The most rounds in flight."""

    @property
    @abstractmethod
    def finished(self) -> int:
        """How many rounds are finished."""

    @property
    @abstractmethod
    def base(self) -> int:
        """How many rounds are finished, without those that have overtaken others."""

    @property
    @abstractmethod
    def stop(self) -> int:
        """How many rounds the run has."""

    @property
    @abstractmethod
    def ending(self) -> bool:
        """Whether the run is to end before its last round, as far as this party knows."""

    @property
    def lateness(self) -> Lateness:
        """The bound of delays that is kept, and the parts of the longest delay where they are measured."""
        return Lateness(self.delay_bound)

    @property
    def changes(self) -> int:
        """How often something changed that lets rounds begin: while it stands still, none more may."""
        return self._conditions.changes

    @abstractmethod
    def ends_in_flight(self) -> Iterable[int]:
        """Return the rounds at both ends of what is in flight."""

    @abstractmethod
    def past(self, number: int) -> bool:
        """Return whether the round is not to be computed any more."""

    @abstractmethod
    def over(self, number: int) -> bool:
        """Return whether the round is finished here."""

    @abstractmethod
    def under_way(self) -> list[int]:
        """Return the rounds that are begun here and not finished."""

    # -- beginning rounds ---------------------------------------------------------------------------

    @abstractmethod
    def beyond(self, *, behind: bool = False) -> int:
        """Return how many rounds beyond its window a party may score that is behind others, or is not."""

    @abstractmethod
    def end(self, number: int, extra: int = 0) -> int:
        """Return the round before which this one and those after it that have its dominator may begin.

        `extra` are rounds beyond the window.
        """

    def may_begin(self, number: int, extra: int = 0) -> bool:
        """Return whether the round may begin now."""
        return number < self.end(number, extra)

    @abstractmethod
    def begin(self, number: int, extra: int = 0) -> bool:
        """Begin a round before its `end`; False if it has to wait all the same."""

    def open_to(self, number: int, extra: int = 0) -> bool:
        """Begin the round, if it may begin now."""
        return number < self.end(number, extra) and self.begin(number, extra)

    @abstractmethod
    async def opens(self, number: int, extra: int = 0) -> bool:
        """Wait until the round may begin, and begin it; False if it is not to be computed any more."""

    @abstractmethod
    async def until(self, holds: Callable[[], bool], first: int = 0) -> None:
        """Wait until something holds that changes with the rounds that are finished, or may begin.

        Of those who wait in one order, who waits for the `first` round goes first.
        """

    # -- thetas -------------------------------------------------------------------------------------

    @property
    def seen(self) -> tuple[int, ...]:
        """What a dominator says with a theta: its finished rounds of each dominator, if they differ."""
        return ()

    def read(self, numbers: Iterable[int]) -> None:
        """Note that the weights are read for some rounds; in one order their numbers tell as much."""
        return

    def heard(self, number: int, seen: Sequence[int]) -> None:
        """Note what was finished where a round's theta was computed."""
        return

    @property
    def holds_back(self) -> bool:
        """Whether there may be thetas that are not due yet."""
        return False

    def is_due(self, number: int) -> bool:
        """Return whether theta of a round may be applied now."""
        return True

    async def due(self, number: int) -> None:
        """Wait until theta of a round may be applied."""
        return

    @property
    def own_waits(self) -> bool:
        """Whether theta of an own round waits for the next update, instead of being one by itself."""
        return False

    lets_give = False
    """Whether those who give shares ask for the processor before a party that has stepped asks again."""

    async def catch_up(self, net: Network) -> None:
        """Take in what has come while this party made an update, where that says how fast others are."""
        return

    @abstractmethod
    def finish(self, numbers: Iterable[int]) -> None:
        """Mark rounds as finished."""

    # -- pauses and the end -------------------------------------------------------------------------

    @abstractmethod
    def hold(self, gate: int) -> None:
        """Put up a gate ahead of all rounds that have begun."""

    @abstractmethod
    def gates(self) -> AsyncIterator[int]:
        """Yield every gate once all rounds before it are finished; asking for the next one lifts it."""

    @abstractmethod
    async def reaches(self, number: int) -> bool:
        """Wait until this many rounds are finished; False if the run stops before that."""

    @abstractmethod
    async def ends(self) -> None:
        """Wait until every round of the run is finished."""

    @abstractmethod
    async def end_early(self, net: Network) -> None:
        """Begin no more rounds than needed, and tell all; only the evaluator may."""

    @abstractmethod
    async def agree_on_ends(self, net: Network, evaluator: str, *, may_end_early: bool) -> None:
        """Tell the others, or hear from the evaluator, where the run pauses or ends."""

    def left_over(self) -> list[int]:
        """Return the rounds that were begun here and never took place, once the run is over."""
        return []
