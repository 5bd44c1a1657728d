"""Which rounds a party may begin: what its program may ask, whoever decides it (`one_order`, `own_pace`)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import Protocol

from colonnade.net.network import Network


class Pacing(Protocol):
    """Says which rounds a party may begin, and counts those that it has finished."""

    @property
    def ahead(self) -> int:
        """The most rounds in flight."""
        ...

    @property
    def finished(self) -> int:
        """How many rounds are finished."""
        ...

    @property
    def base(self) -> int:
        """How many rounds are finished, without those that have overtaken others."""
        ...

    @property
    def stop(self) -> int:
        """How many rounds the run has."""
        ...

    @property
    def delay_bound(self) -> int | None:
        """The most updates that a theta can be late; None: there is no bound."""
        ...

    @property
    def ending(self) -> bool:
        """Whether the run is to end before its last round, as far as this party knows."""
        ...

    def numbers(self) -> Iterable[int]:
        """Return the rounds at both ends of what is in flight."""
        ...

    def gates(self) -> AsyncIterator[int]:
        """Yield every gate once all rounds before it are finished; asking for the next one lifts it."""
        ...

    async def reaches(self, number: int) -> bool:
        """Wait until so many rounds are finished; False if the run stops before that."""
        ...

    async def ends(self) -> None:
        """Wait until every round of the run is finished."""
        ...

    async def end_early(self, net: Network) -> None:
        """Begin no more rounds than needed, and tell all; only the evaluator may."""
        ...

    def past(self, number: int) -> bool:
        """Return whether the round is not to be computed any more."""
        ...

    def expects(self, number: int) -> bool:
        """Return whether the round is begun here and not finished."""
        ...

    async def opens(self, number: int, extra: int = 0) -> bool:
        """Wait until the round may begin, and begin it; False if it is not to be computed any more."""
        ...

    async def until(self, holds: Callable[[], bool], first: int = 0) -> None:
        """Wait until something holds that changes with the rounds that are finished, or may begin.

        Of those who wait in a window, who waits for the `first` round goes first.
        """
        ...

    def may_begin(self, number: int, extra: int = 0) -> bool:
        """Return whether the round may begin now; `extra` rounds more are for a party that lags."""
        ...

    def open_to(self, number: int, extra: int = 0) -> bool:
        """Begin the round, if it may begin now; `extra` rounds more are for a party that lags."""
        ...

    def end(self, number: int, extra: int = 0) -> int:
        """Return the round before which this one and those after it that have its dominator may begin now.

        Where tickets are needed, those that have one.
        """
        ...

    def begin(self, number: int, extra: int = 0) -> bool:
        """Begin a round before its `end`; False if it needs a ticket and has none."""
        ...

    def read(self, numbers: Iterable[int]) -> None:
        """Note that the weights are read for some rounds."""
        ...

    def heard(self, number: int, seen: Sequence[int]) -> None:
        """Note which rounds were finished where a round's theta was computed: so many of every dominator."""
        ...

    @property
    def changes(self) -> int:
        """How often something changed that lets rounds begin: while it stands still, none more may."""
        ...

    @property
    def holds_back(self) -> bool:
        """Whether there may be thetas that are not due yet."""
        ...

    def is_due(self, number: int) -> bool:
        """Return whether theta of a round may be applied now."""
        ...

    async def due(self, number: int) -> None:
        """Wait until theta of a round may be applied."""
        ...

    def finish(self, numbers: Iterable[int]) -> None:
        """Mark rounds as finished."""
        ...

    def under_way(self) -> list[int]:
        """Return the rounds that are begun here and not finished."""
        ...

    def over(self, number: int) -> bool:
        """Return whether the round is finished here."""
        ...

    def hold(self, gate: int) -> None:
        """Put up a gate ahead of all rounds that have begun."""
        ...
